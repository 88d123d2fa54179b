"""Reports that must be refused: cut off anywhere, of another kind, or with something else in a figure's place."""

import itertools
import string
import time

import numpy as np
import pytest

from fpgaprune.errors import ReportError
from fpgaprune.measure import to_plain
from fpgaprune.vendor import find_reports, parse_reports, read_report, read_reports
from tests.unit.vendor import texts, texts_quartus

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
    "accelerator": texts.accelerator(),
    "unconstrained timing": texts.timing(constrained=False),
    "fit.rpt": texts_quartus.fit_rpt(),
    "fit.summary": texts_quartus.fit_summary(),
    "fit.summary of MAX 10": texts_quartus.fit_summary(texts_quartus.MAX10_VALUES),
}


def figures(text):
    """What a report claims, without the notes."""
    return [
        {name: value for name, value in to_plain(report).items() if name not in ("notes", "source")}
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


@pytest.mark.parametrize(
    "kind", ["csynth.rpt", "utilization", "hierarchy", "summary", "cosim.rpt", "accelerator", "fit.summary"]
)
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
    with pytest.raises(ReportError, match=r"is no known vendor report; wanted one of: csynth\.rpt of Vivado HLS"):
        read_report(path)


@pytest.mark.parametrize("kind", WHOLE)
def test_the_name_of_a_file_says_nothing(kind, tmp_path):
    path = tmp_path / "utilization_routed_csynth.xml"
    path.write_text(WHOLE[kind])
    assert to_plain(read_report(path))["total"] == figures(WHOLE[kind])[0]["total"]


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
        (report,) = parse_reports(texts.csynth(total={**texts.TOTAL, printed[name]: column}), "report")
        assert report.total[name] is None


def test_one_report_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path):
    for at, text in enumerate(WHOLE.values()):
        (tmp_path / f"whole{at}.rpt").write_text(text)
    whole = read_reports(tmp_path)
    assert whole.unread == ()
    broken = {
        "cut.rpt": texts.csynth()[:2000],
        "placed.rpt": texts.timing(state="Fully Placed"),
        "strange.rpt": texts.csynth(total={**texts.TOTAL, "LUT": "12a"}),
    }
    for name, text in broken.items():
        (tmp_path / name).write_text(text)
    found = read_reports(tmp_path)
    assert found == whole
    assert [one.path.name for one in found.unread] == sorted(broken)
    for one in found.unread:
        assert str(one.path) in str(one)
        assert "\n" not in one.reason


def test_a_folder_of_which_nothing_can_be_read_says_why_of_each(tmp_path):
    for name in ("a.rpt", "b.rpt"):
        (tmp_path / name).write_text(texts.csynth()[:2000])
    with pytest.raises(ReportError, match=r"none of 2 reports below .* can be read: .*a\.rpt.*cut off.*; .*b\.rpt"):
        read_reports(tmp_path)
    assert len(find_reports(tmp_path).unread) == 2
    assert find_reports(tmp_path) == ()


DIGITS = "9" * 5000
HUGE = {
    "csynth.rpt": texts.csynth(total={**texts.TOTAL, "LUT": DIGITS}),
    "csynth.xml": texts.csynth_xml(interval=f"1 ~ {DIGITS}"),
    "cosim.rpt": texts.cosim().replace("14157", DIGITS),
    "utilization": texts.utilization([["Slice LUTs", DIGITS, "0", "9", "1"], *ROWS[1:]]),
    "timing": texts.timing(wns="1e999"),
    "fit.summary": texts_quartus.fit_summary({**texts_quartus.FIT_VALUES, "Total DSP Blocks": DIGITS}),
}


@pytest.mark.parametrize("kind", HUGE)
def test_a_number_beyond_any_device_is_refused_in_one_short_line(kind):
    with pytest.raises(ReportError) as error:
        parse_reports(HUGE[kind], "report")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600


N = 100_000
HEADS = {
    "hls": "== Vitis HLS Report for 'a'\n",
    "summary": "== Synthesis Summary Report of 'a'\n",
    "xml": "<profile><UserAssignments>",
    "cosim": "Simulation tool : xsim.\n",
    "failed cosim": "Report time : x\n+   RTL    +  Status  +\n",
    "utilization": texts.vivado_head("report_utilization", "Routed") + "Table of Contents\n----\n",
    "accelerator": texts.vivado_head("report_accelerator_utilization", "Routed"),
    "timing": texts.vivado_head("report_timing_summary", "Routed") + "| Design Timing Summary\n",
    "fit.rpt": "; Fitter Status ; Successful ;\n; Fitter Summary ;\n; Table of Contents ;\n---\n",
    "fit.summary": "Fitter Status : Successful\n",
}
TAILS = {
    "lines": "\n" * N,
    "spaces": " " * N + "x",
    "value of spaces": "* Version: 1" + " " * N + "x\n| Date : 1" + " " * N + "x\n; Date : 1" + " " * N + "x",
    "dashes": "-" * N + " x",
    "columns": "a\n" + "- " * N + "\n" + "1 " * N,
    "borders": "+-" * N + "+\n" + "| " * N + "|\n" + "+-" * N + "+\n" + "|1" * N + "|\n" + "+-" * N + "+\n",
    "rules": "a b\n--- ---\n" + "1   1\n" * (N // 10),
    "brackets": "[" * N,
    "braces": '{"a":' * N,
    "names inside lists": '["a":' * N,
    "quotes": "['\"" * N,
    "backslashes": "\\" * N,
    "escapes": "\\'" * N,
    "elements": "<a>" * N,
    "commas": "1," * N,
    "sums": "1+" * N,
    "titles": "====== 1. a ======\n" * (N // 20),
    "nothing but zero bytes": "\0" * N,
}


@pytest.mark.parametrize("head", HEADS)
def test_a_hostile_file_is_refused_in_one_line_and_at_once(head):
    for name, tail in TAILS.items():
        start = time.process_time()
        _, message = attempt(HEADS[head] + tail)
        spent = time.process_time() - start
        assert "\n" not in message, name
        assert len(message) < 2500, name
        # What tries every pair of the characters takes minutes.
        assert spent < 5, (name, spent)


def test_a_hostile_cell_is_refused_at_once():
    start = time.process_time()
    for cell in ("1" + " " * N + "x", "(" * N, "1,111" * N, "1 (" + "1" * N + "%", "." * N, " / 1" * N):
        rows = [["Slice LUTs", cell, "0", "9", "1"], *ROWS[1:]]
        got, message = attempt(texts.utilization(rows))
        assert got is None
        assert len(message) < 600
    assert time.process_time() - start < 10
