"""Features of a design that is described by counts: a row as in `calibration.jsonl`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from fpgaprune.design import STRATEGIES, legal_reuse_factors, nearest_reuse_factor
from fpgaprune.errors import EstimateError
from fpgaprune.estimate.digits import Products, expect_products, scattered
from fpgaprune.estimate.families import UNPRICED, family_of, is_quantizer, unpriced
from fpgaprune.estimate.features import UNCERTAINTY, DesignFeatures, LayerFeatures, Port, cut_bits, with_live_shares
from fpgaprune.estimate.row_fields import Fields

Row = Mapping[str, Any]

# Width of a weight in bits -> the fraction of a layer's nonzero weights that need three or more signed digits, for rows
# without counts; medians over the calibration rows with counts.
_MANY_SHARE = ((4, 0.0), (6, 0.10), (8, 0.20), (12, 0.80), (16, 0.72), (64, 0.80))
_CONVOLUTIONS = ("Conv1D", "Conv2D")
# With an uncertainty above this fraction of the clock period, the scheduler gives every operation a cycle of its own.
_MOST_UNCERTAIN = 0.9


def can_be_priced(kind: object) -> bool:
    """Return whether a layer of class `kind` can be priced; a row mixes the two products of a recurrent layer."""
    return isinstance(kind, str) and family_of(kind) not in (UNPRICED, "recurrent")


def row_features(row: Row) -> DesignFeatures:
    """Return the features of `row`; its `truth` is not read.

    A layer of a class that no model prices is left out, and `left_out` names it.

    Raises:
        EstimateError: a field is missing or malformed, or no layer can be priced; the message names row, layer and
            field.
    """
    name = Fields(row, "a row").text("id")
    fields = Fields(row, f"row {name!r}")
    layers = row.get("layers")
    if not isinstance(layers, list) or not layers:
        raise EstimateError(f"row {name!r} has no 'layers'; wanted a list of at least one layer")
    parsed = [Fields(layer, f"row {name!r} layer {index}") for index, layer in enumerate(layers)]
    tool = _tool(fields)
    clock = fields.number("clock_ns", 0.05, 10_000.0)
    notes: list[str] = []
    uncertainty = clock * UNCERTAINTY[tool]
    if row.get("clock_uncertainty_ns") is not None:
        stated = fields.number("clock_uncertainty_ns", 0.0, 10_000.0)
        if stated > _MOST_UNCERTAIN * clock:
            notes.append(f"clock_uncertainty_ns {stated:g} leaves nothing of {clock:g} ns; priced with {uncertainty:g}")
        else:
            uncertainty = stated
    streams = _streams(fields, parsed)
    strategy = fields.choice("strategy", STRATEGIES)
    features: list[LayerFeatures] = []
    for index, layer in enumerate(parsed):
        kind = layer.text("class")
        if not can_be_priced(kind):
            notes.append(
                unpriced(kind, layer.where)
                if family_of(kind) == UNPRICED
                else f"{layer.where} is a {kind!r}, whose two products a row does not tell apart: price a design"
            )
            features.append(_wire(layer, kind, features[-1] if features else None, streams))
            continue
        features.append(_layer(layer, index, features[-1] if features else None, strategy, streams, notes))
        if tool == "vivado" and layer.text("fn", "").startswith("pointwise"):
            features[-1] = replace(features[-1], copies_in_parallel=features[-1].positions_out)
    if not any(can_be_priced(layer.text("class")) for layer in parsed):
        raise EstimateError(notes[-1])
    pipelined = _pipelined(fields, parsed, streams)
    features = _written_as_read(features)
    if any(is_quantizer(layer.kind) for layer in features):
        # HGQ takes bits from a number until nothing is left of it.
        features = [replace(x, products=x.products and scattered(x.products, x.n_in)) for x in features]
    return DesignFeatures(
        name=name,
        layers=tuple(with_live_shares(features) if pipelined else features),
        streams=streams,
        tool=tool,
        clock_ns=clock,
        uncertainty_ns=uncertainty,
        part=fields.text("part", "").lower(),
        pipelined=pipelined,
        multiplier=fields.choice("mul_impl_forced", ("dsp", "fabric")),
        # Without a pragma at the top, Vitis HLS runs one layer after another, one sample at a time.
        left_out=tuple(notes),
        overlaps=tool == "vivado" or fields.data.get("top_pragma") is not None,
    )


def _wire(fields: Fields, kind: str, previous: LayerFeatures | None, streams: bool) -> LayerFeatures:
    """Return a layer that is left out: it has the shape that the next layer reads, and no hardware."""
    shape = fields.sizes("out")
    size = fields.maybe_count("n_out", "n_filt")
    positions, channels = _stream(shape, size, previous, streams)
    out = fields.port("output_t", previous.out if previous else Port(16))
    return LayerFeatures(
        fields.text("name", kind), kind, UNPRICED, positions_out=positions, channels_out=channels, out=out
    )


def _tool(fields: Fields) -> str:
    named = (fields.text("tool", "") or fields.text("backend", "")).lower()
    for tool in ("vitis", "vivado"):
        if tool in named:
            return tool
    raise EstimateError(
        f"{fields.where} was made with {named or 'no named tool'!r}; only Vivado and Vitis HLS are known"
    )


def _streams(fields: Fields, layers: list[Fields]) -> bool:
    """Return whether the row states the io_type io_stream; without one, maps are streamed and vectors are not."""
    stated = fields.text("io_type", "").rstrip("?")
    if stated not in ("", "io_parallel", "io_stream"):
        raise EstimateError(f"{fields.where} has io_type {stated!r}; wanted io_parallel or io_stream")
    images = any(layer.data.get("class") in (*_CONVOLUTIONS, "Pooling") for layer in layers)
    return stated == "io_stream" or (not stated and images)


def _pipelined(fields: Fields, layers: list[Fields], streams: bool) -> bool:
    if any(layer.data.get("class") in _CONVOLUTIONS for layer in layers):
        return False
    pragma = fields.choice("top_pragma", ("PIPELINE", "DATAFLOW"))
    if pragma:
        return pragma == "PIPELINE"
    return not streams and fields.data.get("strategy") != "resource"


def _written_as_read(features: list[LayerFeatures]) -> list[LayerFeatures]:
    """Return the layers; an activation rounds and saturates if the next layer reads a narrower number."""
    found = list(features)
    for index, (layer, reader) in enumerate(pairwise(features)):
        narrows = reader.inp.bits < layer.out.bits and layer.family == "activation"
        if narrows and reader.positions_in * reader.channels_in == layer.positions_out * layer.channels_out:
            found[index] = replace(layer, out=replace(reader.inp, rounds=True, saturates=True))
    return found


def _layer(
    fields: Fields, index: int, previous: LayerFeatures | None, default: str | None, streams: bool, notes: list[str]
) -> LayerFeatures:
    kind = fields.text("class")
    name = fields.text("name", "") or f"{kind.lower()}_{index}"
    fields.where = f"{fields.where} ({name})"
    family = family_of(kind)
    shape_in, shape_out = fields.sizes("in"), fields.sizes("out")
    inp = fields.port("input_t", previous.out if previous else Port(16))
    out = fields.port("output_t", inp)
    # A sum without a type of its own does not round or saturate as the numbers that it reads do.
    accum = fields.port("accum_t", replace(out if family in ("dense", "conv") else inp, rounds=False, saturates=False))
    weight = fields.port("scale_t" if family == "scale" else "weight_t", inp)
    depths = [d for d in fields.mapping("fifo_depth").values() if isinstance(d, int) and d > 0]
    size = fields.maybe_count("n_in", "n_elem")
    positions_in, channels_in = _stream(shape_in, size, previous, streams)
    if previous is None and not shape_in and size and depths and size % depths[-1] == 0:
        # Of the first layer of a stream, only the depth of the FIFO behind it gives the number of pixels.
        positions_in, channels_in = depths[-1], size // depths[-1]
    kernel = fields.sizes("kernel")
    n_in, n_out = _products_per_position(fields, family, kernel, channels_in, shape_out)
    positions_out, channels_out = positions_in, channels_in
    if shape_out:
        positions_out, channels_out = math.prod(shape_out[:-1]), shape_out[-1]
    if family == "dense":
        positions_out, channels_out = 1, n_out
    elif family == "global_pooling":
        positions_out = 1
    elif family == "resize" and len(shape_out) < 2:
        positions_out = depths[-1] if depths else 4 * positions_in
    strategy = fields.choice("strategy", STRATEGIES) or (default if family in ("dense", "conv") else None)
    return LayerFeatures(
        name=name,
        kind=kind,
        family=family,
        operation=_operation(fields),
        positions_in=positions_in,
        positions_out=positions_out,
        channels_in=channels_in,
        channels_out=channels_out,
        kernel=(kernel[0], kernel[-1]) if len(kernel) > 1 else (1, kernel[0] if kernel else 1),
        width_in=shape_in[-2] if len(shape_in) > 1 else 1,
        n_in=n_in,
        n_out=n_out,
        reuse=_reuse(fields, n_in, n_out, strategy if family in ("dense", "conv") else None, notes),
        strategy=strategy,
        inp=inp,
        out=out,
        accum=accum,
        weight_bits=weight.bits,
        constant_bits=_constant_bits(fields, weight),
        cut_bits=cut_bits(inp, weight, accum),
        products=_products(fields, n_in, n_out, weight.bits),
        table_size=fields.count("table_size", 1024),
        table_bits=fields.port("exp_table_t" if family == "softmax" else "table_t", Port(18)).bits,
        copies_in_parallel=max(positions_out // fields.count("n_partitions", positions_out), 1),
        encoded=fields.text("implementation", "") == "encoded",
        fifo_depth=depths[-1] if depths else None,
    )


def _operation(fields: Fields) -> str:
    """Return the function of an activation or a pooling, without underscores; a quantiser is linear."""
    named = fields.text("activation", "") or fields.text("pool_op", "") or fields.text("fn", "")
    plain = named.lower().replace("_", "")
    return "linear" if "quantiz" in plain else plain


def _products_per_position(
    fields: Fields, family: str, kernel: tuple[int, ...], channels_in: int, shape_out: tuple[int, ...]
) -> tuple[int, int]:
    if family == "dense":
        return fields.count("n_in"), fields.count("n_out")
    if family == "conv":
        n_in = fields.maybe_count("mult_n_in") or math.prod(kernel) * channels_in
        return n_in, fields.maybe_count("mult_n_out", "n_filt") or (shape_out[-1] if shape_out else channels_in)
    return (1, channels_in) if family == "scale" else (0, 0)


def _reuse(fields: Fields, n_in: int, n_out: int, strategy: str | None, notes: list[str]) -> int:
    """Return the reuse factor; in the resource strategy the nearest one that divides the products, as in hls4ml."""
    reuse = fields.maybe_count("mult_reuse_factor", "reuse_factor") or 1
    if strategy != "resource" or reuse == 1:
        return reuse
    moved = nearest_reuse_factor(legal_reuse_factors(n_in, n_out, strategy), reuse)
    if fields.maybe_count("reuse_factor_requested"):
        return moved
    if n_in * n_out % reuse and reuse < n_in * n_out:
        notes.append(
            f"{fields.where} has reuse factor {reuse}, which does not divide its {n_in} x {n_out} multiplications; "
            f"priced with the nearest that does: {moved}"
        )
        return moved
    return reuse


def _products(fields: Fields, n_in: int, n_out: int, bits: int) -> Products | None:
    total = n_in * n_out
    if not total:
        return None
    # A scale has an input of its own for every constant.
    inputs = n_in if n_in > 1 else total
    weights = fields.mapping("weights")
    role = next((key for key in weights if key[:1] in ("w", "s")), None)
    counts = Fields(weights[role], f"{fields.where} weights {role!r}") if role else None
    if counts and counts.data.get("n_csd_ge3") is not None and counts.data.get("n"):
        all_weights = counts.count("n")
        # A parallel convolution, or a layer that shares weights, multiplies by each weight more than once.
        scale = total / all_weights
        zero, one, many = (
            round(scale * counts.count(key, low=0, high=all_weights)) for key in ("zeros_q", "pow2_q", "n_csd_ge3")
        )
        if zero + one + many > total:
            raise EstimateError(
                f"{counts.where} have {zero} zeros, {one} powers of two and {many} with three digits or more, of "
                f"{total}; wanted counts that add up to no more"
            )
        widest = min(bits, counts.count("max_abs_bits", bits, low=0, high=64) + 1)
        mean = counts.number("mean_bits_nz", 0.0, 64.0) if counts.data.get("mean_bits_nz") is not None else bits / 2
        return expect_products(total, zero, one, many, inputs, widest, mean)
    nonzero = fields.maybe_count("n_nonzero", "n_nonzero_est") or total
    if nonzero > total:
        raise EstimateError(f"{fields.where} has {nonzero} nonzero weights of {total}; wanted at most {total}")
    # Pruning took the smallest weights, which have the fewest digits.
    many = round(nonzero * (1 - (1 - _many_share(bits)) * nonzero / total))
    return expect_products(total, total - nonzero, round((nonzero - many) * 0.4), many, inputs, bits, bits / 2)


def _constant_bits(fields: Fields, weight: Port) -> int:
    """Count the bits that a weight below 2 in magnitude can use; all of them if the row has no weights."""
    if weight.integer is None or not fields.mapping("weights"):
        return weight.bits
    return max(min(weight.bits, weight.bits - weight.integer + 2), 1)


def _many_share(bits: int) -> float:
    for (low, at_low), (high, at_high) in pairwise(_MANY_SHARE):
        if bits <= high:
            return at_low + (at_high - at_low) * max(bits - low, 0) / (high - low)
    return _MANY_SHARE[-1][1]


def _stream(shape: tuple[int, ...], size: int | None, previous: LayerFeatures | None, streams: bool) -> tuple[int, int]:
    """Return positions and channels of a layer's data, from its shape, else from its size and the previous layer."""
    if shape:
        return math.prod(shape[:-1]), shape[-1]
    if previous is not None:
        positions, channels = previous.positions_out, previous.channels_out
        if size is None or positions * channels == size:
            return positions, channels
        if streams and size % channels == 0:
            return size // channels, channels
    return 1, size or 1
