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
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Convolution, Dense, Design, Input, LayerSpec, LookUp, Map, Quantise, Softmax
from fpgaprune.emulate import Exact, Step, computed, exponentials_of, inverses_of, steps_of
from fpgaprune.errors import CertificateError, DesignError, UnsupportedLayerError
from fpgaprune.rtl.bus import Bus, Place
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
    found: dict[str, list[LayerProof]] = {}
    for row in project.layers:
        proven = {name for name, proofs in found.items() if proofs and all(proof.holds for proof in proofs)}
        found[row.layer] = list(_proofs(project, design, row, proven))
    return [proof for proofs in found.values() for proof in proofs]


def _proofs(project: VerilogProject, design: Design, row: RtlLayer, proven: Collection[str]) -> Iterator[LayerProof]:
    """A proof for each datapath of the layer; the modules of `proven` layers give what they should."""
    reads = _arriving(project, design, row, proven)
    known = reads is not None and reads == row.reads
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
            said = _decide(project, design, row, "products" if serial else found[1], reads)
            yield LayerProof(row.layer, module, said, holds=True)
        except (UndecidedError, DesignError, UnsupportedLayerError) as error:
            yield LayerProof(row.layer, module, str(error), holds=None)
        except CertificateError as error:
            sure = isinstance(error, _WrongNumbersError) or known or _is_sure(design, row.layer)
            said = str(error) if sure else f"{error}, if the layer before gives any number of its type"
            yield LayerProof(row.layer, module, said, holds=False if sure else None)


def _arriving(project: VerilogProject, design: Design, row: RtlLayer, proven: Collection[str]) -> Bus | None:
    """The inputs of the sums of `row`: within the bounds of the layer before if it was proven, else of its types."""
    if row.reads is None:
        return None
    rows, name = _senders(project), design[row.layer].inputs[0]
    # A layer without a module hands its beats on.
    while name not in rows and len(design[name].inputs) == 1:
        (name,) = design[name].inputs
    sender = rows.get(name)
    leaves = sender.leaves if sender is not None and sender.layer in proven else None
    return row.reads if leaves is not None and row.reads.contains(leaves) else row.reads.unbounded()


def _senders(project: VerilogProject) -> dict[str, RtlLayer]:
    """For each layer whose values leave a module, the row of that module."""
    also = ((name, row) for row in project.layers for names in row.joined.values() for name in names)
    return {**{row.layer: row for row in project.layers}, **dict(also)}


def _decide(project: VerilogProject, design: Design, row: RtlLayer, role: str, reads: Bus | None) -> str:
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
    if role == "sums" and reads is not None and row.leaves is not None:
        return _prove_sums(DatapathText.read(project, row, role), design, row, reads)
    # A function that is computed behind a layer's sums is called after its own layer.
    for layer in (layers.get(f"{row.layer}_{role}"), layers[row.layer], *_readers(design, row.layer)):
        if layer is not None and isinstance(layer.operation, LookUp | Map) and len(layer.inputs) == 1:
            return _prove_function(DatapathText.read(project, row, role), design, row, layer)
    raise UndecidedError("neither sums of products at once nor a function of one number")


def _is_sure(design: Design, name: str) -> bool:
    """Whether the layer reads an input of the network, so that it may get every number of its type.

    The text of a later layer is made for what the one before can give, which may be less.
    """
    layers = {layer.name: layer for layer in design.layers}
    return any(isinstance(layers[source].operation, Input) for source in layers[name].inputs)


def _readers(design: Design, name: str) -> list[LayerSpec]:
    return [layer for layer in design.layers if layer.inputs == (name,)]


def _prove_sums(text: DatapathText, design: Design, row: RtlLayer, reads: Bus) -> str:
    """That a layer's sums are its matrix, and what is computed behind them, for all inputs."""
    layer, steps = design[row.layer], {step.layer.name: step for step in steps_of(design)}
    if not isinstance(layer.operation, Dense | Convolution):
        raise UndecidedError("no layer of weighted sums")
    matrix = _matrix(layer)
    places = list(reads.places(len(matrix)))
    leaving = list(_leaving(row).places(matrix.shape[1]))
    accum, result = layer.types["accum"], layer.types["result"]
    fraction = design[layer.inputs[0]].types["result"].fraction + layer.types["weight"].fraction
    bias = Exact.of(layer.weights["bias"], layer.types["bias"]).into(accum)
    starts = np.broadcast_to(bias.integers().reshape(-1), (matrix.shape[1],)).tolist()
    # An input of which a bus leaves out the lowest bits is that much larger than what it carries.
    scaled = matrix << np.array([place.zeros for place in places])[:, None]
    scaled[[not place.bits for place in places]] = 0
    for column, start in zip(scaled.T, starts, strict=True):
        _require_any_order(column, start, places, fraction, accum)
    walk = FollowedValues(text, places)
    outputs = iter(text.outputs)
    if len(text.outputs) != sum(place.bits > 0 for place in leaving):
        raise CertificateError(f"it gives {len(text.outputs)} values; the layer wants {len(leaving)}")
    stages, checked = set(), 0
    for output, (column, start, place) in enumerate(zip(scaled.T, starts, leaving, strict=True)):
        wanted = Sum.of({number: int(value) for number, value in enumerate(column)}, 0)
        width, tree = next(outputs) if place.bits else (0, ("value", 0))
        known = walk.known_of(tree, width, f"output {output}")
        # A sum of which no bit is left is a constant.
        if known.base not in ((), wanted.base):
            raise CertificateError(f"output {output} {_unlike(known.base, wanted)}")
        low, high = walk.bounds(wanted.base)
        if high - low >= MOST_VALUES:
            raise UndecidedError(f"output {output}: its sum has {high - low + 1:,} values, too many to try each")
        stages.add(known.stage)
        for first in range(low, high + 1, _CHUNK):
            base = np.arange(first, min(first + _CHUNK, high + 1), dtype=np.int64)
            ends = sorted((wanted.factor * first, wanted.factor * int(base[-1])))
            products = Exact(wanted.factor * base, fraction, ends[0], ends[1])
            total = (Exact(np.asarray(start), accum.fraction, start, start) + products).into(accum).into(result)
            for name in row.joined.get(layer.name, ()):
                total = _applied(steps[name], total, output)
            _require_same(walk.values(tree, width, base), total.integers(), place, f"output {output}", base)
        checked += high - low + 1
    if len(stages - {None}) > 1:
        raise CertificateError("its outputs do not leave in the same cycle")
    return (
        f"{matrix.shape[1]:,} sums of {len(matrix):,} inputs are the integer matrix, with no bit lost; what follows "
        f"each sum was tried for all of its values, {checked:,} together"
    )


def _leaving(row: RtlLayer) -> Bus:
    if row.leaves is None:
        raise UndecidedError("the project does not say what leaves it; write the Verilog again")
    return row.leaves


def _applied(step: Step, x: Exact, channel: int) -> Exact:
    """A function of single values, of numbers of one channel.

    Raises:
        UndecidedError: it is not a function of each number.
    """
    if isinstance(step.layer.operation, Quantise):
        kind = step.layer.operation.types(step.layer.output_shape)[channel]
        return x.on(0 * x.raw) if kind is None else x.into(kind).at_fraction(step.result.fraction)
    try:
        found = computed(step, x.on(x.raw.reshape(-1, 1)))
    except (ValueError, IndexError):
        raise UndecidedError("its channels have functions of their own") from None
    rows = found.raw.reshape(len(x.raw), -1)
    return found.on(rows[:, channel if rows.shape[1] > 1 else 0])


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


def _require_any_order(
    column: NDArray[np.int64], start: int, places: Sequence[Place], fraction: int, accum: FixedType
) -> None:
    """Check that the accumulator loses no bit, whatever the order of additions is: then the sum is that of the matrix.

    Raises:
        UndecidedError: it may.
    """
    shift = accum.fraction - fraction
    if shift < 0:
        raise UndecidedError("the accumulator rounds each product, so that the sum is none of a matrix")
    low = np.array([min(place.low, 0) for place in places])
    high = np.array([max(place.high, 0) for place in places])
    positive, negative = column.clip(min=0), column.clip(max=0)
    bottom, top = int(positive @ low + negative @ high), int(positive @ high + negative @ low)
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
    came: NDArray[np.int64], wanted: NDArray[np.int64], place: Place, what: str, at: NDArray[np.int64]
) -> None:
    """Check that bits are the raw numbers that are wanted, at their place on a bus.

    Raises:
        CertificateError: they are not, or the place does not hold them.
    """
    mask = (1 << place.bits) - 1
    came, wanted = np.broadcast_to(came, at.shape) & mask, np.broadcast_to(wanted, at.shape)
    rest = wanted >> place.zeros
    wrong = (came != rest & mask) | (rest < place.low) | (rest > place.high) | (rest << place.zeros != wanted)
    if wrong.any():
        one = int(np.flatnonzero(wrong)[0])
        raise CertificateError(
            f"{what} is {int(came[one])} instead of {int(rest[one] & mask)} where its sum is {int(at[one])}"
        )


def _prove_function(text: DatapathText, design: Design, row: RtlLayer, layer: LayerSpec) -> str:
    """That a function of one input is that of the layer, and of those that it computes too, for all numbers."""
    kind = design[layer.inputs[0]].types["result"]
    if len(text.outputs) != 1 or text.bits_in != kind.width or kind.width > MOST_VALUES.bit_length() - 1:
        raise UndecidedError("it takes more than one input at once")
    walk = FollowedValues(text, [Place(0, kind.width, kind.signed, 0, kind.raw_min, kind.raw_max)])
    every = np.arange(kind.raw_min, kind.raw_max + 1, dtype=np.int64)
    steps = {step.layer.name: step for step in steps_of(design)}
    also = row.joined.get(layer.name, ())
    wanted = Exact.of(every, kind)
    for name in (layer.name, *also):
        wanted = _applied(steps[name], wanted, 0)
    result = design[(layer.name, *also)[-1]].types["result"]
    width, tree = text.outputs[0]
    place = Place(0, width, result.signed, 0, result.raw_min, result.raw_max)
    if row.leaves is not None and row.leaves.width is None:
        (place,) = row.leaves.places(1)
    try:
        came = walk.values(tree, width, every)
        _require_same(came, wanted.integers(), place, f"the function of layer {layer.name!r}", every)
    except CertificateError as error:
        # Text is made for what the layer before gives, which may be less than its type holds.
        raise UndecidedError(f"{error}, if the layer before ever gives that") from None
    return f"the function of layer {layer.name!r} is right for all {len(every):,} numbers that it can get"
