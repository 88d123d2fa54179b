"""`write_report`: a run's page, and everything in it as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from fpgaprune.files import write_bytes
from fpgaprune.report.contents import RunReport
from fpgaprune.report.page import render_page
from fpgaprune.report.verdict import measured_verdict, verdicts


class ReportPaths(NamedTuple):
    """The files of a report."""

    html: Path
    json: Path


def write_report(out_dir: str | os.PathLike[str], report: RunReport) -> ReportPaths:
    """Write report.html and report.json to `out_dir`; equal reports give equal bytes.

    Raises:
        ReportError: the report contradicts itself; nothing is written.
    """
    # Both are made before the first is written, so that bad input leaves the folder as it was.
    page = render_page(report).encode()
    said = [one for one in (*verdicts(report), measured_verdict(report)) if one is not None]
    answers = {one.about: {"reply": one.reply, "text": one.text, "tone": one.tone} for one in said}
    content = {**report.to_json(), "verdicts": answers}
    document = (json.dumps(content, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n").encode()
    folder = Path(out_dir)
    return ReportPaths(write_bytes(folder / "report.html", page), write_bytes(folder / "report.json", document))
