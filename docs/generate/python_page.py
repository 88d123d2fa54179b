"""The page reference/python.md: every public name with its docstring, those of `fpgaprune` and those of its rooms."""

from __future__ import annotations

import ast
from pathlib import Path

import griffe

PLACE = "reference/python.md"
PACKAGE = Path(__file__).parents[2] / "fpgaprune"
# Title, in the order of use -> its rooms, each with the public names that are imported from the room itself. A room
# that is not named here has its names of `fpgaprune` under "Everything else".
_TITLES: dict[str, dict[str, str]] = {
    "Load a network": {"frontends": "LoadedNetwork import_tfmot", "quantise": "import_hgq import_qkeras with_bits"},
    "Choose what to lock": {
        "values": "FixedType HeldValues",
        "select": "Adders Block ConstantSparsity GradualHold GradualLock Multiplier PolynomialDecay Protection "
        "SelectionWarning close from_fixed guard prune_rounds regrow rewind sensitivity snapshot",
    },
    "Lock and train": {"train": "Frozen freeze"},
    "Prove": {"certify": "", "measure": "LockCertificate Equivalence"},
    "Remove": {"remove": "RemovalPlan find_groups split_groups"},
    "Export and hls4ml": {"export": "", "hls": "HlsProject StrategyWarning"},
    "A design in numbers": {
        "lowering": "",
        "design": "LayerSpec ReuseWarning",
        "emulate": "Difference first_difference trace",
    },
    "Estimates and advice": {
        "target": "Part find_part list_parts",
        "estimate": "",
        "advice": "",
        "layout": "Advice",
        "measure": "ChosenLayout Estimate VerilogPrice",
    },
    "Verilog": {"fabric": "RtlProject ask golden_vectors write_handoff", "rtl": "weights_stream"},
    "Search": {"fit": "Fit Limits"},
    "Report": {"report": "Check LinkSummary Metric RunReport layer_reports write_report"},
    "Errors": {"errors": ""},
}
_HEAD = """# Python

`import fpgaprune as fp` offers the names of a first evening: `fp.select`, `fp.lock`, `fp.estimate`. What you need less
often is imported from its room: `from fpgaprune.select import Block`. A function may have the name of its room;
`fp.select` is always the function. A name is loaded when it is first used, so the import itself loads no TensorFlow.

These names are public. What else a room offers is for the other rooms, and may change.
"""


def page() -> str:
    """The page as Markdown: a table of names, then a directive of mkdocstrings for each."""
    by_title = names()
    package = griffe.load("fpgaprune", search_paths=[PACKAGE.parent], resolve_aliases=True, resolve_external=False)
    tables, details = [], []
    for title, found in by_title.items():
        rows = [f"| [`{name}`](#{place}) | `{home}` | {_first_line(package, place)} |" for name, home, place in found]
        tables.append(
            "\n".join([f"**{title}**", "", "| name | from | what it is or does |", "|---|---|---|", *rows, ""])
        )
        details.append("\n".join([f"## {title}", *(f"\n::: {place}" for *_, place in found), ""]))
    return "\n".join([_HEAD, *tables, *details])


def names() -> dict[str, list[tuple[str, str, str]]]:
    """Title -> the public names under it, each with its home and the place that mkdocstrings describes."""
    title_of = {room: title for title, rooms in _TITLES.items() for room in rooms}
    found: dict[str, list[tuple[str, str, str]]] = {title: [] for title in [*_TITLES, "Everything else"]}
    for line in ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(line, ast.ImportFrom) and line.module:
            for alias in line.names:
                room = line.module.partition(".")[0]
                # A function that is called as its package is found within the package only.
                is_room = (PACKAGE / alias.name).is_dir()
                place = f"fpgaprune.{line.module}.{alias.name}" if is_room else f"fpgaprune.{alias.name}"
                found[title_of.get(room, "Everything else")].append((alias.name, "fpgaprune", place))
    for title, rooms in _TITLES.items():
        for room, grouped in rooms.items():
            home = f"fpgaprune.{room}"
            found[title] += [(name, home, f"{home}.{name}") for name in grouped.split()]
    return {title: found[title] for title in found if found[title]}


def _first_line(package: griffe.Object | griffe.Alias, place: str) -> str:
    docstring = package[place.removeprefix("fpgaprune.")].docstring
    if docstring is None:
        raise ValueError(f"{place}: it has no docstring")
    return docstring.value.strip().splitlines()[0].replace("|", r"\|")
