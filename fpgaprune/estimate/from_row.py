"""Features of a design that is described by counts: a row of the form of `calibration.jsonl`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from fpgaprune.errors import EstimateError
from fpgaprune.estimate.digits import Products, expect_products
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures, Port
from fpgaprune.estimate.kinds import family_of
from fpgaprune.estimate.reuse import allowed_reuse
from fpgaprune.fixed import MAX_WIDTH

Row = Mapping[str, Any]

# Share of a layer's nonzero weights that need three or more signed digits, by the width of a weight in bits, where the
# row has no counts; medians over the calibration rows that have them.
_MANY_SHARE = ((4, 0.0), (6, 0.10), (8, 0.20), (12, 0.80), (16, 0.72), (64, 0.80))


def row_features(row: Row) -> DesignFeatures:
    """The features of `row`; its `truth` is never read.

    Raises:
        EstimateError: a field is missing or makes no sense; the message names row, layer and field.
    """
    name = _text(row, "id", "a row")
    layers = row.get("layers")
    if not isinstance(layers, list) or not layers:
        raise EstimateError(f"row {name!r} has no 'layers'; wanted a list of at least one layer")
    tool = "vitis" if "vitis" in str(row.get("tool") or row.get("backend") or "").lower() else "vivado"
    clock = _number(row, "clock_ns", f"row {name!r}", 0.05, 10_000.0)
    share = 0.27 if tool == "vitis" else 0.125
    uncertainty = row.get("clock_uncertainty_ns")
    io_type = str(row.get("io_type") or ("io_stream" if _has_image(layers) else "io_parallel")).rstrip("?")
    if io_type not in ("io_parallel", "io_stream"):
        raise EstimateError(f"row {name!r} has io_type {io_type!r}; wanted io_parallel or io_stream")
    strategy = row.get("strategy")
    features: list[LayerFeatures] = []
    for index, layer in enumerate(layers):
        features.append(_layer(layer, index, features, f"row {name!r} layer {index}", strategy, io_type))
    features = _written_as_read(features)
    return DesignFeatures(
        name=name,
        layers=tuple(features),
        io_type=io_type,
        tool=tool,
        clock_ns=clock,
        uncertainty_ns=clock * share if uncertainty is None else float(uncertainty),
        part=str(row.get("part") or "").lower(),
        pipelined=_pipelined(row, io_type),
        multiplier=row.get("mul_impl_forced"),
    )


def _written_as_read(features: list[LayerFeatures]) -> list[LayerFeatures]:
    """Activations write what the next layer reads: a narrower number there means rounding and saturation here."""
    for index, (layer, reader) in enumerate(pairwise(features)):
        narrows = reader.inp.bits < layer.out.bits and layer.family == "activation"
        if narrows and reader.positions_in * reader.channels_in == layer.positions_out * layer.channels_out:
            out = replace(reader.inp, rounds=True, saturates=True)
            features[index] = replace(layer, out=out)
    return features


def _pipelined(row: Row, io_type: str) -> bool:
    if row.get("top_pragma") in ("PIPELINE", "DATAFLOW"):
        return bool(row["top_pragma"] == "PIPELINE")
    return io_type == "io_parallel" and row.get("strategy") != "resource"


def _has_image(layers: list[Row]) -> bool:
    return any(isinstance(x, Mapping) and x.get("class") in ("Conv1D", "Conv2D", "Pooling") for x in layers)


def _layer(
    layer: Row, index: int, before: list[LayerFeatures], where: str, default: str | None, io_type: str
) -> LayerFeatures:
    if not isinstance(layer, Mapping):
        raise EstimateError(f"{where} is {type(layer).__name__}; wanted an object")
    kind = _text(layer, "class", where)
    where = f"{where} ({layer.get('name') or kind})"
    family = family_of(kind, where)
    previous = before[-1] if before else None
    shape_in, shape_out = _shape(layer.get("in"), where), _shape(layer.get("out"), where)
    inp = _port(layer.get("input_t"), where, previous.out if previous else Port(16))
    out = _port(layer.get("output_t"), where, inp)
    accum = _port(layer.get("accum_t"), where, out if family in ("dense", "conv") else inp)
    weight = _port(layer.get("weight_t") or layer.get("scale_t"), where, inp)
    size = _size(layer, where)
    pos_in, ch_in = _stream(shape_in, size if family != "dense" else layer.get("n_in"), previous, io_type)
    pos_out, ch_out = _stream(shape_out, None, None, io_type) if shape_out else (pos_in, ch_in)
    if family == "dense":
        n_in, n_out = _count(layer, "n_in", where), _count(layer, "n_out", where)
        pos_out, ch_out = 1, n_out
    elif family == "conv":
        kernel = [k for k in layer.get("kernel") or () if k]
        fallback = math.prod(kernel) * ch_in
        n_in, n_out = int(layer.get("mult_n_in") or fallback), int(layer.get("mult_n_out") or ch_out)
        if n_in < 1 or n_out < 1:
            raise EstimateError(f"{where} has mult_n_in {n_in} and mult_n_out {n_out}; wanted 1 or more")
    elif family == "scale":
        n_in, n_out = 1, ch_in
    else:
        n_in, n_out = 0, 0
    if family == "global_pooling":
        pos_out = 1
    if family == "resize":
        pos_out = next(reversed((layer.get("fifo_depth") or {"": 4 * pos_in}).values()))
    strategy = layer.get("strategy") or (default if family in ("dense", "conv") else None)
    reuse = int(layer.get("mult_reuse_factor") or layer.get("reuse_factor") or 1)
    if reuse < 1:
        raise EstimateError(f"{where} has reuse factor {reuse}; wanted 1 or more")
    if family in ("dense", "conv") and strategy == "resource":
        if layer.get("reuse_factor_requested"):
            reuse = allowed_reuse(n_in, n_out, reuse)
        elif reuse > 1 and (n_in * n_out) % reuse and reuse < n_in * n_out:
            raise EstimateError(
                f"{where} has reuse factor {reuse}, which does not divide its {n_in} x {n_out} multiplications; "
                f"nearest that does: {allowed_reuse(n_in, n_out, reuse)}"
            )
    kernel_hw = tuple(int(k) if k else 1 for k in (layer.get("kernel") or (1, 1)))
    depths = layer.get("fifo_depth") or {}
    return LayerFeatures(
        name=str(layer.get("name") or f"{kind.lower()}_{index}"),
        kind=kind,
        family=family,
        source=index - 1 if index else None,
        operation=str(layer.get("activation") or layer.get("pool_op") or layer.get("fn") or "").lower(),
        positions_in=pos_in,
        positions_out=pos_out,
        channels_in=ch_in,
        channels_out=ch_out,
        kernel=(kernel_hw[0], kernel_hw[-1]),
        width_in=(shape_in[-2] if shape_in and len(shape_in) > 1 else 1),
        n_in=n_in,
        n_out=n_out,
        reuse=reuse,
        strategy=strategy,
        inp=inp,
        out=out,
        accum=accum,
        weight_bits=weight.bits,
        products=_products(layer, n_in, n_out, weight.bits, where),
        table_size=int(layer.get("table_size") or 1024),
        table_bits=_port(layer.get("exp_table_t") or layer.get("table_t"), where, Port(18)).bits,
        encoded=layer.get("implementation") == "encoded",
        fifo_depth=int(list(depths.values())[-1]) if depths else None,
    )


def _products(layer: Row, n_in: int, n_out: int, bits: int, where: str) -> Products | None:
    if not n_in * n_out:
        return None
    weights = layer.get("weights") or {}
    role = next((w for key, w in weights.items() if key[:1] in "ws" and w.get("n")), None)
    total = n_in * n_out
    if role and role.get("n_csd_ge3") is not None:
        if min(role["n"], role["zeros_q"], role["pow2_q"], role["n_csd_ge3"]) < 0:
            raise EstimateError(f"{where} counts a negative number of weights; wanted 0 or more")
        scale = total / role["n"]
        widest = min(bits, int(role.get("max_abs_bits") or bits) + 1)
        zero, one, many = (round(scale * role[key]) for key in ("zeros_q", "pow2_q", "n_csd_ge3"))
        return expect_products(total, zero, one, many, n_in, widest)
    nonzero = layer.get("n_nonzero") or layer.get("n_nonzero_est") or total
    if not 0 <= nonzero <= total:
        raise EstimateError(f"{where} has {nonzero} nonzero weights of {total}; wanted 0 to {total}")
    many = round(nonzero * _many_share(bits))
    one = round((nonzero - many) * 0.4)
    return expect_products(total, total - int(nonzero), one, many, n_in, bits)


def _many_share(bits: int) -> float:
    for (low, at_low), (high, at_high) in pairwise(_MANY_SHARE):
        if bits <= high:
            return at_low + (at_high - at_low) * max(bits - low, 0) / (high - low)
    return _MANY_SHARE[-1][1]


def _shape(value: Any, where: str) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    dims = [v for v in value if v is not None]
    if any(not isinstance(v, int) or v < 1 for v in dims):
        raise EstimateError(f"{where} has the shape {value}; wanted whole numbers from 1 on")
    # An unknown image size (None) leaves only the channels.
    return tuple(dims) or None


def _size(layer: Row, where: str) -> int | None:
    value = layer.get("n_in") or layer.get("n_elem")
    if value is None:
        return None
    if not isinstance(value, int) or value < 1:
        raise EstimateError(f"{where} has n_in {value!r}; wanted a whole number from 1 on")
    return value


def _stream(
    shape: tuple[int, ...] | None, size: int | None, previous: LayerFeatures | None, io_type: str
) -> tuple[int, int]:
    """Positions and channels of a layer's data, from its shape, else from its size and the layer before."""
    if shape:
        return math.prod(shape[:-1]), shape[-1]
    if previous is not None:
        positions, channels = previous.positions_out, previous.channels_out
        if size is None or positions * channels == size:
            return positions, channels
    if size is not None and io_type == "io_stream" and previous is not None and size % previous.channels_out == 0:
        return size // previous.channels_out, previous.channels_out
    return 1, size or 1


def _port(value: Any, where: str, fallback: Port) -> Port:
    if not isinstance(value, Mapping) or value.get("W") is None:
        return fallback
    bits = value["W"]
    if not isinstance(bits, int) or not 1 <= bits <= MAX_WIDTH:
        raise EstimateError(f"{where} has a number of {bits!r} bits; wanted 1 to {MAX_WIDTH}")
    text = str(value.get("str", "")).upper()
    return Port(bits, bool(value.get("signed", True)), "RND" in text, "SAT" in text, value.get("I"))


def _count(layer: Row, key: str, where: str) -> int:
    value = layer.get(key)
    if not isinstance(value, int) or value < 1:
        raise EstimateError(f"{where} has {key} {value!r}; wanted a whole number from 1 on")
    return value


def _number(row: Row, key: str, where: str, low: float, high: float) -> float:
    value = row.get(key)
    if not isinstance(value, int | float) or not low <= value <= high:
        raise EstimateError(f"{where} has {key} {value!r}; wanted a number from {low} to {high}")
    return float(value)


def _text(row: Row, key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise EstimateError(f"{where} has {key} {value!r}; wanted a text")
    return value
