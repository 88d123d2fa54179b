"""`prove_outputs`: outputs of a datapath are weighted sums of its inputs, and functions of them, for all inputs."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from fpgaprune.emulate import Exact
from fpgaprune.errors import CertificateError
from fpgaprune.rtl.bus import Place
from fpgaprune.rtl.followed_values import FollowedValues, Sum
from fpgaprune.rtl.read_expression import Tree, UndecidedError
from fpgaprune.rtl.read_lines import DatapathText
from fpgaprune.rtl.wanted_sums import WantedSum

# Values for which the text is evaluated: all that a sum or an input can have, up to so many.
MOST_VALUES = 1 << 22
_CHUNK = 1 << 18


def prove_outputs(
    text: DatapathText, places: Sequence[Place], leaving: Sequence[Place], wanted: Sequence[WantedSum]
) -> int:
    """Check that the outputs of a datapath at `leaving` are `wanted` for all inputs, which lie at `places`.

    Returns:
        The values of sums for which the text behind them was evaluated, all together.

    Raises:
        CertificateError: one is something else; `UndecidedError`: that was not decided.
    """
    # The zeros that end an input are no part of its number.
    zeros = np.array([place.zeros for place in places])
    # One that is 0 in every sample adds nothing.
    varies = np.array([bool(place.bits and (place.low or place.high)) for place in places])
    columns = [np.where(varies, one.column << zeros, 0) for one in wanted]
    inside = [require_any_order(one, column, places) for one, column in zip(wanted, columns, strict=True)]
    walk = FollowedValues(text, places)
    outputs = iter(text.outputs)
    if len(text.outputs) != sum(place.bits > 0 for place in leaving):
        raise CertificateError(f"it gives {len(text.outputs)} values; the layer wants {len(leaving)}")
    stages, checked = set(), 0
    for output, (one, column, place) in enumerate(zip(wanted, columns, leaving, strict=True)):
        products = Sum.of({number: int(value) for number, value in enumerate(column)}, 0)
        width, tree = next(outputs) if place.bits else (0, ("value", 0))
        known = walk.known_of(tree, width, f"output {output}")
        if known.inputs or one.together is not None:
            stages.add(known.stage)
            read = known.inputs | {number for number, _ in known.base}
            checked += _tried(walk, (tree, width), read, one, column, place, output)
            continue
        # A sum of which no bit is left is a constant.
        if known.base not in ((), products.base):
            raise CertificateError(f"output {output} {_unlike(known.base, products)}")
        stages.add(known.stage)
        whole = products.times(1 << one.accum.fraction - one.fraction).plus(Sum.of({}, one.start))
        if one.finish is None and inside[output] and known.sum == whole and place.bits == width and not place.zeros:
            # The accumulator itself, whose every bit leaves.
            continue
        low, high = walk.bounds(products.base)
        if high - low >= MOST_VALUES:
            raise UndecidedError(f"output {output}: its sum has {high - low + 1:,} values, too many to try each")
        for first in range(low, high + 1, _CHUNK):
            base = np.arange(first, min(first + _CHUNK, high + 1), dtype=np.int64)
            ends = sorted((products.factor * first, products.factor * int(base[-1])))
            total = one.of(Exact(products.factor * base, one.fraction, ends[0], ends[1]), output)
            came = walk.values(tree, width, base if known.base == products.base else 0 * base)
            require_same(came, total.integers(), place, f"output {output}", base)
        checked += high - low + 1
    if len(stages - {None}) > 1 and text.settles is None:
        raise CertificateError("its outputs do not leave in the same cycle")
    return checked


def _tried(
    walk: FollowedValues,
    text: tuple[Tree, int],
    inputs: Collection[int],
    wanted: WantedSum,
    column: NDArray[np.int64],
    place: Place,
    output: int,
) -> int:
    """Check an output, a function of `inputs`, for all values of them and of what the weights take; count those."""
    numbers = sorted({*inputs, *np.flatnonzero(column).tolist()})
    ends = [(walk.places[number].low, walk.places[number].high) for number in numbers]
    count = math.prod(high - low + 1 for low, high in ends)
    if count > MOST_VALUES:
        raise UndecidedError(f"output {output}: its inputs have {count:,} values together, too many to try each")
    grid = np.meshgrid(*(np.arange(low, high + 1, dtype=np.int64) for low, high in ends), indexing="ij")
    values = dict(zip(numbers, (one.reshape(-1) for one in grid), strict=True))
    products = np.asarray(sum(int(column[number]) * value for number, value in values.items()), np.int64)
    if wanted.together is not None:
        total = wanted.together(values, output)
    else:
        total = wanted.of(Exact(products, wanted.fraction, int(products.min()), int(products.max())), output)
    require_same(walk.values_of_inputs(*text, values), total.integers(), place, f"output {output}", products)
    return count


def require_any_order(wanted: WantedSum, column: NDArray[np.int64], places: Sequence[Place]) -> bool:
    """Check that the accumulator loses no bit, whatever the order of additions is: then the sum is that of the matrix.

    Returns:
        Whether it holds every sum, and so does not wrap either.

    Raises:
        UndecidedError: it may.
    """
    accum, shift = wanted.accum, wanted.accum.fraction - wanted.fraction
    if shift < 0:
        raise UndecidedError("the accumulator rounds each product, so that the sum is none of a matrix")
    low = np.array([min(place.low, 0) for place in places])
    high = np.array([max(place.high, 0) for place in places])
    positive, negative = column.clip(min=0), column.clip(max=0)
    bottom, top = int(positive @ low + negative @ high), int(positive @ high + negative @ low)
    inside = accum.raw_min <= wanted.start + (bottom << shift) and wanted.start + (top << shift) <= accum.raw_max
    if accum.overflow != "WRAP" and not inside:
        raise UndecidedError("the accumulator saturates on the way, so that the sum is none of a matrix")
    return inside


def _unlike(came: tuple[tuple[int, int], ...], wanted: Sum) -> str:
    """Return how a sum differs from the weights, at the first input."""
    mine, theirs = dict(came), dict(wanted.base)
    place = min(place for place in mine.keys() | theirs.keys() if mine.get(place) != theirs.get(place))
    return f"takes input {place} {mine.get(place, 0)} times, and the weights say {theirs.get(place, 0)} times"


def require_same(
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
