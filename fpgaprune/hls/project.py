"""`to_hls`: a whole hls4ml project on disk, its `Design`, and its C simulation."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from fpgaprune.design import Design
from fpgaprune.errors import HlsError
from fpgaprune.hls.convert import _quiet, convert, extract
from fpgaprune.hls.precision import Precision, choose_types
from fpgaprune.hls.prepare import fold, quantise_weights
from fpgaprune.hls.simulate import CSimulation
from fpgaprune.keras_file import save_keras
from fpgaprune.target import Target
from fpgaprune.weights import named_weights

_ROLES = {"kernel": "weight", "bias": "bias", "gamma": "scale", "beta": "bias"}


@dataclass(frozen=True)
class HlsProject:
    """A written hls4ml project.

    Attributes:
        path: the project's folder.
        design: what it computes.
    """

    path: Path
    design: Design

    def compile(self, timeout_s: float = 900.0) -> CSimulation:
        """The C simulation is compiled with g++ and ready.

        Raises:
            ToolError: g++ is missing, fails or takes longer than `timeout_s`.
        """
        return CSimulation.build(self.path, self.design, timeout_s)

    def predict(self, x: NDArray[Any] | Sequence[NDArray[Any]]) -> Any:
        """What the hardware gives for `x`, (N, ...) in the model's input shape; compiled on first use."""
        return CSimulation.open_or_build(self.path, self.design).predict(x)


def make_design(
    model: Any,
    target: Target,
    data: NDArray[Any],
    precision: Precision | None = None,
    name: str = "network",
) -> Design:
    """The `Design` of `model` on `target`; nothing is written.

    Args:
        model: a Keras model.
        target: part, clock, io type, strategy, reuse.
        data: samples (N, ...) that show the range of every layer.
        precision: bits to spend; `Precision()` unless given.
        name: project name, a C identifier.

    Raises:
        HlsError: hls4ml cannot make a correct project of the model.
    """
    with tempfile.TemporaryDirectory() as folder:
        return _graph_and_design(model, target, data, precision or Precision(), Path(folder), name)[1]


def to_hls(
    model: Any,
    target: Target,
    data: NDArray[Any],
    output_dir: str | os.PathLike[str],
    precision: Precision | None = None,
    name: str = "network",
) -> HlsProject:
    """`output_dir` is a whole hls4ml project of `model`, written at once, the same bytes each time.

    Args:
        model: a Keras model.
        target: part, clock, io type, strategy, reuse.
        data: samples (N, ...) that show the range of every layer.
        output_dir: the project's folder; an hls4ml project that is already there is replaced.
        precision: bits to spend; `Precision()` unless given.
        name: project name, a C identifier.

    Raises:
        HlsError: hls4ml cannot make a correct project, or `output_dir` holds something else.
    """
    folder = Path(output_dir)
    if folder.exists() and any(folder.iterdir()) and not (folder / "hls4ml_config.yml").exists():
        raise HlsError(f"{folder} holds other files; name an empty or new folder for the project")
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".partial"))
    try:
        inner = draft / folder.name
        graph, design, folded = _graph_and_design(model, target, data, precision or Precision(), inner, name)
        with _quiet():
            graph.write()
        _settle(inner, graph, folded, design)
        if folder.exists():
            folder.rename(draft / "replaced")
        inner.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return HlsProject(folder, design)


def _graph_and_design(
    model: Any, target: Target, data: NDArray[Any], precision: Precision, folder: Path, name: str
) -> tuple[Any, Design, Any]:
    folded = fold(model)
    types = choose_types(folded, data, precision)
    raws = quantise_weights(folded, types)
    graph = convert(folded, types, target, folder, name)
    return graph, extract(graph, raws, _sources(model, folded), target), folded


def _sources(model: Any, folded: Any) -> dict[str, dict[str, str]]:
    """Layer name to role to weight path, for the layers whose kernel reaches the hardware."""
    names = {layer.name for layer in folded.layers}
    sources: dict[str, dict[str, str]] = {}
    for path in named_weights(model):
        layer, _, variable = path.rpartition("/")
        if layer in names and variable in _ROLES:
            sources.setdefault(layer, {})[_ROLES[variable]] = path
    return sources


def _settle(folder: Path, graph: Any, folded: Any, design: Design) -> None:
    """The project holds no random stamp, no date and no path of the machine that wrote it."""
    stamp = str(graph.config.get_config_value("Stamp"))
    digest = hashlib.sha256(repr(design.to_json()).encode())
    for layer in design.layers:
        for role in sorted(layer.weights):
            digest.update(layer.weights[role].tobytes())
    for path in (folder / "build_lib.sh", folder / "hls4ml_config.yml"):
        text = path.read_text().replace(stamp, digest.hexdigest()[: len(stamp)])
        text = re.sub(r"^OutputDir: .*$", "OutputDir: .", text, flags=re.MULTILINE)
        text = re.sub(r"^KerasModel: .*$", "KerasModel: !keras_model 'keras_model.keras'", text, flags=re.MULTILINE)
        path.write_text(text)
    save_keras(folded, folder / "keras_model.keras")
