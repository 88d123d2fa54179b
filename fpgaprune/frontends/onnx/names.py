"""Names for layers: those that a network has in PyTorch or in Keras, as far as its ONNX file keeps them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PARAMETER = re.compile(r"^(?P<layer>.+)\.(?P<kind>weight|bias|running_mean|running_var)$")
_OPERATOR = re.compile(r"^[A-Z][A-Za-z0-9]*(?P<number>_\d+)?$")
_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 60


def layer_name(node: str, operator: str, constants: Sequence[str]) -> str:
    """The name of the layer that the node `node` becomes.

    A parameter `features.0.weight` names its layer; else the node does: `/features/features.1/Relu` is `features.1`.
    A layer of Keras is named as it was: `sequential/conv2d/Conv2D` is `conv2d`.

    Args:
        node: name of the node; may be empty.
        operator: its operator.
        constants: names of the constants that it reads.
    """
    for constant in constants:
        found = _PARAMETER.match(constant.rpartition("::")[2] if "::" in constant else constant)
        if found is not None:
            return _allowed(found["layer"])
    parts = [part for part in node.split("/") if part and "PartitionedCall" not in part]
    name = ""
    if node.startswith("/"):
        name = _of_torch(parts)
    elif len(parts) > 1:
        name = parts[-2] if _OPERATOR.match(parts[-1]) else parts[-1]
    elif parts and not _OPERATOR.match(parts[0]):
        name = parts[0]
    return _allowed(name) if name else operator.lower()


def _of_torch(parts: Sequence[str]) -> str:
    """The name of a module: each part of a path repeats those of the modules around it, or is an attribute's name."""
    name, number = "", ""
    for at, part in enumerate(parts):
        found = _OPERATOR.match(part) if at == len(parts) - 1 else None
        if found is not None:
            number = found["number"] or ""
        elif not name or part.startswith(f"{name}."):
            name = part
        elif not name.endswith(f".{part}"):
            last = part.rpartition(".")[0]
            name = f"{name.removesuffix(last).rstrip('.')}.{part}" if last and name.endswith(last) else f"{name}.{part}"
    return f"{name}{number}" if name else ""


def input_name(name: str) -> str:
    """The name of an input in Keras."""
    return _allowed(name.removesuffix(":0")) or "input"


def _allowed(name: str) -> str:
    plain = _FOREIGN.sub("_", name).strip("_.-")
    return plain[:_LONGEST] if re.match(r"[A-Za-z0-9]", plain) else f"layer_{plain}"[:_LONGEST]
