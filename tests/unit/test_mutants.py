"""The tool of `make mutants`: what it draws, and what it calls killed. Needs what `fpgaprune[mutants]` installs."""

import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "mutants"
LIMIT = "def is_above(value):\n    return value > 3\n\n\ndef is_named(name):\n    return name == 'a'\n"
TEST = (
    "from fpgaprune.vendor.limit import is_above\n\n\n"
    "def test_limit():\n    assert [is_above(value) for value in (2, 3, 4)] == [False, False, True]\n"
)


@pytest.fixture
def checkout(tmp_path):
    """A package of two functions, of which a test knows one."""
    pytest.importorskip("cosmic_ray", reason="cosmic-ray is not installed: pip install fpgaprune[mutants]")
    pytest.importorskip("coverage", reason="coverage is not installed: pip install fpgaprune[mutants]")
    shutil.copytree(TOOL, tmp_path / "tests" / "mutants", ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in {
        "fpgaprune/__init__.py": "",
        "fpgaprune/vendor/__init__.py": "",
        "fpgaprune/vendor/limit.py": LIMIT,
        "tests/unit/vendor/test_limit.py": TEST,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_a_mutant_that_a_test_catches_is_killed_and_no_other(checkout):
    tool = [sys.executable, "tests/mutants/run_mutants.py", "vendor", "--number", "99", "--all", "--least", "0.9"]
    done = subprocess.run(tool, cwd=checkout, capture_output=True, text=True, timeout=300, check=False)
    fates: dict[str, set[str]] = {}
    for fate, old in pairwise(done.stdout.splitlines()):
        if old.startswith("    - "):
            fates.setdefault(old.removeprefix("    - "), set()).add(fate.partition(" fpgaprune/")[0].split(",")[0])
    assert fates == {
        "return value > 3": {"killed (tests/unit/vendor/test_limit.py::test_limit"},
        "return name == 'a'": {"survived (1 tests"},
    }, done.stderr
    assert done.returncode == 1  # below --least


def test_the_same_seed_draws_the_same_mutants_wherever_their_lines_stand(checkout, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOL))
    from sites import sample

    file = checkout / "fpgaprune" / "vendor" / "limit.py"

    def drawn(number, seed):
        return [(mutant.old, mutant.new) for mutant in sample(checkout, [file], number, seed)]

    first = drawn(99, 0)
    assert len(first) == 3  # two comparisons and a number
    assert drawn(99, 0) == first
    assert drawn(2, 0) == first[:2]
    assert any(drawn(99, seed) != first for seed in range(1, 9))
    file.write_text("LEAST = None\n\n\n" + LIMIT)
    assert drawn(99, 0) == first


def test_every_mutant_can_be_read(checkout, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOL))
    from sites import sample

    file = checkout / "fpgaprune" / "vendor" / "limit.py"
    file.write_text("def joined(a, b):\n    return {**a, 'b': b**2}\n")
    found = [mutant for seed in range(20) for mutant in sample(checkout, [file], 99, seed)]
    assert found
    for mutant in found:
        compile(mutant.source(checkout), mutant.path, "exec")
