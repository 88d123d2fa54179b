"""The notebooks of examples/: pages of docs/ as cells, without what is hidden in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
# Page below docs/ to notebook.
NOTEBOOKS = {"tutorial.md": "first_evening.ipynb", "howto/hold_one_kernel.md": "hold_one_kernel.ipynb"}
_CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HIDDEN = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n", re.MULTILINE)
_INNER_LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:)[^)]*\)")


def notebook(page: str) -> str:
    """The page as the text of a notebook: its Python as cells, the rest as text between them."""
    text = _PICTURE.sub("", _HIDDEN.sub("", (DOCS / page).read_text(encoding="utf-8")))
    cells = []
    for number, part in enumerate(_CODE.split(_INNER_LINK.sub(r"\1", text))):
        if part.strip():
            kind = "code" if number % 2 else "markdown"
            cell = {"cell_type": kind, "id": f"cell{len(cells)}", "metadata": {}, "source": _lines(part)}
            cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _lines(part: str) -> list[str]:
    return part.strip("\n").splitlines(keepends=True)
