"""`FollowedValues`: every value of a datapath as a weighted sum of inputs, or a function of one sum or of few bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import CertificateError
from fpgaprune.rtl.bus import Place
from fpgaprune.rtl.read_expression import Tree, UndecidedError, names_of, sliced, value_of
from fpgaprune.rtl.read_lines import BUS, DatapathText

# A function of several sums is tried for all values of its inputs, up to so many bits of them.
_FEW = 16


@dataclass(frozen=True)
class Sum:
    """A weighted sum of inputs and a constant, exact: `factor * base + constant`.

    Attributes:
        base: coefficient of each input that it reads, without a common factor, the first one above 0; as pairs.
        factor, constant: integers.
    """

    base: tuple[tuple[int, int], ...]
    factor: int
    constant: int

    @classmethod
    def of(cls, coefficients: Mapping[int, int], constant: int) -> Sum:
        """Return the sum with these coefficients."""
        rows = sorted((place, value) for place, value in coefficients.items() if value)
        if not rows:
            return cls((), 0, constant)
        factor = math.gcd(*(value for _, value in rows)) * (1 if rows[0][1] > 0 else -1)
        return cls(tuple((place, value // factor) for place, value in rows), factor, constant)

    def times(self, other: int) -> Sum:
        """Return the sum, multiplied by a constant."""
        return Sum(self.base if other else (), self.factor * other, self.constant * other)

    def over(self, divisor: int) -> Sum | None:
        """Return the sum, divided by a power of two; None if that leaves a rest."""
        if self.factor % divisor or self.constant % divisor:
            return None
        return Sum(self.base, self.factor // divisor, self.constant // divisor)

    def plus(self, other: Sum) -> Sum:
        """Return the sum of two."""
        found: dict[int, int] = {}
        for one in (self, other):
            for place, value in one.base:
                found[place] = found.get(place, 0) + one.factor * value
        return Sum.of(found, self.constant + other.constant)


@dataclass(frozen=True)
class Known:
    """What is known of a value.

    Attributes:
        stage: registers between the inputs and it; None for a constant.
        base: the one sum on which it depends, empty for a constant.
        sum: the value as a sum; None where bits are cut off or compared, so that it is a function of `base`.
        inputs: those on which it depends, where it is a function of several sums.
    """

    stage: int | None
    base: tuple[tuple[int, int], ...]
    sum: Sum | None
    inputs: frozenset[int] = frozenset()


class FollowedValues:
    """Every value of a datapath, as a sum, as a function of one sum, or as a function of few bits of the inputs.

    Args:
        text: of the module.
        places: where the inputs lie on its bus.
    """

    def __init__(self, text: DatapathText, places: Sequence[Place]) -> None:
        self.text, self.places = text, places
        if text.bits_in != places[-1].lowest + places[-1].bits:
            raise CertificateError(
                f"its bus has {text.bits_in} bits; its {len(places)} inputs take {places[-1].lowest + places[-1].bits}"
            )
        self._at = {place.lowest: number for number, place in enumerate(places) if place.bits}
        self.known: dict[str, Known] = {}
        self._needed = {source for _, source in text.registers.values()}
        for name, (width, tree) in text.wires.items():
            self.known[name] = self._of(tree, width, name)
            self._delayed(name)
        late = max((one.stage or 0 for one in self.known.values()), default=0)
        if text.settles is not None and late > text.settles:
            raise CertificateError(f"its registers take {late} cycles, and its input stands still for {text.settles}")

    def known_of(self, tree: Tree, width: int, name: str) -> Known:
        """Return what is known of an expression that is assigned to `name`, of `width` bits."""
        return self._of(tree, width, name)

    def bounds(self, base: tuple[tuple[int, int], ...]) -> tuple[int, int]:
        """Return the bounds between which a base lies."""
        ends = [(value * self.places[number].low, value * self.places[number].high) for number, value in base]
        return sum(min(pair) for pair in ends), sum(max(pair) for pair in ends)

    def values(self, tree: Tree, width: int, base: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return an expression assigned to `width` bits, for each value of its base."""
        return self._evaluated(tree, width, lambda one: one.factor * base + one.constant)

    def values_of_inputs(self, tree: Tree, width: int, inputs: Mapping[int, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return an expression assigned to `width` bits, for values of all inputs on which it depends."""

        def of(one: Sum) -> NDArray[np.int64]:
            terms = sum(value * inputs[number] for number, value in one.base)
            return np.asarray(one.factor * terms + one.constant, np.int64)

        return self._evaluated(tree, width, of)

    def _evaluated(self, tree: Tree, width: int, of: Callable[[Sum], NDArray[np.int64]]) -> NDArray[np.int64]:
        done: dict[str, NDArray[np.int64]] = {}

        def read(name: str) -> NDArray[np.int64]:
            if name not in done:
                known = self.known[name]
                if known.sum is not None:
                    done[name] = of(known.sum)
                elif name in self.text.registers:
                    done[name] = read(self.text.registers[name][1])
                else:
                    bits, inner = self.text.wires[name]
                    done[name] = _fitted(value_of(inner, read, self.text.tables), bits)
            return done[name]

        return _fitted(value_of(tree, read, self.text.tables), width)

    def _delayed(self, name: str) -> None:
        """Follow the registers behind a value, one after another."""
        while name in self._needed:
            name = next(one for one, (_, source) in self.text.registers.items() if source == name)
            width, source = self.text.registers[name]
            before = self.known[source]
            if width != (self.text.wires.get(source) or self.text.registers[source])[0]:
                raise CertificateError(f"register {name} has {width} bits, and {source} has others")
            self.known[name] = replace(before, stage=None if before.stage is None else before.stage + 1)

    def _of(self, tree: Tree, width: int, name: str) -> Known:
        taken = self._input(tree, width)
        if taken is not None:
            place = self.places[taken]
            # One that is 0 in every sample adds nothing.
            whole = Sum.of({taken: 1 << place.carried} if place.low or place.high else {}, 0)
            return Known(0, whole.base, whole)
        used = [self._read(one, name) for one in names_of(tree)]
        stages = {one.stage for one in used if one.stage is not None}
        if len(stages) > 1 and self.text.settles is None:
            raise CertificateError(f"{name} joins values of samples that came {max(stages) - min(stages)} cycles apart")
        stage = max(stages, default=None)
        found = self._sum(tree, width)
        if found is not None and self._fits(found, width):
            return Known(stage, found.base, found)
        bases = {one.base for one in used if one.base}
        inputs = frozenset[int]().union(*(one.inputs for one in used))
        if len(bases) > 1 and found is not None:
            low, high = self._reach(found)
            raise CertificateError(f"{name} has {width} bits; its sum lies between {low} and {high}")
        if len(bases) > 1 or inputs:
            inputs |= {number for base in bases for number, _ in base}
            if sum(self.places[number].bits - self.places[number].carried for number in inputs) > _FEW:
                raise UndecidedError(f"{name} cuts or compares several sums")
            return Known(stage, (), None, inputs)
        return Known(stage, bases.pop() if bases else (), None)

    def _read(self, name: str, reader: str) -> Known:
        if name not in self.known:
            raise CertificateError(f"{reader} reads {name}, which nothing drives before it")
        return self.known[name]

    def _input(self, tree: Tree, width: int) -> int | None:
        """Return which input an expression takes whole; None if it is no bits of the bus.

        Raises:
            CertificateError: it takes bits of two inputs, or as of another sign; `UndecidedError`: not all bits.
        """
        if tree[0] != "bits" or tree[1] != BUS:
            return None
        _, _, high, low, signed = tree
        number = self._at.get(low)
        bits = high - low + 1
        if number is None or bits > self.places[number].bits:
            raise CertificateError(f"bits {high} to {low} of the bus belong to no single input")
        place = self.places[number]
        bottom = -(1 << bits - 1) if signed else 0
        least, most = place.low << place.carried, place.high << place.carried
        if least < bottom or most >= bottom + (1 << bits) or most >= 1 << width - 1:
            if bits < place.bits:
                raise UndecidedError(f"an input is read without its highest {place.bits - bits} bits")
            raise CertificateError(
                f"the input at bit {low} of the bus is read as if it had {'a' if signed else 'no'} sign"
            )
        return number

    def _sum(self, tree: Tree, width: int) -> Sum | None:
        """Return an expression as a sum, before it is cut to `width` bits; None if it is none."""
        kind = tree[0]
        if kind == "value":
            return Sum((), 0, tree[1])
        if kind == "name":
            return self.known[tree[1]].sum
        if kind == "bits":
            _, name, high, low, signed = tree
            found = self.known[name].sum
            # The lowest bits of a sum depend on the lowest bits of its operands only.
            return found.over(1 << low) if found is not None and signed and high + 1 - low >= width else None
        if kind == "<<<":
            inner = self._sum(tree[1], width)
            return None if inner is None else inner.times(1 << tree[2])
        if kind in "+-":
            left, right = self._sum(tree[1], width), self._sum(tree[2], width)
            return None if left is None or right is None else left.plus(right.times(1 if kind == "+" else -1))
        return None

    def _reach(self, found: Sum) -> tuple[int, int]:
        ends = [found.factor * end + found.constant for end in self.bounds(found.base)]
        return min(ends), max(ends)

    def _fits(self, found: Sum, width: int) -> bool:
        # Doubled, so that no bits hold 0.
        low, high = self._reach(found)
        return -(1 << width) <= 2 * low and 2 * high < 1 << width


def with_constant(text: DatapathText, lowest: int, value: int) -> DatapathText:
    """Return the text where the input from bit `lowest` of the bus on, the last one, is `value`, and so all made of it.

    Raises:
        CertificateError: it reads bits of that input and of another one together.
    """
    constants: dict[str, int] = {}

    def constant(name: str) -> int | None:
        while name in text.registers:
            name = text.registers[name][1]
        return constants.get(name)

    wires: dict[str, tuple[int, Tree]] = {}
    for name, (width, tree) in text.wires.items():
        names = list(names_of(tree))
        if tree[0] == "bits" and tree[1] == BUS and tree[2] >= lowest:
            _, _, high, low, signed = tree
            if low < lowest:
                raise CertificateError(f"bits {high} to {low} of the bus belong to no single input")
            found = sliced(np.array([value], np.int64), high - lowest, low - lowest, signed)
        elif names and BUS not in names and all(constant(one) is not None for one in names):
            found = value_of(tree, lambda one: np.array([constant(one)], np.int64), text.tables)
        else:
            wires[name] = width, tree
            continue
        constants[name] = int(_fitted(found, width)[0])
        wires[name] = width, ("value", constants[name])
    return replace(text, bits_in=lowest, wires=wires)


def _fitted(values: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Return numbers as `width` bits of two's complement hold them."""
    found = values & ((1 << width) - 1)
    return np.where(found & (1 << width >> 1), found - (1 << width), found)
