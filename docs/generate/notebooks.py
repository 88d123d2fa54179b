"""The notebooks of examples/: pages of docs/ as cells, without what is hidden in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
# Page below docs/ to notebook.
NOTEBOOKS = {"tutorial.md": "first_evening.ipynb", "howto/hold_one_kernel.md": "hold_one_kernel.ipynb"}
# A block of Python, and what it prints.
_CODE = re.compile(r"^```python\n(.*?)^```$(?:\n\n<!-- prints -->\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_HIDDEN = re.compile(r"^<!--(?! prints ).*?-->\n", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n", re.MULTILINE)
_INNER_LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:)[^)]*\)")


def notebook(page: str) -> str:
    """The page as the text of a notebook: its Python as cells, the rest as text between them."""
    text = _PICTURE.sub("", _HIDDEN.sub("", (DOCS / page).read_text(encoding="utf-8")))
    cells: list[dict[str, Any]] = []
    # Text, code, what it prints, text, ...
    parts = _CODE.split(_INNER_LINK.sub(r"\1", text))
    for at in range(0, len(parts), 3):
        for kind, part in zip(("markdown", "code"), parts[at : at + 2], strict=False):
            if part.strip():
                cell = {"cell_type": kind, "id": f"cell{len(cells)}", "metadata": {}, "source": _lines(part)}
                prints = parts[at + 2] if kind == "code" else None
                cells.append(cell | (_executed(at // 3 + 1, prints) if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _executed(count: int, prints: str | None) -> dict[str, Any]:
    """The fields of a code cell that was executed as number `count`."""
    stream = {"name": "stdout", "output_type": "stream", "text": (prints or "").splitlines(keepends=True)}
    return {"execution_count": count, "outputs": [] if prints is None else [stream]}


def _lines(part: str) -> list[str]:
    return part.strip("\n").splitlines(keepends=True)
