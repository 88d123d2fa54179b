"""`prove_lanes`: each output of a module is what one of its inputs should become, for every value of that input.

Such modules stand beside a layer's sums: they give values another width, begin or end a pooling, or end sums that take
several cycles. What moves values between two of them (windows, queues, the largest of a window) is a module of the
library, and is not part of the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Convolution, Dense, Design, Pad, Pooling
from fpgaprune.emulate import Exact, steps_of
from fpgaprune.errors import CertificateError
from fpgaprune.rtl.bus import Bus, Lane, Place
from fpgaprune.rtl.followed_values import FollowedValues, with_constant
from fpgaprune.rtl.project import RtlLayer, VerilogProject
from fpgaprune.rtl.prove_sums import MOST_VALUES, prove_outputs, require_any_order, require_same
from fpgaprune.rtl.read_datapath import has_datapath
from fpgaprune.rtl.read_expression import UndecidedError
from fpgaprune.rtl.read_lines import DatapathText
from fpgaprune.rtl.read_serial import SerialDatapath
from fpgaprune.rtl.wanted_sums import WantedSum, applied, direction_of, matrix_of, sums_of

# What such a datapath is for, as its module is named.
LANES = ("pack", "unpack", "begin", "finish")


def prove_lanes(project: VerilogProject, design: Design, row: RtlLayer, role: str, arriving: Bus) -> str:
    """Prove the datapath `role` of a layer, and return what was proven.

    Args:
        project: the Verilog.
        design: what it should compute.
        row: of the layer.
        role: `pack`, `unpack`, `begin` or `finish`.
        arriving: the values of the layer before, in bounds that are proven.

    Raises:
        CertificateError: it computes something else; `UndecidedError`: that was not decided.
    """
    operation = design[row.layer].operation
    if isinstance(operation, Pooling) and role != "pack":
        return _prove_pooling(DatapathText.read(project, row, role), design, row, role, arriving)
    if role == "finish" and isinstance(operation, Dense | Convolution):
        return _prove_totals(project, design, row, arriving)
    if role == "unpack" or (role == "pack" and isinstance(operation, Pad)):
        return _prove_widths(DatapathText.read(project, row, role), design, row, role, arriving)
    raise UndecidedError("neither sums of products at once nor a function of one number")


def _prove_widths(text: DatapathText, design: Design, row: RtlLayer, role: str, arriving: Bus) -> str:
    """Prove that values leave as they came, and that 0 fills the rest of the bus."""
    kind = design[design[row.layer].inputs[0]].types["result"]
    if role == "pack":
        if row.leaves is None or row.leaves.width is not None:
            raise UndecidedError("the project does not say what leaves it; write the Verilog again")
        if has_datapath(row, "cast"):
            raise UndecidedError("values are assigned to the layer's type before")
        count = len(row.leaves.lanes)
        leaving = list(row.leaves.places(count))
        # The border of an image is 0.
        lanes = [Lane(min(lane.low, 0), max(lane.high, 0), lane.zeros) for lane in arriving.lanes]
        arriving = Bus(tuple(lanes), arriving.width, arriving.signed)
    else:
        count = len(arriving.lanes)
        leaving = _uniform(kind.raw_min, kind.raw_max, kind.width, len(text.outputs))
    places = _read_by(text, arriving, count)
    values = [_raw(arriving.lanes[number % len(arriving.lanes)]) for number in range(count)]
    checked = _prove_each(text, places, values, leaving, lambda raw: raw)
    return f"every value leaves as it came: {checked:,} tried, {count:,} on the bus"


def _prove_pooling(text: DatapathText, design: Design, row: RtlLayer, role: str, arriving: Bus) -> str:
    """Prove what a pooling makes of each value that comes, or of the largest or the sum of a window."""
    layer = design[row.layer]
    (step,) = [one for one in steps_of(design) if one.layer.name == row.layer]
    pool, source = step.operation(Pooling), design[layer.inputs[0]]
    if pool.window is not None and any(pool.window.pad):
        raise UndecidedError("its windows reach over the border of the image")
    accum, result, kind = step.type("accum"), step.result, source.types["result"]
    low, high = _ends(arriving)
    lane = Lane(low, high, min(one.zeros for one in arriving.lanes))

    def begun(raw: NDArray[np.int64]) -> NDArray[np.int64]:
        x = Exact.of(raw, kind)
        return (x.into(accum) if pool.assigns_first else x).integers()

    if role != "finish":
        count = 1 if role == "begin" else len(arriving.lanes)
        whole = Bus((lane,), text.bits_in, kind.signed) if role == "begin" else arriving
        width = text.outputs[0][0]
        leaving = _uniform(-(1 << width - 1), (1 << width - 1) - 1, width, len(text.outputs))
        values = [_raw(whole.lanes[number % len(whole.lanes)]) for number in range(count)]
        checked = _prove_each(text, _read_by(text, whole, count), values, leaving, begun)
        return f"the accumulator begins with every value: {checked:,} tried"
    if len(text.outputs) != 1 or row.leaves is None or (row.leaves.width is None and len(row.leaves.lanes) != 1):
        raise UndecidedError("it takes more than one value at once")
    # All that one value can be for the accumulator, and all multiples of their greatest common difference between.
    every = np.unique(begun(_raw(lane)))
    size = pool.window.taps if pool.window is not None else math.prod(source.output_shape[:-1])
    if not pool.largest:
        stride = max(int(np.gcd.reduce(np.diff(every))), 1) if len(every) > 1 else 1
        if (int(every[-1]) - int(every[0])) * size // stride >= MOST_VALUES:
            raise UndecidedError("the sum of a window has too many values to try each")
        every = np.arange(int(every[0]) * size, int(every[-1]) * size + 1, stride, dtype=np.int64)
    fraction = accum.fraction if pool.assigns_first else kind.fraction
    steps = {one.layer.name: one for one in steps_of(design)}

    def ended(raw: NDArray[np.int64]) -> NDArray[np.int64]:
        total = Exact(raw, fraction, int(raw.min()), int(raw.max())).into(accum)
        total = (total if pool.largest else total.quotient(size)).into(result)
        for name in row.joined.get(layer.name, ()):
            total = applied(steps[name], total, 0)
        return total.integers()

    places = [Place(0, text.bits_in, True, 0, int(every[0]), int(every[-1]))]
    lanes = row.leaves.lanes if row.leaves.width is None else (Lane(*_ends(row.leaves), 0),)
    (place,) = replace(row.leaves, lanes=lanes).places(1)
    checked = _prove_each(text, places, [every], [place], ended)
    return f"what becomes of {'the largest' if pool.largest else 'the sum'} of a window is right: all {checked:,} tried"


def _prove_totals(project: VerilogProject, design: Design, row: RtlLayer, arriving: Bus) -> str:
    """Prove what becomes of sums that took several cycles: bias, types, and functions behind them."""
    if has_datapath(row, "kernels"):
        return _prove_numbered(project, design, row, arriving)
    if not (has_datapath(row, "products") or has_datapath(row, "sums")) or row.leaves is None:
        raise UndecidedError("it takes more than one value at once")
    text, matrix = DatapathText.read(project, row, "finish"), matrix_of(design[row.layer])
    wanted = sums_of(design, row)
    if has_datapath(row, "products"):
        low, high = _ends(arriving)
        inputs = [Place(0, arriving.width or 0, arriving.signed, 0, low, high)] * len(matrix)
        words = matrix
    else:
        serial = SerialDatapath.read(project, row, "sums")
        if serial is None:
            raise UndecidedError("it takes more than one value at once")
        inputs, words = list(arriving.places(len(matrix))), serial.matrix(len(matrix))
    for one in wanted:
        require_any_order(one, one.column, inputs)
    bits, rest = divmod(text.bits_in, words.shape[1])
    if rest:
        raise UndecidedError(f"{words.shape[1]} totals do not share a bus of {text.bits_in} bits")
    bottom, top = _bounds(words, inputs)
    wraps = (bottom < -(1 << bits - 1)) | (top >= 1 << bits - 1)
    full = np.where(wraps, -(1 << bits - 1), bottom), np.where(wraps, (1 << bits - 1) - 1, top)
    places = [Place(word * bits, bits, True, 0, int(a), int(b)) for word, (a, b) in enumerate(zip(*full, strict=True))]
    known = {direction_of(words[:, word]): word for word in range(words.shape[1])}
    totals = []
    for output, one in enumerate(wanted):
        column = np.zeros(words.shape[1], np.int64)
        if one.column.any():
            word = output if words is matrix else known.get(direction_of(one.column))
            if word is None:
                raise UndecidedError(f"output {output}: no total is its weighted sum")
            first = int(np.flatnonzero(one.column)[0])
            factor, left = divmod(int(one.column[first]), int(words[first, word]))
            if left:
                raise UndecidedError(f"output {output}: its total is a multiple of its weighted sum")
            exponent = (factor & -factor).bit_length() - 1 + one.accum.fraction - one.fraction
            if wraps[word] and (one.accum.overflow != "WRAP" or bits + exponent < one.accum.width):
                raise UndecidedError(f"output {output}: its total may have more than {bits} bits")
            column[word] = factor
        totals.append(WantedSum(column, one.start, one.fraction, one.accum, one.finish))
    checked = prove_outputs(text, places, list(row.leaves.places(len(totals))), totals)
    return f"what follows each of {len(totals):,} sums was tried for all of its values, {checked:,} together"


def _prove_numbered(project: VerilogProject, design: Design, row: RtlLayer, arriving: Bus) -> str:
    """Prove what becomes of sums that leave one after another, each with the number of its output beside it."""
    wanted, whole = sums_of(design, row), DatapathText.read(project, row, "finish")
    bits = whole.bits_in - max(1, (len(wanted) - 1).bit_length())
    if project.loads is not None:
        raise UndecidedError("its biases come while it runs")
    if row.leaves is None or bits < 1:
        raise UndecidedError("it takes more than one value at once")
    low, high = _ends(arriving)
    inputs = [Place(0, arriving.width or 0, arriving.signed, 0, low, high)] * len(wanted[0].column)
    bottom, top = _bounds(np.stack([one.column for one in wanted], axis=1), inputs)
    if int(bottom.min()) < -(1 << bits - 1) or int(top.max()) >= 1 << bits - 1:
        raise UndecidedError(f"a total may have more than {bits} bits")
    (leaving,) = row.leaves.places(1)
    checked = 0
    for output, one in enumerate(wanted):
        require_any_order(one, one.column, inputs)

        def finish(total: Exact, _: int, output: int = output, one: WantedSum = one) -> Exact:
            return total if one.finish is None else one.finish(total, output)

        total = WantedSum(np.ones(1, np.int64), one.start, one.fraction, one.accum, finish)
        place = Place(0, bits, True, 0, int(bottom[output]), int(top[output]))
        try:
            checked += prove_outputs(with_constant(whole, bits, output), [place], [leaving], [total])
        except UndecidedError as error:
            raise UndecidedError(f"output {output}: {error}") from None
        except CertificateError as error:
            raise CertificateError(f"of sum {output}, {error}") from None
    return f"what follows each of {len(wanted):,} sums was tried for all of its values, {checked:,} together"


def _bounds(words: NDArray[np.int64], inputs: Sequence[Place]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and the greatest of each weighted sum (inputs, sums), also where some inputs are 0."""
    lowest = np.array([min(place.low, 0) for place in inputs], np.int64)
    highest = np.array([max(place.high, 0) for place in inputs], np.int64)
    positive, negative = words.clip(min=0), words.clip(max=0)
    return (
        np.asarray(positive.T @ lowest + negative.T @ highest, np.int64),
        np.asarray(positive.T @ highest + negative.T @ lowest, np.int64),
    )


def _prove_each(
    text: DatapathText,
    places: Sequence[Place],
    values: Sequence[NDArray[np.int64]],
    leaving: Sequence[Place],
    wanted: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> int:
    """Check that each output is `wanted` of the input with its number, for all `values` of it; count those.

    Outputs behind those of the last input are 0.
    """
    walk = FollowedValues(text, places)
    if len(text.outputs) != sum(place.bits > 0 for place in leaving):
        raise CertificateError(f"it gives {len(text.outputs)} values; the layer wants {len(leaving)}")
    outputs, stages, checked = iter(text.outputs), set(), 0
    for number, place in enumerate(leaving):
        width, tree = next(outputs) if place.bits else (0, ("value", 0))
        known = walk.known_of(tree, width, f"output {number}")
        fills = number >= len(values)
        if known.inputs or known.base not in ((), *([] if fills else [((number, 1),)])):
            raise CertificateError(f"output {number} reads another input than its own")
        stages.add(known.stage)
        raw = np.zeros(1, np.int64) if fills else values[number]
        if len(raw) > MOST_VALUES:
            raise UndecidedError(f"output {number}: its input has {len(raw):,} values, too many to try each")
        # The bus may leave out the lowest bits, which are 0.
        came = walk.values(tree, width, raw if fills else raw >> places[number].zeros)
        require_same(came, raw if fills else wanted(raw), place, f"output {number}", raw)
        checked += 0 if fills else len(raw)
    if len(stages - {None}) > 1 and text.settles is None:
        raise CertificateError("its outputs do not leave in the same cycle")
    return checked


def _raw(lane: Lane) -> NDArray[np.int64]:
    """Return all raw numbers that a value can be."""
    if lane.high - lane.low >> lane.zeros >= MOST_VALUES:
        raise UndecidedError(f"a value has {lane.high - lane.low + 1:,} numbers, too many to try each")
    return np.arange(lane.low >> lane.zeros, (lane.high >> lane.zeros) + 1, dtype=np.int64) << lane.zeros


def _uniform(low: int, high: int, width: int, count: int) -> list[Place]:
    """Return the places of `count` values of one width."""
    return list(Bus((Lane(low, high, 0),), width, low < 0).places(count))


def _ends(bus: Bus) -> tuple[int, int]:
    """Return the bounds of all values of a bus."""
    return min(lane.low for lane in bus.lanes), max(lane.high for lane in bus.lanes)


def _read_by(text: DatapathText, bus: Bus, count: int) -> list[Place]:
    """Return where `count` values of a bus lie, which a datapath reads whole."""
    places = list(bus.places(count))
    if places[-1].lowest + places[-1].bits != text.bits_in:
        raise UndecidedError("it does not read what the layer before gives")
    return places
