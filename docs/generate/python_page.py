"""The page reference/python.md: every public name, from `fpgaprune/__init__.pyi` and the docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

import griffe

PLACE = "reference/python.md"
PACKAGE = Path(__file__).parents[2] / "fpgaprune"
# In the order of use. A room of the package that is not named here is under "Everything else".
_TITLES = {
    "Load a network": ("frontends", "quantise"),
    "Choose what to lock": ("values", "select"),
    "Lock and train": ("train",),
    "Prove": ("certify", "certificate", "comparison"),
    "Remove": ("remove",),
    "Export and hls4ml": ("export", "hls"),
    "A design in numbers": ("lowering", "design", "emulate"),
    "Price and advice": ("target", "estimate", "advice", "layout", "measure"),
    "Verilog": ("fabric", "rtl"),
    "Search": ("fit",),
    "Report": ("report",),
    "Errors": ("errors",),
}
_HEAD = """# Python

`import fpgaprune as fp` offers these names. Each is loaded when it is first used, so the import itself loads no
TensorFlow.
"""


def page() -> str:
    """The page as Markdown: a table of names, then a directive of mkdocstrings for each."""
    by_title = names()
    package = griffe.load("fpgaprune", search_paths=[PACKAGE.parent], resolve_aliases=True, resolve_external=False)
    tables, details = [], []
    for title, found in by_title.items():
        rows = [f"| [`{name}`](#{place}) | {_first_line(package, place)} |" for name, place in found]
        tables.append("\n".join([f"**{title}**", "", "| name | what it is or does |", "|---|---|", *rows, ""]))
        details.append("\n".join([f"## {title}", *(f"\n::: {place}" for _, place in found), ""]))
    return "\n".join([_HEAD, *tables, *details])


def names() -> dict[str, list[tuple[str, str]]]:
    """Title -> the public names under it, each with the place that mkdocstrings describes."""
    title_of = {room: title for title, rooms in _TITLES.items() for room in rooms}
    found: dict[str, list[tuple[str, str]]] = {title: [] for title in [*_TITLES, "Everything else"]}
    for line in ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(line, ast.ImportFrom) and line.module:
            for alias in line.names:
                room = line.module.partition(".")[0]
                # A function that is called as its package is found within the package only.
                is_room = (PACKAGE / alias.name).is_dir()
                place = f"fpgaprune.{line.module}.{alias.name}" if is_room else f"fpgaprune.{alias.name}"
                found[title_of.get(room, "Everything else")].append((alias.name, place))
    return {title: found[title] for title in found if found[title]}


def _first_line(package: griffe.Object | griffe.Alias, place: str) -> str:
    docstring = package[place.removeprefix("fpgaprune.")].docstring
    return docstring.value.strip().splitlines()[0].replace("|", r"\|") if docstring else ""
