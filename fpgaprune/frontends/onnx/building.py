"""Makes the Keras model of a `LayerPlan`."""

from __future__ import annotations

from typing import Any

from fpgaprune.errors import ModelImportError
from fpgaprune.files import in_a_line
from fpgaprune.frontends.onnx.layer_plan import LayerPlan


def _class_of(kind: str) -> Any:
    """The class of Keras, or of fpgaprune, that is called `kind`."""
    import keras

    if kind == "RoundedChannels":
        from fpgaprune.quantise import RoundedChannels

        return RoundedChannels
    return getattr(keras.layers, kind)


def build_model(plan: LayerPlan, name: str, path: str) -> Any:
    """The model of `plan`, not compiled.

    Raises:
        ModelImportError: Keras cannot make a layer, or makes it with another shape.
    """
    import keras

    tensors: dict[str, Any] = {}
    made: dict[str, Any] = {}
    for layer in plan.layers.values():
        if layer.kind == "Input":
            tensors[layer.name] = keras.Input(name=layer.name, dtype="float32", **layer.settings)
            continue
        given = [tensors[one] for one in layer.given]
        try:
            made[layer.name] = _class_of(layer.kind)(name=layer.name, dtype="float32", **layer.settings)
            tensors[layer.name] = made[layer.name](given[0] if len(given) == 1 else given)
        except Exception as error:
            # Keras raises anything over settings that it does not take.
            raise ModelImportError(
                f"{path}: Keras makes no {layer.kind} of {layer.name!r}: {in_a_line(error)}"
            ) from error
        found = tuple(tensors[layer.name].shape[1:])
        if found != layer.shape:
            raise ModelImportError(
                f"{path}: the {layer.kind} {layer.name!r} gives the shape {found}; the graph has {layer.shape}"
            )
    ends = [[tensors[value.layer] for value in values] for values in (plan.inputs, plan.outputs)]
    inputs, outputs = (one[0] if len(one) == 1 else one for one in ends)
    model = keras.Model(inputs, outputs, name=name)
    for layer in plan.layers.values():
        if layer.weights and any(layer.name == one.name for one in model.layers):
            made[layer.name].set_weights([parameter.values for parameter in layer.weights.values()])
    return model
