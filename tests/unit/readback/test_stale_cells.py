"""The program that runs netlists computes only what changed: random netlists answer as if every cell were computed."""

import shutil
import subprocess

import numpy as np
import pytest

from fpgaprune.files import hardware_path

SAMPLES, IN_BYTES, OUT_BYTES = 3, 40, 62
_LOW, _HIGH, _INPUT = 0, 1, 3
# A bit takes two cycles on the line, and a byte goes out every 32, until cycle 2,048: the registers of a counter say
# when. The host hears nothing of the first two.
_BIT, _COUNTER = 2 * 65536, tuple(range(4, 16))


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The program as it is used, and the one that computes every cell in each cycle."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not here")
    folder = tmp_path_factory.mktemp("netlist")
    source = str(hardware_path("sim", "netlist.cpp").resolve())
    for name, flags in (("stale", []), ("every", ["-DEVERY_CELL"])):
        subprocess.run(["g++", "-std=c++20", "-O1", *flags, "-o", name, source], cwd=folder, check=True)
    return folder / "stale", folder / "every"


class _Random:
    """Lines of a random netlist whose output sends bytes; each bit is the parity of many nets."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nets = 16
        self.lines = []
        held = [self.new() for _ in range(24)]
        read = [self.new() for _ in range(12)]
        ports = [[self.new() for _ in range(width)] for width in (9, 18, 4, 16)]
        self.known = [_LOW, _HIGH, _INPUT, *_COUNTER, *held, *(net for port in ports for net in port)]
        for number in range(12):
            self.cell("read", number, read[number])
        for _ in range(120):
            self.cell("table", int(self.rng.integers(1 << 16)), self.new())
        for _ in range(2):
            made = [self.new() for _ in range(8)]
            signs = [int(net) for net in self.pick(2)]
            self.line("multiplier", *signs, self.group(self.pick(4)), self.group(self.pick(4)), self.group(made))
            self.known += made
        self.counter()
        self.output = self.serial()
        for net in held:
            self.line("register", *self.inputs(3), int(self.rng.integers(2)), net)
        for _ in range(12):
            self.line("small", int(self.rng.integers(1 << 16)), *self.inputs(4), *self.inputs(2))
        for mode, port in enumerate(ports[:3]):
            self.block(mode, port)
        self.masked(ports[3])

    def new(self):
        self.nets += 1
        return self.nets - 1

    def line(self, kind, *numbers):
        self.lines.append(" ".join([kind, *map(str, numbers)]))

    def group(self, nets):
        return " ".join(map(str, [len(nets), *nets]))

    def pick(self, count):
        return self.rng.choice(self.known, count)

    def inputs(self, count):
        return [int(net) for net in self.pick(count)]

    def cell(self, kind, content, out):
        self.line(kind, content, *self.inputs(4), out)
        self.known.append(out)

    def table(self, function, *nets):
        """A table of up to four nets."""
        made = self.new()
        rows = [function(*(row >> at & 1 for at in range(len(nets)))) for row in range(16)]
        content = sum(int(bit) << row for row, bit in enumerate(rows))
        self.line("table", content, *nets, *[_LOW] * (4 - len(nets)), made)
        return made

    def counter(self):
        carry = _HIGH
        for net in _COUNTER:
            self.line("register", self.table(lambda a, b: a ^ b, net, carry), _HIGH, _LOW, 0, net)
            carry = self.table(lambda a, b: a & b, net, carry)

    def serial(self):
        """Low in cycles 0 and 1 of 32, random from 2 to 17, high in the others."""
        parity = _LOW
        for net in self.known:
            parity = self.table(lambda a, b: a ^ b, parity, net)
        c1, c2, c3, c4, last = *_COUNTER[1:5], _COUNTER[-1]
        first = self.table(lambda a, b, c: not (a or b or c), c1, c2, c3)  # cycles 0, 1, 16 and 17
        start = self.table(lambda one, c: one and not c, first, c4)
        data = self.table(lambda one, c: one if c else not one, first, c4)
        return self.table(lambda s, d, p, end: end or (not s and (p or not d)), start, data, parity, last)

    def block(self, mode, out):
        """A memory of 2,304 bytes of 9 bits, which one port reads and writes."""
        bits = "".join(map(str, self.rng.integers(0, 2, 18432)))
        self.line("block", 18432, bits)
        # The first one stays as it is for 64 cycles and more, and works on for a few of them.
        nets = self.inputs if mode else lambda count: [int(net) for net in self.rng.choice(_COUNTER[6:], count)]
        flags = [*nets(2), _HIGH if mode == 0 else nets(1)[0], mode != 2, mode]
        # Addresses of few free bits meet what was written again.
        address = [*nets(6), *[_LOW] * 8]
        groups = (address, nets(len(out)), out, [])
        self.line("port", len(out), *map(int, flags), *map(self.group, groups))

    def masked(self, out):
        """A memory of 256 words of 16 bits: one port reads, the other writes the bits whose mask is 0."""
        self.line("block", 4096, "".join(map(str, self.rng.integers(0, 2, 4096))))
        read, written = [*self.inputs(3), *[_LOW] * 5], [*self.inputs(3), *[_LOW] * 5]
        self.line("port", 16, *self.inputs(1), _LOW, _HIGH, 0, 0, *map(self.group, (read, [], out, [])))
        groups = written, self.inputs(16), [], self.inputs(16)
        self.line("port", 16, *self.inputs(2), _HIGH, 0, 0, *map(self.group, groups))


@pytest.mark.parametrize("seed", range(12))
def test_random_netlists_answer_as_if_every_cell_were_computed(programs, seed, tmp_path):
    made = _Random(seed)
    head = f"nets {made.nets} {_INPUT} {made.output}"
    (tmp_path / "cells.txt").write_text("\n".join([head, *made.lines]) + "\n")
    (tmp_path / "sent.bin").write_bytes(np.random.default_rng(seed).bytes(SAMPLES * IN_BYTES))
    sizes = map(str, (SAMPLES, IN_BYTES, OUT_BYTES, _BIT, 10_000, 0))
    arguments = ["cells.txt", "sent.bin", "came.bin", *sizes]
    answers = []
    for program in programs:
        done = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        answers.append((done.stdout, (tmp_path / "came.bin").read_bytes()))
    assert answers[0] == answers[1]
    assert len(set(answers[0][1])) > 20, "bytes that hardly differ show little"
