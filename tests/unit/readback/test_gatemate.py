"""A kept bitstream for a GateMateA1-EVB is read back: each bit of its samples is right, and faults are named."""

import importlib.util
import re
from dataclasses import replace
from random import Random

import pytest
from msgspec import structs

pytest.importorskip("yowasp_nextpnr_himbaechel_gatemate", reason="nextpnr for GateMate, which knows it, is not here")

from fpgaprune.errors import ReadbackError, ToolError
from fpgaprune.readback import GateMate, check_bitstream, compare_cells, netlist_of, read_cells, read_chip
from tests.quick import quick

from .kept import COUNT, changed, notices_constant_carries
from .kept import GATEMATE as KEPT
from .mixed import RESULTS, samples

BOARD = KEPT.board
OPEN = 2


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("gatemate")


@pytest.fixture(scope="module")
def cells(home):
    KEPT.bitstream(home)
    return read_cells(home / "mixed_gatemate.bit.cells.xz")


@pytest.fixture(scope="module")
def netlist(home):
    return netlist_of(KEPT.chip(home), BOARD)


def setting(chip, place, name, bit=0):
    """The place of a bit of a setting of the logic cell at a place, as X5Y6/CPE_LT_U."""
    block, whole = chip.setting_at(chip.db.tile_at(place.split("/")[0]), f"CPE.{name}")
    return block, whole, bit


def test_a_bitstream_computes_every_bit_of_its_samples(home):
    path = KEPT.bitstream(home)
    sent, wanted = samples(COUNT)
    found = check_bitstream(path, BOARD, sent, wanted, COUNT, RESULTS)
    tried, proven = found.sentence().splitlines()
    assert tried == f"bitstream computes the emulator's bits on {COUNT} samples: 0 differ"
    assert proven.endswith("of the synthesised Verilog for all inputs: 282 compared, 0 differ")
    assert found.holds
    assert found.bits == 48 * COUNT
    assert {**found.decoded, "tables": 0} == {"tables": 0, "registers": 279, "block memories": 2}


# The faults that a simulation of the source cannot see.


def test_a_register_that_lost_its_start_value_is_named(home, cells, netlist):
    chip = KEPT.chip(home)
    places = {one.place for one in netlist.registers if one.start == 1}
    named = [name for name, cell in cells.cells.items() if cell.bel in places and cell.parameters.get("INIT") == "1"]
    assert len(named) >= 5
    for name in named[:2]:
        place = cells.cells[name].bel
        with changed(chip, setting(chip, place, "FF_INIT")):
            found = KEPT.checked(chip, cells)
        assert re.match("the start value of '.*' at X.*Y.*/CPE_FF_. is not what synthesis made it", found.cells.first)
        with changed(chip, setting(chip, place, "FF_INIT", 1)):
            assert not KEPT.checked(chip, cells).cells.holds


def test_a_start_value_that_synthesis_leaves_open_must_not_matter(home, cells, netlist):
    """A register that begins at nobody knows what is tried with both; place and route may choose one."""
    at = [at for at, one in enumerate(netlist.registers) if one.start == OPEN]
    assert len(at) > 200
    assert netlist.reads_open
    for start in (0, 1):
        held = list(netlist.registers)
        netlist.registers[at[0]] = replace(held[at[0]], start=start)
        assert compare_cells(cells, netlist, BOARD).holds
        netlist.registers[:] = held
    known = next(at for at, one in enumerate(netlist.registers) if one.start == 1)
    netlist.registers[known] = replace(held[known], start=OPEN)
    assert compare_cells(cells, netlist, BOARD).first.startswith("the start value of ")
    netlist.registers[:] = held


def test_a_carry_that_is_constant_is_noticed(cells, netlist):
    at = [at for at, lut in enumerate(netlist.luts) if lut.place.endswith(("/COUTY1", "/BETWEEN"))]
    assert len(at) > 20
    assert notices_constant_carries(cells, netlist, BOARD, at[::16])


def test_a_changed_table_is_named(home, cells):
    chip, named = KEPT.chip(home), 0
    luts = [cell for cell in cells.cells.values() if cell.type == "CC_L2T4" and cell.bel]
    for cell in luts[::60]:
        name = "INIT_L10" if cell.bel.endswith("_U") else "INIT_L11"
        # The four bits of the table behind two others: each that is ever looked up is noticed.
        for bit in range(4):
            with changed(chip, setting(chip, cell.bel, name, bit)):
                found = compare_cells(cells, netlist_of(chip, BOARD), BOARD)
            named += not found.holds and f"at {cell.bel} computes something else" in found.first
    assert named > len(luts[::60])


def test_a_product_with_one_bit_inverted_is_noticed(home, cells, netlist):
    """The tables that hand bits of A and B to an array of logic cells; a wrong inversion is a wrong product."""
    chip = KEPT.chip(home)
    arrays = {lut.place.split("/")[0] for lut in netlist.luts if lut.place.endswith("/COUTY2")}
    xs, ys = zip(*(map(int, re.findall(r"\d+", place)) for place in arrays), strict=True)
    left = {f"X{min(xs) - 1}Y{y}" for y in range(min(ys), max(ys) + 1)}
    halves = [lut.place for lut in netlist.luts if lut.place.split("/")[0] in left and lut.place.endswith("CPE_LT_U")]
    noticed = 0
    for place in halves[::4]:
        with changed(chip, *(setting(chip, place, "INIT_L10", bit) for bit in range(4))):
            found = KEPT.checked(chip, cells)
        assert not found.cells.holds
        noticed += found.differ > 0
    assert noticed


def test_memories_in_the_wrong_order_are_noticed(home, cells):
    chip = KEPT.chip(home)
    original = {place: bytes(content) for place, content in chip.memories.items()}
    for content in chip.memories.values():
        content[:] = b"".join(content[at : at + 80] for at in range(80 * 511, -1, -80))
    found = KEPT.checked(chip, cells)
    for place, content in original.items():
        chip.memories[place][:] = content
    assert found.differ > 10 * COUNT
    assert "the content (word 0, bit " in found.cells.first


def test_a_bit_of_a_memory_that_no_sample_reads_is_named_by_word_and_bit(home, cells):
    chip = KEPT.chip(home)
    content = chip.memories[0, 1]
    content[80 * 300 + 40 + 3] ^= 1
    found = KEPT.checked(chip, cells)
    content[80 * 300 + 40 + 3] ^= 1
    assert found.differ == 0
    assert re.match(
        r"the content \(word 300, bit 3, . instead of .\) of 'network.rom.0.0' at X35Y19/RAM_HALF_L", found.cells.first
    )


@pytest.mark.parametrize("flips", quick([8], [8, 16]))
def test_what_a_flipped_bit_does_not_change_is_not_blamed(home, cells, netlist, flips):
    """Bits of settings that are on, flipped one by one: a cell that is named, a result that differs, or nothing."""
    chip, random = KEPT.chip(home), Random(7)
    used = [
        (block, name, bit)
        for block, settings in sorted(chip.blocks.items())
        for name, value in sorted(settings.items())
        for bit in range(value.bit_length())
    ]
    outcomes = {"same": 0, "named": 0, "differs": 0, "refused": 0}
    for place in random.sample(used, flips):
        with changed(chip, place):
            try:
                found = netlist_of(chip, BOARD)
                holds = compare_cells(cells, found, BOARD).holds
            except ReadbackError:
                outcomes["refused"] += 1
                continue
            if found == netlist:
                assert holds
                outcomes["same"] += 1
            elif not holds:
                outcomes["named"] += 1
                if outcomes["named"] % 4 == 1:
                    outcomes["differs"] += not KEPT.checked(chip).holds
    assert all(outcomes.values()), outcomes
    assert netlist_of(chip, BOARD) == netlist


# What is not decoded is named.


def test_what_is_not_decoded_is_refused_by_name(home, netlist):
    chip = KEPT.chip(home)
    register = next(one.place for one in netlist.registers if "CPE_FF" in one.place)
    at = register.split("/")[0]
    adder = next(lut.place.split("/")[0] for lut in netlist.luts if lut.place.endswith("/BETWEEN"))
    array = next(lut.place.split("/")[0] for lut in netlist.luts if lut.place.endswith("/COUTY2"))
    wired = next(lut.place.split("/")[0] for lut in netlist.luts if lut.place.endswith("/POUTX"))
    cases = {
        f"the register at {re.sub('.$', '', register)}. is reset without the clock, or a latch: its C_CPE_RES is 2": (
            setting(chip, at, "C_CPE_RES")
        ),
        "is reset without the clock, or a latch: its C_L_D is 1": setting(chip, at, "C_L_D"),
        f"the logic cell at {adder} has INIT_L20 1101": setting(chip, adder, "INIT_L20"),
        f"the logic cell at {array} has INIT_L03 1101": setting(chip, array, "INIT_L03"),
        f"the logic cell at {wired} has C_PX_I beside C_FUNCTION": setting(chip, wired, "C_PX_I"),
        f"the logic cell at {adder} has C_HORIZ 0001": setting(chip, adder, "C_HORIZ"),
        "pin IO_SA_A6 is no plain input": ((0, 25), "GPIO.INPUT_ENABLE", 0),
        "pin IO_SB_A8 is no plain input": ((0, 51), "GPIO.IN1_FF", 0),
        "pin IO_SA_B6 is no plain output": ((0, 26), "GPIO.OPEN_DRAIN", 0),
    }
    for message, place in cases.items():
        with changed(chip, place), pytest.raises(ReadbackError, match=message):
            netlist_of(chip, BOARD)
    assert netlist_of(chip, BOARD) == netlist


@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("whole", "GLBOUT.GLB0_EN", 0, "the global clock 0 has GLBOUT.GLB0_EN 0; fpgaprune decodes 1"),
        ("whole", "GLBOUT.GLB0_CFG", 4, "the global clock 0 has GLBOUT.GLB0_CFG 4; fpgaprune decodes 0"),
        ("whole", "PLL0.USR_CLK_OUT", 1, "the global clock 0 has PLL0.USR_CLK_OUT 1; fpgaprune decodes 0"),
        ("whole", "CLKIN.REF0", 6, "the global clock 0 comes from no pin"),
        ("whole", "CLKIN.REF0_INV", 1, "works at the falling edge"),
        ("whole", "GPIO.BANK_W1", 0, "pin IO_SA_B6 is no plain output"),
        ((0, 2), "RAM_cfg_inversion_a0", 1, "X35Y35/RAM_HALF_U has inverted wires or output registers at port A"),
        ((0, 2), "RAM_cfg_b0_set_outputreg", 1, "X35Y35/RAM_HALF_U has inverted wires or output registers at port B"),
        ((0, 2), "RAM_cfg_ecc_enable", 1, "the block memory at X35Y35/RAM_HALF_U has ecc_enable 1"),
        ((0, 2), "RAM_cfg_forward_a0_clk", 1, "the block memory at X35Y35/RAM_HALF_U has forward_a0_clk 0x01"),
        ((0, 2), "RAM_cfg_fifo_sync_enable", 1, "the block memory at X35Y35/RAM_HALF_U is a queue"),
        ((0, 2), "RAM_cfg_output_config_a0", 5, "writes 10 and reads 20 bits at port A"),
    ],
)
def test_settings_that_are_not_decoded_are_refused_by_name(home, part, name, value, message):
    chip = KEPT.chip(home)
    given = chip.whole if part == "whole" else chip.rams[part]
    before = given.get(name, 0)
    given[name] = value
    try:
        with pytest.raises(ReadbackError, match=message):
            netlist_of(chip, BOARD)
    finally:
        given[name] = before


def test_a_cell_of_synthesis_that_is_not_compared_leaves_the_samples(home, cells):
    name = next(name for name, cell in cells.cells.items() if cell.type == "CC_DFF")
    strange = {**cells.cells, name: structs.replace(cells.cells[name], type="CC_DLT")}
    found = KEPT.checked(KEPT.chip(home), structs.replace(cells, cells=strange))
    assert (found.holds, found.cells) == (True, None)
    assert found.left_out == f"cell {name!r} of synthesis is a CC_DLT; fpgaprune does not compare those"
    strange[name] = structs.replace(cells.cells[name], parameters={"CLK_INV": "1"})
    found = KEPT.checked(KEPT.chip(home), structs.replace(cells, cells=strange))
    assert found.left_out.startswith(f"cell {name!r} is reset without the clock, or works at the falling edge")


def test_a_netlist_whose_registers_are_elsewhere_is_refused(cells, netlist):
    moved = {name: structs.replace(cell, bel="X1" + cell.bel) for name, cell in cells.cells.items()}
    found = compare_cells(structs.replace(cells, cells=moved), netlist, BOARD)
    assert "are where place and route did not put" in found.first


def command(code, body):
    """A command of a file, with its checksums."""
    head = bytes([code]) + len(body).to_bytes(2 if code == 0xD2 else 1, "big")
    head += crc_x25(head).to_bytes(2, "little")
    return head + body + crc_x25(head + body).to_bytes(2, "little")


def crc_x25(data):
    """The checksum, bit by bit."""
    found = 0xFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = found >> 1 ^ 0x8408 if found & 1 else found >> 1
    return found ^ 0xFFFF


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (command(0xC8, b"\1\1") + command(0xCA, bytes(65) + b"\x80"), r"bit 527 of block \(1, 1\) has no name"),
        (command(0xD9, b"\2"), "its command 0xd9 with 02 is none that fpgaprune reads"),
        (command(0xC9, b"\0\1"), "its command 0xc9 with 0001 is none that fpgaprune reads"),
        (command(0xD7, bytes(186)), "its command 0xd7 with 00000000 is none that fpgaprune reads"),
        (command(0xC8, b"\1\1")[:-1], "the checksum of the command at byte 0 is wrong"),
        (command(0xC8, b"\1\1") + 3 * command(0xCA, b"") + command(0xC8, b"\1")[:3], "at byte 26 is wrong"),
        (
            command(0xC8, b"\1\1") + b"".join(command(0xCA, bytes([one])) for one in (1, 2)),
            "it changes more than resets when it writes a block again",
        ),
    ],
)
def test_a_file_that_sets_something_else_is_refused_by_name(data, message):
    with pytest.raises(ValueError, match=message):
        GateMate.from_bytes(data, "CCGM1A1")


@pytest.mark.parametrize("switches", [b"", bytes(62) + b"\x40"])
def test_registers_begin_where_they_are_reset_before_their_cells_are_written_again(switches):
    """The second time, cells have the resets as they shall be; before, those of a register were on."""
    before = bytearray(40)
    after = bytearray(40)
    for cell, first in enumerate((0x30, 0xC0, 0x00, 0x30)):
        after[10 * cell + 8] = 0xF0
        before[10 * cell + 8] = 0xF0 ^ first
    data = command(0xC8, b"\1\1") + (command(0xCA, switches) if switches else b"")
    data += command(0xCA, bytes(before)) + command(0xCA, bytes(after))
    chip = GateMate.from_bytes(data, "CCGM1A1")
    starts = {name: value for name, value in chip.blocks[1, 1].items() if name.endswith("FF_INIT")}
    assert starts == {"CPE1.FF_INIT": 2, "CPE2.FF_INIT": 3, "CPE4.FF_INIT": 2}


def test_a_damaged_file_and_none_are_refused(home, tmp_path):
    path = KEPT.bitstream(home)
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    (tmp_path / "broken.bit").write_bytes(data)
    with pytest.raises(ReadbackError, match="is damaged"):
        read_chip(tmp_path / "broken.bit", BOARD)
    with pytest.raises(ReadbackError, match="there is no bitstream"):
        read_chip(tmp_path / "none.bit", BOARD)


def test_a_database_of_another_form_is_an_error_that_names_it(tmp_path, monkeypatch):
    (tmp_path / "share/himbaechel/gatemate").mkdir(parents=True)
    (tmp_path / "share/himbaechel/gatemate/chipdb-CCGM1A9.bin").write_bytes(bytes(range(256)) * 4)

    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: Spec)
    with pytest.raises(ToolError, match=r"chipdb-CCGM1A9.bin has a form that fpgaprune does not read"):
        GateMate.from_bytes(b"", "CCGM1A9")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ToolError, match=r"pip install 'fpgaprune\[gatemate\]'"):
        GateMate.from_bytes(b"", "CCGM1A9")
