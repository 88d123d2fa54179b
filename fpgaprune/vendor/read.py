"""Reads the reports of every known vendor tool, from a file or a project folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fpgaprune.errors import NoReportError, ReportError
from fpgaprune.vendor.cosim import parse_cosim, recognises_cosim
from fpgaprune.vendor.hls_summary import parse_hls_summary, recognises_hls_summary
from fpgaprune.vendor.hls_text import parse_hls_text, recognises_hls_text
from fpgaprune.vendor.hls_xml import parse_hls_xml, recognises_hls_xml
from fpgaprune.vendor.quartus_fit import parse_quartus_fit, recognises_quartus_fit
from fpgaprune.vendor.report import VendorReport
from fpgaprune.vendor.vivado_accelerator import parse_vivado_accelerator, recognises_vivado_accelerator
from fpgaprune.vendor.vivado_timing import parse_vivado_timing, recognises_vivado_timing
from fpgaprune.vendor.vivado_utilization import parse_vivado_utilization, recognises_vivado_utilization

Kind = tuple[str, Callable[[str], bool], Callable[[str, Path], tuple[VendorReport, ...]]]

KINDS: tuple[Kind, ...] = (
    ("csynth.rpt of Vivado HLS or Vitis HLS", recognises_hls_text, parse_hls_text),
    ("synthesis summary of Vitis HLS", recognises_hls_summary, parse_hls_summary),
    ("csynth.xml of Vivado HLS or Vitis HLS", recognises_hls_xml, parse_hls_xml),
    ("cosim.rpt of Vivado HLS or Vitis HLS", recognises_cosim, parse_cosim),
    ("report_utilization of Vivado", recognises_vivado_utilization, parse_vivado_utilization),
    ("report_accelerator_utilization of Vivado", recognises_vivado_accelerator, parse_vivado_accelerator),
    ("report_timing_summary of Vivado", recognises_vivado_timing, parse_vivado_timing),
    (".fit.rpt or .fit.summary of Quartus", recognises_quartus_fit, parse_quartus_fit),
)

# Endings under which the tools write reports, and the folders that hold copies, sources and databases.
_ENDINGS = (".rpt", ".xml", ".summary")
_SKIPPED = frozenset({".autopilot", ".git", ".Xil", ".lock", "firmware", "tb_data", "incremental_db", "db", "qdb"})
_LARGEST_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Unread:
    """A report that could not be read.

    Attributes:
        path: the file.
        reason: the message of the error, in one line.
    """

    path: Path
    reason: str

    def __str__(self) -> str:
        """Return the reason, after the path unless the reason names the path."""
        return self.reason if str(self.path) in self.reason else f"{self.path}: {self.reason}"


class Reports(tuple[VendorReport, ...]):
    """The reports of a folder, ordered by stage and then by path.

    Attributes:
        unread: the files that are reports but cannot be read, each with the reason.
    """

    unread: tuple[Unread, ...]

    def __new__(cls, reports: Iterable[VendorReport] = (), unread: Iterable[Unread] = ()) -> Self:
        """Return the reports in the order of their stages, and the unread files."""
        made = super().__new__(cls, _ordered(tuple(reports)))
        made.unread = tuple(unread)
        return made


def read_report(path: str | os.PathLike[str]) -> VendorReport:
    """Return the report in the file `path`; the content decides its kind, whatever the file is called.

    If the file holds several reports, this is the one of the earliest stage; `read_reports` gives all of them.

    Raises:
        ReportError: the file is missing, is of no known kind, is cut off, or has something else in place of a figure.
    """
    return _read(Path(path))[0]


def read_reports(folder: str | os.PathLike[str]) -> Reports:
    """Return every report below `folder`, which may also be a file; `unread` names those that cannot be read, and why.

    Files of unknown kinds are ignored.

    Raises:
        NoReportError: there is no report.
        ReportError: there is no such folder, or none of its reports can be read.
    """
    found = find_reports(folder)
    if not found and found.unread:
        reasons = "; ".join(map(str, found.unread))
        raise ReportError(f"none of {len(found.unread)} reports below {folder} can be read: {reasons}")
    if not found:
        raise NoReportError(f"no report below {folder}; wanted one of: {'; '.join(name for name, _, _ in KINDS)}")
    return found


def find_reports(folder: str | os.PathLike[str]) -> Reports:
    """Read as `read_reports`, but return no report if there is none or none can be read.

    Raises:
        ReportError: there is no such folder, or it is a file that is no report or cannot be read.
    """
    root = Path(folder)
    if root.is_file():
        return Reports(_read(root))
    if not root.is_dir():
        raise ReportError(f"{root} is neither a folder nor a file; wanted the project folder of a vendor tool")
    reports: list[VendorReport] = []
    unread: list[Unread] = []
    for path in _candidates(root):
        try:
            text = _text(path)
            if any(recognises(text) for _, recognises, _ in KINDS):
                reports += parse_reports(text, path)
        except ReportError as error:
            unread.append(Unread(path, str(error)))
    return Reports(reports, unread)


def parse_reports(text: str, source: str | os.PathLike[str]) -> tuple[VendorReport, ...]:
    """Return every report in `text`, in the order of the stages; `source` is the file that messages name.

    Raises:
        ReportError: as `read_report`.
    """
    path = Path(source)
    reports: list[VendorReport] = []
    for _, recognises, parse in KINDS:
        if recognises(text):
            reports += parse(text, path)
    if not reports:
        raise ReportError(f"{path} is no known vendor report; wanted one of: {'; '.join(k for k, _, _ in KINDS)}")
    return _ordered(tuple(reports))


def _read(path: Path) -> tuple[VendorReport, ...]:
    return parse_reports(_text(path), path)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise ReportError(f"{path} has more than {_LARGEST_BYTES} bytes; no vendor report is that long")
        # Tools write host names and paths in any encoding; all figures are ASCII.
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise ReportError(f"{path} cannot be read ({error.strerror}); wanted the report of a vendor tool") from None


def _candidates(root: Path) -> list[Path]:
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in files:
            path = Path(folder, name)
            if name.endswith(_ENDINGS) and path.is_file() and path.stat().st_size <= _LARGEST_BYTES:
                found.append(path)
    return sorted(found)


def _ordered(reports: tuple[VendorReport, ...]) -> tuple[VendorReport, ...]:
    return tuple(sorted(reports, key=lambda report: report.stage.order))
