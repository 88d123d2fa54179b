r"""Reads the values in report files of Intel's HLS compilers, in each form that a release writes.

- `var areaJSON={...};`, a JavaScript object, which may hold the escape `\'` that JSON lacks (OpenCL, oneAPI);
- `var areaJSON='{...}';`, a quoted JavaScript string with JSON inside (i++ 17.1 to 19.2);
- a file of one JSON object, in i++ 17.1 and 19.1 with names inside lists: `["ALMs": 12.5]`;
- a file with one JSON object a line (`.ndjson`, oneAPI 2025).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fpgaprune.errors import ReportError
from fpgaprune.measure import Resources

AREA = "areaJSON"
FIT = "quartusJSON"
INFO = "infoJSON"
SUMMARY_TABLE = "estimatedResources"
CLOCKS = "quartusFitClockSummary"
_WANTED = (AREA, FIT, INFO)
# These keys tell a JSON file of these compilers from any other.
_MARKS = (f'"{CLOCKS}"', '"Estimated Resource Usage"', '"total_percent"')

# Numbers stay text until they are read as figures, where one of thousands of digits is refused.
_DECODER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)
_VARIABLE = re.compile(r"^ {0,8}var (?P<name>\w{1,40}) {0,4}= {0,4}(?=[\[{'])", re.MULTILINE)
_QUOTED = re.compile(r"'(?P<body>(?:[^'\\]|\\.)*+)'", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PLAIN = {"'": "'", '"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_NAMED_LIST = re.compile(r'\[(?P<body>\s{0,40}"[^"\[\]{}]{0,80}"\s{0,40}:[^\[\]{}]*)\]')


def recognises_intel(text: str) -> bool:
    """Whether `text` is such a file, with figures."""
    if text.lstrip()[:1] == "{":
        return any(mark in text for mark in _MARKS)
    return any(f"var {name}" in text for name in (AREA, FIT))


def intel_values(text: str, source: Path) -> dict[str, Any]:
    """The values of the file, by their names in `report_data.js`; `SUMMARY_TABLE` is the table of `summary.json`.

    Raises:
        ReportError: the file is cut off.
    """
    try:
        return _file(text, source) if text.lstrip()[:1] == "{" else _variables(text, source)
    except RecursionError:
        raise ReportError(f"{source} is nested too deeply; wanted a report as the compiler wrote it") from None
    except json.JSONDecodeError as error:
        raise ReportError(f"{source} is no whole report ({error}); it is cut off; wanted the whole file") from None


def _variables(text: str, source: Path) -> dict[str, Any]:
    values: dict[str, Any] = {}
    quoted = False
    for match in _VARIABLE.finditer(text):
        # The file also holds source texts, which are not needed, and some of which are not JSON.
        if match["name"] not in _WANTED or match["name"] in values:
            continue
        if text[match.end()] == "'":
            quoted = True
            body = _QUOTED.match(text, match.end())
            if body is None:
                raise ReportError(f"{source}: the string {match['name']} does not end; the report is cut off")
            values[match["name"]] = _decode(_unquoted(body["body"]))
        else:
            values[match["name"]] = _decode(_without_apostrophes(text[match.end() :]))
    if quoted and FIT not in values:
        raise ReportError(f"{source} has no {FIT}, which i++ writes last; the report is cut off; wanted the whole file")
    return values


def _file(text: str, source: Path) -> dict[str, Any]:
    bare = text.strip()
    lines = bare.splitlines()
    if len(lines) > 1 and _is_whole(lines[0]):
        return _lines(lines, source)
    try:
        value = _DECODER.decode(bare)
    except json.JSONDecodeError:
        value = _DECODER.decode(_NAMED_LIST.sub(r"{\g<body>}", bare))
    if CLOCKS in value:
        return {FIT: value}
    return {AREA: value} if "total_percent" in value else {SUMMARY_TABLE: value.get(SUMMARY_TABLE)}


def _is_whole(line: str) -> bool:
    try:
        _DECODER.decode(line)
    except json.JSONDecodeError:
        return False
    return True


def _lines(lines: Sequence[str], source: Path) -> dict[str, Any]:
    """The values of a file with one object a line: the first names the columns, each other one names its parent."""
    objects = [value for line in lines if line.strip() and isinstance(value := _DECODER.decode(line), dict)]
    first = objects[0]
    if "total_percent" in first:
        groups = [one for one in objects if one.get("parent") == first.get("id")]
        return {AREA: {**first, "children": [{**one, "children": _below(one, objects)} for one in groups]}}
    if CLOCKS in first:
        return {FIT: first}
    table = next((one for one in objects if one.get("summary_type") == SUMMARY_TABLE), None)
    if table is None:
        raise ReportError(f"{source} has no line with the summary type {SUMMARY_TABLE!r}; the report is cut off")
    return {SUMMARY_TABLE: {**table, "children": [one for one in objects if one.get("parent") == SUMMARY_TABLE]}}


def _below(group: dict[str, Any], objects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    if group.get("type") == "function" or "id" not in group:
        return []
    return [one for one in objects if one.get("parent") == group["id"]]


def _decode(text: str) -> Any:
    return _DECODER.raw_decode(text)[0]


def _unquoted(body: str) -> str:
    r"""The text of a JavaScript string; escapes that JSON has too, as `\u0041`, stay as they are."""
    return _ESCAPE.sub(lambda match: _PLAIN.get(match[1], match[0]), body)


def _without_apostrophes(text: str) -> str:
    return _ESCAPE.sub(lambda match: "'" if match[1] == "'" else match[0], text)


def usage_of_counts(counts: Mapping[str, int | None]) -> Resources[int]:
    """The resources in `counts`; Intel's memory blocks do not hold 18 Kb, so they are left out."""
    return Resources(lut=counts.get("lut"), ff=counts.get("ff"), dsp=counts.get("dsp"))
