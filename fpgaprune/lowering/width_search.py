"""Searches, for precision `auto`, the cheapest widths of weights and activations within a stated loss.

The cost of a layer is its multiplications by weights other than zero x bits of a weight x bits of an input. The loss of
a choice is measured by emulating the hardware on samples. The search first lowers all widths together, as far as the
loss allows, then one width at a time, always the one that saves most. A width that cannot be lowered is not tried
again until another width was lowered. The search needs about as many emulations as it saves bits. At its end no single
width can be lowered further, but a cheaper choice may exist elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np

from fpgaprune import __version__
from fpgaprune.design import Design, LayerSpec
from fpgaprune.emulate import emulate
from fpgaprune.errors import HlsError
from fpgaprune.lowering.folding import PRODUCTS, role_weights
from fpgaprune.lowering.known_losses import KnownLosses, question_of
from fpgaprune.lowering.layer_options import LayerOptions, with_widths
from fpgaprune.lowering.precision import Precision, Types, choose_types, read_by_products
from fpgaprune.lowering.ranges import Range, Samples
from fpgaprune.lowering.recurrent_layers import RECURRENT
from fpgaprune.lowering.widths import AutoPrecision, FoundWidths
from fpgaprune.measure import share_lost
from fpgaprune.network import producer
from fpgaprune.processes import OnStep
from fpgaprune.values import Array

# The search begins with this width; most networks lose little with it.
_USUAL_BITS = 8
_ROLES = ("weight", "activation")
# Class numbers (N,), or a function of Keras's outputs and the hardware's that returns a loss and its standard error.
Labels = Array | Callable[[Any, Any], tuple[float, float]]


class WidthSearch:
    """One search: the model, the samples, and a design whose types can be exchanged.

    Args:
        folded: the model from `prepare.fold`, with weights that are not quantised.
        ranges: layer name to the range of its output.
        skeleton: a design of `folded` with any types, for a backend that is emulated.
        data: samples (N, ...).
        wanted: outputs of `folded` for them in floating point.
        labels: class numbers (N,), or a function of `wanted` and the hardware's outputs that returns a loss and its
            standard error. With None the loss counts samples whose class is not that of Keras.
        options: widths and types that the user gave; these are not searched.
        results: a JSON file for each measured loss; a search that was killed continues from it.
        progress: called with `(done, total, note)` after each emulation; the total is the least number of emulations.
    """

    def __init__(
        self,
        folded: keras.Model,
        ranges: Mapping[str, Range],
        skeleton: Design,
        data: Samples,
        wanted: object,
        labels: Labels | None,
        options: Mapping[str, LayerOptions],
        results: Path | None = None,
        progress: OnStep | None = None,
    ) -> None:
        self.folded, self.ranges, self.skeleton, self.data = folded, ranges, skeleton, data
        self.options = options
        self.weights = {layer.name: role_weights(layer) for layer in folded.layers if isinstance(layer, PRODUCTS)}
        self.measure, self._loss = _loss(wanted, labels)
        self.evaluations = 0
        self._known = KnownLosses(results, self._question(wanted, labels) if results else "")
        self._progress = progress

    def run(self, auto: AutoPrecision) -> FoundWidths:
        """Return the cheapest widths within the loss.

        Raises:
            HlsError: the loss is too large even with the widest types.
        """
        places = self._places()
        uniform, loss = self._uniform(places, auto)
        widths = dict.fromkeys(places, uniform)
        cost = uniform_cost = self._cost(self._types(widths, auto))
        open_places = {place for place in places if uniform > auto.narrowest}
        refused: set[tuple[str, str]] = set()
        while open_places:
            tries = {place: widths | {place: widths[place] - 1} for place in sorted(open_places)}
            costs = {place: self._cost(self._types(choice, auto)) for place, choice in tries.items()}
            best = min(costs, key=lambda place: (costs[place], place))
            tried = self._loss_of(tries[best], auto, len(open_places))
            open_places.discard(best)
            if not tried.within(auto):
                refused.add(best)
                continue
            widths, cost, loss = tries[best], costs[best], tried
            # A width that was refused may be allowed now that another is lower.
            open_places |= {place for place in {best, *refused} if widths[place] > auto.narrowest}
            refused.clear()
        bits = {role: {name: w for (r, name), w in sorted(widths.items()) if r == role} for role in _ROLES}
        return FoundWidths(
            self.measure,
            loss.value,
            loss.error,
            len(self.data[0] if isinstance(self.data, list | tuple) else self.data),
            self.evaluations,
            cost,
            uniform_cost,
            uniform,
            bits["weight"],
            bits["activation"],
        )

    def _uniform(self, places: list[tuple[str, str]], auto: AutoPrecision) -> tuple[int, _Loss]:
        """Return the smallest width that all layers can have together, and its loss."""
        start = min(max(_USUAL_BITS, auto.narrowest), auto.widest)
        found: tuple[int, _Loss] | None = None
        for bits in (*range(start, auto.narrowest - 1, -1), *range(start + 1, auto.widest + 1)):
            if found and bits > found[0]:
                break
            loss = self._loss_of(dict.fromkeys(places, bits), auto, len(places))
            if loss.within(auto):
                found = bits, loss
                if bits > start:
                    break
            elif found:
                break
        if found is None:
            raise HlsError(
                f"with {auto.widest} bits everywhere the loss is {loss.value:.2%} with a standard error of "
                f"{loss.error:.2%}, together over "
                f"{auto.max_loss_fraction:.2%} ({self.measure}): give more samples, allow more "
                "loss or wider types, or train with less extreme weights"
            )
        return found

    def _places(self) -> list[tuple[str, str]]:
        """Return role and layer of every width that is searched."""
        places = []
        read = read_by_products(self.folded)
        for layer in self.folded.layers:
            own = self.options.get(layer.name, LayerOptions())
            given = own.types or {}
            if isinstance(layer, PRODUCTS) and own.weight_bits is None and "weight" not in given:
                places.append(("weight", layer.name))
            is_softmax = getattr(layer, "activation", None) is keras.activations.softmax
            rounds = isinstance(layer, _ROUNDED) or layer.name in read
            if rounds and not is_softmax and own.activation_bits is None and "result" not in given:
                places.append(("activation", layer.name))
        return places

    def _types(self, widths: Mapping[tuple[str, str], int], auto: AutoPrecision) -> Types:
        options = with_widths(self.options, widths)
        precision = Precision(auto.widest, auto.widest, auto.sum_bits)
        return choose_types(self.folded, self.ranges, precision, options, self.skeleton.backend or "Vitis")

    def _loss_of(self, widths: Mapping[tuple[str, str], int], auto: AutoPrecision, still_open: int) -> _Loss:
        """Return the loss of the metric with these widths, of which `still_open` may be lowered further."""
        self.evaluations += 1
        known = self._known.get(widths)
        loss = _Loss(*known) if known else self._measured(self._types(widths, auto))
        if not known:
            self._known.add(widths, loss.value, loss.error)
        if self._progress is not None:
            note = f"search of widths: {sum(widths.values())} bits in {len(widths)} types, loss {loss.value:.2%}"
            self._progress(self.evaluations, self.evaluations + still_open - 1, note)
        return loss

    def _measured(self, types: Types) -> _Loss:
        return self._loss(emulate(retyped(self.skeleton, types, self.weights), self.data))

    def _question(self, wanted: Any, labels: Labels | None) -> str:
        """Return a digest of everything that a loss depends on, except the widths."""
        data, outputs = (list(given) if isinstance(given, list | tuple) else [given] for given in (self.data, wanted))
        truth: list[Any] = [] if labels is None or callable(labels) else [np.asarray(labels)]
        if callable(labels):
            # A function has no digest; its loss for wrong outputs distinguishes it, and its labels, from others.
            shifted = [np.roll(array, 1, axis=0) for array in outputs]
            truth = [np.asarray(labels(wanted, tuple(shifted) if len(shifted) > 1 else shifted[0]), np.float64)]
        weights = [array for _, roles in sorted(self.weights.items()) for _, array in sorted(roles.items())]
        texts = [__version__, self.measure, repr(sorted(self.ranges.items())), repr(sorted(self.options.items()))]
        return question_of([*texts, self.folded.to_json()], [*data, *outputs, *truth, *weights])

    def _cost(self, types: Types) -> int:
        total = 0
        for layer in self.folded.layers:
            if isinstance(layer, PRODUCTS):
                read = {"weight": types[producer(layer.input).name]["result"]}
                if isinstance(layer, RECURRENT):
                    read["recurrent_weight"] = types[layer.name]["result"]
                for role, incoming in read.items():
                    kind = types[layer.name][role]
                    kept = np.count_nonzero(kind.to_raw(self.weights[layer.name][role]))
                    total += int(kept) * kind.width * incoming.width
        return total


_ROUNDED = (
    *(keras.layers.InputLayer, keras.layers.Activation, keras.layers.ReLU, keras.layers.LeakyReLU),
    *(keras.layers.ELU, keras.layers.PReLU, keras.layers.AveragePooling1D, keras.layers.AveragePooling2D),
    *(keras.layers.GlobalAveragePooling1D, keras.layers.GlobalAveragePooling2D),
    *RECURRENT,
)


def retyped(design: Design, types: Types, weights: Mapping[str, Mapping[str, Array]]) -> Design:
    """Return `design` with other types, and its weights quantised again from floats.

    Layers that hls4ml added (copies, paddings) have the type of their input.

    Args:
        design: a design of the same network.
        types: layer name to role to type.
        weights: layer name to role to the float weights, for layers whose weight type changes.
    """
    layers: dict[str, LayerSpec] = {}
    for layer in design.layers:
        given = types.get(layer.name)
        if given is None:
            kinds = dict(layer.types) | {"result": layers[layer.inputs[0]].types["result"]}
            layers[layer.name] = replace(layer, types=kinds)
            continue
        kinds = dict(layer.types) | {role: kind for role, kind in given.items() if role in layer.types}
        raws = dict(layer.weights) | {
            role: kinds[role].to_raw(values).reshape(layer.weights[role].shape)
            for role, values in weights.get(layer.name, {}).items()
        }
        layers[layer.name] = replace(layer, types=kinds, weights=raws)
    return replace(design, layers=tuple(layers.values()))


@dataclass(frozen=True)
class _Loss:
    """A loss and its standard error."""

    value: float
    error: float = 0.0

    def within(self, auto: AutoPrecision) -> bool:
        """Return whether the loss, plus the spare standard errors, is allowed."""
        return self.value + auto.spare * self.error <= auto.max_loss_fraction


def _loss(wanted: Any, labels: Labels | None) -> tuple[str, Callable[[Any], _Loss]]:
    """Return the meaning of the loss, in words, and a function from the hardware's outputs to their loss."""
    if callable(labels):
        judge = labels
        return "loss of the metric against Keras", lambda outputs: _Loss(*judge(wanted, outputs))
    if isinstance(wanted, list | tuple) or wanted.shape[-1] == 1:
        references = [
            np.asarray(array, np.float64) for array in (wanted if isinstance(wanted, list | tuple) else [wanted])
        ]
        scales = [float(np.sqrt(np.mean(reference**2))) or 1.0 for reference in references]

        def error(outputs: object) -> _Loss:
            given = outputs if isinstance(outputs, tuple) else (outputs,)
            pairs = zip(given, references, scales, strict=True)
            return _Loss(max(float(np.sqrt(np.mean((a.reshape(b.shape) - b) ** 2))) / scale for a, b, scale in pairs))

        return "root mean square error of the outputs against Keras, over their own", error
    classes = wanted.argmax(axis=-1)
    right = np.ones(classes.shape, dtype=bool)
    truth = classes
    if labels is not None:
        truth = np.asarray(labels).reshape(classes.shape)
        right = classes == truth

    def lost(outputs: Any) -> _Loss:
        return _Loss(*share_lost(right, outputs.reshape(wanted.shape).argmax(axis=-1) == truth))

    if labels is None:
        return "share of samples with another class than Keras gives", lost
    return f"accuracy lost against the {right.mean():.2%} of Keras", lost
