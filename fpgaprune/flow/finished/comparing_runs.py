"""`compare_runs`: finished runs side by side, and the settings in which their flows differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from fpgaprune.errors import ConfigError
from fpgaprune.files import toml_value
from fpgaprune.flow.file import require_kind
from fpgaprune.flow.run import RunDirectory
from fpgaprune.measure import ANALYTIC_CSYNTH, ANALYTIC_SYNTH, LABELS, OF_VERILOG, to_plain
from fpgaprune.report import NO_BREAK, Metric, change_text, count_text, percent_text, value_text
from fpgaprune.values import Summarised, Summary

_SETTINGS = "settings that differ"
# Keys of a flow that say nothing of the network or its hardware.
_NAMES = ("name",)


class ComparedRow(Struct, frozen=True):
    """One figure of all runs.

    Attributes:
        group: what it belongs to: the metric, the locks, a stage of the hardware, the settings.
        figure: its name.
        values: for each run a count, a text, or None where the run does not have it.
    """

    group: str
    figure: str
    values: tuple[int | str | None, ...]

    @property
    def change(self) -> str:
        """How a count of the last of two runs differs from that of the first: `-32.4 %`; else empty."""
        first, *others = self.values
        if len(others) != 1 or not isinstance(first, int) or not isinstance(others[0], int):
            return ""
        return change_text(first, others[0])


class ComparedRuns(Summarised, Struct, frozen=True):
    """Finished runs side by side.

    Attributes:
        names: the name of each run.
        rows: the figures, group by group.
    """

    names: tuple[str, ...]
    rows: tuple[ComparedRow, ...]

    @property
    def groups(self) -> dict[str, list[ComparedRow]]:
        """Each group with its rows."""
        found: dict[str, list[ComparedRow]] = {}
        for row in self.rows:
            found.setdefault(row.group, []).append(row)
        return found

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return headings, and rows for a narrow window: each group has a row of its own above its figures."""
        two = len(self.names) == 2
        rows = []
        for group, figures in self.groups.items():
            rows.append((group, *[""] * (len(self.names) + two)))
            for one in figures:
                shown = [count_text(value) if isinstance(value, int) else value or "–" for value in one.values]
                rows.append((f"  {one.figure}", *shown, *[one.change] * two))
        return ("figure", *self.names, *["change"] * two), rows

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    def _summary(self) -> Summary:
        headings, rows = self.table()
        return Summary(f"Runs compared: {', '.join(self.names)}", headings, rows)


def compare_runs(folders: Sequence[Path]) -> ComparedRuns:
    """Return what the runs in `folders` lost, locked and take at each stage, side by side, and how their flows differ.

    Example:
        >>> compare_runs([Path("runs/mine"), Path("runs/mine-1")])  # doctest: +SKIP

    Raises:
        ConfigError: there are fewer than two folders, or one is given twice.
        RunError: a folder is no run, or its run has not ended.
    """
    places = [folder.resolve() for folder in folders]
    if len(places) < 2 or len(set(places)) < len(places):
        raise ConfigError(f"{', '.join(map(str, folders))}: wanted two run folders or more, each once")
    for folder in folders:
        require_kind(folder, "run")
    runs = [RunDirectory.existing(folder) for folder in folders]
    reports = [dict(_figures(run.read_report())) for run in runs]
    settings = [dict(_settings(run.manifest.get("config", {}))) for run in runs]
    keys = [*dict.fromkeys(key for report in reports for key in report)]
    order = [*dict.fromkeys(group for group, _ in keys)]
    rows = [
        ComparedRow(group, figure, tuple(report.get((group, figure)) for report in reports))
        for group, figure in sorted(keys, key=lambda key: order.index(key[0]))
    ]
    for key in dict.fromkeys(key for one in settings for key in one):
        values = tuple(one.get(key) for one in settings)
        if len(set(values)) > 1 and key not in _NAMES and not _same_content(key, runs):
            rows.append(ComparedRow(_SETTINGS, key, values))
    return ComparedRuns(_names(places), tuple(rows))


def _same_content(key: str, runs: Sequence[RunDirectory]) -> bool:
    """Return whether `key` names a file that each of `runs` has under another path, with the same content."""
    if key == "data.source":
        found = [run.manifest.get("data") for run in runs]
    elif key == "train.model":
        found = [(run.manifest.get("network") or {}).get("content") for run in runs]
    else:
        return False
    return None not in found and len(set(found)) == 1


def _names(places: Sequence[Path]) -> tuple[str, ...]:
    """Return the names of the folders; of those with one name, the paths."""
    names = [place.name for place in places]
    return tuple(name if names.count(name) == 1 else str(place) for name, place in zip(names, places, strict=True))


def _figures(report: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int | str]]:
    """Yield (group, figure) and value of everything that the JSON data of a report state."""
    metric = Metric(**{name: value for name, value in report["metric"].items() if name != "holds"})
    for figure, when in (("before", "before"), ("after, floating point", "after"), ("in hardware", "hardware")):
        if getattr(metric, when) is not None:
            yield (metric.name, figure), value_text(metric, when).replace(NO_BREAK, " ")
    for figure, about in (("kept", "metric"), ("fits", "fit")):
        yield ("answers", figure), f"{report['verdicts'][about]['reply']}"
    yield ("answers", "part"), report["target"]["part"]["name"]
    yield from _locks(report["layers"])
    yield from _hardware(report)


def _locks(layers: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, str], int | str]]:
    convolutions = [layer for layer in layers if "Dense" not in layer["kind"]] or layers
    locked, total = (sum(layer[f"kernels_{of}"] for layer in convolutions) for of in ("locked", "total"))
    if total:
        yield ("locks", "locked share of kernels"), percent_text(locked / total).replace(NO_BREAK, " ")
        yield ("locks", "kernels locked"), locked
    if layers:
        yield ("locks", "parameters left"), sum(layer["parameters_after"] for layer in layers)


def _hardware(report: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield LUT, FF, DSP and BRAM of each stage, in the order of the stages, and the cycles."""
    after, verilog, measured = report.get("after"), report.get("verilog"), report.get("measured")
    if after is not None:
        for stage in (ANALYTIC_CSYNTH, ANALYTIC_SYNTH):
            yield from _counts(f"hls4ml, estimated {stage.step}", after["total"].get(stage.step))
        yield from _cycles(f"hls4ml, estimated {ANALYTIC_SYNTH.step}", after)
    if verilog is not None:
        group = f"our Verilog, estimated, {verilog['family']}"
        yield from _counts(group, verilog["resources"])
        yield from _cycles(group, verilog)
    for counts in report.get("counts") or ():
        family = counts["where"][0]
        if verilog is None:
            yield from _counts(f"our Verilog, estimated, {family}", counts["estimated"])
        yield from _counts(f"our Verilog, synthesised, {family}", counts["synthesised"])
        yield from _counts(f"our Verilog, placed, {family}", counts["placed"])
    if measured is not None:
        yield from _cycles("our Verilog, simulated", measured["simulation"])


def _counts(group: str, counts: Mapping[str, Any] | None) -> Iterator[tuple[tuple[str, str], int]]:
    for name in OF_VERILOG:
        count = (counts or {}).get(name)
        value = count["value"] if isinstance(count, Mapping) else count
        if value is not None:
            yield (group, LABELS[name]), value


def _cycles(group: str, figures: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    for figure in ("latency", "interval"):
        cycles = figures.get(f"{figure}_cycles")
        if cycles is not None:
            yield (group, f"{figure}, cycles"), cycles


def _settings(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield each key of a flow, as `hls.weight_bits`, with its value as a flow file writes it, if it has one."""
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _settings(value, f"{above}{key}.")
        elif value is not None and value != {}:
            yield f"{above}{key}", toml_value(value)
