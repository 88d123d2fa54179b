"""Each cell of a bitstream is compared with that of synthesis: what was changed is refused by its name."""

from dataclasses import replace
from itertools import product
from random import Random

import msgspec
import pytest

pytest.importorskip("apycula", reason="Apycula, which knows Gowin's fuses, is not here")

from fpgaprune.errors import ReadbackError
from fpgaprune.readback import (
    BlockMemory,
    BlockPort,
    Functions,
    Lut,
    Netlist,
    Register,
    SynthesisedCell,
    SynthesisedCells,
    compare_cells,
    netlist_of,
    read_cells,
)

from .mixed import BOARD, kept_cells, kept_chip
from .test_readback import flip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("comparison")


def compared(chip, name="mixed"):
    return compare_cells(kept_cells(name), netlist_of(chip, BOARD), BOARD)


def changed(cells, name, **fields):
    """The same netlist with another cell `name`."""
    whole = {**cells.cells, name: msgspec.structs.replace(cells.cells[name], **fields)}
    return SynthesisedCells(cells.ports, whole)


@pytest.fixture(scope="module")
def netlist(home):
    """What the kept bitstream holds: whoever changes it changes it back."""
    return netlist_of(kept_chip(home), BOARD)


@pytest.mark.parametrize("name", ["mixed", "mixed_pll"])
def test_every_cell_is_as_synthesis_made_it(home, name):
    found = compared(kept_chip(home, name), name)
    assert found.first is None
    assert found.cells > 180


def test_a_bitstream_of_another_network_is_refused(home):
    found = compare_cells(kept_cells("mixed_pll"), netlist_of(kept_chip(home), BOARD), BOARD)
    assert "are where place and route did not put" in found.first


def test_a_changed_table_is_refused_by_its_name(home):
    """Tables of four inputs, on all of which they depend, get another bit; those of one become their inverse."""
    netlist, cells, random = netlist_of(kept_chip(home), BOARD), kept_cells(), Random(3)
    named = 0
    for at in random.sample(range(len(netlist.luts)), 60):
        lut = netlist.luts[at]
        used = 4 - lut.inputs.count(0)
        if used not in (1, 4):
            continue
        bits = 1 << random.randrange(16) if used == 4 else 0xFFFF
        netlist.luts[at] = replace(lut, table=lut.table ^ bits)
        first = compare_cells(cells, netlist, BOARD).first
        assert first is not None
        named += lut.place in first
        netlist.luts[at] = lut
    assert named > 5
    assert compare_cells(cells, netlist, BOARD).holds


def test_a_changed_bit_of_a_memory_is_refused_by_memory_word_and_bit(home):
    chip = kept_chip(home)
    line, at = next((line, at) for line in chip.rows[chip.db.height :] for at, bit in enumerate(line) if bit)
    line[at] = 0
    first = compared(chip).first
    assert "the content (word " in first
    assert "0 instead of 1) of 'network.r" in first


def test_a_lost_start_value_is_refused(home):
    chip = kept_chip(home)
    cells = kept_cells()
    name = next(name for name, cell in cells.cells.items() if cell.type == "DFFSE" and "mark" in name)
    other = changed(cells, name, type="DFFRE", connections=_renamed(cells.cells[name].connections))
    found = compare_cells(other, netlist_of(chip, BOARD), BOARD)
    assert found.first.startswith(f"the start value of {name!r}")


def _renamed(wires):
    return {("RESET" if port == "SET" else port): bits for port, bits in wires.items()}


@pytest.mark.parametrize(
    ("kind", "port", "message"),
    [
        ("SPX9", "AD", "the address of port"),
        ("SPX9", "DI", "the data of port"),
        ("SPX9", "WRE", "the write enable of port"),
        ("RAM16SDP4", "RAD", "the address that is read"),
        ("RAM16SDP4", "WAD", "the address that is written"),
        ("RAM16SDP4", "DI", "the data"),
        ("RAM16SDP4", "WRE", "the write enable"),
        ("MULT9X9", "A", "the input A"),
        ("MULT18X18", "BSIGN", "the signs"),
        ("DFFRE", "CE", "the next value"),
        ("DFFE", "D", "the next value"),
    ],
)
def test_a_wire_of_every_kind_of_cell_is_compared(netlist, kind, port, message):
    """A wire at another net than the bitstream's: refused by what it is."""
    cells, firsts = kept_cells(), []
    for name, cell in cells.cells.items():
        bits = cell.connections.get(port, [])
        if cell.type != kind or not bits or len(firsts) == 4:
            continue
        foreign = next(
            one.connections["O"][0]
            for one in cells.cells.values()
            if one.connections.get("I") == cells.ports["serial_in"]
        )
        other = [foreign, *bits[1:]] if port != "AD" else [*bits[:-1], foreign]
        found = compare_cells(changed(cells, name, connections={**cell.connections, port: other}), netlist, BOARD)
        firsts.append(found.first or "")
    assert any(message in first for first in firsts), firsts


def test_another_ratio_of_the_pll_is_refused(home):
    cells = kept_cells("mixed_pll")
    name = next(name for name, cell in cells.cells.items() if cell.type == "rPLL")
    parameters = {**cells.cells[name].parameters, "FBDIV_SEL": f"{16:b}"}
    found = compare_cells(
        changed(cells, name, parameters=parameters), netlist_of(kept_chip(home, "mixed_pll"), BOARD), BOARD
    )
    assert found.first == "the PLL makes 18/7 times the frequency of the pin, and synthesis asked it for 17/7"


def test_a_pll_with_other_fuses_is_refused_by_name(home):
    chip = kept_chip(home, "mixed_pll")
    refused = 0
    row, height = 9, range(chip.db[9, 45].height)
    for col in (43, 44, 45):
        known = {tuple(fuse) for fuses in chip.db.shortval[chip.db[row, col].ttyp]["PLL"].values() for fuse in fuses}
        for fuse in sorted(known)[::25]:
            assert fuse[0] in height
            flip(chip, row, col, [fuse])
            try:
                found = compared(chip, "mixed_pll").first
            except ReadbackError as error:
                found = str(error)
                refused += 1
            assert "the PLL" in found
            flip(chip, row, col, [fuse])
    assert refused > 3


def test_a_cell_that_is_not_compared_is_named(home):
    cells = kept_cells()
    name = next(name for name, cell in cells.cells.items() if cell.type == "ALU")
    other = changed(cells, name, parameters={"ALU_MODE": f"{8:b}"})
    with pytest.raises(ReadbackError, match="is an ALU of mode 8; fpgaprune does not compare those"):
        compare_cells(other, netlist_of(kept_chip(home), BOARD), BOARD)


def test_a_file_without_cells_is_refused(tmp_path):
    (tmp_path / "x.fs.cells.xz").write_bytes(b"no netlist")
    with pytest.raises(ReadbackError, match="holds no synthesised netlist"):
        read_cells(tmp_path / "x.fs.cells.xz")


def test_equal_functions_have_equal_numbers_and_others_have_others():
    """All tables of three inputs, two of which may be one, a constant or an inverse: numbers and truth agree."""
    functions = Functions()
    a, b, c = (functions.free() for _ in range(3))
    values = {0: 0b00000000, 1: 0b11111111, a: 0b10101010, b: 0b11001100, c: 0b11110000}
    values |= {value ^ 1: 0xFF ^ table for value, table in values.items() if value > 1}
    random, known = Random(1), {}
    for _ in range(4000):
        table, inputs = random.randrange(256), random.choices(list(values), k=3)
        truth = 0
        for at in range(8):
            place = sum((values[one] >> at & 1) << bit for bit, one in enumerate(inputs))
            truth |= (table >> place & 1) << at
        number = functions.made(table, inputs)
        assert known.setdefault(truth, number) == number
    assert len(set(known.values())) == len(known)
    assert all(known.get(truth ^ 0xFF, number ^ 1) == number ^ 1 for truth, number in known.items())
    assert {functions.made(0b0110, pair) for pair in product((a, a ^ 1), (b, b ^ 1))} == {
        functions.made(0b0110, (a, b)),
        functions.made(0b1001, (b, a)),
    }


ZERO, ONE = 0, 1
_CLOCK, _INPUT, _OUTPUT = 10, 11, 12


def _memory(kind, width, ports, connections, **parameters):
    """A bitstream and a netlist of one memory, whose output is one of the first and last bit that its ports show."""
    buffers = {
        name: SynthesisedCell(kind, {outer: [port], inner: [net]})
        for name, kind, outer, inner, port, net in (
            ("clk", "IBUF", "I", "O", 2, _CLOCK),
            ("in", "IBUF", "I", "O", 3, _INPUT),
            ("out", "OBUF", "O", "I", 4, _OUTPUT),
        )
    }
    given = {"F": [_OUTPUT], "I0": [100], "I1": [100 + width - 1]}
    table = SynthesisedCell("LUT2", given, {"INIT": "0110"}, "X2Y3/LUT0")
    memory = SynthesisedCell(kind, connections, parameters, "X5Y9/BSRAM")
    whole = {"clk": [2], "serial_in": [3], "serial_out": [4]}
    synthesised = SynthesisedCells(whole, {**buffers, "table": table, "memory": memory})
    block = BlockMemory(bytes(18 * 1024), ports, "R10C6_BSRAM")
    shown = [net for port in ports for net in port.outputs]
    inputs = (shown[0], shown[-1], ZERO, ZERO)
    lut = Lut(0x6666, inputs, _OUTPUT, "R4C3_table0")
    netlist = Netlist(nets=200, luts=[lut], blocks=[block], pins={"9": 3}, output=_OUTPUT, clock="1")
    return netlist, synthesised


def test_a_memory_of_36_bits_has_a_port_for_each_half():
    def port(letter, half):
        address = (ZERO, ZERO, ZERO, ZERO, half, 3, *[ZERO] * 8)
        return BlockPort(
            letter, 18, address, (), tuple(range(20 + 18 * half, 38 + 18 * half)), ONE, ZERO, ONE, False, 0
        )

    wires = {"AD": [*"00000", _INPUT, *"00000000"], "DI": ["0"] * 36, "DO": list(range(100, 136))}
    wires |= {"CE": ["1"], "WRE": ["0"], "OCE": ["1"], "CLK": [_CLOCK]}
    netlist, synthesised = _memory("SPX9", 36, (port("A", 0), port("B", 1)), wires, BIT_WIDTH="100100")
    assert compare_cells(synthesised, netlist, BOARD).first is None
    # The halves the wrong way round, in the netlist and in the address of one of them.
    turned = {**wires, "DO": [*wires["DO"][18:], *wires["DO"][:18]]}
    other = compare_cells(changed(synthesised, "memory", connections=turned), netlist, BOARD)
    assert other.first == "the table 'table' at R4C3_table0 computes something else than synthesis made it for"
    both = (port("A", 0), replace(port("B", 1), address=port("A", 0).address))
    netlist.blocks[0] = replace(netlist.blocks[0], ports=both)
    assert compare_cells(synthesised, netlist, BOARD).first.startswith("the address of port B of 'memory'")


@pytest.mark.parametrize("read", [False, True])
def test_a_lane_of_a_memory_that_nothing_reads_may_hold_anything(read):
    """Place and route leaves the data of an unread lane at a wire of its own choice."""

    def port(letter, start, data=()):
        address = (ZERO, ZERO, ZERO, 3, *[ZERO] * 10)
        write = ONE if data else ZERO
        return BlockPort(letter, 9, address, data, tuple(range(start, start + 9)), ONE, write, ONE, False, 0)

    # Lane 8 of port B is the last one that the output reads, or lane 7.
    last = 8 if read else 7
    wires = {"CLKA": [_CLOCK], "CLKB": [_CLOCK], "WREA": ["1"], "WREB": ["0"], "DIB": ["0"] * 18}
    for letter, first in (("A", 100), ("B", 120)):
        wires |= {f"AD{letter}": [*"000", _INPUT, *"0000000000"], f"CE{letter}": ["1"], f"OCE{letter}": ["1"]}
        wires[f"DO{letter}"] = list(range(first, first + 18))
    wires["DIA"] = [_INPUT] * 8 + ["0"] * 10
    ports = (port("A", 20, (*[3] * 8, 21)), port("B", 40))
    netlist, synthesised = _memory("DPX9B", 20 + last + 1, ports, wires, BIT_WIDTH_0="1001", BIT_WIDTH_1="1001")
    netlist.luts[0] = replace(netlist.luts[0], inputs=(20, 40 + last, ZERO, ZERO))
    first = compare_cells(synthesised, netlist, BOARD).first
    assert first == ("the data of port A of 'memory' at R10C6_BSRAM is not what synthesis made it" if read else None)


def _double(letter, address, data, outputs):
    return BlockPort(letter, 36, address, data, outputs, ONE, ONE if data else ZERO, ONE, False, 0)


def _written_and_read(data):
    """Words of 36 bits written at port A and read at port B; `data` are the nets written."""
    enabled = (ONE, ONE, ONE, ONE, ZERO, 3, *[ZERO] * 8)
    at = (ZERO, ZERO, ZERO, ZERO, ZERO, 3, *[ZERO] * 8)
    wires = {
        "ADA": [*"11110", _INPUT, *"00000000"],
        "ADB": [*"00000", _INPUT, *"00000000"],
        "DO": list(range(100, 136)),
    }
    wires |= {"DI": [_INPUT] * 32 + ["x"] * 4, "CLKA": [_CLOCK], "CLKB": [_CLOCK]}
    wires |= {"CEA": ["1"], "CEB": ["1"], "OCE": ["1"]}
    ports = (_double("A", enabled, data, ()), _double("B", at, (), tuple(range(20, 56))))
    netlist, synthesised = _memory("SDPX9B", 36, ports, wires, BIT_WIDTH_0="100100", BIT_WIDTH_1="100100")
    # The output is one of the bits 0 and 31.
    netlist.luts[0] = replace(netlist.luts[0], inputs=(20, 51, ZERO, ZERO))
    reads = {**synthesised.cells["table"].connections, "I1": [131]}
    return netlist, changed(synthesised, "table", connections=reads)


def test_words_of_36_bits_are_written_at_one_port_and_read_at_the_other():
    netlist, synthesised = _written_and_read((3,) * 32 + (ZERO,) * 4)
    assert compare_cells(synthesised, netlist, BOARD).first is None
    netlist, synthesised = _written_and_read((3,) * 31 + (ZERO,) * 5)
    assert compare_cells(synthesised, netlist, BOARD).first.startswith("the data of port A of 'memory'")


def test_a_lane_that_only_unread_lanes_take_is_not_read():
    """Each unread lane is written with what another one shows."""
    netlist, synthesised = _written_and_read((3,) * 32 + (53, 54, 55, 52))
    assert compare_cells(synthesised, netlist, BOARD).first is None
    # Lane 31 is read, and takes what lane 32 shows: so that is read too.
    netlist, synthesised = _written_and_read((3,) * 31 + (52, 53, 54, 55, 52))
    assert {52, 53, 54, 55} <= netlist.read_nets()
    assert compare_cells(synthesised, netlist, BOARD).first.startswith("the data of port A of 'memory'")


def test_a_table_of_36_bits_is_read_at_the_second_port():
    at = (ZERO, ZERO, ZERO, ZERO, ZERO, 3, *[ZERO] * 8)
    ports = (_double("A", at, (), ()), _double("B", at, (), tuple(range(20, 56))))
    wires = {"AD": [*"00000", _INPUT, *"00000000"], "DO": list(range(100, 136))}
    wires |= {"CE": ["1"], "OCE": ["1"], "CLK": [_CLOCK]}
    netlist, synthesised = _memory("pROMX9", 36, ports, wires, BIT_WIDTH="100100")
    assert compare_cells(synthesised, netlist, BOARD).first is None
    other = {**wires, "DO": [*wires["DO"][18:], *wires["DO"][:18]]}
    assert (
        "computes something else"
        in compare_cells(changed(synthesised, "memory", connections=other), netlist, BOARD).first
    )


@pytest.mark.parametrize(
    ("copy", "known", "first"),
    [
        (Register(3, ONE, ZERO, 0, 21, "R5C6_Q1"), True, None),
        (Register(3, ONE, ZERO, 0, 21, "R5C6_Q1"), False, "1 of 2 cells are where place and route did not put any"),
        (Register(3, ONE, ZERO, 1, 21, "R5C6_Q1"), True, "the start value of 'kept' at R5C6_Q1"),
        (Register(20, ONE, ZERO, 0, 21, "R5C6_Q1"), True, "the next value of 'kept' at R5C6_Q1"),
        (Register(3, 3, ZERO, 0, 21, "R5C6_Q1"), True, "the next value of 'kept' at R5C6_Q1"),
    ],
)
def test_a_copy_of_a_register_is_compared_as_the_register_itself(copy, known, first):
    """The output is one of the register and its copy, which synthesis knows to be always 0."""
    netlist, synthesised = _written_and_read((3,) * 32 + (ZERO,) * 4)
    netlist.blocks.clear()
    netlist.registers[:] = [Register(3, ONE, ZERO, 0, 20, "R10C6_Q0"), copy]
    netlist.luts[0] = replace(netlist.luts[0], inputs=(20, 21, ZERO, ZERO))
    wires = {"D": [_INPUT], "CLK": [_CLOCK], "Q": [100]}
    kept = SynthesisedCell("DFF", wires, {}, "X5Y9/DFF0", ["X5Y4/DFF1"] if known else [])
    always_0 = SynthesisedCell("GND", {"G": [_OUTPUT]})
    cells = {**synthesised.cells, "kept": kept, "table": always_0}
    del cells["memory"]
    found = compare_cells(SynthesisedCells(synthesised.ports, cells), netlist, BOARD).first
    assert found is None if first is None else found.startswith(first)
