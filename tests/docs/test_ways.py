"""Every page is a few clicks from the README, by links that a code host follows too; words are used in one sense."""

from __future__ import annotations

import re
import tomllib

import pytest

import fpgaprune as fp

from . import snippets

_LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)")
# What a newcomer asks, and the page that answers.
QUESTIONS = {
    "Does it know my layers?": "reference/layers.md",
    "Does it know my board or part?": "reference/parts.md",
    "How do I hold exactly one kernel at zero?": "howto/hold_one_kernel.md",
    "It does not fit. What now?": "howto/make_it_fit.md",
    "What does it cost in accuracy?": "measurements/networks.md",
    "How do I bring my own data, loss and metric?": "howto/data_loss_and_metric.md",
    "May I trust this number of LUTs?": "explanation/estimated_or_measured.md",
    "Half of the weights are zero. Why are the LUTs the same?": "explanation/why_zeros_may_not_pay.md",
    "How does it get onto a board?": "howto/board.md",
    "I use hls4ml. What is different?": "coming_from/hls4ml.md",
}

# What a user does: the page that says how, from the README in at most two clicks, and all that is typed there for it.
# Python stands for a command.
TASKS = {
    "lock one kernel and prove it": ("howto/hold_one_kernel.md", ["MaskSet.from_slices", "fp.certify"]),
    "fit a board": ("howto/fit_a_part.md", ["fpgaprune fit", "--part tang-nano", "fpgaprune export"]),
    "read a report": ("terminal.md", ["fpgaprune run", "report.html"]),
    "change a flow": ("flow_file.md", ["fpgaprune run runs/mine/flow.toml --out runs/mine"]),
    "load a board": ("howto/load_a_board.md", ["fpgaprune load"]),
    "import from PyTorch": ("howto/import_onnx.md", ["torch.onnx.export", "fpgaprune run"]),
    "write a callback": ("howto/watch_training.md", ["callbacks =", "def make"]),
    "find a key": ("flow_file.md", ["fpgaprune config"]),
    "compare two runs": ("terminal.md", ["fpgaprune compare"]),
    "add a layer kind": ("../CONTRIBUTING.md", ["LayerRule(values, role)", "make test-fast"]),
}


@pytest.fixture(scope="module")
def clicks():
    """Each page to the clicks that it is away from the README."""
    found = {snippets.CHECKOUT / "README.md": 0}
    waiting = list(found)
    for page in waiting:
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve()
            assert target.exists(), f"{snippets.name_of(page)} links to {link}, which is not there"
            if target.suffix == ".md" and target not in found:
                found[target] = found[page] + 1
                waiting.append(target)
    return found


def test_no_page_is_far_from_the_readme(clicks):
    far = [snippets.name_of(page) for page in snippets.pages() if clicks.get(page, 9) > 2]
    assert far == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_in_two_clicks(question, clicks):
    assert clicks[snippets.CHECKOUT / "docs" / QUESTIONS[question]] <= 2


@pytest.mark.parametrize("task", TASKS)
def test_a_task_takes_at_most_two_pages_and_three_commands(task, clicks):
    name, typed = TASKS[task]
    page = (snippets.CHECKOUT / "docs" / name).resolve()
    assert clicks[page] <= 2
    assert len(typed) <= 3
    text = page.read_text(encoding="utf-8")
    assert [command for command in typed if command not in text] == []


def test_the_readme_is_short():
    lines = (snippets.CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100


def test_one_version_everywhere():
    cited = re.search(
        r"^version: (.+)$", (snippets.CHECKOUT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    stated = tomllib.loads((snippets.CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert fp.__version__ == stated == cited[1]
