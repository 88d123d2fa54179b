"""A network of another library's layers as one of Keras's own, layer by layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import DesignError, HlsError, UnsupportedLayerError
from fpgaprune.network import activation_in, calls_of, copied, count_uses, described, keras_class, producer, structures
from fpgaprune.quantise.channels import RoundedChannels
from fpgaprune.values import Array, FixedType, MaskSet, named_weights

# Layers of Keras that such networks hold between their own: none has weights, and each is exact in fixed point (an
# average where it divides by a power of two, which a design asks for).
PLAIN = frozenset(
    {
        *("MaxPooling1D", "MaxPooling2D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "Flatten", "Reshape", "Permute"),
        *("AveragePooling1D", "AveragePooling2D", "GlobalAveragePooling1D", "GlobalAveragePooling2D"),
        *("ZeroPadding1D", "ZeroPadding2D", "Cropping1D", "Cropping2D", "UpSampling1D", "UpSampling2D", "ReLU"),
        *("Activation", "Concatenate", "Add", "Subtract", "Multiply", "Maximum", "Minimum"),
        *("Dropout", "SpatialDropout1D", "SpatialDropout2D", "GaussianNoise", "GaussianDropout"),
    }
)
_ACTIVATIONS = ("linear", "relu")


@dataclass
class Rebuild(ABC):
    """The new network as it grows.

    Attributes:
        library: the library whose layers they are.
        found: the new tensor for each old one, by `id`.
        weights: layers and the values that they get once the network is whole.
    """

    library: str
    found: dict[int, Any] = field(default_factory=dict)
    weights: list[tuple[Any, list[Array]]] = field(default_factory=list)

    @abstractmethod
    def converted(self, layer: keras.Layer, given: list[keras.KerasTensor]) -> keras.KerasTensor:
        """Return the new tensor that `layer` makes of the new tensors `given`.

        Raises:
            UnsupportedLayerError: it has no exact counterpart.
        """

    def entered(self, tensor: keras.KerasTensor) -> keras.KerasTensor:
        """Return what the network reads of its new input `tensor`."""
        return tensor

    def build(self, graph: Any, name: str) -> keras.Model:
        """Return the network of `graph`.

        Raises:
            UnsupportedLayerError: a layer has no exact counterpart; the message names it.
        """
        calls = calls_of(graph)
        uses = count_uses(calls)
        entries = []
        for tensor in graph.inputs:
            entry = producer(tensor)
            entries.append(keras.Input(batch_shape=tensor.shape, dtype="float32", name=entry.name))
            self.found[id(tensor)] = self.entered(entries[-1])
        for call in calls:
            layer = call.operation
            if uses[id(layer)] > 1 or not isinstance(layer, keras.layers.Layer):
                raise UnsupportedLayerError(
                    f"{call.key!r} is an operation of keras.ops, or a layer that is called twice; wanted layers, each "
                    "called once"
                )
            given = [self.found[id(tensor)] for tensor in call.inputs]
            try:
                result = self.converted(layer, given)
            except (DesignError, HlsError) as error:
                raise UnsupportedLayerError(f"layer {layer.name!r}: {error}") from error
            self.found[id(call.outputs[0])] = result
        inputs, outputs = structures(graph)
        of_input = {id(old): new for old, new in zip(graph.inputs, entries, strict=True)}
        made = keras.Model(
            keras.tree.map_structure(lambda tensor: of_input.get(id(tensor), tensor), inputs),
            keras.tree.map_structure(lambda tensor: self.found.get(id(tensor), tensor), outputs),
            name=name,
        )
        for layer, values in self.weights:
            layer.set_weights(values)
        return made

    def rounded(self, name: str, kind: FixedType, given: keras.KerasTensor) -> keras.KerasTensor:
        """Return `given` as the type `kind` holds it, by a layer called `name`."""
        layer = RoundedChannels(kind.rounding, kind.overflow, name=name, dtype="float32")
        result = layer(given)
        channels = int(given.shape[-1])
        parts = (kind.width, kind.integer, int(kind.signed))
        self.weights.append((layer, [np.full(channels, part, np.float32) for part in parts]))
        return result

    def copied(self, layer: keras.Layer) -> keras.Layer:
        """Return a copy of a layer of Keras's own.

        Raises:
            UnsupportedLayerError: it is not one of those that are exact.
        """
        known, kind = keras_class(layer), type(layer).__name__
        if known is None or known.__name__ not in PLAIN or layer.weights:
            raise UnsupportedLayerError(
                f"layer {layer.name!r} is a {kind} whose bits {self.library} does not know; use its layer of "
                f"{self.library}'s, or one of {', '.join(sorted(PLAIN))}"
            )
        exact_activation(layer, self.library)
        return copied(layer)


@dataclass(frozen=True)
class ImportedBits:
    """A network whose bits another library has trained, taken over.

    Attributes:
        model: Keras's own layers with the weights that the trained bits leave, and `RoundedChannels` where data are
            rounded. Not compiled.
        masks: False at each weight of a kernel that is zero.
        library: the library, as `HGQ2`.
        notes: what else is to know, a sentence each.
    """

    model: Any
    masks: MaskSet
    library: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: keras.Model, library: str, notes: tuple[str, ...] = ()) -> ImportedBits:
        """Make the result of an import: `model`, with its zeros as masks."""
        kernels: Mapping[str, Any] = {
            path: weight for path, weight in named_weights(model).items() if path.endswith("/kernel")
        }
        masks = MaskSet({path: weight.numpy() != 0 for path, weight in kernels.items()})
        return cls(model, masks, library, notes)

    def to_json(self) -> dict[str, Any]:
        """Return the notes, and how many weights are zero, as JSON data."""
        return {
            "from": self.library,
            "zeros": self.masks.locked_count,
            "weights": self.masks.size,
            "notes": list(self.notes),
        }


def as_float32(values: list[Any]) -> list[Array]:
    """Return `values` as arrays that Keras takes as weights."""
    return [np.asarray(value, np.float32) for value in values]


def exact_activation(layer: keras.Layer, library: str) -> Any:
    """Return the activation of `layer`, a layer of `library` or beside one; fixed point computes it exactly.

    Raises:
        UnsupportedLayerError: it does not.
    """
    known = activation_in(layer)
    if known is None or known.name not in _ACTIVATIONS:
        raise UnsupportedLayerError(
            f"layer {layer.name!r} has activation {described(layer.activation)}, of which {library} trains no exact "
            f"bits; wanted one of {', '.join(_ACTIVATIONS)}"
        )
    return known.name
