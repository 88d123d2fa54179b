"""Turns samples that have the axes of an ONNX file, (N, C, H, W), into those of its Keras model, (N, H, W, C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fpgaprune.errors import ConfigError
from fpgaprune.flow.task.data import Dataset
from fpgaprune.flow.task.samples import Samples, arrays_of
from fpgaprune.frontends import OnnxNetwork, is_onnx, plan_onnx

Layout = Literal["auto", "keras", "file"]


def in_keras_layout(data: Dataset, model: Path, layout: Layout = "auto") -> Dataset:
    """Return `data` with the axes of the Keras model, if `model` is an ONNX file.

    Args:
        data: inputs and outputs in the network's order.
        model: a file of a model.
        layout: whose axes the samples have; `auto` tells by their shapes.

    Raises:
        ConfigError: `layout` is `auto`, and the shapes are those of the file and of the Keras model.
        ModelImportError: the file cannot come in.
    """
    return in_layout_of(data, plan_onnx(model), model, layout) if is_onnx(model) else data


def in_layout_of(data: Dataset, network: OnnxNetwork, model: Path, layout: Layout = "auto") -> Dataset:
    """Turn axes as `in_keras_layout`, for the `network` in the ONNX file `model`."""
    turned: dict[str, Any] = {}
    for letter, ends in (("x", network.plan.inputs), ("y", network.plan.outputs)):
        for part in ("train", "test", "valid"):
            samples: Samples | None = getattr(data, f"{letter}_{part}")
            if samples is None or len(arrays_of(samples)) != len(ends):
                continue
            arrays = [
                _turned(array, value.shape, value.axes, layout, f"data {data.name!r}", model)
                for array, value in zip(arrays_of(samples), ends, strict=True)
            ]
            turned[f"{letter}_{part}"] = tuple(arrays) if isinstance(samples, tuple) else arrays[0]
    return replace(data, **turned)


def _turned(
    array: np.ndarray[Any, Any], shape: tuple[int, ...], axes: Sequence[int], layout: Layout, where: str, model: Path
) -> np.ndarray[Any, Any]:
    """Turn the axes of `array` to Keras's, where a sample has `shape`; `axes` are their places in the file, from 1."""
    of_file = tuple(shape[axes.index(axis)] for axis in sorted(axes))
    found, in_order = array.shape[1:], list(axes) == sorted(axes)
    if in_order or found != of_file or layout == "keras":
        return array
    if found == shape and layout == "auto":
        raise ConfigError(
            f"{where} has samples of shape {found}, which may be the channels first of {model} or the channels last of "
            "Keras: say data.layout = 'file' or 'keras'"
        )
    order = [0, *(sorted(axes).index(axis) + 1 for axis in axes)]
    return np.ascontiguousarray(array.transpose(order))
