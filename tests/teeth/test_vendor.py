"""Reports that must be refused: cut off anywhere, of another kind, or with something else in a figure's place."""

import importlib.util
import itertools
import string
from pathlib import Path

import numpy as np
import pytest

from fpgaprune.errors import ReportError
from fpgaprune.vendor import parse_reports, read_report

_SPEC = importlib.util.spec_from_file_location(
    "vendor_texts", Path(__file__).parents[1] / "unit" / "vendor" / "texts.py"
)
texts = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(texts)

ROWS = [
    ["Slice LUTs*", "4000", "0", "9000", "1"],
    ["Slice Registers", "5000", "0", "9000", "1"],
    ["Block RAM Tile", "2.5", "0", "90", "1"],
    ["DSPs", "7", "0", "90", "1"],
]
WHOLE = {
    "csynth.rpt": texts.csynth(),
    "csynth.rpt of Vivado HLS": texts.csynth(tool="Vivado HLS"),
    "summary": texts.summary(),
    "csynth.xml": texts.csynth_xml(),
    "cosim.rpt": texts.cosim(),
    "utilization": texts.utilization(ROWS),
    "hierarchy": texts.hierarchy(),
    "timing": texts.timing(),
    "fit.rpt": texts.fit_rpt(),
    "report_data.js": texts.report_data(),
    "quartus_data.js": texts.quartus_data(),
    "catapult": texts.catapult(),
    "libero": texts.libero(),
}


def figures(text):
    """What a report claims, without the notes."""
    return [
        {name: value for name, value in report.to_json().items() if name not in ("notes", "source")}
        for report in parse_reports(text, "report")
    ]


def attempt(text):
    """What a report claims and no message, or None and why it was refused."""
    try:
        return figures(text), ""
    except ReportError as error:
        return None, str(error)


@pytest.mark.parametrize("kind", WHOLE)
def test_a_report_that_is_cut_off_is_refused_or_says_the_same(kind):
    whole = WHOLE[kind]
    wanted = figures(whole)
    ends = {at + 1 for at, sign in enumerate(whole) if sign == "\n"}
    cuts = sorted(ends | set(np.random.default_rng(7).integers(len(whole), size=60).tolist()))
    refused = 0
    for cut in cuts:
        got, message = attempt(whole[:cut])
        if got is None:
            refused += 1
            assert message
            assert "\n" not in message
        else:
            assert got == wanted, f"cut after {cut} of {len(whole)} characters: {whole[max(0, cut - 200) : cut]!r}"
    # Behind the last figure nothing is missed; before it everything is.
    assert refused >= 0.5 * len(cuts)


@pytest.mark.parametrize("kind", ["csynth.rpt", "utilization", "hierarchy", "summary", "cosim.rpt", "libero"])
def test_a_line_that_is_lost_is_refused_or_loses_its_figures_alone(kind):
    whole = WHOLE[kind]
    wanted = figures(whole)
    lines = whole.splitlines(keepends=True)
    for at in range(len(lines)):
        got, _ = attempt("".join(lines[:at] + lines[at + 1 :]))
        for one, other in zip(wanted, got or (), strict=False):
            for name, value in other.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    assert value == one[name], f"without line {at + 1} ({lines[at]!r}) {name} became {value}"


FOREIGN = {
    "empty": b"",
    "prose": b"LUT usage was 4567 of 9000, FF 2120.\n",
    "web page": b"<!DOCTYPE html><html><body>404: csynth.rpt not found</body></html>",
    "another XML": b"<settings><profiles><profile><id>x</id></profile></profiles></settings>",
    "binary": bytes(range(256)) * 16,
    "power report": texts.vivado_head("report_power -file p.rpt", "Routed").encode()
    + texts.grid(["Site Type", "Used"], [["CLB LUTs", "4567"]]).encode(),
    "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n",
    "a table alone": texts.grid(["Name", "LUT", "FF"], [["Total", "1", "2"]]).encode(),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_refused_with_what_was_wanted(kind, tmp_path):
    path = tmp_path / "myproject_csynth.rpt"
    path.write_bytes(FOREIGN[kind])
    with pytest.raises(ReportError, match=r"is no vendor report known here; wanted one of: csynth\.rpt of Vivado HLS"):
        read_report(path)


@pytest.mark.parametrize("kind", WHOLE)
def test_the_name_of_a_file_says_nothing(kind, tmp_path):
    path = tmp_path / "utilization_routed_csynth.xml"
    path.write_text(WHOLE[kind])
    assert read_report(path).to_json()["total"] == figures(WHOLE[kind])[0]["total"]


@pytest.mark.parametrize("kind", WHOLE)
def test_noise_never_ends_in_another_error(kind):
    chance = np.random.default_rng(11)
    whole = WHOLE[kind]
    for _ in range(60):
        text = list(whole)
        for at in chance.integers(len(text), size=chance.integers(1, 9)):
            text[at] = string.printable[chance.integers(len(string.printable))]
        _, message = attempt("".join(text))
        assert "\n" not in message


def test_two_columns_that_change_names_change_places():
    """The mutant of a parser that counts columns: it would read the same figures."""
    straight, swapped = texts.csynth(), texts.csynth(columns=["Name", "URAM", "LUT", "FF", "DSP", "BRAM"])
    assert figures(straight)[0]["total"] == figures(swapped)[0]["total"]
    header = next(line for line in straight.splitlines() if "Name" in line and "BRAM_18K" in line)
    renamed = header.replace(" FF ", " @@ ").replace(" LUT ", " FF  ").replace(" @@ ", " LUT")
    assert len(renamed) == len(header)
    total = figures(straight.replace(header, renamed))[0]["total"]
    assert (total["lut"], total["ff"]) == (2120, 4567)


def test_a_tile_is_two_blocks():
    for tiles, blocks in ((0, 0), (0.5, 1), (1, 2), (181.5, 363)):
        rows = [*ROWS[:2], ["Block RAM Tile", str(tiles), "0", "9", "1"]]
        assert figures(texts.utilization(rows))[0]["total"]["bram18"] == blocks


def test_absent_is_never_zero():
    for name, column in itertools.product(("lut", "ff", "dsp", "bram18", "uram"), ("-", "")):
        printed = {"lut": "LUT", "ff": "FF", "dsp": "DSP", "bram18": "BRAM", "uram": "URAM"}
        report = figures(texts.csynth(total={**texts.TOTAL, printed[name]: column}))[0]
        assert report["total"][name] is None
