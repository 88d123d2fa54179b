"""`inspect_model`: the layers of a saved Keras model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fpgaprune.flow.task.models import load_saved_model
from fpgaprune.report import kernel_norm_png
from fpgaprune.weights import named_weights


def inspect_model(path: Path, folder: Path | None = None) -> dict[str, Any]:
    """Layers with shapes, parameters and l1 norms per kernel, as JSON data; one PNG per convolution in a `folder`.

    Raises:
        ConfigError: `path` is no Keras model.
    """
    model = load_saved_model(path)
    paths = {id(variable): name for name, variable in named_weights(model).items()}
    layers, heat_maps = [], []
    for layer in model.layers:
        arrays = {paths[id(v)]: v.numpy() for v in layer.variables if id(v) in paths}
        norms = {
            name: np.abs(array).sum(axis=tuple(range(array.ndim - 2)))
            for name, array in arrays.items()
            if name.endswith("/kernel") and array.ndim > 2
        }
        if folder is not None:
            for name, of_kernels in norms.items():
                heat_maps.append(kernel_norm_png(of_kernels, name, folder / f"{name.replace('/', '_')}.png"))
        layers.append(
            {
                "name": layer.name,
                "class": type(layer).__name__,
                "output_shape": _shape(layer),
                "parameters": sum(array.size for array in arrays.values()),
                "zeros": sum(int((array == 0).sum()) for array in arrays.values()),
                "weights": {name: list(array.shape) for name, array in arrays.items()},
                "kernels": _kernel_counts(norms),
            }
        )
    return {"model": str(path), "layers": layers, "heat_maps": [str(heat_map) for heat_map in heat_maps]}


def _shape(layer: Any) -> list[int | None]:
    shape = getattr(getattr(layer, "output", None), "shape", None)
    return [] if shape is None else list(shape[1:])


def _kernel_counts(norms: dict[str, Any]) -> dict[str, Any] | None:
    if not norms:
        return None
    return {
        "total": sum(norm.size for norm in norms.values()),
        "zero": sum(int((norm == 0).sum()) for norm in norms.values()),
        "l1_norms": {name: norm.round(6).tolist() for name, norm in norms.items()},
    }
