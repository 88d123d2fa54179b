"""Sums computed bit by bit: their text, clock by clock, gives every bit, with as few registers as there can be."""

import itertools
import re
from collections import deque

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from fpgaprune.rtl import SerialSums, serial_datapath, share, width_of
from fpgaprune.rtl import serial as module

FIXED = settings(max_examples=120, deadline=None, derandomize=True, database=None)
INSTANCE = re.compile(r"^ *(fp_serial_\w+) (?:#\((.*?)\) )?\w+ \((.*)\);$", re.M)
PORT = re.compile(r"\.(\w+)\(([^()]*)\)")


@st.composite
def tasks(draw, inputs=4, outputs=3, largest=45):
    """A matrix, the type of its inputs, how many bits of each sum are read, and whether adders are shared."""
    shape = draw(st.tuples(st.integers(1, inputs), st.integers(1, outputs)))
    weights = draw(st.lists(st.integers(-largest, largest), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    width, signed = draw(st.integers(1, 6)), draw(st.booleans())
    low = -(1 << (width - 1)) if signed else 0
    lane = (width, signed, low, low + (1 << width) - 1)
    wanted = draw(st.one_of(st.none(), st.integers(1, 16)))
    return np.array(weights, np.int64).reshape(shape), lane, wanted, draw(st.booleans())


def made(task):
    matrix, lane, wanted, search = task
    return SerialSums.of(share(matrix, search), lane, wanted)


class Machine:
    """The instances of a datapath, clock by clock, as hw/rtl says what they do; unknown bits are drawn."""

    def __init__(self, text, rng):
        self.rows = [
            (kind, dict(PORT.findall(given)), dict(PORT.findall(p))) for kind, given, p in INSTANCE.findall(text)
        ]
        self.widths = {name: int(top) + 1 for top, name in re.findall(r"^ *wire \[(\d+):0\] ([vc]\d+);$", text, re.M)}
        # What each name was, newest first; registers hold what they hold after power-up.
        self.past = {name: deque(rng.integers(0, 2, n).tolist(), maxlen=n) for name, n in self.widths.items()}
        self.state = {n: rng.integers(0, 2, 64).tolist() for n in range(len(self.rows))}

    def bit(self, text):
        name, index = re.fullmatch(r"(\w+)\[(\d+)\]", text).groups()
        return self.past[name][int(index)]

    def clock(self, load, data):
        """One clock: `data` is the input bus; what the words show in it."""
        for n, (kind, parameters, ports) in enumerate(self.rows):
            shift = int(parameters.get("SHIFT", 0))
            if kind == "fp_serial_clear":
                self.past[ports["clear"]].appendleft(int(load or (shift and self.state[n][shift - 1])))
            elif kind == "fp_serial_in":
                self.past[ports["out"]].appendleft(self.state[n][0])
            elif kind == "fp_serial_add":
                self.past[ports["sum"]].appendleft(self.state[n][0])
        words, after = {}, {}
        for n, (kind, parameters, ports) in enumerate(self.rows):
            state = self.state[n]
            if kind == "fp_serial_clear":
                after[n] = [load] + [int(load or bit) for bit in state[:-1]]
            elif kind == "fp_serial_in":
                width, (high, low) = int(parameters["WIDTH"]), map(int, re.findall(r"\d+", ports["in_data"]))
                assert high - low + 1 == width
                top = state[width - 1] if "SIGNED" in parameters else 0
                after[n] = [data >> (low + k) & 1 for k in range(width)] if load else [*state[1:width], top]
            elif kind == "fp_serial_add":
                a, b, clear = (self.bit(ports[name]) for name in ("a", "b", "clear"))
                minus = int("SUBTRACT" in parameters)
                total = a + ((b & ~clear & 1) ^ minus) + state[1]
                after[n] = [total & 1, minus if clear else total >> 1]
            else:
                width, (high, low) = int(parameters["WIDTH"]), map(int, re.findall(r"\d+", ports["out_data"]))
                assert high - low + 1 == width
                words[low // width] = sum(bit << k for k, bit in enumerate(state[:width]))
                after[n] = [*state[1:width], self.bit(ports["in"])]
        self.state = after
        return words


def faults(sums, matrix, period, loads=3):
    """Wrong bits of the words of `loads` loads that follow each other after `period` clocks."""
    rng = np.random.default_rng(1)
    text = "\n".join(serial_datapath("m", sums, "").values())
    machine = Machine(text, rng)
    low = -(1 << (sums.width - 1)) if sums.signed else 0
    x = rng.integers(low, low + (1 << sums.width), (loads, sums.lanes))
    x[0] = low
    wrong = []
    for clock in range(5, 5 + period * (loads - 1) + sums.cycles + 1):
        sample, at = divmod(clock - 5, period)
        load = int(at == 0 and sample < loads)
        values = x[sample] if load else rng.integers(0, 1 << sums.width, sums.lanes)
        data = sum((int(v) & ((1 << sums.width) - 1)) << (n * sums.width) for n, v in enumerate(values))
        words = machine.clock(load, data)
        sample, at = divmod(clock - 5 - sums.cycles, period)
        if at == 0 and 0 <= sample < loads:
            wanted = x[sample] @ matrix
            for item, total in zip(sums.exits, wanted.tolist(), strict=True):
                if item.stream < 0:
                    wrong += [total] * bool(total)
                    continue
                word = words[sums.words.index(item.stream)]
                total = -total if item.negate else total
                exact = total >> item.exponent if item.exponent >= 0 else total << -item.exponent
                wrong += [(sample, word, exact)] * ((exact - word) % (1 << sums.bits) != 0)
    return wrong


@FIXED
@given(tasks())
def test_every_bit_of_every_sum_is_there_when_it_should_be(task):
    sums = made(task)
    assert faults(sums, task[0], sums.period) == []
    assert faults(sums, task[0], sums.period + 3) == []


@FIXED
@given(tasks())
def test_words_hold_what_is_read_and_no_more_bits(task):
    matrix, (_, _, low, high), wanted, _ = task
    sums = made(task)
    for item, column in zip(sums.exits, matrix.T, strict=True):
        if item.stream >= 0:
            bottom, top = sums.bounds[item.stream]
            extremes = [int((column * np.where((column > 0) == up, high, low)).sum()) for up in (True, False)]
            extremes = [-e if item.negate else e for e in extremes]
            scale = 2.0**item.exponent
            assert bottom * scale <= min(extremes)
            assert max(extremes) <= top * scale
            assert wanted is not None or width_of(bottom, top) <= sums.bits
    if wanted is not None:
        lowest = min((item.exponent for item in sums.exits if item.stream >= 0), default=0)
        assert sums.bits <= max(1, wanted - lowest)
    assert sums.period == sums.bits + 1


def refuted(test, *drawn):
    check = test.hypothesis.inner_test
    with pytest.raises(AssertionError):
        settings(FIXED, phases=[Phase.generate])(given(*drawn)(check))()


@pytest.mark.parametrize("port", ["a", "b", "clear", "in"])
def test_a_bit_of_another_clock_is_seen(port, monkeypatch):
    matrix = np.array([[5, -3, 11, 1], [7, 1, 0, 0], [1, -9, 45, 0]])
    sums = SerialSums.of(share(matrix), (4, True, -8, 7), None)
    text = serial_datapath("m", sums, "")["m.v"]
    late = [found for found in re.finditer(rf"\.{port}\(\w+\[(\d+)\]\)", text) if found[1] != "0"]
    assert late
    for found in late:
        changed = text[: found.start(1)] + str(int(found[1]) - 1) + text[found.end(1) :]
        monkeypatch.setattr("tests.unit.rtl.test_serial.serial_datapath", lambda *_, text=changed: {"m.v": text})
        assert faults(sums, matrix, sums.period, loads=100), found[0]


def test_words_that_are_too_short_are_seen(monkeypatch):
    monkeypatch.setattr(module, "width_of", lambda low, high: width_of(low, high) - 1)
    refuted(test_words_hold_what_is_read_and_no_more_bits, tasks())


def test_loads_that_come_a_clock_too_early_are_seen():
    matrix = np.array([[5, -3], [7, 1]])
    sums = SerialSums.of(share(matrix), (4, True, -8, 7), None)
    assert faults(sums, matrix, sums.period) == []
    assert faults(sums, matrix, sums.period - 1)


def kept(sums, stage):
    """Registers behind the streams if they are made in these stages; None where one is read before it is made."""
    depth, later = max(stage.values()), dict.fromkeys(stage, 0)
    reads = [(item.stream, depth + 1) for item in sums.exits if item.stream >= 0]
    for stream in stage:
        if stream >= sums.lanes:
            adder = sums.adder(stream)
            reads += [(adder.plain, stage[stream]), (adder.shifted, stage[stream] + adder.shift)]
    for stream, clock in reads:
        if clock <= stage[stream]:
            return None
        later[stream] = max(later[stream], clock - stage[stream] - 1)
    return later


@settings(FIXED, max_examples=60)
@given(tasks(inputs=2, outputs=2, largest=11))
def test_no_other_stages_take_fewer_registers(task):
    sums = made(task)
    moving = [stream for stream in sums.stage if stream >= sums.lanes]
    assume(moving and sums.depth ** len(moving) <= 3000)
    assert kept(sums, sums.stage) == sums.later
    best = []
    for choice in itertools.product(range(1, sums.depth + 1), repeat=len(moving)):
        later = kept(sums, {**sums.stage, **dict(zip(moving, choice, strict=True))})
        if later is not None and max(choice) == sums.depth:
            best.append(sum(later.values()))
    assert sum(sums.later.values()) == min(best)


def test_only_what_an_output_needs_is_there():
    matrix = np.array([[3, 0], [0, 0], [0, 5]])
    sums = SerialSums.of(share(matrix), (4, False, 0, 15), None)
    assert 1 not in sums.stage
    assert "in1 " not in serial_datapath("m", sums, "")["m.v"]


def test_equal_sums_and_sums_times_two_are_made_once():
    sums = SerialSums.of(share(np.array([[3, 6, -3]])), (4, False, 0, 15), None)
    assert sums.count == 1
    assert [(item.exponent, item.negate) for item in sums.exits] == [(0, True), (1, True), (0, False)]
    assert len(sums.words) == 1
