"""Writes the pages of the reference that follow from the code: `python docs/generate/write.py`."""

from __future__ import annotations

from pathlib import Path

import command_line
import errors_page
import layers_page
import parts_page
import python_page
import run_folder_page

from fpgaprune.flow import to_markdown

DOCS = Path(__file__).parents[1]
PAGES = {maker.PLACE: maker.page for maker in (command_line, errors_page, parts_page, python_page, run_folder_page, layers_page)}

if __name__ == "__main__":
    for place, page in {**PAGES, "flow_file.md": to_markdown}.items():
        (DOCS / place).write_text(page(), encoding="utf-8")
