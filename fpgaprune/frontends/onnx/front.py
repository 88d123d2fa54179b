"""The front end of ONNX: a file as a Keras model that computes the same, judged by onnxruntime."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fpgaprune.frontends.loaded import LoadedNetwork, Source, zero_masks
from fpgaprune.frontends.onnx.document import Document, read_document
from fpgaprune.frontends.onnx.graph_walk import plan_network
from fpgaprune.frontends.onnx.judge import judged
from fpgaprune.frontends.onnx.layer_plan import LayerPlan, build_model
from fpgaprune.values import FixedType

FORMAT = "ONNX"
# The names of PyTorch for the weights of a layer of Keras.
_TORCH = {
    "kernel": "weight",
    "bias": "bias",
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
    "alpha": "weight",
}


@dataclass(frozen=True)
class OnnxNetwork:
    """An ONNX file and the layers that it becomes.

    Attributes:
        document: the file.
        plan: the layers.
    """

    document: Document
    plan: LayerPlan

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Weight path to the shape of each weight."""
        layers = self.plan.layers.values()
        return {f"{layer.name}/{kind}": one.values.shape for layer in layers for kind, one in layer.weights.items()}

    @property
    def types(self) -> dict[str, FixedType]:
        """Weight path to the fixed-point type of each weight that a quantiser has rounded."""
        layers = self.plan.layers.values()
        weights = {f"{layer.name}/{kind}": one.kind for layer in layers for kind, one in layer.weights.items()}
        return {path: kind for path, kind in weights.items() if kind is not None}

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Name to the shape of a sample of each input, in Keras."""
        return {value.layer: value.shape for value in self.plan.inputs}

    @property
    def outputs(self) -> tuple[str, ...]:
        """Name of the layer of each output."""
        return tuple(value.layer for value in self.plan.outputs)

    @property
    def classes(self) -> int | None:
        """Number of entries of the only output; None if there are several outputs."""
        return self.plan.outputs[0].shape[-1] if len(self.plan.outputs) == 1 else None

    @property
    def sources(self) -> dict[str, Source]:
        """Weight path to origin; a weight that lost its name in the file has that of PyTorch for its layer."""
        return _sources(self.plan, self.document)


def plan_onnx(path: Path) -> OnnxNetwork:
    """Return the file at `path` and the layers that it becomes; loads neither Keras nor onnxruntime.

    Raises:
        ModelImportError: the file cannot come in; the message names the node and what to do.
    """
    document = read_document(path)
    return OnnxNetwork(document, plan_network(document))


def load_onnx(path: Path, samples: object = None) -> LoadedNetwork:
    """Return the ONNX file at `path` as a Keras model, with its channels last.

    Args:
        path: a file of opset 7 or newer, with float32 inputs of which only the batch is dynamic.
        samples: samples on which it is compared with onnxruntime, besides random ones; in the shapes of Keras.

    Raises:
        ModelImportError: the file is damaged, holds what cannot come in, or Keras computes something else.
    """
    network = plan_onnx(path)
    document, plan = network.document, network.plan
    name = re.sub(r"\W+", "_", document.path.stem, flags=re.ASCII).strip("_") or "network"
    model = build_model(plan, name, str(path))
    difference = judged(document, plan, model, samples)
    kind = "QONNX" if document.is_quantised else FORMAT
    axes = {value.layer: [0, *value.axes] for value in plan.inputs}
    facts: dict[str, Any] = {"opset": document.opset, "input_axes": axes, "producer": document.model.producer_name}
    if document.notes:
        facts["notes"] = list(document.notes)
    return LoadedNetwork(model, zero_masks(model), network.types, network.sources, difference, kind, facts)


def _sources(plan: LayerPlan, document: Document) -> dict[str, Source]:
    sources = {}
    for layer in plan.layers.values():
        for kind, parameter in layer.weights.items():
            if parameter.of_module:
                first, *others = parameter.of_module
                stacked = (first, *others) if others else ()
                sources[f"{layer.name}/{kind}"] = Source(first, parameter.shape, parameter.origin, True, stacked)
            elif parameter.name:
                plain = "::" not in parameter.name
                name = parameter.name if plain else f"{layer.name}.{_TORCH[kind]}"
                shape, origin = parameter.shape, parameter.origin
                if not plain and layer.kind == "Dense" and kind == "kernel" and origin is not None:
                    # PyTorch holds (C_out, C_in), and its exporter transposed that.
                    rows, columns = shape
                    shape, origin = (columns, rows), origin % columns * rows + origin // columns
                # A convolution that lost its name was joined with a BatchNorm.
                stored = document.constants.get(parameter.name)
                is_copy = stored is not None and parameter.origin is not None and stored.size == parameter.origin.size
                if is_copy and stored is not None:
                    is_copy = (plain or layer.kind == "Dense") and np.array_equal(
                        stored.ravel()[parameter.origin], parameter.values
                    )
                sources[f"{layer.name}/{kind}"] = Source(name, shape, origin, is_copy)
    return sources
