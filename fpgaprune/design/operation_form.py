"""Operations as JSON data, and back: every field is there, of its type and within bounds."""

from __future__ import annotations

import math
import types
import typing
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from fpgaprune.design import operations
from fpgaprune.errors import DesignError, shown

_BY_NAME = {kind.__name__: kind for kind in typing.get_args(operations.Operation)}
# What a size or a setting may be, and the entries of a table; beyond, no device holds it and no array either.
_MAX_NUMBER, _MAX_TABLE = 1 << 40, 1 << 22


def operation_to_json(operation: operations.Operation) -> dict[str, Any]:
    """The operation as JSON data, with its name under `type`."""
    return {"type": type(operation).__name__, **asdict(operation)}


def read_operation(document: Any) -> operations.Operation:
    """The operation that `operation_to_json` wrote.

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
    """`value` as `hint` says: a number, a text, a truth value, a tuple of numbers, a window, a type, or None."""
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
