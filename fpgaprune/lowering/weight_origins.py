"""`WeightOrigins`: the weight of the Keras model from which each weight of a design comes, and where it lies there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import keras

from fpgaprune.design import Convolution, Design
from fpgaprune.lowering.flattening import flattened, layer_owners, owner_of
from fpgaprune.lowering.plain_convolutions import SEPARABLE, depthwise_names
from fpgaprune.lowering.transposed_convolutions import TRANSPOSED, phases_of
from fpgaprune.values import Array, MaskSet, gathered, named_weights

_ROLES = {
    "recurrent_kernel": "recurrent_weight",
    **dict.fromkeys(("kernel", "depthwise_kernel", "pointwise_kernel"), "weight"),
    "bias": "bias",
    "gamma": "scale",
    "beta": "bias",
}


@dataclass(frozen=True)
class WeightOrigins:
    """The origins of the weights of a network.

    Attributes:
        sources: layer name to role to weight path, for the layers whose kernel reaches the hardware.
        phases: name of each transposed convolution to its strides.
    """

    sources: Mapping[str, Mapping[str, str]]
    phases: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, model: keras.Model, folded: keras.Model) -> WeightOrigins:
        """Return those of `folded`, which `fold` made of `model`."""
        halves: Mapping[str, str] = {}
        phases: Mapping[str, tuple[int, ...]] = {}
        # A flat model is a copy of all layers.
        if any(isinstance(layer, (*SEPARABLE, *TRANSPOSED)) for layer in model._flatten_layers()):
            flat = flattened(model)
            halves, phases = depthwise_names(flat), phases_of(flat)
        layers, owners = {layer.name: layer for layer in folded.layers}, layer_owners(model)
        sources: dict[str, dict[str, str]] = {}
        for path in named_weights(model):
            # The weights of a recurrent layer belong to the cell inside it: `gru/gru_cell/kernel`.
            layer, variable = owner_of(path, owners), path.rpartition("/")[2]
            if layer is None:
                continue
            if variable == "bias" and isinstance(layers.get(layer), keras.layers.GRU):
                sources.setdefault(layer, {})["recurrent_bias"] = path
            if variable == "depthwise_kernel":
                layer = halves.get(layer, layer)
            if layer in layers and variable in _ROLES:
                sources.setdefault(layer, {})[_ROLES[variable]] = path
        return cls(sources, phases)

    def with_phases(self, design: Design) -> Design:
        """Say of each convolution that computes a transposed one which strides that has."""
        layers = tuple(
            replace(layer, operation=replace(layer.operation, phases=self.phases[layer.name]))
            if layer.name in self.phases and isinstance(layer.operation, Convolution)
            else layer
            for layer in design.layers
        )
        return replace(design, layers=layers) if self.phases else design

    def free_locks(self, model: keras.Model, raws: Mapping[str, Mapping[str, Array]]) -> MaskSet:
        """Return a mask for each kernel of `model` of which weights that are not zero are zero in `raws`."""
        weights = named_weights(model)
        masks = {}
        for layer, roles in raws.items():
            for role in ("weight", "recurrent_weight"):
                path = self.sources.get(layer, {}).get(role)
                if path is None:
                    continue
                kernel = weights[path].numpy()
                vanished = (kernel != 0) & (gathered(roles[role], kernel.shape, self.phases.get(layer)) == 0)
                if vanished.any():
                    masks[path] = ~vanished
        return MaskSet(masks)
