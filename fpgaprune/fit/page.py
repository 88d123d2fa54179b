"""The result of a search as a page, and in the words of the page and the terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from fpgaprune.backends import VERILOG
from fpgaprune.design import Design, LayerSpec
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.result import Fit, FitPoint
from fpgaprune.flow import RunDirectory
from fpgaprune.measure import interval_words
from fpgaprune.report import (
    LABELS,
    NO_BREAK,
    FrontPoint,
    FrontReport,
    LayerChange,
    kernel_path,
    time_text,
    write_front,
)
from fpgaprune.values import MaskSet

_WORDS = {
    "sparsity": "zeros",
    "weight_bits": "bits of weights",
    "activation_bits": "bits of activations",
    "filters": "filters",
    "hold": "powers of two",
}
# Where a line of a narrow table ends: at a comma outside of brackets, and before a bracket.
_APART = re.compile(r", (?![^(]*\))| (?=\()")


def layer_changes(folder: Path) -> list[LayerChange]:
    """Return what the run in `folder` did to each layer with weights, in the order of the network."""
    run = RunDirectory.existing(folder)
    masks, design = MaskSet.load(run.file("masks.npz")), Design.load(run.file("design.json"))
    by_weight = {layer.sources["weight"]: layer for layer in design.layers if "weight" in layer.sources}
    report, found = run.read_json("report.json"), []
    ours = report["verilog"]["layers"] if report["target"]["backend"] == VERILOG else ()
    takes = {row["layer"]: _takes(row["resources"]) for row in ours}
    for layer in report["layers"]:
        path = kernel_path(layer["name"], by_weight)
        spec = by_weight.get(path)
        mask = masks.get(path)
        found.append(
            LayerChange(
                layer["name"],
                0.0 if mask is None else float(1 - mask.mean()),
                tuple(layer["channels_before"]),
                None if layer["channels_after"] is None else tuple(layer["channels_after"]),
                None if spec is None else spec.types["weight"].width,
                None if spec is None else _last_before_weights(design, spec).types["result"].width,
                None if spec is None else takes.get(spec.name) if takes else _hls_layout(spec),
            )
        )
    return found


def _takes(resources: Mapping[str, Mapping[str, float]]) -> str:
    """Return the LUTs of a layer of our Verilog, and its DSPs if it has any."""
    counts = {name: round(resources[name]["value"]) for name in ("lut", "dsp")}
    return ", ".join(f"{count:,} {name.upper()}" for name, count in counts.items() if count or name == "lut")


def _hls_layout(spec: LayerSpec) -> str | None:
    return None if spec.strategy is None else f"{spec.strategy}, reuse {spec.reuse_factor}"


def reasons(answer: Fit) -> list[str]:
    """Return sentences on why the best network has these locks, bits and layout."""
    knobs, sentences = answer.best.knobs, []
    if locked := knobs.locked:
        config = RunDirectory.existing(Path(answer.best.folder)).manifest["config"]["select"]
        sentences.append(f"Locked: {locked}, those with the lowest score ({config['criterion']}).")
    if less := knobs.less:
        sentences.append(f"A bit less: {less}; without it the outputs move least for what the hardware saves.")
    if answer.rates:
        rates = sorted(answer.rates.items(), key=lambda rate: rate[1])
        words = ", ".join(f"{_WORDS.get(name, name)} {100 * rate:.2f} %" for name, rate in rates)
        sentences.append(
            "Search: each step changed the setting that loses least for each halving of the size. What the last steps "
            f"lost for each halving: {words}."
        )
    sentences.append(
        "Layout: the fastest whose estimate keeps the share of the part."
        if answer.limits["latency_us"] is None
        else "Layout: the smallest that is fast enough."
    )
    return sentences


def _last_before_weights(design: Design, layer: LayerSpec) -> LayerSpec:
    """Return the layer whose result the next layer with weights reads: an activation, a pool or `layer` itself."""
    while True:
        readers = [one for one in design.layers if layer.name in one.inputs]
        if len(readers) != 1 or readers[0].weights or len(readers[0].inputs) != 1:
            return layer
        layer = readers[0]


def write_page(answer: Fit, folder: Path) -> Path:
    """Write the page of `answer` to report.html in `folder`."""
    front = set(map(id, answer.front))
    points = [
        FrontPoint(
            point.number,
            str(point.knobs),
            point.lost,
            point.lost_error,
            point.share,
            LABELS[point.resource],
            point.latency_cycles,
            id(point) in front,
            point.meets_limits,
            _link(Path(point.folder), folder),
        )
        for point in answer.points
    ]
    return write_front(
        folder,
        FrontReport(
            answer.name,
            answer.part,
            limit_words(answer),
            answer.verdicts(),
            facts(answer.best, answer),
            answer.best.folder,
            points,
            _limits(answer).loss_limit(searching=True),
            _limits(answer).share,
            f"Shares are upper ends of the {answer.price}, divided by what the part has.",
            answer.notes,
            layer_changes(Path(answer.best.folder)),
            reasons(answer),
        ),
    )


def front_title(answer: Fit) -> str:
    """Return the title of the table of the Pareto front."""
    more = f"; in the search {100 * extra:.2f} % more may be lost" if (extra := _limits(answer).retraining_loss) else ""
    judged = f", on {answer.front[0].samples:,} {answer.front[0].judged_on} samples" if answer.front else ""
    return f"the best trials{judged}: no other is better in loss, share and latency at once{more}"


def front_rows(answer: Fit) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the headings and the rows of the table of the Pareto front."""
    rows: list[tuple[str, ...]] = [
        (
            f"{point.number}. {_APART.sub(chr(10), str(point.knobs))}",
            f"{100 * point.lost:.2f} ± {100 * point.lost_error:.2f} %",
            f"{point.share_text()} {LABELS[point.resource]}",
            f"{point.latency_cycles:,}",
            "yes" if point.meets_limits else "no",
        )
        for point in sorted(answer.front, key=lambda point: point.lost)
    ]
    return ("network", "loss", "share", "cycles", "limits\nkept"), rows


def limit_words(answer: Fit) -> list[str]:
    """Return what must hold, each limit in words."""
    limits = _limits(answer)
    words = [f"{answer.clock_ns:g} ns", f"at most {limits.max_loss} lost, plus one standard error"]
    if limits.retraining_loss:
        words.append(f"in the search {100 * limits.retraining_loss:.2f} % more")
    words.append(f"at most {100 * limits.share:g} % of each resource")
    if limits.latency_us is not None:
        words.append(f"at most {limits.latency_us:g} µs")
    if limits.interval_cycles is not None:
        words.append(f"a sample {interval_words(limits.interval_cycles)}")
    if limits.samples_per_s is not None:
        words.append(f"at least {limits.samples_per_s:,.10g} samples a second")
    return words


def facts(best: FitPoint, answer: Fit) -> list[tuple[str, str]]:
    """Return the name and text of each fact of the best network."""
    estimated = [f"{count:,} {LABELS[name]}" for name, count in best.used.items() if count is not None]
    measured = [f"{count:,} {LABELS[name]}" for name, count in (best.measured or {}).items() if count is not None]
    latency = time_text(best.latency_cycles * answer.clock_ns / 1000).replace(NO_BREAK, " ")
    return [
        ("network", str(best.knobs)),
        (best.metric, f"{best.value:.4g} in hardware, {best.loss_text()}"),
        ("takes", f"{', '.join(estimated)} ({answer.price})"),
        *([("measured", f"{', '.join(measured)} ({answer.counted_by})")] if measured else []),
        (
            "nearest limit",
            f"{best.share_text()} of the {LABELS[best.resource]}s{'' if measured else ', by the upper end'}",
        ),
        ("latency", f"{best.latency_cycles:,} cycles, {latency}; a sample {interval_words(best.interval_cycles)}"),
        ("run", best.folder),
    ]


def _link(run: Path, folder: Path) -> str | None:
    page = run / "report.html"
    return str(page.relative_to(folder)) if page.is_file() and page.is_relative_to(folder) else None


def _limits(answer: Fit) -> Limits:
    return Limits(**answer.limits)  # type: ignore[arg-type]
