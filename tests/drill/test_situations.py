"""Every situation that users met ends in the right value or in the right refusal; nightly.

A situation is a public function `name(folder)` in a file of `situations/`: it does what the user did, in an empty
folder, and asserts what she gets. Its docstring says both in one sentence.

python -m pytest -m slow tests/drill/test_situations.py                    # all of them
python -m pytest -m slow tests/drill/test_situations.py -k activations     # of one file
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

_HERE = Path(__file__).parent / "situations"


def _situations() -> list[object]:
    """Each situation with the name of its file, in the order of the files."""
    found = []
    for path in sorted(_HERE.glob("[a-z]*.py")):
        module = importlib.import_module(f".situations.{path.stem}", __package__)
        own = [
            one
            for name, one in vars(module).items()
            if inspect.isfunction(one) and one.__module__ == module.__name__ and not name.startswith("_")
        ]
        found += [pytest.param(one, id=f"{path.stem}-{one.__name__}") for one in own]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("situation", _situations())
def test_situation(situation: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    situation(tmp_path)


@pytest.mark.slow
def test_there_are_sixty_situations_and_each_says_what_it_is() -> None:
    functions = [parameter.values[0] for parameter in _situations()]
    assert len(functions) >= 60
    assert all(function.__doc__ for function in functions)
