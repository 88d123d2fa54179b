"""Tells which function an activation, and which class of Keras a layer, computes: by what it is, never by its name.

A user may call her own function `tanh`. Known are the functions of `keras.activations`, those of `keras.ops` and
`tf.nn` that compute the same, a `functools.partial` of one of them, and Keras's layers of activations.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

# What a subclass may say anew of a class of Keras without changing what a layer of it computes.
_HARMLESS = frozenset(
    {
        *("__module__", "__qualname__", "__doc__", "__annotations__", "__firstlineno__", "__static_attributes__"),
        *("__dict__", "__weakref__", "__init__", "get_config", "from_config", "_api_export_path"),
        *("_api_export_symbol_id", "__signature__"),
    }
)


def is_of_keras(thing: object) -> bool:
    """Return whether `thing`, a class or a function, is one of Keras's own."""
    return str(getattr(thing, "__module__", "")).split(".")[0] == "keras"


def keras_ancestor(kind: type) -> type | None:
    """Return the nearest class of Keras of which `kind` is, or from which it inherits; None if there is none."""
    return next((one for one in kind.__mro__ if is_of_keras(one)), None)


@functools.cache
def class_of_keras(kind: type) -> type | None:
    """Return the class of Keras whose computation a layer of class `kind` does; None if it may do another one.

    A subclass does that of its parent if it only adds methods, or says anew how it is made and saved.
    """
    known = keras_ancestor(kind)
    if known is None:
        return None
    own = kind.__mro__[: kind.__mro__.index(known)]
    return known if all(_is_harmless(name, value, known) for one in own for name, value in vars(one).items()) else None


def keras_class(layer: object) -> type | None:
    """Return the Keras class whose computation `layer` does (`class_of_keras`); None also if it has its own `call`."""
    kind: Any = type(layer)
    return None if "call" in vars(layer) else class_of_keras(kind)


def is_of_a_user(layer: object) -> bool:
    """Return whether `layer` computes what neither Keras nor fpgaprune says, in a precision of its own perhaps."""
    return keras_class(layer) is None and not type(layer).__module__.startswith("fpgaprune.")


def _is_harmless(name: str, value: object, known: type) -> bool:
    adds_method = isinstance(value, FunctionType | classmethod | staticmethod) and not hasattr(known, name)
    return name in _HARMLESS or adds_method


# Names under which a library has a function of `keras.activations` with another name.
_SPELLINGS = {"exp": "exponential", "swish": "silu", "softmax_v2": "softmax", "log_softmax_v2": "log_softmax"}
# With another value of one of these a function is another one, whatever its default is.
_PLAIN: Mapping[str, tuple[Any, ...]] = {"approximate": (False,), "axis": (-1, None), "beta": (1.0,)}


@dataclass(frozen=True)
class Activation:
    """A function that an activation computes.

    Attributes:
        name: as `keras.activations` spells it, or `thresholded_relu` or `prelu`.
        parameter: the slope of `leaky_relu`, the factor of `elu` or the threshold of `thresholded_relu`; None for
            another function.
    """

    name: str
    parameter: float | None = None


LINEAR = Activation("linear")


def activation_of(thing: object) -> Activation | None:
    """Return the function that `thing`, a callable or a layer without another computation, computes; None if unknown.

    None itself, the activation of a layer that has none, is linear.
    """
    if thing is None:
        return LINEAR
    import keras

    if isinstance(thing, keras.layers.Layer):
        kind = _activation_layers().get(keras_class(thing))
        return None if kind is None else kind(thing)
    function, given = (thing.func, thing.keywords) if isinstance(thing, functools.partial) else (thing, {})
    name = next((name for name, known in _known(function) if known is function), None)
    if name is None or (isinstance(thing, functools.partial) and thing.args):
        return None
    defaults = _defaults(function)
    changed = {key: value for key, value in {**defaults, **given}.items() if not _is_plain(key, value, defaults)}
    return _settled(name, defaults, changed)


def activation_in(layer: object) -> Activation | None:
    """Return the function that `layer` is, or that it applies last; linear if there is none, None if it is unknown."""
    is_one = keras_class(layer) in _activation_layers()
    return activation_of(layer if is_one else getattr(layer, "activation", None))


@dataclass(frozen=True)
class OwnFunction:
    """A function that a layer applies and that is not Keras's, or not with Keras's settings.

    Attributes:
        part: the number of the layer inside it that holds the function; 0 for itself.
        name: the attribute that holds it there, as `recurrent_activation`.
        function: the function.
    """

    part: int
    name: str
    function: Any

    @property
    def is_kept_in_files(self) -> bool:
        """Whether the layer computes the same once Keras has saved and loaded it, or cannot be loaded."""
        import keras

        try:
            written = keras.activations.serialize(self.function)
        except (TypeError, ValueError):
            return False
        if not isinstance(written, str):
            return True
        known = activation_of(self.function)
        return known is not None and known == activation_of(keras.activations.get(written))


def own_functions(layer: Any) -> list[OwnFunction]:
    """Return the functions that `layer`, and the layers inside it, apply and that are not Keras's own."""
    return [
        OwnFunction(number, name, value)
        for number, part in enumerate(layer._flatten_layers())
        for name, value in vars(part).items()
        if name.endswith("activation")
        and (isinstance(value, functools.partial) or (isinstance(value, FunctionType) and not is_of_keras(value)))
    ]


def described(thing: object) -> str:
    """Return what the activation `thing` is, for a message that refuses it."""
    known = activation_of(thing)
    if known is not None:
        return repr(known.name)
    if isinstance(thing, functools.partial):
        return _called(getattr(thing.func, "__name__", "a function"), thing.keywords)
    if hasattr(thing, "get_config"):
        return _called(type(thing).__name__, _settings(thing))
    name, where = getattr(thing, "__name__", type(thing).__name__), getattr(thing, "__module__", None)
    if str(where).split(".")[0] in ("keras", "tensorflow"):
        return f"{name!r} of {where}"
    return f"{name!r}, a function of {where} and not of Keras, which may compute anything whatever its name is"


def _called(name: str, settings: Mapping[str, object]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in settings.items())})"


def _settings(layer: object) -> Mapping[str, Any]:
    """Return what tells apart two layers of an activation of one class."""
    names = ("max_value", "negative_slope", "threshold", "alpha", "axis")
    return {name: vars(layer)[name] for name in names if name in vars(layer)}


@functools.cache
def _activation_layers() -> Mapping[type | None, Callable[[Any], Activation | None]]:
    """Map each class of layers that are a lone activation to the activation of such a layer."""
    from keras import layers

    return {
        layers.Activation: lambda layer: activation_of(layer.activation),
        layers.ReLU: lambda layer: _rectified(layer.negative_slope, layer.max_value, layer.threshold),
        layers.LeakyReLU: lambda layer: _rectified(layer.negative_slope, None, None),
        layers.ELU: lambda layer: Activation("elu", float(layer.alpha)),
        layers.PReLU: lambda _: Activation("prelu"),
        layers.Softmax: lambda layer: Activation("softmax") if layer.axis in (-1, [-1], (-1,)) else None,
    }


def _settled(name: str, defaults: Mapping[str, Any], changed: Mapping[str, Any]) -> Activation | None:
    """Return the function `name` of `keras.activations` with its `defaults`, but for those that are `changed`."""
    if name == "relu":
        return _rectified(*(changed.get(key) for key in ("negative_slope", "max_value", "threshold")))
    own = {**defaults, **changed}
    if name == "leaky_relu":
        return _rectified(own.get("negative_slope", own.get("alpha")), None, None)
    if name == "elu" or (name == "celu" and not changed):
        return Activation("elu", float(own.get("alpha", 1.0)))
    return None if changed else Activation(name)


def _is_plain(key: str, value: object, defaults: Mapping[str, object]) -> bool:
    """Return whether the parameter `key` has the value that it has where nothing is said."""
    return value in _PLAIN[key] if key in _PLAIN else key in defaults and value == defaults[key]


def _rectified(slope: Any, limit: Any, threshold: Any) -> Activation | None:
    """Return Keras's `relu` with its three settings, of which at most one may differ from its default."""
    slope, limit, threshold = float(slope or 0.0), None if limit is None else float(limit), float(threshold or 0.0)
    if (limit, threshold) == (None, 0.0):
        return Activation("leaky_relu", slope) if slope else Activation("relu")
    if (slope, threshold) == (0.0, 0.0):
        return Activation("relu6") if limit == 6.0 else None
    return Activation("thresholded_relu", threshold) if (slope, limit) == (0.0, None) else None


def _defaults(function: Any) -> dict[str, Any]:
    """Return the parameters of `function` but its first, with their defaults; NaN (equal to nothing) without one."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return {}
    return {one.name: math.nan if one.default is one.empty else one.default for one in parameters}


def _known(function: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions of each library that may be `function`, with the name in `keras.activations`."""
    import keras

    name = getattr(function, "__name__", "")
    plain = _SPELLINGS.get(name, name)
    if not hasattr(keras.activations, plain):
        return
    tensorflow = sys.modules.get("tensorflow")
    rooms = [keras.activations, keras.ops, *([tensorflow.nn, tensorflow.math] if tensorflow is not None else [])]
    for room in rooms:
        for spelled in {name, plain, *(other for other, one in _SPELLINGS.items() if one == plain)}:
            if callable(getattr(room, spelled, None)):
                yield plain, getattr(room, spelled)


_REGULARISING = "ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise Identity"
# `RandomCrop` is not among them: it crops at inference, too.
_AUGMENTING = (
    "AugMix CutMix MixUp RandAugment RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast "
    "RandomElasticTransform RandomErasing RandomFlip RandomGaussianBlur RandomGrayscale RandomHue RandomInvert "
    "RandomPerspective RandomPosterization RandomRotation RandomSaturation RandomSharpness RandomShear "
    "RandomTranslation RandomZoom Solarization"
)
IDENTITIES = frozenset(
    (*_REGULARISING.split(), *_AUGMENTING.split(), "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D")
)
