"""Tables in windows of any width: a figure is shown whole or rounded, never cut."""

import pytest

from fpgaprune.commands import folded, print_line, show_table

HEADERS = ("part", "family", "LUT", "FF", "DSP")
ROWS = [("xcvu9p", "Virtex UltraScale+", 1_182_240, 2_364_480, 6840), ("total", "[conv2]", 9_999, 999_600, None)]


@pytest.mark.parametrize("width", [36, 44, 60, 80, 200])
def test_no_figure_is_cut(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    show_table(HEADERS, ROWS)
    shown = capsys.readouterr().out
    words = shown.split()
    whole = {"1,182,240", "2,364,480", "6,840", "9,999", "999,600"}
    short = {"1.18M", "2.36M", "6,840", "9,999", "1M"}
    assert whole <= set(words) or short <= set(words)
    assert "…" not in shown
    assert "-" in words
    assert all(len(line) <= width for line in shown.splitlines())


def test_columns_come_closer_before_a_name_is_folded(monkeypatch, capsys):
    headers, rows = ("layer", "class", "weights"), [("conv2d_transpose", "Conv2DTranspose", 1_300_584)]
    for width, shown in (
        (44, "conv2d_transpose  Conv2DTranspose  1,300,584"),
        (42, "conv2d_transpose Conv2DTranspose 1,300,584"),
    ):
        monkeypatch.setenv("COLUMNS", str(width))
        show_table(headers, rows)
        assert capsys.readouterr().out.splitlines()[1].rstrip() == shown


def test_square_brackets_are_text(capsys):
    show_table(("path",), [("conv2/kernel[:, :, 29, 13]",)])
    assert "conv2/kernel[:, :, 29, 13]" in capsys.readouterr().out


def test_a_header_of_two_lines_is_as_wide_as_its_longer_line(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "24")
    show_table(("design", "analytic\ncsynth", "synth\n(open)"), [("net", 5, 1234)])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["analytic", "synth"],
        ["design", "csynth", "(open)"],
        ["net", "5", "1,234"],
    ]


def test_a_line_is_folded_at_words_behind_its_label_in_a_window_only(capsys, monkeypatch):
    line = "after       fits by the middle of its range, not by the upper end, 719 cycles at 12 % of the part"
    assert folded(line, 40).splitlines() == [
        "after       fits by the middle of its",
        "            range, not by the upper end,",
        "            719 cycles at 12 % of the",
        "            part",
    ]
    assert folded("a sentence of some words", 12) == "a sentence\nof some\nwords"
    path = "report      " + "x" * 50
    assert folded(path, 40) == path
    monkeypatch.setenv("COLUMNS", "40")
    print_line(line)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_line(line)
    print_line(line, whole=True)
    assert capsys.readouterr().out == f"{line}\n{folded(line, 40)}\n{line}\n"
