"""`BatchNormalization` of ONNX as that of Keras."""

from __future__ import annotations

import numpy as np

from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.value import Value

_WEIGHTS = ("gamma", "beta", "moving_mean", "moving_variance")


def batch_normalization(step: NodeStep) -> Value:
    """Return each channel less its mean, by its deviation, times gamma, plus beta; as a trained network does it."""
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
    epsilon = float(step.settings.get("epsilon", 1e-5))
    before, factor = step.before_scale(value)
    if factor is not None and value.axes[-1] == 1 and not np.any(weights["moving_variance"].values + epsilon <= 0):
        # Of a scale and a normalisation one normalisation is left.
        mean, variance = weights["moving_mean"], weights["moving_variance"]
        weights["moving_mean"] = mean.with_values((mean.values / factor).astype(np.float32))
        squared = np.square(factor.astype(np.float64))
        weights["moving_variance"] = variance.with_values(((variance.values + epsilon) / squared).astype(np.float32))
        value, epsilon = before, 0.0
    settings = {"axis": value.position(1), "epsilon": epsilon}
    layer = step.plan.add("BatchNormalization", step.name, (value,), value.shape, settings, weights)
    return value.given_by(layer)


OPERATORS: dict[str, Operator] = {"BatchNormalization": batch_normalization}
