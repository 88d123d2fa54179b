"""Each cell of a bitstream is compared with that of synthesis: what was changed is refused by its name."""

from dataclasses import replace
from itertools import product
from random import Random

import msgspec
import pytest

pytest.importorskip("apycula", reason="Apycula, which knows Gowin's fuses, is not here")

from fpgaprune.errors import ReadbackError
from fpgaprune.readback import Functions, Synthesised, compare_cells, netlist_of

from .mixed import BOARD, kept_cells, kept_chip
from .test_readback import flip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("comparison")


def compared(chip, name="mixed"):
    return compare_cells(netlist_of(chip, BOARD), kept_cells(name))


def changed(cells, name, **fields):
    """The same netlist with another cell `name`."""
    whole = {**cells.cells, name: msgspec.structs.replace(cells.cells[name], **fields)}
    return Synthesised.of(cells.ports, whole)


@pytest.mark.parametrize("name", ["mixed", "mixed_pll"])
def test_every_cell_is_as_synthesis_made_it(home, name):
    found = compared(kept_chip(home, name), name)
    assert found.first is None
    assert found.cells > 180


def test_a_bitstream_of_another_network_is_refused(home):
    found = compare_cells(netlist_of(kept_chip(home), BOARD), kept_cells("mixed_pll"))
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
        first = compare_cells(netlist, cells).first
        assert first is not None
        named += lut.place in first
        netlist.luts[at] = lut
    assert named > 5
    assert compare_cells(netlist, cells).holds


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
    found = compare_cells(netlist_of(chip, BOARD), other)
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
        ("MULT18X18", "BSIGN", "the input BSIGN"),
        ("DFFRE", "CE", "the next value"),
        ("DFFE", "D", "the next value"),
    ],
)
def test_a_wire_of_every_kind_of_cell_is_compared(home, kind, port, message):
    """A wire at another net than the bitstream's: refused by what it is."""
    cells, netlist = kept_cells(), netlist_of(kept_chip(home), BOARD)
    firsts = []
    for name, cell in cells.cells.items():
        bits = cell.connections.get(port, [])
        if cell.type != kind or not bits or len(firsts) == 4:
            continue
        foreign = cells.buffered("serial_in")
        other = [foreign, *bits[1:]] if port != "AD" else [*bits[:-1], foreign]
        found = compare_cells(netlist, changed(cells, name, connections={**cell.connections, port: other}))
        firsts.append(found.first or "")
    assert any(message in first for first in firsts), firsts


def test_another_ratio_of_the_pll_is_refused(home):
    cells = kept_cells("mixed_pll")
    name = next(name for name, cell in cells.cells.items() if cell.type == "rPLL")
    parameters = {**cells.cells[name].parameters, "FBDIV_SEL": f"{16:b}"}
    found = compare_cells(netlist_of(kept_chip(home, "mixed_pll"), BOARD), changed(cells, name, parameters=parameters))
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
        compare_cells(netlist_of(kept_chip(home), BOARD), other)


def test_a_file_without_cells_is_refused(tmp_path):
    (tmp_path / "x.fs.cells.xz").write_bytes(b"no netlist")
    with pytest.raises(ReadbackError, match="holds no synthesised netlist"):
        Synthesised.from_file(tmp_path / "x.fs.cells.xz")


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
