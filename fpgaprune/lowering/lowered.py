"""Turns a Keras model into a `Design`: fold, ranges, types, layouts, operations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import keras
import numpy as np

from fpgaprune.backends import AP_BACKENDS, VERILOG, faults_of
from fpgaprune.design import Design, Input, warn_of_moved_reuse
from fpgaprune.emulate import emulate
from fpgaprune.errors import DataError, DesignError, HlsError, UnsupportedLayerError
from fpgaprune.lowering.design_of import design_of, outline
from fpgaprune.lowering.exact_types import bits_behind, exact_types, unrounded_inputs
from fpgaprune.lowering.folding import PRODUCTS, fold, quantise_weights
from fpgaprune.lowering.layer_names import names_of, renamed
from fpgaprune.lowering.layer_options import LayerOptions, read_options, with_widths
from fpgaprune.lowering.layout import Layout, settle_layouts
from fpgaprune.lowering.precision import Precision, Types, choose_types, fitting
from fpgaprune.lowering.ranges import Range, Samples, as_inputs, cut_off, observe, require_ranges, trained_types
from fpgaprune.lowering.recurrent_layers import observe_states
from fpgaprune.lowering.table_sizes import require_within_tables, size_problems, table_sizes
from fpgaprune.lowering.weight_origins import WeightOrigins
from fpgaprune.lowering.width_search import Labels, WidthSearch
from fpgaprune.lowering.widths import AutoPrecision, FoundWidths
from fpgaprune.processes import OnStep
from fpgaprune.quantise import exact_type, rounds_channels
from fpgaprune.target import Target, require_target
from fpgaprune.values import Array, FixedType, MaskSet, class_numbers, in_order, real_array

# Samples that are whole multiples of one number, such as pixels, enter with all their bits if these are so many.
_EXACT_INPUT = 16
# An input that a quantiser rounds behind a scale has so many bits more than the quantiser.
_GUARD_BITS = 4


AnyPrecision = Precision | AutoPrecision | FixedType | str
LayerSettings = Mapping[str, Mapping[str, Any]]


def make_design(
    model: keras.Model,
    target: Target,
    data: Samples | Mapping[str, Array] | None = None,
    precision: AnyPrecision | None = None,
    name: str = "network",
    *,
    labels: Labels | None = None,
    layers: LayerSettings | None = None,
) -> Design:
    """Make the `Design` of `model` on `target`; nothing is written.

    Args, errors: as for `to_hls`.

    Examples:
        >>> design = fp.make_design(model, target, x, fp.Precision(weight_bits=6, activation_bits=8))
        >>> design.outputs
        ('dense_softmax',)
    """
    return Lowering(model, data).design(target, precision, name, labels=labels, layers=layers)


@dataclass(frozen=True)
class Lowered:
    """A Keras model as a `Design`, with what was found on the way.

    Attributes:
        design: the network.
        folded: the Keras model that computes the same over the reals, its weights rounded to the design's types.
        free_locks: a mask for each kernel in which weights that are not zero in Keras are zero in hardware.
        search: what the search of precision `auto` found; None without a search.
        notes: one sentence for each reuse factor that differs from the one asked for.
        table_notes: one sentence for each table whose steps cost more than rounding its result does.
    """

    design: Design
    folded: Any
    free_locks: MaskSet
    search: FoundWidths | None
    notes: tuple[str, ...]
    table_notes: tuple[str, ...]


def lower(
    model: keras.Model,
    target: Target,
    data: Samples | Mapping[str, Array] | None,
    precision: AnyPrecision | None,
    name: str,
    *,
    labels: Labels | None = None,
    layers: LayerSettings | None = None,
    results: Path | None = None,
    progress: OnStep | None = None,
) -> Lowered:
    """Return the design of `model` on `target`. Args, errors: as for `to_hls`."""
    return Lowering(model, data).lower(
        target, precision, name, labels=labels, layers=layers, results=results, progress=progress
    )


class Lowering:
    """A model that becomes designs: folded, and observed for samples, once for all of them."""

    def __init__(self, model: keras.Model, data: Samples | Mapping[str, Array] | None) -> None:
        """Take `model`, which must stay as it is, and its samples, as `to_hls` takes them; nothing is computed yet."""
        self.model, self._data = model, data
        self._weights: list[list[Array]] | None = None

    def design(
        self,
        target: Target,
        precision: AnyPrecision | None = None,
        name: str = "network",
        *,
        labels: Labels | None = None,
        layers: LayerSettings | None = None,
    ) -> Design:
        """Return the design on `target`. Args, errors: as for `make_design`."""
        made = self.lower(target, precision, name, labels=labels, layers=layers)
        warn_of_moved_reuse(made.notes)
        return made.design

    @cached_property
    def _folded(self) -> keras.Model:
        return fold(self.model)

    def _with_its_weights(self) -> keras.Model:
        """Return the folded model with the weights that it had before a design put rounded ones in their place."""
        layers = self._folded.layers
        if self._weights is None:
            self._weights = [layer.get_weights() for layer in layers]
        else:
            for layer, values in zip(layers, self._weights, strict=True):
                layer.set_weights(values)
        return self._folded

    @cached_property
    def _samples(self) -> Samples | None:
        names = [tensor.name for tensor in self._folded.inputs]
        samples: Samples | None = in_order(self._data, names, f"model {self.model.name!r}")
        return samples

    @cached_property
    def _observed(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """What each layer gives for the samples, and the states of recurrent layers at every step."""
        folded, samples = self._folded, self._samples
        observed = {} if samples is None else observe(folded, samples)
        return observed, observe_states(folded, observed) if observed else {}

    @cached_property
    def _origins(self) -> WeightOrigins:
        return WeightOrigins.of(self.model, self._folded)

    def lower(
        self,
        target: Target,
        precision: AnyPrecision | None = None,
        name: str = "network",
        *,
        labels: Labels | None = None,
        layers: LayerSettings | None = None,
        results: Path | None = None,
        progress: OnStep | None = None,
    ) -> Lowered:
        """Return the design on `target` and what was found; the folded model of an earlier one gets other weights."""
        require_target(target)
        precision = _precision(precision)
        if target.backend == VERILOG:
            # Our Verilog takes a position after another: it needs neither hls4ml's copies of streams nor its paddings.
            target = replace(target, io_type="io_parallel")
        model = self.model
        if self._data is None and not isinstance(precision, FixedType) and not rounds_channels(model):
            raise HlsError(
                "the ranges of the layers are read from samples: give some hundred as data=..., or one type for "
                "everything as precision='fixed<16,6>'"
            )
        folded, samples = self._with_its_weights(), self._samples
        trained = trained_types(model, folded, samples)
        options = read_options([layer.name for layer in folded.layers], {**trained, **(layers or {})})
        for problem in size_problems(folded, options, layers or {}, target.backend):
            raise HlsError(problem)
        layouts, notes = settle_layouts(folded, target, options)
        for fault in faults_of(outline(folded, layouts, target)):
            raise UnsupportedLayerError(fault)
        # A state must fit at every step, not only at the steps that the layer returns.
        seen, states = self._observed
        observed = seen | states
        require_within_tables(folded, observed)
        ranges = {layer: Range.of(values) for layer, values in observed.items()}
        found = None
        if rounds_channels(folded):
            types = exact_types(folded, _entering(model, folded, precision, options, observed), target.backend)
        else:
            if isinstance(precision, AutoPrecision):
                found = _search(model, folded, target, samples, labels, precision, options, ranges, results, progress)
                widths = {("weight", layer): bits for layer, bits in found.weight_bits.items()}
                widths |= {("activation", layer): bits for layer, bits in found.activation_bits.items()}
                options = with_widths(options, widths)
                precision = Precision(precision.widest, precision.widest, precision.sum_bits)
            types = choose_types(folded, ranges, precision, options, target.backend, observed)
            given = _given(types, precision, options)
            if given and samples is not None:
                observed = observe(cut_off(folded, types), samples) | states
            require_ranges(folded, types, given, observed)
        raws = quantise_weights(folded, types)
        tables = table_sizes(folded, types, options, target.backend, target.io_type)
        sizes = dict(tables.entries)
        design = design_of(folded, types, raws, self._origins.sources, layouts, sizes, target, name)
        design = self._origins.with_phases(design)
        _require_sound(design)
        return Lowered(design, folded, self._origins.free_locks(model, raws), found, notes, tables.notes)


def _precision(given: AnyPrecision | None) -> Precision | AutoPrecision | FixedType:
    if given is None:
        return Precision()
    if not isinstance(given, str):
        return given
    if given == "auto":
        return AutoPrecision()
    try:
        return FixedType.parse(given)
    except DesignError as error:
        raise HlsError(f"precision {given!r} is neither 'auto' nor a type: {error}") from error


def _entering(
    model: keras.Model,
    folded: keras.Model,
    precision: Any,
    options: Mapping[str, LayerOptions],
    observed: Mapping[str, Array],
) -> dict[str, FixedType]:
    """Return the type of each input of a network that rounds its data, but not that input.

    It is the user's; or holds each sample exactly, if few bits do; or has as many bits as an activation.
    """
    unrounded = unrounded_inputs(folded)
    typed = [
        layer
        for layer, own in options.items()
        if own.weight_bits or (layer not in unrounded and (own.types or own.activation_bits))
    ]
    if typed or isinstance(precision, FixedType):
        raise HlsError(
            f"model {model.name!r} rounds its data to types of its own, from which all others follow; leave out "
            + (f"the types and widths of layer {typed[0]!r}" if typed else f"precision {precision}")
        )
    found = {}
    for name in unrounded:
        own = options.get(name, LayerOptions())
        if own.types and "result" in own.types:
            found[name] = own.types["result"]
        elif name in observed:
            least = bits_behind(folded, name) + _GUARD_BITS
            found[name] = _holding(observed[name], own.activation_bits, least, precision)
    return found


def _holding(values: Array, given: int | None, least: int, precision: Precision | AutoPrecision) -> FixedType:
    """Return the type of an input of which `values` are samples: `given` bits wide, or at least `least`."""
    bits = given or max(least, precision.activation_bits if isinstance(precision, Precision) else precision.widest)
    if given is None:
        try:
            exact = exact_type(values)
        except DesignError:
            exact = None
        if exact is not None and exact.width <= max(bits, _EXACT_INPUT):
            return exact
    return fitting(Range.of(values), bits)


def _search(
    model: keras.Model,
    folded: keras.Model,
    target: Target,
    data: Samples | None,
    labels: Labels | None,
    auto: AutoPrecision,
    options: Mapping[str, LayerOptions],
    ranges: Mapping[str, Range],
    results: Path | None,
    progress: OnStep | None,
) -> FoundWidths:
    arrays = as_inputs(folded, data if data is not None else [])
    if labels is not None and not callable(labels) and len(labels) != len(arrays[0]):
        raise DataError(f"there are {len(labels)} labels for {len(arrays[0])} samples; wanted as many of each")
    if labels is not None and not callable(labels):
        labels = _classes(labels, folded, len(arrays[0]))
    some = [array[: auto.samples] for array in arrays]
    x: Any = some if len(some) > 1 else some[0]
    # Strategy and reuse change no bit because accumulators are exact; Vitis stands for a backend that is not emulated.
    backend = target.backend if target.backend in AP_BACKENDS else "Vitis"
    plain = replace(target, backend=backend, strategy="latency", reuse_factor=1)
    copy = fold(model)
    types = choose_types(copy, ranges, Precision(auto.widest, auto.widest, auto.sum_bits), options, backend)
    raws = quantise_weights(copy, types)
    sizes = table_sizes(copy, types, options, backend, target.io_type).entries
    layouts = {layer.name: Layout("latency", 1) for layer in copy.layers if isinstance(layer, PRODUCTS)}
    skeleton = design_of(copy, types, raws, {}, layouts, sizes, plain, "search")
    wanted = renamed(folded, names_of(folded)).predict(x, verbose=0)
    used = labels if labels is None or callable(labels) else np.asarray(labels)[: auto.samples]
    return WidthSearch(folded, ranges, skeleton, x, wanted, used, options, results, progress).run(auto)


def _classes(labels: object, folded: keras.Model, samples: int) -> Array:
    """Return `labels` as class numbers of the outputs of `folded`; unchanged if the outputs are not classes."""
    array = real_array(labels, "labels")
    outputs = [tuple(tensor.shape[1:]) for tensor in folded.outputs]
    if len(outputs) > 1 or outputs[0][-1] == 1:
        return array
    wanted = samples * math.prod(outputs[0][:-1])
    if array.size != wanted:
        raise DataError(
            f"labels have shape {array.shape}; wanted one class number for each output, {wanted} of them: of one-hot "
            "labels take labels.argmax(axis=-1)"
        )
    whole = array.astype(np.int64) if (array == np.rint(array)).all() else array
    return class_numbers(whole, "labels", outputs[0][-1])


def _given(types: Types, precision: Precision | FixedType, options: Mapping[str, LayerOptions]) -> Types:
    """Return the types that the user gave."""
    if isinstance(precision, FixedType):
        return {layer: {role: t for role, t in roles.items() if t == precision} for layer, roles in types.items()}
    return {layer: dict(own.types) for layer, own in options.items() if own.types}


def _require_sound(design: Design) -> None:
    """Check that hls4ml's templates compute what `design` says, as far as this is known for the backend."""
    entries = [
        np.zeros((0, *layer.output_shape), np.float32) for layer in design.layers if isinstance(layer.operation, Input)
    ]
    try:
        emulate(design, entries if len(entries) > 1 else entries[0])
    except UnsupportedLayerError:
        # The emulation does not cover a layer, which may still be right.
        return
    except DesignError as error:
        raise HlsError(f"the project would not compute what is asked for: {error}") from error
