"""How a situation asks: a refusal is one line of ours, and a command is run as a user runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fpgaprune.errors import FpgaPruneError


def refused(function: Callable[[], Any], *wanted: str) -> str:
    """Check that `function` ends in one line of ours in which every regular expression `wanted` is found."""
    with pytest.raises(FpgaPruneError) as caught:
        function()
    text = str(caught.value)
    assert "\n" not in text.strip(), text
    for pattern in wanted:
        assert re.search(pattern, text), f"{pattern!r} is not in {text!r}"
    return text


def command(folder: Path, *words: str, status: int | None = 0, seconds: float = 300) -> str:
    """Run `fpgaprune` with `words` in `folder`; give all that it printed, wrapped lines joined by spaces.

    Check that it ended with `status` (any, if None) and printed no traceback.
    """
    ended = subprocess.run(
        [sys.executable, "-m", "fpgaprune", *words], cwd=folder, capture_output=True, text=True, timeout=seconds
    )
    text = ended.stdout + ended.stderr
    assert "Traceback" not in text, text
    assert status is None or ended.returncode == status, f"status {ended.returncode}: {text}"
    return " ".join(text.split())
