"""Weights in the names that a network's own file has for them, such as `features.0.weight[13, 29]` of PyTorch."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fpgaprune.flow.file.section_type import Flow
from fpgaprune.flow.file.shared_sections import SelectConfig, TrainConfig
from fpgaprune.frontends import is_onnx, keras_slices, plan_onnx

_GLOBS = ("paths", "protect")
_TABLES = ("fixed", "filters", "sparsity")


def in_keras(path: Path | None, select: SelectConfig) -> SelectConfig:
    """Return `select` with its slices and globs in the paths of the Keras model that the file at `path` becomes.

    A glob that fits a path in Keras stays. Of a table of globs, each weight that such a name fits has the value alone.

    Raises:
        MaskError: a slice cannot be read, or is out of range.
        ModelImportError: the file cannot come in.
    """
    if path is None or not (select.locks or select.patterns) or not is_onnx(path) or not path.exists():
        return select
    network = plan_onnx(path)
    sources, shapes = network.sources, network.shapes
    names = {weight: source.name for weight, source in sources.items()}
    changed: dict[str, Any] = {
        "locks": tuple(one for text in select.locks for one in keras_slices(text, sources, shapes))
    }
    for key in _GLOBS:
        changed[key] = tuple(one for glob in getattr(select, key) for one in _weights(glob, shapes, names))
    for key in _TABLES:
        table = getattr(select, key)
        if isinstance(table, dict):
            changed[key] = {one: value for glob, value in table.items() for one in _weights(glob, shapes, names)}
    return select.model_copy(update=changed)


def with_names_in_keras(config: Flow) -> Flow:
    """Return `config` with the weights of `[select]` in the paths of the Keras model.

    Raises:
        MaskError: as `in_keras`.
        ModelImportError: as `in_keras`.
    """
    select = config[SelectConfig]
    found = in_keras(config[TrainConfig].model, select)
    return config if found == select else config.model_copy(update={"select": found})


def _weights(glob: str, paths: Iterable[str], names: Mapping[str, str]) -> list[str]:
    """Return the paths whose names in the file `glob` fits; `glob` itself if it fits a path, or no name.

    PyTorch calls the factors of a normalisation `weight`, too; where kernels fit, those alone are meant.
    """
    if any(fnmatch.fnmatchcase(path, glob) for path in paths):
        return [glob]
    found = [path for path, name in names.items() if fnmatch.fnmatchcase(name, glob)]
    return [path for path in found if path.endswith("kernel")] or found or [glob]
