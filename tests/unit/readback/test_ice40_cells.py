"""The parts of an iCE40's memories, registers and multipliers compute what the cells do, for all modes."""

from itertools import product
from random import Random

import pytest

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.ice40 import multipliers as parts

from .player import Player, Ports, signed

CYCLES = 300


@pytest.mark.parametrize(("enabled", "reset", "value"), [*product((False, True), (False, True), (0, 1))])
def test_a_register_takes_its_reset_where_it_is_enabled(enabled, reset, value):
    cells, random, held = parts.Cells(), Random(1), 0
    ports = Ports(cells, **({} if enabled else {"E": 1}), **({} if reset else {"R": 0}))
    made = cells.register(ports("D", 0), ports("E", 0), ports("R", 0), value, "X1/Y1/lc0")
    player = Player(cells.netlist)
    for _ in range(40):
        d, e, r = (random.randrange(2) for _ in range(3))
        given = {name: ([ports(name, 0)], value) for name, value in {"D": d, "E": e, "R": r}.items()}
        player.compute(**{name: one for name, one in given.items() if one[0][0] > 1})
        assert player.values[made] == held
        player.tick()
        if e or not enabled:
            held = value if r and reset else d


@pytest.mark.parametrize(("read", "write"), [*product(range(4), range(4))])
def test_a_memory_with_ports_of_any_width(read, write):
    """Bit `n` of a port of 16, 8, 4 or 2 bits stands at 16 bits' place `first + n * step`, as Lattice numbers them."""
    places = {0: range(16), 1: range(0, 16, 2), 2: range(1, 16, 4), 3: range(3, 16, 8)}
    cells, random = parts.Cells(), Random(read + 4 * write)
    content = bytes(random.randrange(2) for _ in range(4096))
    ports = Ports(cells)
    outputs = cells.memory(content, (read, write), ports, "X1/Y1/ram")
    player, memory, shown = Player(cells.netlist), bytearray(content), None

    def bits_at(mode, address):
        """Where the bits of a port stand: neighbours in a word are chosen by the upper address bits."""
        return [16 * (address & 255) + (group << mode) + (address >> 8) for group in range(16 >> mode)]

    for _ in range(CYCLES):
        given = {name: random.getrandbits(1) for name in ("RE", "RCLKE", "WE", "WCLKE")}
        # Few words, so that what was written is read.
        raddr, waddr = (random.randrange(4) | random.randrange(1 << mode) << 8 for mode in (read, write))
        data, mask = random.getrandbits(16), random.getrandbits(16)
        wide = {"RADDR": (raddr, 11), "WADDR": (waddr, 11), "WDATA": (data, 16), "MASK": (mask, 16)}
        wide |= {name: (value, 1) for name, value in given.items()}
        player.compute(
            **{name: ([ports(name, at) for at in range(bits)], value) for name, (value, bits) in wide.items()}
        )
        if shown is not None:
            assert [player.values[outputs[place]] for place in places[read]] == shown
        player.tick()
        if given["RE"] and given["RCLKE"]:
            shown = [memory[at] for at in bits_at(read, raddr)]
        if given["WE"] and given["WCLKE"]:
            for at, place in zip(bits_at(write, waddr), places[write], strict=True):
                if write or not mask >> place & 1:
                    memory[at] = data >> place & 1


INPUTS = {"A": 16, "B": 16, "C": 16, "D": 16}
FLAGS = ("CE", "AHOLD", "BHOLD", "CHOLD", "DHOLD", "ADDSUBTOP", "ADDSUBBOT", "OLOADTOP", "OLOADBOT")
FLAGS += ("OHOLDTOP", "OHOLDBOT", "CI")
REGISTERS = ("A_REG", "B_REG", "C_REG", "D_REG")
RESETS = {"IRSTTOP": 0, "IRSTBOT": 0, "ORSTTOP": 0, "ORSTBOT": 0}


class Model:
    """A multiplier with its accumulator of 32 bits, as its data sheet draws it, in whole numbers."""

    def __init__(self, settings):
        self.settings = settings
        self.held = dict.fromkeys("ABCD", 0)
        self.first = self.second = self.low = self.high = 0

    def outputs(self, given):
        """What is shown; what the registers take next is kept until `tick`."""
        one = self.settings
        now = {name: self.held[name] if one[f"{name}_REG"] else given[name] for name in "ABCD"}
        a, b = (signed(now[name], 16) if one[f"{name}_SIGNED"] else now[name] for name in "AB")
        self.made = a * b & 0xFFFFFFFF
        early = self.first if one["PIPELINE_16x16_MULT_REG1"] else self.made
        self.early, late = early, self.second if one["PIPELINE_16x16_MULT_REG2"] else early
        carry = (0, 1, None, given["CI"])[one["BOTADDSUB_CARRYSELECT"]]
        self.next_low, carry = self.half("BOT", given, late & 0xFFFF, now["B"], now["D"], self.low, carry)
        kind = one["TOPADDSUB_CARRYSELECT"]
        carry = (0, 1, carry, carry ^ given["ADDSUBBOT"])[kind]
        self.next_high, _ = self.half("TOP", given, late >> 16, now["A"], now["C"], self.high, carry)
        low = (self.next_low, self.low, None, late & 0xFFFF)[one["BOTOUTPUT_SELECT"]]
        high = (self.next_high, self.high, None, late >> 16)[one["TOPOUTPUT_SELECT"]]
        return high << 16 | low

    def half(self, name, given, product, past, other, kept, carry):
        subtract = 0xFFFF * given[f"ADDSUB{name}"]
        lower = product if self.settings[f"{name}ADDSUB_LOWERINPUT"] else past
        upper = other if self.settings[f"{name}ADDSUB_UPPERINPUT"] else kept
        whole = lower + (upper ^ subtract) + carry
        return other if given[f"OLOAD{name}"] else whole & 0xFFFF ^ subtract, whole >> 16

    def tick(self, given):
        if not given["CE"]:
            return
        self.second, self.first = self.early, self.made
        for name in "ABCD":
            self.held[name] = self.held[name] if given[f"{name}HOLD"] else given[name]
        self.low = self.low if given["OHOLDBOT"] else self.next_low
        self.high = self.high if given["OHOLDTOP"] else self.next_high


@pytest.mark.parametrize("seed", range(40))
def test_a_multiplier_with_any_registers_and_adders(seed):
    random = Random(seed)
    settings = {name: random.randrange(2) for name in (*REGISTERS, "A_SIGNED", "B_SIGNED", "PIPELINE_16x16_MULT_REG2")}
    early = random.randrange(2)
    settings |= dict.fromkeys(("TOP_8x8_MULT_REG", "BOT_8x8_MULT_REG", "PIPELINE_16x16_MULT_REG1"), early)
    for side, carries in (("TOP", (0, 1, 2, 3)), ("BOT", (0, 1, 3))):
        settings[f"{side}ADDSUB_LOWERINPUT"] = random.choice((0, 2))
        settings[f"{side}ADDSUB_UPPERINPUT"] = random.randrange(2)
        settings[f"{side}OUTPUT_SELECT"] = random.choice((0, 1, 3)) if seed else 3
        settings[f"{side}ADDSUB_CARRYSELECT"] = random.choice(carries)
    cells = parts.Cells()
    ports = Ports(cells, **RESETS)
    outputs = parts.multiply(cells, settings, ports, "X0/Y5/mac16_0")
    player, model = Player(cells.netlist), Model(settings)
    for _ in range(CYCLES // 4):
        given = {name: random.getrandbits(bits) for name, bits in INPUTS.items()}
        given |= {name: int(random.random() < (0.8 if name == "CE" else 0.3)) for name in FLAGS}
        wide = {**INPUTS, **dict.fromkeys(FLAGS, 1)}
        player.compute(**{name: ([ports(name, at) for at in range(wide[name])], given[name]) for name in wide})
        assert player.number(outputs) == model.outputs(given)
        player.tick()
        model.tick(given)


@pytest.mark.parametrize(
    ("settings", "fixed", "message"),
    [
        ({"MODE_8x8": 1}, {}, "makes products of 8 x 8 bits"),
        ({"TOP_8x8_MULT_REG": 1}, {}, "makes products of 8 x 8 bits"),
        ({"TOPOUTPUT_SELECT": 2}, {}, "shows products of 8 x 8 bits"),
        ({"BOTADDSUB_LOWERINPUT": 3}, {}, "adds a product of 8 x 8 bits or a sign"),
        ({"BOTADDSUB_CARRYSELECT": 2}, {}, "takes the carry of the one below"),
        ({"A_REG": 1}, {"IRSTTOP": 1}, "has registers that are reset without the clock"),
    ],
)
def test_a_multiplier_that_is_not_decoded_is_refused_by_name(settings, fixed, message):
    cells = parts.Cells()
    with pytest.raises(ReadbackError, match=f"the multiplier at X0/Y5/mac16_0 {message}"):
        parts.multiply(cells, settings, Ports(cells, **{**RESETS, **fixed}), "X0/Y5/mac16_0")
