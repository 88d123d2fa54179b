"""Checks a saved design before any of it is believed, and reads its operations from JSON data."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from fpgaprune.design import operations
from fpgaprune.design.reuse_factors import STRATEGIES
from fpgaprune.errors import DesignError, shown
from fpgaprune.values import Array, FixedType

_BY_NAME = {kind.__name__: kind for kind in typing.get_args(operations.Operation)}
# What a size or a setting may be, and the entries of a table; beyond, no device holds it and no array either.
_MAX_TABLE = 1 << 22


def operation_to_json(operation: operations.Operation) -> dict[str, Any]:
    """Return the operation as JSON data, with its name under `type`."""
    return {"type": type(operation).__name__, **asdict(operation)}


def read_operation(document: Any) -> operations.Operation:
    """Return the operation that `operation_to_json` wrote.

    Raises:
        DesignError: there is no such operation, or a field is missing, unknown, of another type or out of bounds.
    """
    name = document.get("type") if isinstance(document, dict) else None
    kind = _BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        raise DesignError(f"an operation is {shown(name)}; wanted one of {', '.join(_BY_NAME)}")
    found: operations.Operation = _read(kind, {key: value for key, value in document.items() if key != "type"})
    return found


def _read(kind: Any, document: Any) -> Any:
    hints = typing.get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    if not isinstance(document, dict) or sorted(document) != sorted(names):
        wanted = ", ".join(names) or "nothing"
        raise DesignError(f"a {kind.__name__} has {shown(sorted(map(str, document)))}; wanted {wanted}")
    return kind(**{name: _value(f"{kind.__name__}.{name}", hints[name], document[name]) for name in names})


def _value(where: str, hint: object, value: object) -> Any:
    """Read `value` as `hint` says: a number, a text, a truth value, a tuple of numbers, a window, a type, or None."""
    if isinstance(hint, types.UnionType):
        if value is None:
            return None
        (hint,) = (one for one in typing.get_args(hint) if one is not type(None))
    if is_dataclass(hint):
        return _read(hint, value)
    if typing.get_origin(hint) is typing.Literal:
        if isinstance(value, str) and value in typing.get_args(hint):
            return value
    elif typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)
        fixed = len(inner) if inner[-1] is not Ellipsis else None
        most = _MAX_TABLE if where.startswith("Quantise.") else 16
        if isinstance(value, list | tuple) and len(value) <= most and fixed in (None, len(value)):
            return tuple(_value(where, inner[0], part) for part in value)
    elif hint is bool and isinstance(value, bool):
        return value
    elif hint is str and isinstance(value, str):
        if 0 < len(value) <= 500 and value.isprintable():
            return value
    elif hint in (int, float) and isinstance(value, (int, hint)) and not isinstance(value, bool):
        least, most = (1, _MAX_TABLE) if where.endswith("table_size") else (-_MAX_NUMBER, _MAX_NUMBER)
        if math.isfinite(value) and least <= value <= most:
            return hint(value)
    raise DesignError(f"{where} is {shown(value)}, which is no such setting")


_Value = TypeVar("_Value")
# Values of one layer, and what a size or a setting may be; beyond, no device holds it and no array either.
_MAX_VALUES, _MAX_NUMBER = 1 << 32, 1 << 40


class _Named(dict[str, _Value]):
    """A mapping of one layer, whose missing entries are errors that say so."""

    what = ""

    def __init__(self, layer: str, entries: Mapping[str, _Value]) -> None:
        super().__init__(entries)
        self._layer = layer

    def __missing__(self, key: str) -> _Value:
        raise DesignError(f"layer {shown(self._layer)} has no {self.what} {key!r}; make the design anew")


class Roles(_Named[FixedType]):
    """The types of one layer of a saved design, by role."""

    what = "type for"


def check_design_form(document: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Check that `document` and `arrays` have the form that `Design.save` writes.

    Raises:
        DesignError: an entry is missing, of another kind, or out of every bound; one line that names it.
    """
    for key, (fits, wanted) in _HEAD.items():
        if key not in document:
            raise DesignError(f"not a whole design: KeyError({key!r}) is missing or malformed")
        if not fits(document[key]):
            raise DesignError(f"{key} is {shown(document[key])}; wanted {wanted}")
    names = [_check_layer(row, arrays) for row in document["layers"]]
    unread = arrays.keys() - {name for roles in names for name in roles}
    if unread:
        raise DesignError(f"the arrays beside it hold {shown(min(unread))}, which no layer has")


def _check_layer(row: object, arrays: Mapping[str, Array]) -> list[str]:
    """Return the names of the layer's arrays."""
    if not isinstance(row, dict):
        raise DesignError(f"a layer is {shown(row)}; wanted an object")
    where = f"layer {shown(row.get('name'))}"
    for key, (fits, wanted) in _LAYER.items():
        if key not in row:
            raise DesignError(f"{where} has no {key}: it is missing or malformed")
        if not fits(row[key]):
            raise DesignError(f"{where}: {key} is {shown(row[key])}; wanted {wanted}")
    found = []
    for role in row["weights"]:
        name = f"{row['name']}/{role}"
        if name not in arrays:
            raise DesignError(f"{where} has no array for its {shown(role)}: it is missing or malformed")
        if role not in row["types"]:
            raise DesignError(f"{where} has weights {shown(role)} but no type for them")
        _check_array(f"{where}: {shown(role)}", arrays[name], FixedType.parse(row["types"][role]))
        found.append(name)
    return found


def _check_array(where: str, array: Array, kind: FixedType) -> None:
    if array.dtype != np.int64:
        raise DesignError(f"{where} holds {array.dtype}; wanted int64")
    if not array.size:
        raise DesignError(f"{where} has shape {array.shape}; wanted one value at least")
    low, high = int(array.min()), int(array.max())
    if low < kind.raw_min or high > kind.raw_max:
        raise DesignError(f"{where} holds {low} to {high}; {kind} holds {kind.raw_min} to {kind.raw_max}")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 500 and value.isprintable()


def _is_number(value: Any) -> bool:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and math.isfinite(value) and abs(value) <= _MAX_NUMBER


def _is_shape(value: Any) -> bool:
    whole = isinstance(value, list) and all(type(size) is int and size >= 1 for size in value)
    return whole and len(value) <= 16 and math.prod(value) <= _MAX_VALUES


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(_is_text(text) for pair in value.items() for text in pair)


_Form = Mapping[str, tuple[Callable[[Any], bool], str]]
_HEAD: _Form = {
    "layers": (lambda value: isinstance(value, list) and bool(value), "a list of layers"),
    "name": (_is_text, "a name"),
    "io_type": (_is_text, "'io_parallel' or 'io_stream'"),
    "backend": (_is_text, "the name of a backend"),
    "clock_ns": (_is_number, "a number of ns"),
    "part": (lambda value: value is None or _is_text(value), "an order number, or null"),
    "outputs": (lambda value: _are_texts(value) and bool(value), "a list of names"),
}
_LAYER: _Form = {
    "name": (_is_text, "a name"),
    "inputs": (lambda value: isinstance(value, list) and all(map(_is_text, value)), "a list of names"),
    "output_shape": (_is_shape, "a list of sizes from 1"),
    "types": (_is_table, "a table of types"),
    "weights": (_are_texts, "a list of roles"),
    "sources": (_is_table, "a table of weight paths"),
    "operation": (lambda value: isinstance(value, dict), "a table"),
    "project_name": (_is_text, "a name"),
    "model_shape": (lambda value: value is None or _is_shape(value), "a list of sizes from 1, or null"),
    "reuse_factor": (lambda value: type(value) is int and 1 <= value <= _MAX_NUMBER, "a whole number from 1"),
    "strategy": (lambda value: isinstance(value, str | None) and value in (*STRATEGIES, None), "a strategy, or null"),
}
