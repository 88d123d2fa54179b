"""The message for a file that does not exist, with the file of its folder that is named most like it."""

from __future__ import annotations

import difflib
import os
from pathlib import Path


def does_not_exist(path: str | os.PathLike[str], what: str = "") -> str:
    """Say `data file min.npz does not exist; did you mean mine.npz?`; `what` is its `data file`."""
    source = Path(path)
    try:
        beside = [file.name for file in source.parent.iterdir()]
    except OSError:
        beside = []
    near = difflib.get_close_matches(source.name, beside, n=1)
    meant = f"; did you mean {source.with_name(near[0])}?" if near else ""
    return f"{what} {source} does not exist{meant}".lstrip()
