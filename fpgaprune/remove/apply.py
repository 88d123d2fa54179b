"""`apply_removal` makes the small model that a plan describes."""

from __future__ import annotations

import keras

from fpgaprune.errors import RemovalError, require_kind
from fpgaprune.remove.plan import RemovalPlan
from fpgaprune.remove.planning import weights_digest
from fpgaprune.remove.rebuilding import rebuild
from fpgaprune.values import named_weights


def apply_removal(model: keras.Model, plan: RemovalPlan, *, dtype: str | None = None) -> keras.Model:
    """Remove the channels of `plan`: return a new functional model; `model` is unchanged.

    Layers keep their names. The new model is not compiled. Constants are folded in float64 and rounded once to each
    weight's dtype. With float32 weights, each changed bias is therefore the nearest float32; to show exactness, compare
    the model of `dtype="float64"`, which stores them unrounded.

    Args:
        model: the model that the plan was made for, with the same weights.
        plan: from `plan_removal`.
        dtype: dtype of the new model, such as "float64"; None keeps that of each layer.

    Raises:
        RemovalError: the plan was made for other weights, or a layer cannot be made again from its config.

    Examples:
        >>> _ = model.get_layer("conv1").kernel.assign(model.get_layer("conv1").kernel * [1, 0, 1, 1])
        >>> small = fp.apply_removal(model, fp.plan_removal(model))
        >>> tuple(small.get_layer("conv1").kernel.shape)
        (3, 3, 1, 3)
    """
    require_kind(model, keras.Model, RemovalError, "model", "a Keras model")
    require_kind(plan, RemovalPlan, RemovalError, "plan", "a RemovalPlan, as fp.plan_removal gives")
    weights = named_weights(model) if model.weights else {}
    if weights_digest(weights) != plan.digest:
        raise RemovalError(
            f"the plan was made for other weights than model {model.name!r} has now; plan the removal again"
        )
    return rebuild(model, plan, dtype)
