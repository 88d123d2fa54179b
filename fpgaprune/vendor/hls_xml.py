"""Reads `csynth.xml` and `<top>_csynth.xml` of Vivado HLS and Vitis HLS."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.measure import CSYNTH, Cycles, Resources
from fpgaprune.vendor.cells import parse_count, parse_number, parse_range, shorten
from fpgaprune.vendor.grid import COLUMNS
from fpgaprune.vendor.report import ModuleRow, VendorReport

# Files of other tools begin with <profile> too; one of these two elements is near the top of every csynth.xml.
_ROOT = re.compile(r"<profile\b.{0,3000}<(UserAssignments|PerformanceEstimates)\b", re.DOTALL)


def recognises_hls_xml(text: str) -> bool:
    """Return whether `text` is a `csynth.xml` of Vivado HLS or Vitis HLS."""
    return _ROOT.search(text[:8192]) is not None


def parse_hls_xml(text: str, source: Path) -> tuple[VendorReport, ...]:
    """Parse `csynth.xml` of Vivado HLS or Vitis HLS.

    Raises:
        ReportError: it is cut off, declares entities, or lacks an element that every such report has.
    """
    # No report declares a document type; a file without one defines no entity, so none is expanded.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ReportError(f"{source} declares a document type; wanted a csynth.xml as the tool wrote it")
    try:
        root = ET.fromstring(text)  # noqa: S314 - entities were refused above
    except ET.ParseError as error:
        raise ReportError(f"{source} is no whole XML ({error}); the report is cut off; wanted the whole file") from None
    if root.tag != "profile":
        raise ReportError(f"{source} has the root element {shorten(root.tag)}; wanted 'profile'")
    file = _Node(root, str(source))
    resources = file.child("AreaEstimates/Resources")
    return (
        VendorReport(
            # Vivado HLS counts DSP48E, Vitis HLS counts DSP; the file names neither tool.
            tool="Vivado HLS" if resources.has("DSP48E") else "Vitis HLS",
            tool_version=file.text("ReportVersion/Version"),
            stage=CSYNTH,
            design=file.text("UserAssignments/TopModelName"),
            part=file.text("UserAssignments/Part"),
            clock_ns=file.number("UserAssignments/TargetClockPeriod"),
            est_clock_ns=file.number("PerformanceEstimates/SummaryOfTimingAnalysis/EstimatedClockPeriod"),
            total=_usage(resources),
            cycles=_cycles(file.child("PerformanceEstimates/SummaryOfOverallLatency")),
            rows=_rows(file),
            pipeline=file.text("PerformanceEstimates/PipelineType"),
            source=source,
        ),
    )


class _Node:
    """An element, and its place in the file for messages."""

    def __init__(self, element: ET.Element, where: str) -> None:
        self.element = element
        self.where = where

    def has(self, path: str) -> bool:
        return self.element.find(path) is not None

    def child(self, path: str) -> _Node:
        found = self.element.find(path)
        if found is None:
            raise ReportError(f"{self.where} has no element <{path}>; wanted a csynth.xml of Vivado HLS or Vitis HLS")
        return _Node(found, f"{self.where}, <{path}>")

    def text(self, path: str) -> str | None:
        return (self.element.findtext(path) or "").strip() or None

    def count(self, *paths: str) -> int | None:
        text = next((text for path in paths if (text := self.text(path)) is not None), None)
        return None if text is None else parse_count(text, f"{self.where}, <{paths[0]}>")

    def range(self, path: str) -> tuple[int | None, int | None]:
        text = self.text(path)
        return (None, None) if text is None else parse_range(text, f"{self.where}, <{path}>")

    def number(self, path: str) -> float | None:
        text = self.text(path)
        return None if text is None else parse_number(text, f"{self.where}, <{path}>")


def _usage(node: _Node) -> Resources[int]:
    return Resources(**{name: node.count(*names) for name, names in COLUMNS.items()})


def _cycles(node: _Node) -> Cycles:
    """Return the cycles; the file's head states the interval in two elements, a module in one, as `2` or `2 ~ 53`."""
    if node.has("Interval-min"):
        low, high = node.count("Interval-min"), node.count("Interval-max")
    else:
        low, high = node.range("PipelineInitiationInterval")
    return Cycles(node.count("Best-caseLatency"), node.count("Worst-caseLatency"), low, high)


def _rows(file: _Node) -> tuple[ModuleRow, ...]:
    """List each instance in the top module if the file has the hierarchy, else each module below the top."""
    modules: dict[str, ModuleRow] = {}
    for element in file.element.iterfind("ModuleInformation/Module"):
        node = _Node(element, f"{file.where}, a <Module>")
        name = node.text("Name")
        if name is None:
            raise ReportError(f"{node.where} has no <Name>; wanted the name of the module")
        performance = "PerformanceEstimates/SummaryOfOverallLatency"
        modules[name] = ModuleRow(
            name,
            name,
            _usage(node.child("AreaEstimates/Resources")) if node.has("AreaEstimates/Resources") else Resources(),
            _cycles(node.child(performance)) if node.has(performance) else Cycles(),
            node.text("PerformanceEstimates/PipelineType") or node.text(f"{performance}/PipelineType"),
        )
    top = file.text("UserAssignments/TopModelName")
    hierarchy = file.element.find("RTLDesignHierarchy/TopModule/InstancesList")
    if hierarchy is None:
        return tuple(row for name, row in modules.items() if name != top)
    rows = []
    for element in hierarchy.iterfind("Instance"):
        node = _Node(element, f"{file.where}, an <Instance>")
        name, module = node.text("InstName"), node.text("ModuleName")
        # FIFOs and memories are instances too, but the file has no estimates of them.
        if name and module in modules:
            rows.append(replace(modules[module], name=name))
    return tuple(rows)
