"""`prove_layer`: the Verilog of a layer computes its integer matrix, or its function, for every input.

A sum of products is linear. So each adder of the text is followed as a weighted sum of the inputs, exactly, and its
width is compared with the bounds of that sum: where no bit is lost, what holds for the coefficients holds for every
input.
Behind the last adder, an output depends on one number, its sum; there, the text is evaluated for every value that the
sum can have, and compared with the arithmetic of the emulator. A function of one input is evaluated for every input,
and a table of several small values for all values of the inputs that they are made of.

The text is read, not the plan that it was made of: every line must be understood, or nothing is claimed. Timing within
the pipeline is part of it: operands must come from the same sample.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fpgaprune.design import (
    Convolution,
    Dense,
    Design,
    Input,
    LayerSpec,
    LookUp,
    Map,
    Operation,
    Pad,
    Recurrent,
    Resize,
    Softmax,
)
from fpgaprune.emulate import Exact, Step, exponentials_of, inverses_of, steps_of
from fpgaprune.errors import CertificateError, DesignError, UnsupportedLayerError
from fpgaprune.rtl.bus import Bus, Lane, Place
from fpgaprune.rtl.followed_values import FollowedValues
from fpgaprune.rtl.gate_weights import by_unit, joined_weights, units_of
from fpgaprune.rtl.kinds import PAIRED
from fpgaprune.rtl.project import RtlLayer, VerilogProject
from fpgaprune.rtl.prove_lanes import LANES, prove_lanes
from fpgaprune.rtl.prove_merges import keeps_bounds, prove_merge
from fpgaprune.rtl.prove_sums import MOST_VALUES, prove_outputs, require_same
from fpgaprune.rtl.read_back import read_weights
from fpgaprune.rtl.read_datapath import bits_out, has_datapath, text_of
from fpgaprune.rtl.read_expression import UndecidedError
from fpgaprune.rtl.read_lines import DatapathText
from fpgaprune.rtl.recurrent import gate_tables
from fpgaprune.rtl.wanted_sums import WantedSum, applied, direction_of, starts_of, sums_of


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
        """Return what is known, in one line."""
        return f"module {self.module}: {self.found}"


class _WrongNumbersError(CertificateError):
    """A stored number is another than the design's, whatever comes in."""


def prove_project(project: VerilogProject, design: Design) -> list[LayerProof]:
    """Return what each module that computes at once does for all inputs.

    Raises:
        CertificateError: a file of the project is gone.
    """
    found: dict[str, list[LayerProof]] = {}
    proven: set[str] = set()
    for row in project.layers:
        given = [_given(project, design, name, proven) for name in design[row.layer].inputs]
        found[row.layer] = list(_proofs(project, design, row, given))
        computes = bool(found[row.layer])
        if all(proof.holds for proof in found[row.layer]) and _keeps_bounds(project, design, row, given, computes):
            proven.add(row.layer)
    return [proof for proofs in found.values() for proof in proofs]


@dataclass(frozen=True)
class _Given:
    """What comes from the layer before: its bus, in bounds that are proven or that its bits have anyway."""

    bus: Bus
    proven: bool


def _given(project: VerilogProject, design: Design, name: str, proven: Collection[str]) -> _Given:
    """Return what comes from the layer `name`."""
    rows = _senders(project)
    # A layer without a module hands its beats on.
    while name not in rows and len(design[name].inputs) == 1:
        (name,) = design[name].inputs
    sender = rows.get(name)
    if sender is None or sender.leaves is None:
        kind = design[name].types["result"]
        return _Given(Bus((Lane(kind.raw_min, kind.raw_max, 0),), kind.width, kind.signed), proven=False)
    if sender.layer not in proven:
        return _Given(sender.leaves.unbounded(), proven=False)
    return _Given(sender.leaves, proven=True)


def _keeps_bounds(
    project: VerilogProject, design: Design, row: RtlLayer, given: Sequence[_Given], computes: bool
) -> bool:
    """Return whether what leaves a layer, whose datapaths, if any, are right, is within the bounds of the project."""
    operation = design[row.layer].operation
    if isinstance(operation, PAIRED):
        try:
            return keeps_bounds(project, design, row, [one.bus for one in given])
        except (CertificateError, DesignError, UnsupportedLayerError):
            return False
    if computes:
        return True
    if row.leaves is None or not isinstance(operation, Pad | Resize):
        return False
    # Values are repeated as they came, or zeros are put around an image.
    (bus,) = (one.bus for one in given)
    border = Bus((Lane(0, 0, 0),), bus.width, bus.signed)
    return row.leaves.contains(bus) and (isinstance(operation, Resize) or row.leaves.contains(border))


def _proofs(project: VerilogProject, design: Design, row: RtlLayer, arriving: Sequence[_Given]) -> Iterator[LayerProof]:
    """Yield a proof for each datapath of the layer."""
    reads, given = row.reads, arriving[0]
    if reads is not None and not (given.proven and reads.contains(given.bus)):
        reads = reads.unbounded()
    own = re.compile(rf"(?:.*/)?{re.escape(row.module)}_([a-z]\w*)\.v")
    for name in row.files:
        found = own.fullmatch(name)
        if found is None or re.search(r"(?:rom|part)\d+$", found[1]):
            continue
        module = f"{row.module}_{found[1]}"
        try:
            text = (project.path / name).read_text()
        except FileNotFoundError as error:
            raise CertificateError(f"{project.path}: {error.filename} is gone; write the Verilog again") from error
        if f"module {module} " not in text or "out_data" not in text:
            continue
        role = "products" if "fp_serial_" in text else found[1]
        meets, beside = isinstance(design[row.layer].operation, PAIRED), role in LANES
        known = all(one.proven for one in arriving)
        if not meets and not (beside and row.reads is None):
            known = reads is not None and reads == row.reads
        try:
            if meets:
                said = prove_merge(project, design, row, role, [one.bus for one in arriving])
            else:
                said = _decide(project, design, row, role, reads or given.bus if beside else reads)
            yield LayerProof(row.layer, module, said, holds=True)
        except (UndecidedError, DesignError, UnsupportedLayerError) as error:
            yield LayerProof(row.layer, module, str(error), holds=None)
        except CertificateError as error:
            sure = isinstance(error, _WrongNumbersError) or known or _is_sure(design, row.layer)
            said = str(error) if sure else f"{error}, if the layer before gives any number of its type"
            yield LayerProof(row.layer, module, said, holds=False if sure else None)


def _senders(project: VerilogProject) -> dict[str, RtlLayer]:
    """Map each layer whose values leave a module to the row of that module."""
    also = ((name, row) for row in project.layers for names in row.joined.values() for name in names)
    return {**{row.layer: row for row in project.layers}, **dict(also)}


def _decide(project: VerilogProject, design: Design, row: RtlLayer, role: str, reads: Bus | None) -> str:
    """Return what was proven of the datapath `role`, as text.

    Raises:
        CertificateError: it computes something else; `UndecidedError`: that was not decided.
    """
    layers = {layer.name: layer for layer in design.layers}
    if role == "products":
        _require_matrix(project, row, layers[row.layer])
        raise UndecidedError("its weights, read back, are the integer matrix; what it makes of them was not proven")
    tables = _TABLES.get((type(layers[row.layer].operation), role))
    if tables is not None:
        (step,) = [one for one in steps_of(design) if one.layer.name == row.layer]
        _require_tables(DatapathText.read(project, row, role), row.layer, tables(step))
        raise UndecidedError("its tables are right in every entry; what it makes of them was not proven")
    if role == "sums" and reads is not None and isinstance(layers[row.layer].operation, Recurrent):
        return _prove_both_sums(DatapathText.read(project, row, role), design, layers[row.layer], reads)
    if role == "sums" and reads is not None and row.leaves is not None:
        return _prove_sums(DatapathText.read(project, row, role), design, row, reads)
    if reads is not None and role in LANES and not isinstance(layers[row.layer].operation, LookUp | Map):
        return prove_lanes(project, design, row, role, reads)
    # A function that is computed behind a layer's sums is called after its own layer.
    near = (layers.get(f"{row.layer}_{role}"), layers[row.layer], *_readers(design, row.layer))
    functions = [one for one in near if one is not None and isinstance(one.operation, LookUp | Map)]
    # A datapath is named after its function. Of two with the same one, the second is that of the layer behind.
    named = [one for one in functions if _function(one) == role.removesuffix("_again")]
    for layer in named[-1:] if role.endswith("_again") else [*named, *functions][:1]:
        if len(layer.inputs) == 1:
            return _prove_function(DatapathText.read(project, row, role), design, row, layer)
    raise UndecidedError("neither sums of products at once nor a function of one number")


def _is_sure(design: Design, name: str) -> bool:
    """Return whether the layer reads an input of the network, so that it may get every number of its type.

    The text of a later layer is made for what the one before can give, which may be less.
    """
    layers = {layer.name: layer for layer in design.layers}
    return all(isinstance(layers[source].operation, Input) for source in layers[name].inputs)


def _function(layer: LayerSpec) -> str:
    """Return the name of the function of a layer that has one."""
    return layer.operation.function if isinstance(layer.operation, LookUp | Map) else ""


def _readers(design: Design, name: str) -> list[LayerSpec]:
    return [layer for layer in design.layers if layer.inputs == (name,)]


def _prove_sums(text: DatapathText, design: Design, row: RtlLayer, reads: Bus) -> str:
    """Prove that a layer's sums are its matrix, and what is computed behind them, for all inputs."""
    if not isinstance(design[row.layer].operation, Dense | Convolution):
        raise UndecidedError("no layer of weighted sums")
    wanted = sums_of(design, row)
    inputs = len(wanted[0].column)
    places = list(reads.places(inputs))
    checked = prove_outputs(text, places, list(_leaving(row).places(len(wanted))), wanted)
    return (
        f"{len(wanted):,} sums of {inputs:,} inputs are the integer matrix, with no bit lost; what follows "
        f"each sum was tried for all of its values, {checked:,} together"
    )


def _prove_both_sums(text: DatapathText, design: Design, layer: LayerSpec, reads: Bus) -> str:
    """Prove that a recurrent layer's sums of inputs and of state are its two matrices, for all inputs."""
    matrix, types = joined_weights(layer), layer.types
    accum, units = types["accum"], units_of(layer)
    source = design[layer.inputs[0]].types["result"]
    # Both come within a loop: the inputs as numbers of the layer before, the state as numbers of this layer's result.
    lowest = -(1 << source.width - 1) if source.signed else 0
    inputs = (Lane(lowest, source.raw_max, 0),) * len(layer.weights["weight"])
    states = (Lane(types["result"].raw_min, types["result"].raw_max, 0),) * units
    places = list(replace(reads, lanes=inputs + states).places(len(matrix)))
    kinds = (source, "weight", "bias"), (types["result"], "recurrent_weight", "recurrent_bias")
    starts = np.stack([by_unit(np.array(starts_of(layer, bias, matrix.shape[1] // 2)), units) for *_, bias in kinds])
    fractions = [kind.fraction + types[role].fraction for kind, role, _ in kinds]
    wanted = [
        WantedSum(column, start, fractions[output % 2], accum)
        for output, (column, start) in enumerate(zip(matrix.T, starts.T.reshape(-1).tolist(), strict=True))
    ]
    leaving = Bus((Lane(accum.raw_min, accum.raw_max, 0),), accum.width, signed=True)
    prove_outputs(text, places, list(leaving.places(len(wanted))), wanted)
    count = f"{len(wanted):,} sums of {len(matrix):,} inputs and states"
    return f"{count} are the two integer matrices, with no bit lost before the accumulator"


def _leaving(row: RtlLayer) -> Bus:
    if row.leaves is None:
        raise UndecidedError("the project does not say what leaves it; write the Verilog again")
    return row.leaves


def _require_matrix(project: VerilogProject, row: RtlLayer, layer: LayerSpec) -> None:
    """Check that the weights in a layer's memories, or in its adders of bits, are its integers.

    Those of a memory may be a power of two larger, or lack bits that no total has; those of adders of bits may also be
    smaller or negated: what follows a sum makes up for it. An output that is one constant needs none of its own.

    Raises:
        CertificateError: one is another; the message names the first.
    """
    wanted = layer.weights["weight"]
    outputs = layer.output_shape[-1] if layer.is_depthwise else wanted.shape[-1]
    try:
        came = read_weights(project, layer)
    except CertificateError as error:
        raise UndecidedError(str(error)) from None
    constant = _constant_outputs(project, row, outputs)
    stored = has_datapath(row, "products")
    bits = bits_out(text_of(project, row, "products")[1]) // outputs if stored else 0
    for output, (mine, its) in enumerate(zip(came.reshape(-1, outputs).T, wanted.reshape(-1, outputs).T, strict=True)):
        scale = max(int(np.abs(mine).max()) // max(int(np.abs(its).max()), 1), 1)
        larger = scale & (scale - 1) == 0 and np.array_equal(mine, its * scale)
        cut = bits > 0 and not ((mine - its) & ((1 << bits) - 1)).any()
        turned = not stored and direction_of(mine) == direction_of(its)
        if output in constant or larger or cut or turned:
            continue
        wrong = [*np.flatnonzero(mine != its * scale), *np.flatnonzero(mine != its)]
        first = int(wrong[0]) * outputs + output
        at = [int(one) for one in np.unravel_index(first, wanted.shape)]
        raise _WrongNumbersError(f"the weight at {at} of layer {layer.name!r} is another than the design's")


def _constant_outputs(project: VerilogProject, row: RtlLayer, outputs: int) -> set[int]:
    """Return the outputs of a layer that are constants in the text behind its totals."""
    if row.leaves is None or not has_datapath(row, "finish"):
        return set()
    trees = iter(DatapathText.read(project, row, "finish").outputs)
    places = enumerate(row.leaves.places(outputs))
    return {number for number, place in places if not place.bits or next(trees, (0, ("",)))[1][0] == "value"}


def _softmax_tables(step: Step) -> dict[str, Exact]:
    return {"the exponential": exponentials_of(step).into(step.type("accum")), "the inverse": inverses_of(step)}


# For each operation and role, what its tables hold where what is made of them is not proven.
_TABLES: Mapping[tuple[type[Operation], str], Callable[[Step], Mapping[str, Exact]]] = {
    **{(Softmax, role): _softmax_tables for role in ("softmax", "exponentials")},
    (Recurrent, "gates"): gate_tables,
    (Recurrent, "state"): gate_tables,
}


def _require_tables(text: DatapathText, layer: str, wanted: Mapping[str, Exact]) -> None:
    """Check that every table of the text is one of `wanted`, in every entry.

    Raises:
        CertificateError: one is none; the message names the first entry in which it differs from the nearest.
    """
    for name, entries in text.tables.items():
        wrong = []
        for table in wanted.values():
            raw = table.integers().reshape(-1)
            # An address has whole bits.
            if len(raw) <= len(entries) < 2 * max(len(raw), 2):
                wrong.append(np.flatnonzero(np.asarray(entries) != np.pad(raw, (0, len(entries) - len(raw)))))
        nearest = min(wrong, key=len, default=None)
        if nearest is None or len(nearest):
            where = "" if nearest is None else f" in entry {int(nearest[0])}"
            raise _WrongNumbersError(f"table {name} is neither {' nor '.join(wanted)} of {layer!r}{where}")


def _prove_function(text: DatapathText, design: Design, row: RtlLayer, layer: LayerSpec) -> str:
    """Prove that a function of one input is that of the layer, and of those that it computes too, for all numbers."""
    kind = design[layer.inputs[0]].types["result"]
    if len(text.outputs) != 1 or text.bits_in != kind.width or kind.width > MOST_VALUES.bit_length() - 1:
        raise UndecidedError("it takes more than one input at once")
    walk = FollowedValues(text, [Place(0, kind.width, kind.signed, 0, kind.raw_min, kind.raw_max)])
    every = np.arange(kind.raw_min, kind.raw_max + 1, dtype=np.int64)
    steps = {step.layer.name: step for step in steps_of(design)}
    also = row.joined.get(layer.name, ())
    wanted = Exact.of(every, kind)
    for name in (layer.name, *also):
        wanted = applied(steps[name], wanted, 0)
    result = design[(layer.name, *also)[-1]].types["result"]
    width, tree = text.outputs[0]
    place = Place(0, width, result.signed, 0, result.raw_min, result.raw_max)
    if row.leaves is not None and row.leaves.width is None:
        (place,) = row.leaves.places(1)
    try:
        came = walk.values(tree, width, every)
        require_same(came, wanted.integers(), place, f"the function of layer {layer.name!r}", every)
    except CertificateError as error:
        # Text is made for what the layer before gives, which may be less than its type holds.
        raise UndecidedError(f"{error}, if the layer before ever gives that") from None
    return f"the function of layer {layer.name!r} is right for all {len(every):,} numbers that it can get"
