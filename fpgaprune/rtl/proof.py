"""`prove_layer`: the Verilog of a layer computes its integer matrix, or its function, for every input.

A sum of products is linear. So each adder of the text is followed as a weighted sum of the inputs, exactly, and its
width is compared with the bounds of that sum: where no bit is lost, what holds for the coefficients holds for every
input.
Behind the last adder, an output depends on one number, its sum; there, the text is evaluated for every value that the
sum can have, and compared with the arithmetic of the emulator. A function of one input is evaluated for every input.

The text is read, not the plan that it was made of: every line must be understood, or nothing is claimed. Timing within
the pipeline is part of it: operands must come from the same sample.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Convolution, Dense, Design, Input, LayerSpec, LookUp, Map, Softmax
from fpgaprune.emulate import Exact, computed, exponentials_of, inverses_of, steps_of
from fpgaprune.errors import CertificateError, DesignError, UnsupportedLayerError
from fpgaprune.rtl.followed_values import FollowedValues, Sum
from fpgaprune.rtl.project import RtlLayer, VerilogProject
from fpgaprune.rtl.read_back import read_weights
from fpgaprune.rtl.read_expression import UndecidedError
from fpgaprune.rtl.read_lines import DatapathText
from fpgaprune.values import FixedType

# Values for which the text is evaluated: all that a sum or an input can have, up to so many.
MOST_VALUES = 1 << 22
_CHUNK = 1 << 18


@dataclass(frozen=True)
class LayerProof:
    """What is known of one module of the Verilog.

    Attributes:
        layer: of the design.
        module: of the Verilog.
        found: what was proven, or what differs, or why nothing was proven.
        holds: whether it holds for all inputs; None if that was not decided.
    """

    layer: str
    module: str
    found: str
    holds: bool | None

    def sentence(self) -> str:
        """What is known, in one line."""
        return f"module {self.module}: {self.found}"


class _WrongNumbersError(CertificateError):
    """A stored number is another than the design's, whatever comes in."""


def prove_project(project: VerilogProject, design: Design) -> list[LayerProof]:
    """What each module that computes at once does for all inputs.

    Raises:
        CertificateError: a file of the project is gone.
    """
    return [proof for row in project.layers for proof in _proofs(project, design, row)]


def _proofs(project: VerilogProject, design: Design, row: RtlLayer) -> Iterator[LayerProof]:
    """A proof for each datapath of the layer."""
    own = re.compile(rf"(?:.*/)?{re.escape(row.module)}_([a-z]+\d*)\.v")
    for name in row.files:
        found = own.fullmatch(name)
        if found is None or re.fullmatch(r"(?:rom|part)\d+", found[1]):
            continue
        module = f"{row.module}_{found[1]}"
        try:
            text = (project.path / name).read_text()
        except FileNotFoundError as error:
            raise CertificateError(f"{project.path}: {error.filename} is gone; write the Verilog again") from error
        if f"module {module} " not in text or "out_data" not in text:
            continue
        serial = "fp_serial_" in text
        try:
            said = _decide(project, design, row, "products" if serial else found[1])
            yield LayerProof(row.layer, module, said, holds=True)
        except (UndecidedError, DesignError, UnsupportedLayerError) as error:
            yield LayerProof(row.layer, module, str(error), holds=None)
        except CertificateError as error:
            sure = isinstance(error, _WrongNumbersError) or _is_sure(design, row.layer)
            said = str(error) if sure else f"{error}, if the layer before gives any number of its type"
            yield LayerProof(row.layer, module, said, holds=False if sure else None)


def _decide(project: VerilogProject, design: Design, row: RtlLayer, role: str) -> str:
    """What was proven of the datapath `role`, as text.

    Raises:
        CertificateError: it computes something else; `UndecidedError`: that was not decided.
    """
    layers = {layer.name: layer for layer in design.layers}
    if role == "products":
        _require_matrix(project, layers[row.layer])
        raise UndecidedError("its weights, read back, are the integer matrix; what it makes of them was not proven")
    if isinstance(layers[row.layer].operation, Softmax) and role == "softmax":
        _require_tables(DatapathText.read(project, row, role), design, layers[row.layer])
        raise UndecidedError("its tables are right in every entry; what it makes of them was not proven")
    if role == "sums":
        return _prove_sums(DatapathText.read(project, row, role), design, layers[row.layer])
    # A function that is computed behind a layer's sums is called after its own layer.
    for layer in (layers.get(f"{row.layer}_{role}"), layers[row.layer], *_readers(design, row.layer)):
        if layer is not None and isinstance(layer.operation, LookUp | Map) and len(layer.inputs) == 1:
            return _prove_function(DatapathText.read(project, row, role), design, layer, layers[row.layer])
    raise UndecidedError("neither sums of products at once nor a function of one number")


def _is_sure(design: Design, name: str) -> bool:
    """Whether the layer reads an input of the network, so that it may get every number of its type.

    The text of a later layer is made for what the one before can give, which may be less.
    """
    layers = {layer.name: layer for layer in design.layers}
    return any(isinstance(layers[source].operation, Input) for source in layers[name].inputs)


def _readers(design: Design, name: str) -> list[LayerSpec]:
    return [layer for layer in design.layers if layer.inputs == (name,)]


def _prove_sums(text: DatapathText, design: Design, layer: LayerSpec) -> str:
    """That a layer's sums are its matrix, for all inputs."""
    if not isinstance(layer.operation, Dense | Convolution):
        raise UndecidedError("no layer of weighted sums")
    matrix = _matrix(layer)
    (source,) = [one for one in design.layers if one.name == layer.inputs[0]]
    kind, accum, result, weight = (
        source.types["result"],
        layer.types["accum"],
        layer.types["result"],
        layer.types["weight"],
    )
    fraction = kind.fraction + weight.fraction
    bias = Exact.of(layer.weights["bias"], layer.types["bias"]).into(accum)
    starts = np.broadcast_to(bias.integers().reshape(-1), (matrix.shape[1],)).tolist()
    for column, start in zip(matrix.T, starts, strict=True):
        _require_any_order(column, start, kind, fraction, accum)
    walk = FollowedValues(text, len(matrix), kind.signed)
    if walk.width != kind.width or len(text.outputs) != matrix.shape[1]:
        raise CertificateError(
            f"its inputs have {walk.width} bits and it gives {len(text.outputs)} sums; the layer wants {kind.width} "
            f"and {matrix.shape[1]}"
        )
    stages, checked = set(), 0
    for output, (column, start) in enumerate(zip(matrix.T, starts, strict=True)):
        wanted = Sum.of({place: int(value) for place, value in enumerate(column)}, 0)
        known = walk.output(output)
        # A sum of which no bit is left is a constant.
        if known.base not in ((), wanted.base):
            raise CertificateError(f"output {output} {_unlike(known.base, wanted)}")
        low, high = walk.bounds(wanted.base)
        if high - low >= MOST_VALUES:
            raise UndecidedError(f"output {output}: its sum has {high - low + 1:,} values, too many to try each")
        stages.add(known.stage)
        width, tree = text.outputs[output]
        for first in range(low, high + 1, _CHUNK):
            base = np.arange(first, min(first + _CHUNK, high + 1), dtype=np.int64)
            ends = sorted((wanted.factor * first, wanted.factor * int(base[-1])))
            products = Exact(wanted.factor * base, fraction, ends[0], ends[1])
            total = Exact(np.asarray(start), accum.fraction, start, start) + products
            _require_same(
                walk.values(tree, width, base),
                total.into(accum).into(result).integers(),
                width,
                f"output {output}",
                base,
            )
        checked += high - low + 1
    if len(stages - {None}) > 1:
        raise CertificateError("its outputs do not leave in the same cycle")
    return (
        f"{matrix.shape[1]:,} sums of {len(matrix):,} inputs are the integer matrix, with no bit lost; what follows "
        f"each sum was tried for all of its values, {checked:,} together"
    )


def _require_matrix(project: VerilogProject, layer: LayerSpec) -> None:
    """Check that the weights in a layer's memories, or in its adders of bits, are its integers times a power of two.

    Raises:
        CertificateError: one is another; the message names the first.
    """
    wanted = layer.weights["weight"]
    try:
        came = read_weights(project, layer)
    except CertificateError as error:
        raise UndecidedError(str(error)) from None
    axis = tuple(range(wanted.ndim - 1))
    largest = np.abs(came).max(axis=axis), np.abs(wanted).max(axis=axis)
    scale = np.where(largest[1] > 0, largest[0] // np.maximum(largest[1], 1), 1)
    if (scale < 1).any() or (scale & (scale - 1)).any() or (came != wanted * scale).any():
        place = np.argwhere(came != wanted * np.maximum(scale, 1))
        first = [int(at) for at in place[0]] if len(place) else []
        raise _WrongNumbersError(f"the weight at {first} of layer {layer.name!r} is another than the design's")


def _require_tables(text: DatapathText, design: Design, layer: LayerSpec) -> None:
    """Check every entry of a softmax's tables.

    Raises:
        CertificateError: one is wrong; the message names the first.
    """
    (step,) = [one for one in steps_of(design) if one.layer.name == layer.name]
    wanted = [
        table.integers().reshape(-1) for table in (exponentials_of(step).into(step.type("accum")), inverses_of(step))
    ]
    for name, entries in text.tables.items():
        wrong = [np.flatnonzero(np.asarray(entries) != table) for table in wanted if len(table) == len(entries)]
        nearest = min(wrong, key=len, default=None)
        if nearest is None or len(nearest):
            where = "" if nearest is None else f" in entry {int(nearest[0])}"
            raise _WrongNumbersError(
                f"table {name} is neither the exponential nor the inverse of {layer.name!r}{where}"
            )


def _matrix(layer: LayerSpec) -> NDArray[np.int64]:
    """The raw weights (inputs of a position, outputs)."""
    weight = layer.weights["weight"]
    if not layer.is_depthwise:
        return weight.reshape(-1, weight.shape[-1])
    channels = layer.output_shape[-1]
    taps = weight.reshape(-1, channels)
    matrix = np.zeros((taps.size, channels), np.int64)
    for channel in range(channels):
        matrix[channel::channels, channel] = taps[:, channel]
    return matrix


def _require_any_order(column: NDArray[np.int64], start: int, kind: FixedType, fraction: int, accum: FixedType) -> None:
    """Check that the accumulator loses no bit, whatever the order of additions is: then the sum is that of the matrix.

    Raises:
        UndecidedError: it may.
    """
    shift = accum.fraction - fraction
    if shift < 0:
        raise UndecidedError("the accumulator rounds each product, so that the sum is none of a matrix")
    low, high = min(kind.raw_min, 0), max(kind.raw_max, 0)
    positive, negative = int(column[column > 0].sum()), int(column[column < 0].sum())
    bottom, top = positive * low + negative * high, positive * high + negative * low
    if accum.overflow != "WRAP" and not (
        accum.raw_min <= start + (bottom << shift) and start + (top << shift) <= accum.raw_max
    ):
        raise UndecidedError("the accumulator saturates on the way, so that the sum is none of a matrix")


def _unlike(came: tuple[tuple[int, int], ...], wanted: Sum) -> str:
    """How a sum differs from the weights, at the first input."""
    mine, theirs = dict(came), dict(wanted.base)
    place = min(place for place in mine.keys() | theirs.keys() if mine.get(place) != theirs.get(place))
    return f"takes input {place} {mine.get(place, 0)} times, and the weights say {theirs.get(place, 0)} times"


def _require_same(
    came: NDArray[np.int64], wanted: NDArray[np.int64], width: int, what: str, at: NDArray[np.int64]
) -> None:
    mask = (1 << width) - 1
    came, wanted = np.broadcast_to(came, at.shape) & mask, np.broadcast_to(wanted, at.shape) & mask
    if (came != wanted).any():
        place = int(np.flatnonzero(came != wanted)[0])
        raise CertificateError(
            f"{what} is {int(came[place])} instead of {int(wanted[place])} where its sum is {int(at[place])}"
        )


def _range_of(design: Design, layer: LayerSpec) -> tuple[int, int] | None:
    """Between which the results of a layer of weighted sums lie; None if that is not known."""
    if not isinstance(layer.operation, Dense | Convolution):
        return None
    kind = next(one for one in design.layers if one.name == layer.inputs[0]).types["result"]
    accum, result = layer.types["accum"], layer.types["result"]
    fraction = kind.fraction + layer.types["weight"].fraction
    bias = Exact.of(layer.weights["bias"], layer.types["bias"]).into(accum)
    low, high = min(kind.raw_min, 0), max(kind.raw_max, 0)
    matrix = _matrix(layer)
    positive, negative = matrix.clip(min=0).sum(axis=0), matrix.clip(max=0).sum(axis=0)
    ends = [positive * low + negative * high, positive * high + negative * low]
    totals = [bias + Exact(end, fraction, int(end.min()), int(end.max())) for end in ends]
    # A sum that wraps may become anything.
    if not all(_stays(total, accum) and _stays(total.into(accum), result) for total in totals):
        return None
    found = [total.into(accum).into(result).integers() for total in totals]
    return int(found[0].min()), int(found[1].max())


def _stays(total: Exact, kind: FixedType) -> bool:
    """Whether assigning to a type keeps the order of numbers."""
    widest = FixedType(63, kind.integer + 63 - kind.width, signed=True, rounding=kind.rounding)
    rounded = total.into(widest).integers()
    return kind.overflow in ("SAT", "SAT_SYM") or bool(((rounded >= kind.raw_min) & (rounded <= kind.raw_max)).all())


def _prove_function(text: DatapathText, design: Design, layer: LayerSpec, before: LayerSpec) -> str:
    """That a function of one input is that of the layer, for all numbers that the layer before can give."""
    (source,) = [one for one in design.layers if one.name == layer.inputs[0]]
    kind = source.types["result"]
    if len(text.outputs) != 1 or text.bits_in != kind.width or kind.width > MOST_VALUES.bit_length() - 1:
        raise UndecidedError("it takes more than one input at once")
    walk = FollowedValues(text, 1, kind.signed)
    bounds = _range_of(design, before) if layer.inputs == (before.name,) else None
    low, high = (kind.raw_min, kind.raw_max) if bounds is None else bounds
    every = np.arange(low, high + 1, dtype=np.int64)
    (step,) = [one for one in steps_of(design) if one.layer.name == layer.name]
    try:
        wanted = computed(step, Exact.of(every.reshape(-1, 1), kind)).integers().reshape(-1)
    except (ValueError, IndexError):
        raise UndecidedError("its channels have functions of their own") from None
    width, tree = text.outputs[0]
    try:
        _require_same(walk.values(tree, width, every), wanted, width, f"the function of layer {layer.name!r}", every)
    except CertificateError as error:
        if bounds is not None:
            raise
        # Text is made for what the layer before gives, which may be less than its type holds.
        raise UndecidedError(f"{error}, if the layer before ever gives that") from None
    return f"the function of layer {layer.name!r} is right for all {len(every):,} numbers that it can get"
