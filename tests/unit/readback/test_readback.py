"""A kept bitstream is read back: it computes its samples bit for bit, and faults in its fuses are noticed."""

import re
from random import Random

import pytest

pytest.importorskip("apycula", reason="Apycula, which knows Gowin's fuses, is not here")

from apycula import attrids

from fpgaprune.errors import ReadbackError, TargetError
from fpgaprune.readback import Results, Wire, check_bitstream, check_chip, netlist_of, read_chip

from .mixed import BOARD, RESULTS, kept_bitstream, kept_chip, samples

COUNT = 70  # two rounds of the simulator


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("readback")


def checked(chip, **changed):
    sent, wanted = samples(COUNT)
    given = {"sent": sent, "wanted": wanted, "samples": COUNT, "results": RESULTS, "patience": 4000, **changed}
    return check_chip(chip, BOARD, **given)


def flip(chip, row, col, fuses):
    """Change fuses of a tile."""
    top, left = chip.origin_of(row, col)
    for fuse in fuses:
        chip.rows[top + fuse[0]][left + fuse[1]] ^= 1


def fuses_of(chip, place, attribute, value):
    """Tile and fuses that give an attribute of the half slice around a register a value."""
    row, col, n = tile_of(place)
    kind = chip.db[row, col].ttyp
    code = chip.db.logicinfo["SLICE"][attrids.cls_attrids[attribute], attrids.cls_attrvals[value]]
    (fuses,) = [fuses for codes, fuses in chip.db.shortval[kind][f"CLS{n // 2}"].items() if {*codes} - {0} == {code}]
    return row, col, fuses


def tile_of(place):
    """Row, column and number of a cell from its place, as R24C4_Q0."""
    row, col, number = re.fullmatch(r"R(\d+)C(\d+)_[a-zA-Z]+(\d+)", place).groups()
    return int(row) - 1, int(col) - 1, int(number)


def test_a_bitstream_computes_every_bit_of_its_samples(home):
    path = kept_bitstream(home)
    sent, wanted = samples(COUNT)
    found = check_bitstream(path, BOARD, sent, wanted, COUNT, RESULTS)
    assert found.holds
    tried, proven = found.sentence().splitlines()
    assert tried == f"bitstream computes the emulator's bits on {COUNT} samples: 0 differ"
    assert proven.endswith("of the synthesised Verilog for all inputs: 185 compared, 0 differ")
    assert found.bits == 48 * COUNT
    assert {**found.decoded, "tables": 0} == {
        "tables": 0,
        "registers": 176,
        "small memories": 4,
        "block memories": 2,
        "multipliers": 2,
    }


def test_a_wrong_bit_is_named_by_sample_output_and_bit(home):
    wanted = samples(COUNT)[1]
    at = 6 * 11 + 2
    other = wanted[:at] + bytes([wanted[at] ^ 0x11]) + wanted[at + 1 :]
    found = checked(kept_chip(home), wanted=other)
    assert (found.differ, found.holds) == (2, False)
    assert found.sentence().endswith("2 differ; the first at sample 11, output 0, bit 16, 20")


def test_results_of_several_lanes_name_the_output():
    results = Results(lanes=2, width=6, fraction=0, beat_bytes=2)
    assert results.named(0, 0b11000001) == "output 0, bit 0; output 1, bit 0, 1"
    assert results.named(3, 0b1) == "output 3, bit 2"
    assert results.to_bytes([[1, -1, 2, 3]]) == bytes([0b11000001, 0b1111, 0b11000010, 0])


# The faults that a simulation of the source cannot see.


def test_lost_start_values_are_noticed(home):
    original = kept_chip(home)
    ones = [register.place for register in netlist_of(original, BOARD).registers if register.start]
    differ = []
    for place in ones:
        chip = kept_chip(home)
        flip(chip, *fuses_of(chip, place, f"REG{tile_of(place)[2] % 2}_REGSET", "RESET"))
        if place == ones[0]:
            assert not {register.place: register.start for register in netlist_of(chip, BOARD).registers}[place]
        differ.append(checked(chip).differ)
    # The start value of `mark` has five ones, each of which is a bit of every result.
    assert differ.count(COUNT) == 5


def test_wrong_carries_are_noticed(home):
    places = sorted({lut.place for lut in netlist_of(kept_chip(home), BOARD).luts if "_carry" in lut.place})
    assert len(places) > 20
    noticed = 0
    for place in places[::20]:
        row, col, n = tile_of(place)
        chip = kept_chip(home)
        # The carry of a table of four zeros is always 0, of four ones always 1.
        flags = chip.db[row, col].bels[f"LUT{n}"].flags
        flip(chip, row, col, [fuse for bit in range(4) for fuse in flags[bit]])
        noticed += not checked(chip).holds
    # Some carries belong to counters that no sample brings so far.
    assert noticed


def test_a_memory_in_the_wrong_order_is_noticed(home):
    chip = kept_chip(home)
    height = chip.db.height
    assert len(chip.rows) == height + 512
    chip.rows[height:] = [*reversed(chip.rows[height : height + 256]), *reversed(chip.rows[height + 256 :])]
    assert checked(chip).differ > 10 * COUNT


def test_a_single_bit_of_a_memory_is_noticed_where_a_sample_reads_it(home):
    sent, _ = samples(COUNT)
    word = (sent[0] | sent[1] << 8) & 1023
    chip = kept_chip(home)
    content = {memory.place: memory.content for memory in netlist_of(chip, BOARD).blocks}
    # Every row of the memories' part holds bits of one word in four of each quarter.
    assert any(bytes(one[18 * word : 18 * word + 18]) != bytes(18) for one in content.values())
    row = 255 - ({0: 0, 1: 0x80, 2: 0x40, 3: 0xC0}[word & 3] + (word >> 2 & 63))
    for top in range(chip.db.height, len(chip.rows), 256):
        chip.rows[top + row] = [1 - bit for bit in chip.rows[top + row]]
    assert checked(chip).differ > 0


@pytest.mark.parametrize("share", ["set", "any"])
def test_what_a_flipped_fuse_does_not_change_is_not_blamed(home, share):
    """Fuses of used tiles, flipped one by one: a result that differs, a cell that is named, or nothing."""
    chip = kept_chip(home)
    original = netlist_of(chip, BOARD)
    random = Random(5)
    rows = [row for row in range(chip.db.height) if any(chip.rows[row])]
    outcomes = {"differs": 0, "refused": 0, "holds": 0}
    wanted = "differs" if share == "set" else "holds"
    for flips in range(60):
        if flips >= 6 and outcomes[wanted]:
            break
        row = random.choice(rows)
        used = [at for at, bit in enumerate(chip.rows[row]) if bit or share == "any"]
        at = random.choice(used)
        chip.rows[row][at] ^= 1
        try:
            found = checked(chip)
            outcomes["holds" if found.holds else "differs"] += 1
            assert found.holds or netlist_of(chip, BOARD) != original
        except ReadbackError:
            outcomes["refused"] += 1
        chip.rows[row][at] ^= 1
    assert outcomes[wanted]


# What is not decoded is named.


def test_a_memory_at_the_falling_edge_is_refused_by_name(home):
    chip = kept_chip(home)
    place = netlist_of(chip, BOARD).blocks[0].place
    row, col = (int(part) - 1 for part in re.findall(r"\d+", place)[:2])
    flip(chip, row, col, [(25, 59)])
    with pytest.raises(ReadbackError, match=f"{place.split('_')[0]} works at the falling edge"):
        netlist_of(chip, BOARD)


def test_a_register_without_the_global_reset_is_refused_by_name(home):
    chip = kept_chip(home)
    place = netlist_of(chip, BOARD).registers[0].place
    flip(chip, *fuses_of(chip, place, "GSR", "DISGSR"))
    with pytest.raises(ReadbackError, match=f"{place[:-1]}. is left out of the global reset"):
        netlist_of(chip, BOARD)


def test_a_design_that_never_answers_is_said_to_be_silent(home):
    chip = kept_chip(home)
    # The clock's branch to a column is cut.
    first = netlist_of(chip, BOARD).registers[0].place
    row, col, n = tile_of(first)
    fuses = {fuse for fuses in chip.db[row, col].pips[f"CLK{n // 2}"].values() for fuse in fuses}
    flip(chip, row, col, chip.set_of(row, col, fuses))
    found = checked(chip)
    assert not found.holds


def test_a_damaged_file_and_one_for_another_board_are_refused(home):
    path = kept_bitstream(home)
    text = path.read_text().splitlines(keepends=True)
    line = max(range(len(text)), key=lambda at: text[at].count("1") if len(text[at]) > 1000 else 0)
    broken = text[line].replace("10", "01", 1)
    (home / "broken.fs").write_text("".join([*text[:line], broken, *text[line + 1 :]]))
    with pytest.raises(ReadbackError, match="is damaged"):
        read_chip(home / "broken.fs", BOARD)
    with pytest.raises(ReadbackError, match="is not for GW2A-18C"):
        read_chip(path, "tang-nano-20k")
    with pytest.raises(ReadbackError, match="reads no bitstreams of Lattice Nexus"):
        read_chip(path, "crosslink-nx-evn")
    with pytest.raises(ReadbackError, match="there is no bitstream"):
        read_chip(home / "none.fs", BOARD)
    with pytest.raises(TargetError, match="is unknown"):
        read_chip(path, "no-such-board")


def test_a_switch_whose_fuses_also_cut_off_other_sources_is_read(home):
    """A GW1N-9C has one such wire, and a GW2A-18C the select of the widest multiplexer in each tile of one kind."""
    chip = kept_chip(home)
    chip.rows[:] = [[0] * len(row) for row in chip.rows]
    row, col, wire = 0, 46, "SEL3"
    tile, beside = chip.db[row, col], 0
    for source, fuses in tile.pips[wire].items():
        cut = {fuse for others, apart in tile.alonenode[wire] if source not in others for fuse in apart}
        beside += bool(cut - fuses)
        flip(chip, row, col, fuses | cut)
        assert chip.source(Wire(row, col, wire)) == chip.source(Wire(row, col, source))
        flip(chip, row, col, fuses | cut)
    assert beside == 3
