"""Finds the outputs of every layer of a model for some data, and checks whether given types hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import keras
import numpy as np

from fpgaprune.errors import DataError, HlsError
from fpgaprune.lowering.folding import PRODUCTS, role_weights
from fpgaprune.lowering.layer_names import free_name, names_of, renamed
from fpgaprune.network import cloned, copied, producer
from fpgaprune.quantise import Rounded, rounded_types
from fpgaprune.values import MAX_WIDTH, Array, FixedType, sample_arrays

Samples = Array | Sequence[Array]

_BATCH = 256


@dataclass(frozen=True)
class Range:
    """The smallest and the largest of some values."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Array) -> Range:
        """Return the range of `values`; 0 to 0 if there are none."""
        return cls(float(values.min()), float(values.max())) if values.size else cls(0.0, 0.0)

    @property
    def magnitude(self) -> float:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    @classmethod
    def with_least_error(cls, values: Array, width: int) -> Range:
        """Return the range of the `width`-bit type that rounds and clips `values` with the least squared error."""
        whole = cls.of(values)
        best = FixedType.with_least_error(values, width, signed=whole.low < 0)
        largest = best.raw_max * best.lsb
        return cls(max(whole.low, -largest), min(whole.high, largest))

    def doubled(self) -> Range:
        """Return the range with both ends twice as far from zero, extended to include zero."""
        return Range(min(2 * self.low, 0.0), max(2 * self.high, 0.0))


def as_inputs(folded: keras.Model, data: Samples) -> list[Array]:
    """Return `data` as one array (N, ...) for each input of `folded`.

    Raises:
        DataError: they do not fit the model, hold NaN or infinity, or there is no sample.
    """
    arrays = sample_arrays(data, [tuple(tensor.shape[1:]) for tensor in folded.inputs], f"model {folded.name!r}")
    if not len(arrays[0]):
        raise DataError("there are no samples; the ranges of the layers are read from them: give some hundred")
    return arrays


def observe(folded: keras.Model, data: Samples) -> dict[str, Array]:
    """Compute the output of each layer for `data`, (N, ...), by layer name; inputs are included.

    Args:
        folded: what `prepare.fold` returned.
        data: samples (N, ...), or one such array for each input.

    Raises:
        DataError: as for `as_inputs`.
        HlsError: `folded` has only input layers.
    """
    arrays = as_inputs(folded, data)
    layers = [layer for layer in folded.layers if not isinstance(layer, keras.layers.InputLayer)]
    if not layers:
        raise HlsError(f"model {folded.name!r} has no layer that computes anything: there is nothing to build")
    own = names_of(folded)
    computing = renamed(folded, own)
    # The model is called directly, because `predict` would first compile a function for this one call.
    network = keras.Model(computing.inputs, [computing.get_layer(own[layer.name]).output for layer in layers])
    parts = []
    for start in range(0, len(arrays[0]), _BATCH):
        batch = [array[start : start + _BATCH] for array in arrays]
        given = network(batch, training=False)
        parts.append([np.asarray(array) for array in (given if isinstance(given, list | tuple) else [given])])
    seen = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
    names = [producer(tensor).name for tensor in folded.inputs]
    return dict(zip((*names, *(layer.name for layer in layers)), (*arrays, *seen), strict=True))


def cut_off(folded: keras.Model, types: Mapping[str, Mapping[str, FixedType]]) -> keras.Model:
    """Copy `folded` with results that end where their types saturate, so that later sums are those of the hardware."""
    taken = {layer.name for layer in folded.layers}

    def call(layer: keras.Layer, *args: object, **kwargs: object) -> keras.KerasTensor:
        output = layer(*args, **kwargs)
        kind = types.get(layer.name, {}).get("result")
        if kind is None or kind.overflow == "WRAP":
            return output
        taken.add(name := free_name(f"{layer.name}_cut_off", taken))
        return Rounded({"result": str(kind)}, name=name)(output)

    return cloned(folded, copied, call)


def trained_types(model: keras.Model, folded: keras.Model, data: Samples | None) -> dict[str, dict[str, FixedType]]:
    """Return the types of `model`, which rounds, by layer and role; sums that grew in training have more integer bits.

    As with types that are chosen, a sum has one bit more than `data` show. Without data, and in a model that does not
    round, nothing grows.
    """
    types = rounded_types(model)
    if not types or data is None:
        return types
    observed = observe(cut_off(folded, types), data)
    for layer in folded.layers:
        kind = types.get(layer.name, {}).get("result")
        if kind is not None and kind.overflow == "WRAP" and isinstance(layer, PRODUCTS):
            needed = FixedType.holding(Range.of(observed[layer.name]).doubled().magnitude, kind.width)
            more = min(max(needed.integer - kind.integer, 0), MAX_WIDTH - kind.width)
            types[layer.name]["result"] = replace(kind, width=kind.width + more, integer=kind.integer + more)
    return types


def require_ranges(
    folded: keras.Model,
    types: Mapping[str, Mapping[str, FixedType]],
    given: Mapping[str, Mapping[str, FixedType]],
    observed: Mapping[str, Array],
) -> None:
    """Check that no type of the user's lets a weight or an observed value wrap around; a saturating type is allowed.

    Args:
        folded: what `prepare.fold` returned, before its weights are quantised.
        types: all types.
        given: layer name to role to type, for the types that the user gave.
        observed: what `observe` returned, and for recurrent layers what `observe_states` returned; if it is empty,
            results are not checked.

    Raises:
        HlsError: values overflow a type; the message says in which layer, how often and on what data.
    """
    for name, roles in given.items():
        layer = folded.get_layer(name)
        weights = role_weights(layer) if isinstance(layer, PRODUCTS) else {}
        for role in roles:
            kind = types[name][role]
            if role in weights:
                _require(name, role, weights[role], kind, f"{weights[role].size} weights of the model")
            elif role in ("result", "accum") and name in observed:
                values = observed[name]
                _require(name, role, values, kind, f"{values.size} values on {len(values)} samples")


def _require(layer: str, role: str, values: Array, kind: FixedType, where: str) -> None:
    if kind.overflow != "WRAP":
        return
    low, high = kind.raw_min * kind.lsb, kind.raw_max * kind.lsb
    # Up to half a unit beyond an end is rounded, and does not overflow.
    beyond = (values < low - kind.lsb / 2) | (values > high + kind.lsb)
    count = int(beyond.sum())
    if not count:
        return
    worst = float(values.flat[int(np.argmax(np.abs(np.where(beyond, values, 0.0))))])
    sample = f" (sample {int(np.argwhere(beyond)[0][0])} is the first)" if role in ("result", "accum") else ""
    raise HlsError(
        f"layer {layer!r}: {count} of {where} overflow its {role} type {kind}, which holds {low:g} to {high:g}, up to "
        f"{worst:.4g}{sample}; give it more integer bits, or let it saturate (SAT)"
    )
