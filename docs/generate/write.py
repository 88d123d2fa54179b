"""Writes what follows from the code and from other pages: `python docs/generate/write.py`, some minutes."""

from __future__ import annotations

import importlib
from pathlib import Path

from charts import FOLDER, charts
from notebooks import NOTEBOOKS, notebook

from fpgaprune.flow import to_markdown

DOCS = Path(__file__).parents[1]
# Each has `PLACE`, a path below docs/, and `page()`, its text.
MAKERS = ("boards_page", "command_line", "errors_page", "parts_page", "python_page", "run_folder_page", "layers_page")

if __name__ == "__main__":
    (DOCS / "flow_file.md").write_text(to_markdown(), encoding="utf-8")
    for page, name in NOTEBOOKS.items():
        (DOCS.parent / "examples" / name).write_text(notebook(page), encoding="utf-8")
    for name, drawing in charts().items():
        (DOCS / FOLDER / name).write_text(drawing, encoding="utf-8")
    for name in MAKERS:
        maker = importlib.import_module(name)
        (DOCS / maker.PLACE).write_text(maker.page(), encoding="utf-8")
