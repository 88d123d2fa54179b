"""The three files."""

import json
from html.parser import HTMLParser

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.measure import LayerEstimate, Resources
from fpgaprune.report import Check, LinkSummary, Metric, give_answers, verdicts, write_report

from .samples import conv, estimate, layer, resources, run_report

VOID = {"meta", "br"}
UNKNOWN = LayerEstimate("conv1", "Conv2D", None, Resources(), Resources(), 7, 7)


class Balance(HTMLParser):
    """Raises where an element is not closed in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_both_say_the_same_and_equal_runs_give_equal_bytes(tmp_path):
    first, second = (write_report(tmp_path / name, run_report()) for name in "ab")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    page = first.html.read_text()
    for wanted in ("Fits xc7z020: yes (", "97.22", "97.50", "g++ not found", "not asked for", "a note of the estimate"):
        assert wanted in page
    said = {one.about: {"reply": one.reply, "text": one.text, "tone": one.tone} for one in verdicts(run_report())}
    assert json.loads(first.json.read_text()) == {**run_report().to_json(), "verdicts": said}
    assert {about: one["reply"] for about, one in said.items()} == {"metric": "yes", "fit": "yes"}
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["report.html", "report.json"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"before": None, "after": None, "left_out": {"estimate": "not asked for"}},
        {"before": None},
        {"layers": [], "stages": [], "certificate": [], "checks": []},
        {"metric": Metric("accuracy", None, None, 5, "x"), "created": "2026-01-01"},
        {"after": estimate(40), "before": estimate(99, layers=(UNKNOWN,))},
        {"layers": [conv("wide", (1, 512)), conv("huge", (300, 300))]},
    ],
)
def test_every_kind_of_run_makes_a_whole_page(tmp_path, changes):
    paths = write_report(tmp_path, run_report(**changes))
    parser = Balance()
    parser.feed(paths.html.read_text())
    assert not parser.open
    assert "None" not in paths.html.read_text()


@pytest.mark.parametrize(
    ("changes", "question", "verdict"),
    [
        ({}, 1, "Yes"),
        ({"after": estimate(40)}, 1, "No"),
        ({"after": estimate(layers=(UNKNOWN,))}, 1, "Not known"),
        ({"after": None}, 1, "Not known"),
        ({}, 0, "Lost 0.28 ± 0.40\u00a0points of accuracy"),
        (
            {"metric": Metric("accuracy", 0.9, 0.1, 9, "x", lost=0.8, max_loss=0.02)},
            0,
            "Lost 80\u00a0points of accuracy",
        ),
        ({"after": estimate(total={"csynth": resources(4000), "synth": resources(53200)})}, 1, "Probably"),
        ({}, 2, "LUT \u221260\u00a0%"),
        ({"before": None}, 2, "267 of 528 kernels locked, sparsity 0.51"),
        ({}, 3, "2 checks of zeros and bits hold, 2 left out"),
        (
            {"certificate": [LinkSummary("x", 1, 1, 0)], "checks": [Check("a", "b", 0.0, 1.0)]},
            3,
            "All 2 checks of zeros and bits hold",
        ),
        ({"checks": [], "certificate": [LinkSummary("x", 1, 1, 0)]}, 3, "1 check of zeros and bits holds"),
        ({"certificate": [LinkSummary("hls", 1, 5, 1)]}, 3, "1 of 2 checks of zeros and bits fails, 1 left out"),
        ({"certificate": [], "checks": []}, 3, "Nothing was checked"),
        (
            {"checks": [Check("a", "b", 2.0, 1.0)], "certificate": [LinkSummary("x", 1, 1, 3)]},
            3,
            "2 of 2 checks of zeros and bits fail",
        ),
    ],
)
def test_answers(changes, question, verdict):
    assert give_answers(run_report(**changes))[question].verdict == verdict


def test_bad_input_writes_nothing(tmp_path):
    with pytest.raises(ReportError):
        write_report(tmp_path / "out", run_report(after=estimate(layers=(layer("a"), layer("a")))))
    assert not (tmp_path / "out").exists()
