"""The report as Markdown, 80 columns wide, readable as plain text too."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import numpy as np

from fpgaprune.report.advice import changes_tables, shortage_lines, suggested_changes
from fpgaprune.report.answers import give_answers, left_out
from fpgaprune.report.contents import RunReport
from fpgaprune.report.estimate_tables import (
    estimate_notes,
    estimate_stages,
    layer_resources_table,
    layer_speed_table,
    multiplications_table,
    speed_table,
    totals_table,
)
from fpgaprune.report.figures import KEPT, LOCKED, REMOVED, kernel_states
from fpgaprune.report.measured import measured_tables
from fpgaprune.report.numbers import NO_BREAK
from fpgaprune.report.run_tables import (
    certificate_table,
    checks_tables,
    facts,
    kernels_table,
    provenance,
)
from fpgaprune.report.table import Table
from fpgaprune.report.timing import stages_table
from fpgaprune.report.verdict import headline

WIDTH = 80
_CELLS = {KEPT: "#", LOCKED: ".", REMOVED: "x"}
_LARGEST_MASK = (64, 72)


def render_markdown(report: RunReport) -> str:
    """The report as Markdown; equal reports give equal text.

    Raises:
        ReportError: the report contradicts itself.
    """
    blocks = [f"# {escape_text(report.name)}", _wrap(" · ".join(facts(report)))]
    # The last line has room for the two marks of its end.
    blocks.append(f"{_wrap(headline(report)[0], '**', '')}**")
    blocks += [_list([f"Warning: {text}" for text in report.warnings])] if report.warnings else []
    for answer in give_answers(report):
        blocks += [f"## {answer.question} {escape_text(answer.verdict)}", _list(answer.lines)]
    blocks += _advice(report)
    stages = estimate_stages(report)
    if stages:
        blocks += [
            "## Resources and the part",
            _wrap(
                "Analytic estimates of what the vendor's tools will report, made without a vendor's tool. "
                "Each stage has its own table."
            ),
        ]
        blocks += [block for stage in stages for block in _table(totals_table(report, stage))]
        blocks += [*_table(speed_table(report)), _list(estimate_notes(report))]
    measured = measured_tables(report.measured)
    if measured:
        blocks += [
            "## Measured with open tools",
            _wrap(
                "The network was written as Verilog. Verilator simulates it, yosys synthesises it, and nextpnr places "
                "and routes it, if the flow asks for that. This is another implementation than the one estimated "
                "above. Each table holds one stage."
            ),
            *(block for table in measured for block in _table(table)),
        ]
    if report.layers:
        blocks += ["## What was saved", *_table(kernels_table(report)), *_masks(report)]
        multiplications = multiplications_table(report)
        blocks += _table(multiplications) if multiplications else []
    blocks.append("## What is proven")
    blocks += _table(certificate_table(report)) if report.certificate else []
    blocks += [block for table in checks_tables(report) for block in _table(table)]
    if not report.certificate and not report.checks:
        blocks.append("This run checked nothing.")
    omitted = left_out(report)
    if omitted:
        blocks += ["### What was not done, and why", _list(f"{what}: {why}" for what, why in omitted)]
    if stages:
        blocks.append("## Layer by layer")
        blocks += [block for stage in stages for block in _table(layer_resources_table(report, stage))]
        blocks += _table(layer_speed_table(report))
    blocks += ["## How this run was made", _list(f"{what}: {value}" for what, value in provenance(report))]
    blocks += _table(stages_table(report)) if report.stages else []
    if report.created:
        blocks.append(escape_text(report.created))
    return "\n\n".join(block for block in blocks if block) + "\n"


def escape_text(text: str) -> str:
    """`text` on one line, with every character of Markdown or HTML escaped."""
    line = " ".join(text.replace(NO_BREAK, "\0").split()).replace("\0", NO_BREAK)
    for character, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\\", "\\\\"), ("|", "\\|")):
        line = line.replace(character, written)
    for character in "`*[]":
        line = line.replace(character, f"\\{character}")
    return line


def _advice(report: RunReport) -> list[str]:
    """What would make the network fit; empty if nothing is short."""
    advice = report.advice
    if advice is None or not advice.needed:
        return []
    blocks = ["## What would make it fit", _list(shortage_lines(advice))]
    if advice.suggestions:
        blocks.append("`fpgaprune config RUN_DIR --change NUMBER` prints the flow file of this run with a change.")
    for change in suggested_changes(advice):
        said = [text for text in (f"{change.verdict}: {change.cost}", change.figures) if text]
        blocks += [f"### {change.number}. {escape_text(change.knob)}", _list(said), change.place]
        blocks.append("\n".join(f"    {line}".rstrip() for line in change.change.splitlines()))
    tables = [part for table in changes_tables(advice) for part in _table(table)]
    return [*blocks, *tables, _list(advice.notes)]


def _table(table: Table) -> list[str]:
    """The table in parts of at most 80 characters; each part repeats the first column."""
    written = []
    for column in table.columns:
        texts = [escape_text(text) for text in (f"{column.group} {column.heading}".strip(), *column.cells)]
        width = max(3, *map(len, texts))
        rule = "-" * (width - 1) + ":" if column.numeric else "-" * width
        heading, *cells = [text.rjust(width) if column.numeric else text.ljust(width) for text in texts]
        written.append([heading, rule, *cells])
    # Columns under one heading stay together as long as they fit.
    spans = table.groups or [("", 1)] * len(written)
    ends = np.cumsum([span for _, span in spans])
    units = [written[end - span : end] for end, (_, span) in zip(ends, spans, strict=True)]
    units = [
        part for unit in units for part in ([unit] if _width([written[0], *unit]) <= WIDTH else [[x] for x in unit])
    ]
    chunks = [[written[0]]]
    for unit in units[1:]:
        if len(chunks[-1]) > 1 and _width([*chunks[-1], *unit]) > WIDTH:
            chunks.append([written[0]])
        chunks[-1] += unit
    drawn = ["\n".join(f"| {' | '.join(line)} |" for line in zip(*chunk, strict=True)) for chunk in chunks]
    return [_wrap(f"{table.caption}:"), *drawn, _wrap(table.note)]


def _width(columns: list[list[str]]) -> int:
    return sum(len(column[0]) + 3 for column in columns) + 1


def _masks(report: RunReport) -> list[str]:
    blocks = []
    for layer in report.layers:
        states = kernel_states(layer)
        if states is None or any(np.array(states.shape) > _LARGEST_MASK):
            continue
        rows, columns = states.shape
        drawn = "\n".join("    " + "".join(_CELLS[int(state)] for state in line) for line in states)
        blocks += [_wrap(f"{layer.name}, {rows} input channels down, {columns} output channels across:"), drawn]
    key = "Kernels of each convolution (# kept, . locked at zero, x removed with its channel):"
    return [_wrap(key), *blocks] if blocks else []


def _list(lines: Iterable[str]) -> str:
    return "\n".join(_wrap(line, "- ", "  ") for line in lines)


def _wrap(text: str, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        escape_text(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
