"""Reads slice notation for weights, such as `conv2/kernel[:, :, 29, 13]`, without evaluating code."""

from __future__ import annotations

import re
from types import EllipsisType

from fpgaprune.errors import MaskError, shown

Index = int | slice | EllipsisType | list[int]

_NOTATION = re.compile(r"^\s*(?P<path>[^\[\]\s]+)\s*(?:\[(?P<indices>.*)\])?\s*$", re.DOTALL)
_INTEGER = re.compile(r"^[+-]?\d+$")
# No axis has an entry whose number has more digits; Python itself reads 4,300 at most.
_DIGITS = 18
_FORMS = "an index is an integer, 'a:b', 'a:b:step', ':', '...' or a list such as '[0, 3]'"


def parse_slice(text: str) -> tuple[str, tuple[Index, ...] | None]:
    """Return the weight path (or glob) and the indices in `text`; None for the indices if it names the whole weight.

    Raises:
        MaskError: `text` is not slice notation.
    """
    found = _NOTATION.match(text)
    if not found:
        raise MaskError(f"slice {text!r} cannot be read; wanted a form such as 'conv2/kernel[:, :, 29, 13]'")
    if found["indices"] is None:
        return found["path"], None
    items = _split(found["indices"], text)
    return found["path"], tuple(_index(item, text) for item in items)


def expand_indices(
    indices: tuple[Index, ...] | None, shape: tuple[int, ...], text: str
) -> tuple[int | slice | list[int], ...]:
    """Return one index for each axis of `shape`: `...` is filled in, and every bound is checked.

    Raises:
        MaskError: there are too many indices, or one is out of range; the message quotes `text`.
    """
    given = list(indices if indices is not None else (...,))
    if given.count(Ellipsis) > 1:
        raise MaskError(f"slice {text!r} has more than one '...'")
    at = given.index(Ellipsis) if Ellipsis in given else len(given)
    named = [item for item in given if not isinstance(item, EllipsisType)]
    if len(named) > len(shape):
        raise MaskError(f"slice {text!r} has {len(named)} indices; the weight has shape {shape}")
    full = [*named[:at], *[slice(None)] * (len(shape) - len(named)), *named[at:]]
    for axis, item in enumerate(full):
        _check(item, axis, shape, text)
    return tuple(full)


def _split(body: str, text: str) -> list[str]:
    items, depth, start = [], 0, 0
    for at, char in enumerate(body):
        depth += {"[": 1, "]": -1}.get(char, 0)
        if depth < 0 or depth > 1:
            raise MaskError(f"slice {text!r} has brackets that do not match")
        if char == "," and depth == 0:
            items.append(body[start:at].strip())
            start = at + 1
    if depth:
        raise MaskError(f"slice {text!r} has brackets that do not match")
    return [*items, body[start:].strip()]


def _index(item: str, text: str) -> Index:
    if item == "...":
        return Ellipsis
    if _INTEGER.match(item):
        return _number(item, text)
    if item.startswith("[") and item.endswith("]"):
        numbers = [number.strip() for number in item[1:-1].split(",")]
        if all(_INTEGER.match(number) for number in numbers):
            return [_number(number, text) for number in numbers]
    parts = [part.strip() for part in item.split(":")]
    if len(parts) in (2, 3) and all(part == "" or _INTEGER.match(part) for part in parts):
        bounds = [_number(part, text) if part else None for part in parts]
        if bounds[2:] == [0]:
            raise MaskError(f"slice {text!r} has a step of 0")
        return slice(*bounds)
    raise MaskError(f"slice {text!r} has the index {item!r}; {_FORMS}")


def _number(digits: str, text: str) -> int:
    if len(digits) > _DIGITS:
        raise MaskError(
            f"slice {text!r} has the index {shown(digits)} of {len(digits):,} characters; wanted {_DIGITS} at most"
        )
    return int(digits)


def _check(item: int | slice | list[int], axis: int, shape: tuple[int, ...], text: str) -> None:
    size = shape[axis]
    numbers = item if isinstance(item, list) else [item] if isinstance(item, int) else []
    for number in numbers:
        if not -size <= number < size:
            raise MaskError(
                f"slice {text!r} has index {number} on axis {axis}, which has {size} entries of shape {shape}; "
                f"wanted {-size} to {size - 1}"
            )
    if isinstance(item, slice):
        for bound in (item.start, item.stop):
            if bound is not None and not -size <= bound <= size:
                raise MaskError(
                    f"slice {text!r} has bound {bound} on axis {axis}, which has {size} entries of shape {shape}; "
                    f"wanted {-size} to {size}"
                )
