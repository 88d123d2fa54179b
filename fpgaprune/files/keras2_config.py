"""The configuration of a model that Keras 2 saved, in the words of Keras 3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# Settings that tf_keras writes for these layers and Keras 3 refuses, with the one value that means what Keras 3 does.
# With any other value they stay, and Keras 3 names them in its refusal.
_AS_KERAS_3: dict[str, tuple[tuple[str, ...], Any]] = {
    "groups": (
        (
            *("DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"),
            *("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"),
        ),
        1,
    ),
    "time_major": (("GRU", "LSTM", "SimpleRNN", "RNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"), False),
    "noise_shape": (("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"), None),
}
# Settings without any effect on what these layers compute.
_WITHOUT_EFFECT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("SeparableConv1D", "SeparableConv2D"), ("kernel_initializer", "kernel_regularizer", "kernel_constraint")
    ),
    **dict.fromkeys(("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"), ("trainable",)),
    "Embedding": ("input_length", "batch_input_shape"),
    "Normalization": ("batch_input_shape",),
}
# Which random numbers an augmentation draws; it draws none where a network is used.
_RANDOM = "rng_type"


def layer_configs(document: object) -> Iterator[dict[str, Any]]:
    """Yield each part of `document` that describes an object: it has `class_name` and `config`."""
    if isinstance(document, dict):
        if isinstance(document.get("class_name"), str) and isinstance(document.get("config"), dict):
            yield document
        for value in document.values():
            yield from layer_configs(value)
    elif isinstance(document, list):
        for value in document:
            yield from layer_configs(value)


def number_from_zero(document: object) -> None:
    """Change references to the results of a Sequential inside `document`: Keras 2 counts its calls from 1."""
    for model in layer_configs(document):
        layers = model["config"].get("layers")
        inner = {
            layer["config"].get("name")
            for layer in (layers if isinstance(layers, list) else [])
            if isinstance(layer, dict) and layer.get("class_name") == "Sequential"
        }
        found = [node for node in _references(model["config"]) if node[0] in inner]
        for name in inner:
            calls = [node for node in found if node[0] == name]
            if calls and min(node[1] for node in calls) == 1:
                for node in calls:
                    node[1] -= 1


def _references(config: Any) -> Iterator[list[Any]]:
    """Yield each `[name, call, tensor, ...]` in the configuration of a model, but not in those of models inside it."""
    rest = [config.get("input_layers"), config.get("output_layers")]
    rest += [layer.get("inbound_nodes") for layer in config.get("layers", []) if isinstance(layer, dict)]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list):
            if len(value) >= 3 and isinstance(value[0], str) and isinstance(value[1], int):
                yield value
            rest += value


def to_keras3(layer: dict[str, Any]) -> None:
    """Change `layer`, the class and the settings of a layer as Keras 2 saves them, into what Keras 3 reads."""
    kind, config = layer["class_name"], layer["config"]
    for key, (kinds, meant) in _AS_KERAS_3.items():
        if kind in kinds and key in config and config[key] == meant:
            del config[key]
    for key in _WITHOUT_EFFECT.get(kind, ()):
        config.pop(key, None)
    if kind.startswith("Random"):
        config.pop(_RANDOM, None)
    if kind == "LeakyReLU" and "alpha" in config:
        config["negative_slope"] = float(config.pop("alpha"))
    if kind == "ThresholdedReLU" and "theta" in config:
        layer["class_name"] = "ReLU"
        config["threshold"] = float(config.pop("theta"))
    axis = config.get("axis")
    if kind == "BatchNormalization" and isinstance(axis, list) and len(axis) == 1:
        config["axis"] = axis[0]
    elif isinstance(axis, list) and len(axis) != 1 and "module" not in layer:
        # Of a layer without a module, Keras 3 drops such a list and takes its default.
        layer |= {"module": "keras.layers", "registered_name": None}
