"""Every arithmetic step of the emulator against an obvious reference in Python integers and fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.emulate import Exact, Kernel, carrier, raw_of_real, summed, weighted_sum
from fpgaprune.errors import DesignError
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType


def examples(count):
    return settings(derandomize=True, deadline=None, max_examples=count)


def types(width=(1, 20), integer=(-6, 20)):
    return st.builds(
        FixedType,
        width=st.integers(*width),
        integer=st.integers(*integer),
        signed=st.booleans(),
        rounding=st.sampled_from(ROUNDING_MODES),
        overflow=st.sampled_from(OVERFLOW_MODES),
    )


def assigned(value: Fraction, kind: FixedType) -> int:
    """The raw integer of `value` in a variable of type `kind`, straight from the definition of the modes."""
    scaled = value * Fraction(2) ** kind.fraction
    low = math.floor(scaled)
    part = scaled - low
    up = {
        "TRN": False,
        "TRN_ZERO": scaled < 0 and part > 0,
        "RND": part >= Fraction(1, 2),
        "RND_ZERO": part > Fraction(1, 2) or (part == Fraction(1, 2) and scaled < 0),
        "RND_INF": part > Fraction(1, 2) or (part == Fraction(1, 2) and scaled > 0),
        "RND_MIN_INF": part > Fraction(1, 2),
        "RND_CONV": part > Fraction(1, 2) or (part == Fraction(1, 2) and low % 2 == 1),
    }[kind.rounding]
    raw = low + up
    bottom, top = kind.raw_min, kind.raw_max
    if bottom <= raw <= top:
        return raw
    if kind.overflow == "WRAP":
        raw %= 1 << kind.width
        return raw - (1 << kind.width) if kind.signed and raw >= 1 << (kind.width - 1) else raw
    if kind.overflow == "SAT_ZERO":
        return 0
    return bottom if raw < bottom else top


def real(raw: int, fraction: int) -> Fraction:
    return Fraction(int(raw)) / Fraction(2) ** fraction


def numbers(kind: FixedType, seed: int, shape) -> Exact:
    rng = np.random.default_rng(seed)
    raw = rng.integers(kind.raw_min, kind.raw_max, size=shape, endpoint=True)
    raw.flat[:: max(1, raw.size // 3)] = rng.choice(
        [kind.raw_min, kind.raw_max], size=raw.flat[:: max(1, raw.size // 3)].shape
    )
    return Exact(raw.astype(carrier(kind.raw_min, kind.raw_max)), kind.fraction, kind.raw_min, kind.raw_max)


def check_bounds(value: Exact) -> None:
    raw = value.raw.astype(object)
    assert value.raw.dtype in (np.float32, np.float64, np.int64)
    assert (value.raw == np.trunc(value.raw)).all()
    assert all(value.low <= int(v) <= value.high for v in raw.ravel())


@examples(600)
@given(types(width=(1, 50)), types(), st.integers(0, 2**31))
def test_assignment_rounds_and_overflows_as_defined(source, kind, seed):
    value = numbers(source, seed, (16,))
    got = value.into(kind)
    check_bounds(got)
    assert [int(v) for v in got.raw] == [assigned(real(v, source.fraction), kind) for v in value.raw]
    assert got.fraction == kind.fraction


@examples(300)
@given(types(width=(50, 62), integer=(0, 40)), types(width=(1, 60), integer=(-2, 44)), st.integers(0, 2**31))
def test_assignment_of_wide_numbers(source, kind, seed):
    value = numbers(source, seed, (16,))
    try:
        got = value.into(kind)
    except DesignError:
        return
    check_bounds(got)
    assert [int(v) for v in got.integers()] == [assigned(real(v, source.fraction), kind) for v in value.integers()]


@examples(200)
@given(types(width=(1, 30)), types(width=(1, 30)), st.integers(0, 2**31))
def test_sum_difference_product_and_comparison_are_exact(left, right, seed):
    a, b = numbers(left, seed, (12,)), numbers(right, seed + 1, (12,))
    for operation in ("__add__", "__sub__", "__mul__"):
        try:
            got = getattr(a, operation)(b)
        except DesignError:
            continue
        check_bounds(got)
        for result, x, y in zip(got.integers(), a.integers(), b.integers(), strict=True):
            wanted = getattr(real(x, a.fraction), operation)(real(y, b.fraction))
            assert real(result, got.fraction) == wanted
    try:
        above = a > b
    except DesignError:
        return
    wanted = [real(x, a.fraction) > real(y, b.fraction) for x, y in zip(a.integers(), b.integers(), strict=True)]
    assert above.tolist() == wanted


@examples(200)
@given(types(width=(1, 55)), st.integers(1, 500), st.integers(0, 2**31))
def test_quotients_are_cut_towards_zero(kind, divisor, seed):
    value = numbers(kind, seed, (16,))
    got = value.quotient(divisor)
    check_bounds(got)
    wanted = [int(math.copysign(1, v)) * (abs(int(v)) // divisor) for v in value.integers()]
    assert got.integers().tolist() == wanted


@examples(400)
@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False, width=32),
        st.floats(-64, 64),
        st.integers(-(2**12), 2**12).map(lambda n: n / 32),
    ),
    types(),
)
def test_reals_are_assigned_as_defined(value, kind):
    assert int(raw_of_real(np.array([value]), kind)[0]) == assigned(Fraction(value), kind)


@pytest.mark.parametrize(("overflow", "wanted"), [("WRAP", 0), ("SAT", 127), ("SAT_ZERO", 0), ("SAT_SYM", 127)])
def test_infinity_is_a_power_of_two_beyond_all_bits(overflow, wanted):
    assert raw_of_real(np.array([np.inf]), FixedType(8, 4, overflow=overflow))[0] == wanted


def reference_sum(x, w, bias, bias_type, kinds, accum, order):
    total = assigned(real(bias, bias_type.fraction), accum)
    for index in order:
        product = real(x[index], kinds[0].fraction) * real(w[index], kinds[1].fraction)
        addend = assigned(product, accum)
        total = assigned(real(total, accum.fraction) + real(addend, accum.fraction), accum)
    return total


@examples(250)
@given(
    types(width=(1, 10), integer=(-2, 6)),
    types(width=(2, 10), integer=(-2, 6)),
    types(width=(2, 24), integer=(-2, 16)),
    st.integers(0, 2**31),
)
def test_weighted_sums_are_those_of_the_template_in_its_order(data, weight, accum, seed):
    rng = np.random.default_rng(seed)
    inputs, outputs, samples = int(rng.integers(1, 9)), int(rng.integers(1, 4)), 3
    x = numbers(data, seed, (samples, inputs))
    raw = numbers(weight, seed + 1, (inputs, outputs)).integers() * (rng.random((inputs, outputs)) < 0.7)
    bias_raw = numbers(weight, seed + 2, (outputs,)).integers()
    order = rng.permutation(inputs)
    cuts = [part for part in range(1, inputs + 1) if inputs % part == 0]
    parts = [x.on(raw_part) for raw_part in np.split(x.raw, int(rng.choice(cuts)), axis=1)]
    got = weighted_sum(parts, Kernel.of(raw, weight), Exact.of(bias_raw, weight), accum, order)
    check_bounds(got)
    for sample in range(samples):
        for out in range(outputs):
            wanted = reference_sum(
                x.integers()[sample], raw[:, out], bias_raw[out], weight, (data, weight), accum, order
            )
            assert int(got.raw[sample, out]) == wanted


def tree(raws, accum):
    if len(raws) == 1:
        return raws[0]
    left = 2 ** math.floor(math.log2(len(raws) - 1))
    return assigned(
        real(tree(raws[:left], accum), accum.fraction) + real(tree(raws[left:], accum), accum.fraction), accum
    )


@examples(250)
@given(
    types(width=(1, 12), integer=(-2, 8)), types(width=(2, 14), integer=(-2, 10)), st.booleans(), st.integers(0, 2**31)
)
def test_sums_are_those_of_the_template(data, accum, balanced, seed):
    count = int(np.random.default_rng(seed).integers(1, 10))
    addends = [numbers(data, seed + place, (5,)) for place in range(count)]
    got = summed(addends, accum, balanced)
    for sample in range(5):
        values = [real(addend.integers()[sample], data.fraction) for addend in addends]
        if balanced:
            wanted = tree([assigned(value, accum) for value in values], accum)
        else:
            wanted = 0
            for value in values:
                wanted = assigned(real(wanted, accum.fraction) + value, accum)
        assert int(got.raw[sample]) == wanted


@pytest.mark.parametrize(
    ("size", "dtype"), [(2**24, np.float32), (2**24 + 1, np.float64), (2**53, np.float64), (2**53 + 1, np.int64)]
)
def test_the_carrier_holds_every_integer(size, dtype):
    assert carrier(-size, size) == dtype
    assert int(np.array([size - 1, size], dtype).astype(np.int64)[1]) == size


def test_more_than_63_bits_are_refused():
    wide = numbers(FixedType(40, 20), 0, (4,))
    with pytest.raises(DesignError, match="80 bits; the emulator computes in 63"):
        wide * wide * numbers(FixedType(3, 3), 1, (4,))
