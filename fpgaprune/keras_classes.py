"""Tells which class of Keras says what a layer computes: by the class itself, never by its name.

A user may call her own layer `Dense`, or write a subclass of Keras's `Dense` with another `call`.
"""

from __future__ import annotations

import functools
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
    """Whether `thing`, a class or a function, is one of Keras's own."""
    return str(getattr(thing, "__module__", "")).split(".")[0] == "keras"


def keras_ancestor(kind: type) -> type | None:
    """The nearest class of Keras of which `kind` is, or from which it inherits; None if there is none."""
    return next((one for one in kind.__mro__ if is_of_keras(one)), None)


@functools.cache
def class_of_keras(kind: type) -> type | None:
    """The class of Keras whose computation a layer of class `kind` does; None if it may do another one.

    A subclass does that of its parent if it only adds methods, or says anew how it is made and saved.
    """
    known = keras_ancestor(kind)
    if known is None:
        return None
    own = kind.__mro__[: kind.__mro__.index(known)]
    return known if all(_is_harmless(name, value, known) for one in own for name, value in vars(one).items()) else None


def keras_class(layer: object) -> type | None:
    """The class of Keras whose computation `layer` does, as `class_of_keras`; None also if its `call` was replaced."""
    kind: Any = type(layer)
    return None if "call" in vars(layer) else class_of_keras(kind)


def is_of_a_user(layer: object) -> bool:
    """Whether `layer` does a computation that neither Keras nor fpgaprune says, in a precision of its own perhaps."""
    return keras_class(layer) is None and not type(layer).__module__.startswith("fpgaprune.")


def _is_harmless(name: str, value: object, known: type) -> bool:
    adds_method = isinstance(value, FunctionType | classmethod | staticmethod) and not hasattr(known, name)
    return name in _HARMLESS or adds_method
