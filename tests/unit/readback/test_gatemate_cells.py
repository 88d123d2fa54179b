"""The parts of a GateMate's logic cells, products and memories compute what the cells do, for all modes."""

from itertools import product
from random import Random

import pytest

from fpgaprune.errors import ReadbackError
from fpgaprune.readback import Lut, Parts
from fpgaprune.readback.gatemate import blocks, cells, layout, multipliers

from .player import Player, signed

WIRES = [f"IN{at}" for at in range(1, 9)] + ["CINX", "PINX", "CINY1", "PINY1"]
TABLES = [f"INIT_{name}" for name in ("L00", "L01", "L02", "L03", "L10", "L11", "L20", "L30")]
PLACE = "X5Y6"
CYCLES = 200


class Cell:
    """A logic cell with random wires, and what its signals are."""

    def __init__(self, settings):
        self.parts, self.settings = Parts(), settings
        self.inputs = {name: self.parts.net() for name in WIRES}
        self.made = {}

    def net(self, signal):
        """The net of a wire or of a signal, which is made where it is asked for."""
        if signal in self.inputs:
            return self.inputs[signal]
        if signal not in self.made:
            one = cells.Cpe(self.parts, lambda name: self.settings.get(name, 0), self.net, PLACE)
            self.made[signal] = one.make(signal)
        return self.made[signal]

    def plays(self, random, signals, model):
        """Whether the signals are what `model` makes of the wires, tried many times."""
        nets = [self.net(signal) for signal in signals]
        player = Player(self.parts.netlist)
        for _ in range(CYCLES):
            given = {name: random.randrange(2) for name in WIRES}
            player.compute(**{name: ([self.inputs[name]], value) for name, value in given.items()})
            assert [player.values[net] for net in nets] == [int(bit) for bit in model(given)]


def looked_up(table, low, high):
    return table >> (low | high << 1) & 1


def halves(settings, given):
    """What the four first tables give, and the two behind them."""
    taken = {"IN2": ("C_I1", "PINY1"), "IN4": ("C_I2", "CINX"), "IN6": ("C_I3", "PINY1"), "IN8": ("C_I4", "PINX")}
    wires = {name: given[other if settings.get(by) else name] for name, (by, other) in taken.items()}
    pairs = (("IN1", "IN2"), ("IN3", "IN4"), ("IN5", "IN6"), ("IN7", "IN8"))
    return [looked_up(settings[f"INIT_L0{at}"], given[one], wires[other]) for at, (one, other) in enumerate(pairs)]


def random_settings(random, function):
    settings = {name: random.randrange(16) for name in TABLES}
    settings |= {f"C_I{at}": random.randrange(2) for at in range(1, 5)}
    return {**settings, "C_FUNCTION": function}


@pytest.mark.parametrize(("function", "seed"), [*product((0, 5, 7), range(12))])
def test_a_tree_of_tables_computes_what_its_tables_say(function, seed):
    random = Random(seed)
    one = random_settings(random, function)
    if seed % 3 == 0:
        one["INIT_L20"] = 0b1100

    def model(given):
        low = halves(one, given)
        upper = looked_up(one["INIT_L10"], low[0], low[1])
        lower = looked_up(one["INIT_L11"], low[2], low[3] | (function == 5 and given["CINY1"]))
        shown = looked_up(one["INIT_L20"], upper, lower) ^ (function == 7 and given["CINY1"])
        return upper, shown, 1 ^ looked_up(one["INIT_L30"], shown, upper)

    Cell(one).plays(random, ("COMBOUT2", "COMBOUT1", "COMPOUT"), model)


@pytest.mark.parametrize("seed", range(6))
def test_an_adder_adds_one_bit_or_two(seed):
    random = Random(seed)
    one = random_settings(random, 1)
    one |= {"INIT_L02": 0, "INIT_L03": 0, "INIT_L10": 0b0110, "INIT_L11": 0b0110, "INIT_L20": 0b0110}

    def single(given):
        whole = sum(halves(one, given)[:2]) + given["CINY1"]
        return whole & 1, whole > 1, whole > 1

    Cell(one).plays(random, ("COMBOUT1", "CPOUT2", "COUTY1"), single)
    two = {**random_settings(random, 2), "INIT_L10": 0b0110, "INIT_L11": 0b0110, "INIT_L20": 0b1100}

    def double(given):
        a, b, c, d = halves(two, given)
        whole = c + d + 2 * (a + b) + given["CINY1"]
        return whole & 1, whole >> 1 & 1, whole >> 2

    Cell(two).plays(random, ("COMBOUT1", "COMBOUT2", "COUTY1"), double)


@pytest.mark.parametrize("seed", range(6))
def test_a_choice_of_four_wires_leaves_out_and_inverts(seed):
    random = Random(seed)
    one = {**random_settings(random, 4), "INIT_L20": 0b1100}

    def model(given):
        *_, first, second = halves(one, given)
        at = first + 2 * second
        return [(given[f"IN{at + 1}"] & one["INIT_L10"] >> at & 1) ^ one["INIT_L11"] >> at & 1]

    Cell(one).plays(random, ("COMBOUT1",), model)


@pytest.mark.parametrize(
    ("settings", "signal", "message"),
    [
        ({"C_FUNCTION": 6}, "COMBOUT1", "has C_FUNCTION 6"),
        ({"C_HORIZ": 1}, "COMBOUT1", "has C_HORIZ 0001"),
        ({"C_COMP": 1}, "COMPOUT", "has C_COMP 0001"),
        ({"C_FUNCTION": 2, "INIT_L10": 6, "INIT_L11": 6, "INIT_L20": 14}, "COMBOUT1", "has INIT_L20 1110"),
        ({"C_FUNCTION": 3}, "COUTX", "has INIT_L00 0000"),
        ({"C_FUNCTION": 4, "INIT_L20": 12}, "COMBOUT2", "has C_FUNCTION 4, and the output depends on its COMBOUT2"),
        ({}, "CPOUT1", "has C_FUNCTION 0, and the output depends on its CPOUT1"),
    ],
)
def test_a_logic_cell_that_is_not_decoded_is_refused_by_name(settings, signal, message):
    with pytest.raises(ReadbackError, match=f"the logic cell at {PLACE} {message}; fpgaprune does not"):
        Cell(settings).net(signal)


def product_of(widths, width):
    """A netlist with a product, its factors' nets and its own."""
    parts = Parts()
    a, b = ([parts.net() for _ in range(bits)] for bits in widths)
    return parts, a, b, multipliers.multiply(parts, a, b, width, "product")


@pytest.mark.parametrize("widths", [(2, 2), (3, 2), (2, 4), (4, 3), (5, 5)])
def test_an_array_makes_every_product(widths):
    parts, a, b, made = product_of(widths, sum(widths))
    player = Player(parts.netlist)
    for first, second in product(*(range(1 << bits) for bits in widths)):
        player.compute(a=(a, first), b=(b, second))
        wanted = signed(first, widths[0]) * signed(second, widths[1])
        assert player.number(made) == wanted & (1 << len(made)) - 1


@pytest.mark.parametrize("widths", [(8, 8), (16, 9), (9, 18), (7, 12)])
def test_an_array_makes_wide_products_and_no_changed_one_does(widths):
    random = Random(1)
    parts, a, b, made = product_of(widths, sum(widths))
    tries = [[random.getrandbits(bits) for bits in widths] for _ in range(60)]

    def differ():
        player, found = Player(parts.netlist), 0
        for first, second in tries:
            player.compute(a=(a, first), b=(b, second))
            wanted = signed(first, widths[0]) * signed(second, widths[1])
            found += player.number(made) != wanted & (1 << len(made)) - 1
        return found

    assert differ() == 0
    noticed, tables = 0, parts.netlist.luts
    for at in random.sample(range(len(tables)), 12):
        kept = tables[at]
        tables[at] = Lut(kept.table ^ 0xFFFF, kept.inputs, kept.output, kept.place)
        noticed += differ() > 0
        tables[at] = kept
    assert noticed > 8
    assert differ() == 0


# Memories: where a port's bits stand in a row, by the formulas of the cells' simulation models.


def begins_at(address, width, halves):
    """The first bit that a port of `width` bits reads, of all bits of the memory."""
    row, part = address >> 7, address >> 1 & (0x3F if halves == 2 else 0x1F)
    if width >= 5:
        return row * 40 * halves + part // {5: 4, 10: 8, 20: 16, 40: 32, 80: 64}[width] * width
    number = part // width
    return row * 40 * halves + (number + number // 4 if width == 1 else number * 2 + number // 2)


@pytest.mark.parametrize(
    ("halves", "write", "read", "mode"),
    [
        *((1, write, read, mode) for write, read, mode in [(1, 1, 3), (2, 20, 0), (5, 2, 3), (10, 10, 3), (20, 5, 0)]),
        (1, 40, 40, 0),
        *((2, write, read, mode) for write, read, mode in [(1, 40, 3), (2, 1, 0), (40, 40, 3), (20, 10, 3)]),
        (2, 80, 80, 0),
    ],
)
def test_a_memory_with_ports_of_any_width(halves, write, read, mode):
    random, parts, nets = Random(write + read), Parts(), {}
    bits = 20480 * halves
    content = bytes(random.randrange(2) for _ in range(bits))

    def wire(port, at):
        return nets.setdefault((port, at), parts.net())

    # Port A writes, and where it is not as wide as a row it reads what it wrote; port B reads.
    whole = write == 40 * halves
    ports = {"A": blocks.PortSettings(write, 0 if whole else write, mode), "B": blocks.PortSettings(0, read, 0)}
    made = {
        name: one.made(parts) for name, one in blocks.memory(parts, content, ports, wire, "ram", halves=halves).items()
    }
    for port, size in {"ENA": 1, "WEA": 1, "ENB": 1, "ADDRA": 16, "ADDRB": 16}.items():
        for at in range(size):
            wire(port, at)
    player, memory = Player(parts.netlist), bytearray(content)

    def names(letter, width):
        half = 20 * halves
        return [("AB"[at // half] if width == 2 * half else letter, at % half) for at in range(width)]

    shown = {"A": None, "B": None}
    for _ in range(CYCLES):
        given = {key: random.randrange(2) for key in nets}
        # Few rows, so that what was written is read.
        for letter in "AB":
            given |= {(f"ADDR{letter}", at): 0 for at in range(9, 16)}
        player.compute(**{f"{port}{at}": ([nets[port, at]], value) for (port, at), value in given.items()})
        for letter, width in (("A", 0 if whole else write), ("B", read)):
            if shown[letter] is not None and width:
                assert [player.values[made[f"DO{name}[{at}]"]] for name, at in names(letter, width)] == shown[letter]
        player.tick()
        address = {one: sum(given[f"ADDR{one}", at] << at for at in range(16)) for one in "AB"}
        before, first = bytes(memory), begins_at(address["A"], write, halves)
        writes = given["ENA", 0] and given["WEA", 0]
        if writes:
            for at, (name, number) in enumerate(names("A", write)):
                if given[f"BM{name}", number]:
                    memory[first + at] = given[f"DI{name}", number]
        if given["ENA", 0] and (mode == 3 or not writes):
            shown["A"] = [*memory[first : first + write]]
        if given["ENB", 0]:
            other = begins_at(address["B"], read, halves)
            shown["B"] = [*before[other : other + read]]


def test_no_bit_belongs_to_two_settings():
    """Of the five kinds of blocks of settings, and of memories."""
    kinds = [layout.words_of(*block) for block in ((0, 7), (7, 0), (81, 7), (7, 65), (7, 7))]
    for words in (*kinds, layout.words_of_ram(), layout.words_of_clocks(), layout.words_of_status()):
        bits = [at for first, size in words.values() for at in range(first, first + size)]
        assert len(bits) == len(set(bits))
        assert max(bits) < 8 * 112
