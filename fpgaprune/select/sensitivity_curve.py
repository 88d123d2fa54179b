"""`sensitivity` measures the accuracy at several sparsities of each weight alone, without training."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import MaskError
from fpgaprune.files import read_json, write_bytes
from fpgaprune.processes import OnStep
from fpgaprune.select.allot import UnreachableSparsityError
from fpgaprune.select.choose import select
from fpgaprune.select.pools import chosen_paths
from fpgaprune.values import Array, MaskSet, named_weights

if TYPE_CHECKING:
    import keras

FORMAT = 1
SPARSITIES = (0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes:
        path: the pruned weight.
        sparsity: asked fraction of its units at zero.
        zeros: fraction of its elements at zero.
        accuracy: result of the model's evaluation.
    """

    path: str
    sparsity: float
    zeros: float
    accuracy: float


@dataclass(frozen=True)
class Sensitivity:
    """Accuracy against the sparsity of one weight; all other weights are as trained.

    Attributes:
        baseline: accuracy of the unchanged model.
        points: the measurements in the order of the weights, with ascending sparsity.
        measure: name of the figures, as `accuracy on 360 held-out samples`.
    """

    baseline: float
    points: tuple[Point, ...]
    measure: str = "accuracy"

    @property
    def paths(self) -> list[str]:
        """The weights, in order."""
        return list(dict.fromkeys(point.path for point in self.points))

    def curve(self, path: str) -> list[tuple[float, float]]:
        """Return `(sparsity, accuracy)` of one weight, ascending."""
        return [(point.sparsity, point.accuracy) for point in self.points if point.path == path]

    def largest_sparsity(self, path: str, lost: float) -> float | None:
        """Return the largest measured sparsity up to which the weight lost at most `lost`; None if there is none."""
        reached = None
        for sparsity, accuracy in self.curve(path):
            if self.baseline - accuracy > lost:
                break
            reached = sparsity
        return reached

    def to_json(self) -> dict[str, object]:
        """Return the whole as JSON data."""
        rows = [asdict(point) for point in self.points]
        return {"format": FORMAT, "measure": self.measure, "baseline": self.baseline, "points": rows}

    def to_markdown(self) -> str:
        """Write a line that names the measure, and a table with a row for each weight, a column for each sparsity."""
        sparsities = sorted({point.sparsity for point in self.points})
        lines = [
            f"{self.measure[:1].upper()}{self.measure[1:]}, by the sparsity of one weight alone:",
            "",
            "| weight | 0 | " + " | ".join(f"{sparsity:g}" for sparsity in sparsities) + " |",
            "|---|" + "---:|" * (len(sparsities) + 1),
        ]
        for path in self.paths:
            found = dict(self.curve(path))
            cells = [f"{found[s]:.4f}" if s in found else "" for s in sparsities]
            lines.append(f"| {path} | {self.baseline:.4f} | " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def save_plot(self, path: str | os.PathLike[str]) -> Path:
        """Draw accuracy against sparsity, one line for each weight, to `path` (.svg, .png or .pdf)."""
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for number, name in enumerate(self.paths):
            x, y = zip(*[(0.0, self.baseline), *self.curve(name)], strict=True)
            # Colours repeat after ten lines, so the marker changes.
            axes.plot(x, y, marker="osD^v"[number // 10 % 5], markersize=4, linewidth=1.5, label=name)
        axes.set_xlabel("sparsity of the one weight")
        axes.set_ylabel(self.measure)
        axes.set_xlim(0, 1)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small", frameon=False)
        kind = Path(path).suffix.lstrip(".").lower()
        if kind not in ("svg", "png", "pdf"):
            raise MaskError(f"plot {os.fspath(path)!r} has the form {kind!r}; wanted .svg, .png or .pdf")
        buffer = BytesIO()
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        with matplotlib.rc_context({"svg.hashsalt": "fpgaprune"}):
            figure.savefig(buffer, format=kind, metadata=dates)
        return write_bytes(path, buffer.getvalue())


def sensitivity(
    model: keras.Model,
    evaluate: Callable[[Any], float],
    sparsities: Sequence[float] = SPARSITIES,
    paths: Sequence[str] = (),
    *,
    base: MaskSet | None = None,
    results: str | os.PathLike[str] | None = None,
    progress: OnStep | None = None,
    measure: str = "accuracy",
    **options: object,
) -> Sensitivity:
    """Measure a model's accuracy with one weight at a time pruned to each sparsity. Its weights do not change.

    Nothing is trained. A weight has no point at a sparsity that it cannot reach, because more must stay free.

    Args:
        model: a Keras model.
        evaluate: gives the accuracy of the model, or another figure of which higher is better.
        sparsities: fractions of units, 0..1.
        paths: globs of weight paths; the default is those that `select` chooses from.
        base: elements of the weight that are locked too.
        results: a JSON file with the measurements so far. It is written after each measurement, and an interrupted
            call continues from it if model and options are the same; the data are not compared.
        progress: called with `(done, total, note)` after each measurement.
        measure: name of the figures of `evaluate`, for table and plot.
        **options: options of `select`: `granularity`, `criterion`, `data`, `seed`, `protect` and others.

    Raises:
        MaskError: an option is not allowed, or `results` holds other measurements.
    """
    for name in ("sparsity", "scope", "paths", "base"):
        if name in options:
            raise MaskError(f"{name!r} is no option here; wanted options of a selection in one weight")
    if not sparsities or any(not 0 <= sparsity <= 1 for sparsity in sparsities):
        raise MaskError(f"sparsities are {list(sparsities)}; wanted fractions from 0 to 1")
    variables = named_weights(model)
    base = None if base is None else base.fitted(model)
    chosen = chosen_paths(model, paths, variables)
    question = _digest(variables, options, base)
    known = _read(results, question)
    wanted = [(path, float(sparsity)) for path in chosen for sparsity in sorted(set(sparsities))]
    baseline = known.get("baseline")
    if baseline is None:
        baseline = _number(evaluate(model))
        known = {"format": FORMAT, "question": question, "baseline": baseline, "points": []}
        _write(results, known)
    found = {(row["path"], row["sparsity"]): row for row in known["points"]}
    for done, (path, sparsity) in enumerate(wanted, start=1):
        if (path, sparsity) not in found:
            row = _measure(model, variables[path], path, sparsity, base, evaluate, options)
            found[path, sparsity] = row
            known["points"].append(row)
            _write(results, known)
        if progress is not None:
            progress(done, len(wanted), f"{path} at {sparsity:g}")
    points = tuple(Point(**found[key]) for key in wanted if found[key]["accuracy"] is not None)
    return Sensitivity(baseline, points, measure)


def _measure(
    model: keras.Model,
    variable: keras.Variable,
    path: str,
    sparsity: float,
    base: MaskSet | None,
    evaluate: Callable[[Any], float],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    own = MaskSet({path: base[path]}) if base is not None and path in base else None
    try:
        mask = select(model, sparsity, paths=[path], base=own, **options)[path]
    except UnreachableSparsityError:
        return {"path": path, "sparsity": sparsity, "zeros": None, "accuracy": None}
    before = np.array(variable.numpy())
    try:
        pruned: Array = np.where(mask, before, np.zeros_like(before))
        variable.assign(pruned)
        accuracy = _number(evaluate(model))
    finally:
        variable.assign(before)
    return {"path": path, "sparsity": sparsity, "zeros": float((~mask).mean()), "accuracy": accuracy}


def _number(value: Any) -> float:
    accuracy = float(value)
    if not np.isfinite(accuracy):
        raise MaskError(f"the evaluation gave {accuracy}; wanted a finite number, the higher the better")
    return accuracy


def _digest(variables: Mapping[str, Any], options: Mapping[str, Any], base: MaskSet | None) -> str:
    digest = hashlib.sha256()
    for path, variable in variables.items():
        digest.update(f"{path}\0{tuple(variable.shape)}\0".encode())
        digest.update(np.ascontiguousarray(variable.numpy()).tobytes())
    # Data and functions have no digest: the caller must keep them the same.
    plain = {name: repr(value) for name, value in options.items() if name != "data" and not callable(value)}
    digest.update(json.dumps(plain, sort_keys=True).encode())
    digest.update(base.digest().encode() if base is not None else b"")
    return digest.hexdigest()


def _read(results: str | os.PathLike[str] | None, question: str) -> dict[str, Any]:
    if results is None:
        return {}
    try:
        known = read_json(results, MaskError, "a sensitivity file", "delete it or name another")
    except FileNotFoundError:
        return {}
    if not isinstance(known, dict) or known.get("format") != FORMAT:
        raise MaskError(f"{os.fspath(results)!r} is no sensitivity file of format {FORMAT}; delete it or name another")
    if known.get("question") != question:
        raise MaskError(
            f"{os.fspath(results)!r} holds measurements of another model or with other options; delete it or name "
            "another file"
        )
    return known


def _write(results: str | os.PathLike[str] | None, known: Mapping[str, object]) -> None:
    if results is not None:
        write_bytes(results, (json.dumps(known, indent=1, sort_keys=True) + "\n").encode())
