"""The configuration of a model that Keras 2 saved, in the words of Keras 3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# Settings that tf_keras writes and Keras 3 refuses: layers that always have one group, and settings of a kernel that
# separable convolutions do not have.
_ONE_GROUP = frozenset({"DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"}) | frozenset(
    {"Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"}
)
_NO_KERNEL = frozenset({"SeparableConv1D", "SeparableConv2D"})
_ABOUT_KERNEL = ("kernel_initializer", "kernel_regularizer", "kernel_constraint")


def layer_configs(document: Any) -> Iterator[dict[str, Any]]:
    """Each part of `document` that describes an object: it has `class_name` and `config`."""
    if isinstance(document, dict):
        if isinstance(document.get("class_name"), str) and isinstance(document.get("config"), dict):
            yield document
        for value in document.values():
            yield from layer_configs(value)
    elif isinstance(document, list):
        for value in document:
            yield from layer_configs(value)


def to_keras3(kind: str, config: dict[str, Any]) -> None:
    """Changes `config`, the settings of a layer of class `kind`, into what Keras 3 reads."""
    if kind in _ONE_GROUP and config.get("groups") == 1:
        del config["groups"]
    if kind in _NO_KERNEL:
        for name in _ABOUT_KERNEL:
            config.pop(name, None)
    if kind == "LeakyReLU" and "alpha" in config:
        config["negative_slope"] = float(config.pop("alpha"))
    if kind == "BatchNormalization" and isinstance(config.get("axis"), list) and len(config["axis"]) == 1:
        config["axis"] = config["axis"][0]
