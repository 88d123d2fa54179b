"""`quantize` makes a network that rounds in Keras as its hardware does, so that training can correct the errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import keras
import numpy as np

from fpgaprune.design import SELU_SCALE, Design, LayerSpec, LookUp, Recurrent, Softmax
from fpgaprune.errors import HlsError, UnsupportedLayerError
from fpgaprune.lowering.design_of import single_scale_and_shift
from fpgaprune.lowering.flattening import flattened, layer_owners, owner_of
from fpgaprune.lowering.folding import DEPTHWISE, fold, quantise_weights
from fpgaprune.lowering.lowered import AnyPrecision, LayerSettings, make_design
from fpgaprune.lowering.plain_convolutions import depthwise_names
from fpgaprune.lowering.precision import AVERAGES, MOVES, SCALE_COLUMNS, Precision, scaled_bits
from fpgaprune.lowering.ranges import Samples, trained_types
from fpgaprune.lowering.recurrent_layers import RECURRENT
from fpgaprune.lowering.transposed_convolutions import phases_of
from fpgaprune.lowering.width_search import Labels
from fpgaprune.network import copied, producer
from fpgaprune.quantise import ROUNDED, Rounded, is_rounded, rounded_types, unrounded
from fpgaprune.target import Target
from fpgaprune.values import Array, FixedType, MaskSet, spread, weight_arrays, weight_shapes

# float32 holds all whole numbers of at most this many bits.
_FLOAT32_BITS, _FLOAT64_BITS = 24, 53
_ROLES = (
    *("weight", "bias", "recurrent_weight", "recurrent_bias"),
    *("scale", "param", "table", "result"),
)


def quantize(
    model: keras.Model,
    target: Target,
    data: Samples,
    precision: AnyPrecision | None = None,
    *,
    labels: Labels | None = None,
    layers: LayerSettings | None = None,
) -> keras.Model:
    """Make a model with the weights of `model` that computes in Keras what its hardware computes.

    It trains like any other model: `fp.finetune(quantize(model, ...), masks, x, y)` keeps the same locks, and
    `make_design` and `to_hls` read the types from it. Its outputs are those of `emulate` bit for bit, up to 24 bits; a
    softmax of Catapult or oneAPI is exact here and rounded once. BatchNorm, folded into the layer before it or by
    itself, no longer trains, and nothing is dropped out. A separable convolution becomes two layers. If `precision`
    gives widths, types cut off the few largest values if that makes the squared error smaller, and sums may grow in
    training: they do not wrap around here, and their types in the hardware get more integer bits.

    Args:
        model: a Keras model.
        target: part, clock, backend, io type, strategy, reuse.
        data: samples (N, ...), or one such array for each input, that show the range of every layer.
        precision: as for `to_hls`: `Precision`, or `"auto"` for widths searched to a stated loss.
        labels: as for `to_hls`.
        layers: as for `to_hls`.

    Raises:
        UnsupportedLayerError: a layer cannot be rounded; the message names it.
        HlsError: as `to_hls`, or `model` is rounded already.

    Examples:
        >>> rounded = fp.quantize(model, target, x, fp.Precision(weight_bits=4, activation_bits=8))
        >>> rounded.compile("adam", "sparse_categorical_crossentropy")
        >>> _ = fp.finetune(rounded, fp.select(rounded, 0.5), x, y)
    """
    require_exact_sums(precision)
    folded = require_roundable(model)
    if precision is None or isinstance(precision, Precision):
        precision = replace(precision or Precision(), clips=True)
    design = make_design(model, target, data, precision, labels=labels, layers=layers)
    return _rounding(folded, design)


def require_exact_sums(precision: AnyPrecision | None) -> None:
    """Check that `precision` gives every sum a type that holds it.

    Raises:
        HlsError: it does not.
    """
    if isinstance(precision, FixedType) or (isinstance(precision, str) and precision != "auto"):
        raise HlsError(
            f"precision is {precision}, one type for every sum too, which then rounds and overflows; give "
            "Precision(...) or 'auto', with which sums are exact"
        )


def require_roundable(model: keras.Model) -> keras.Model:
    """Return the model that `fold` makes of `model`; each of its layers can be rounded.

    Raises:
        UnsupportedLayerError: a layer cannot be rounded; the message names it.
        HlsError: `model` is rounded already.
    """
    if is_rounded(model):
        raise HlsError(f"model {model.name!r} rounds already; quantize the model that it was made from")
    return fold(model)


def carry_masks(model: keras.Model, rounded: keras.Model, masks: MaskSet) -> MaskSet:
    """Carry `masks` of `model` over to `rounded`, which `quantize` made of it.

    A kernel keeps its locks, and so do the zero elements of a vector; into the others BatchNorm's shift was folded. The
    zeros between the taps, outside the groups and beside the phases of a kernel that `fold` spread are locked, too.
    """
    functional = flattened(model)
    halves, owners, phases = depthwise_names(functional), layer_owners(model), phases_of(functional)
    weights, carried = weight_arrays(rounded), {}
    # The weights of a recurrent layer belong to the cell inside it: `gru/gru_cell/kernel`.
    paths = {(path.partition("/")[0], path.rpartition("/")[2]): path for path in weights}
    for path, shape in weight_shapes(model).items():
        layer, name = owner_of(path, owners), path.rpartition("/")[2]
        strides = phases.get(layer or "")
        if layer in halves and name != "bias":
            layer, name = halves[layer] if name == "depthwise_kernel" else layer, "kernel"
        own = path if layer is None else paths.get((layer, name))
        if own is None or own not in weights:
            continue
        wanted, mask = weights[own].shape, masks.get(path, np.ones(shape, bool))
        if mask.ndim == 1:
            # The filters of a transposed convolution are there once for each phase.
            mask = np.tile(mask, wanted[0] // len(mask)) | (weights[own] != 0)
        elif name == "kernel" and (strides or shape != wanted):
            mask = spread(mask, wanted, strides)
        if path in masks or (len(shape) > 1 and not mask.all()):
            carried[own] = mask
    return MaskSet(carried)


def settle(rounded: keras.Model) -> keras.Model:
    """Return a new model of Keras's own layers, with the weights that the hardware of `rounded` holds."""
    plain, types = unrounded(rounded), rounded_types(rounded)
    quantise_weights(plain, types)
    for layer in plain.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            kinds = [types[layer.name][role] for role in ("scale", "bias")]
            _set_scale(layer, *map(_held, single_scale_and_shift(layer), kinds))
        elif isinstance(layer, keras.layers.PReLU):
            layer.alpha.assign(_held(layer.alpha, types[layer.name]["param"]))
    return plain


def settled_types(rounded: keras.Model, data: Samples) -> dict[str, dict[str, str]]:
    """Return types as text, by layer and role, for the hardware of `rounded` as trained now; `data` show its sums."""
    types = trained_types(rounded, fold(rounded), data)
    return {layer: {role: str(kind) for role, kind in kinds.items()} for layer, kinds in types.items()}


def _rounding(folded: keras.Model, design: Design) -> keras.Model:
    """Round every weight and result of `folded` to its type in `design`; layers that `design` lacks change nothing."""
    specs = {layer.name: layer for layer in design.layers}
    types_of = {name: layer.types for name, layer in specs.items()}

    def incoming_of(layer: keras.Layer) -> FixedType:
        """Return the type of the first input of `layer`."""
        first = producer(layer.input[0] if isinstance(layer.input, list) else layer.input)
        return types_of[first.name]["result"] if first.name in types_of else incoming_of(first)

    def clone(layer: keras.Layer) -> keras.Layer:
        if isinstance(layer, keras.layers.ReLU):
            return copied(layer, threshold=float(_held(layer.threshold, types_of[layer.name]["param"])))
        rounding = _counterpart(layer, specs)
        if rounding is None:
            return copied(layer)
        types = {role: kind for role, kind in types_of[layer.name].items() if role in _ROLES}
        incoming, operation = incoming_of(layer), specs[layer.name].operation
        own: dict[str, Any] = {"types": types}
        if "scale" in types or "param" in types:
            _require_exact_scale(layer, types, incoming)
        if isinstance(layer, AVERAGES):
            own["fraction"] = incoming.fraction
        elif isinstance(layer, keras.layers.LeakyReLU):
            own["negative_slope"] = float(_held(layer.negative_slope, types["param"]))
        elif isinstance(layer, RECURRENT):
            own |= _recurrent(specs[layer.name])
        elif isinstance(operation, LookUp):
            own |= _look_up(operation, types, incoming)
        elif isinstance(operation, Softmax):
            tables = {role: kind for role, kind in types_of[layer.name].items() if role != "result"}
            own |= {"tables": {**tables, "input": incoming}, "sizes": asdict(operation)}
        elif "weight" in types:
            own["sum_dtype"] = _sum_dtype(layer, types, incoming)
        config = {"name": layer.name} if isinstance(operation, Softmax) else layer.get_config()
        return rounding.from_config({**config, **own})

    def call(layer: keras.Layer, *args: object, **kwargs: object) -> keras.KerasTensor:
        given = keras.tree.map_structure(entered, args)
        if layer.name not in types_of:
            # The hardware lacks a reshaping where the values come in the same order.
            return layer(*given) if isinstance(layer, MOVES) else given[0]
        output = layer(*given, **kwargs)
        original = folded.get_layer(layer.name)
        kind, incoming = types_of[layer.name]["result"], incoming_of(original)
        if _counterpart(original, specs) or (isinstance(original, MOVES) and kind == incoming):
            return output
        return Rounded({"result": kind}, name=f"{layer.name}_rounded")(output)

    def entered(value: object) -> Any:
        return rounded_inputs.get(id(value), value)

    inputs = [keras.Input(batch_shape=t.shape, dtype=t.dtype, name=t.name) for t in folded.inputs]
    rounded_inputs = {
        id(entry): Rounded({"result": types_of[entry.name]["result"]}, name=f"{entry.name}_rounded")(entry)
        for entry in inputs
    }
    model = keras.models.clone_model(folded, inputs, clone_function=clone, call_function=call)
    for layer in folded.layers:
        if layer.name not in types_of:
            continue
        if isinstance(layer, keras.layers.BatchNormalization):
            _set_scale(model.get_layer(layer.name), *single_scale_and_shift(layer))
        elif layer.weights:
            model.get_layer(layer.name).set_weights(layer.get_weights())
    return model


def _counterpart(layer: keras.Layer, specs: Mapping[str, LayerSpec]) -> Any:
    """Return the class that rounds in place of `layer`; None where another layer rounds what it gives."""
    if type(layer) not in ROUNDED or layer.name not in specs:
        return None
    operation = specs[layer.name].operation
    if isinstance(operation, Softmax):
        # Other backends have a softmax of their own, whose bits are not known.
        return ROUNDED[keras.layers.Softmax] if "inp_norm" in specs[layer.name].types else None
    looks_up = not isinstance(layer, keras.layers.Activation) or isinstance(operation, LookUp)
    return ROUNDED[type(layer)] if looks_up else None


def _held(values: Any, kind: FixedType) -> Array:
    """Return `values` as hardware holds them."""
    return kind.to_float(kind.to_raw(np.asarray(values, np.float64)))


def _sum_dtype(layer: keras.Layer, types: Mapping[str, FixedType], incoming: FixedType) -> str:
    """Return float32 if it holds every sum that any weights of this type can make, else float64."""
    weight, bias = types["weight"], types.get("bias")
    shape = layer.kernel.shape
    terms = math.prod(shape[:-2]) if isinstance(layer, DEPTHWISE) else math.prod(shape[:-1])
    largest = terms * weight.magnitude * incoming.magnitude + (bias.magnitude if bias else 0.0)
    fraction = max(weight.fraction + incoming.fraction, bias.fraction if bias else 0)
    return "float32" if math.log2(largest) + fraction <= _FLOAT32_BITS else "float64"


def _look_up(operation: LookUp, types: Mapping[str, FixedType], incoming: FixedType) -> dict[str, Any]:
    """Return what the counterpart of a layer that looks a function up is told beside its types."""
    factor = 1.0
    if operation.function == "elu":
        factor = float(_held(operation.parameter, types["param"]))
    elif operation.function == "selu":
        factor = float(_held(SELU_SCALE, operation.scale_type or incoming))
    return {"table_size": operation.table_size, "factor": factor}


def _recurrent(layer: LayerSpec) -> dict[str, Any]:
    """Return what the counterpart of a GRU or LSTM is told beside its types.

    Raises:
        UnsupportedLayerError: double precision does not hold what a step computes.
    """
    accum, operation = layer.types["accum"], layer.operation
    if not isinstance(operation, Recurrent):
        raise TypeError(f"{layer.name!r} is a {type(operation).__name__}, not a Recurrent")
    # A gate is 1 at most; its product with a sum, and one with the state, are added.
    both = accum, layer.types["result"]
    widest = max(kind.integer for kind in both) + max(kind.fraction for kind in both)
    bits = widest + layer.types["table"].fraction + 2
    if bits > _FLOAT64_BITS:
        raise UnsupportedLayerError(
            f"layer {layer.name!r} has sums of {widest} bits, whose products with gates take {bits} bits, more than "
            f"the {_FLOAT64_BITS} that quantize computes with: use fewer bits, or scale the data first"
        )
    return {"accum": accum, "table_size": operation.table_size}


def _require_exact_scale(layer: keras.Layer, types: Mapping[str, FixedType], incoming: FixedType) -> None:
    """Check that double precision holds what a BatchNorm, a LeakyReLU or a PReLU computes."""
    scale = types.get("scale") or types["param"]
    bits = scaled_bits(scale, types.get("bias", scale), incoming)
    if bits > _FLOAT64_BITS:
        raise UnsupportedLayerError(
            f"layer {layer.name!r} scales values of {incoming.width} bits by factors of {scale.width}, whose products "
            f"take {bits} bits, more than the {_FLOAT64_BITS} that quantize computes with: {SCALE_COLUMNS}"
        )


def _set_scale(layer: keras.layers.BatchNormalization, scale: Any, shift: Any) -> None:
    """Make `layer`, whose `epsilon` is 0, multiply by `scale` and add `shift`."""
    values = {"gamma": scale, "beta": shift, "moving_mean": 0.0, "moving_variance": 1.0}
    for variable in layer.weights:
        variable.assign(np.broadcast_to(values[variable.name], variable.shape))
