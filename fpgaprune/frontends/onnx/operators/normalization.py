"""`BatchNormalization` of ONNX as that of Keras."""

from __future__ import annotations

import numpy as np

from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.value import Value

_WEIGHTS = ("gamma", "beta", "moving_mean", "moving_variance")


def batch_normalization(step: NodeStep) -> Value:
    """Each channel less its mean, by its deviation, times gamma, plus beta; as a trained network does it."""
    value = step.value()
    if step.settings.get("training_mode", 0) or any(step.is_used[1:]):
        step.refuse("is in training mode; export the network for inference: model.eval()")
    if not step.settings.get("spatial", 1):
        step.refuse("has a mean for each pixel (spatial = 0); wanted one for each channel")
    if value.rank < 2:
        step.refuse("has an input without channels")
    if 1 not in value.axes:
        value = step.plan.whole(value)
    channels = value.size(1)
    weights = {}
    for at, name in enumerate(_WEIGHTS, 1):
        weight = step.weight(at)
        if weight.values.shape != (channels,):
            step.refuse(f"has {name} of shape {weight.values.shape}; wanted ({channels},)")
        weights[name] = step.plan.in_columns(value, weight)
    if np.any(weights["moving_variance"].values < 0):
        step.refuse("has a negative variance")
    settings = {"axis": value.position(1), "epsilon": float(step.settings.get("epsilon", 1e-5))}
    layer = step.plan.add("BatchNormalization", step.name, (value,), value.shape, settings, weights)
    return value.given_by(layer)


OPERATORS: dict[str, Operator] = {"BatchNormalization": batch_normalization}
