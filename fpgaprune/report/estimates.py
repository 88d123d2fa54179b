"""Two estimates side by side: their figures by stage, and their layers matched by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fpgaprune.errors import ReportError
from fpgaprune.report.table import STAGE_NAMES, Figure

# In the order in which an engineer runs out of them; the second is how a page writes it.
RESOURCES = (("lut", "LUT"), ("ff", "FF"), ("dsp", "DSP"), ("bram18", "BRAM 18 Kb"))

Estimate = Mapping[str, Any]


@dataclass(frozen=True)
class LayerPair:
    """One layer `before` and `after`; None on the side where it does not exist."""

    name: str
    kind: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


def stages_of(*estimates: Estimate | None) -> tuple[str, ...]:
    """The stages that any of the estimates speaks of, earliest first.

    Raises:
        ReportError: a stage is unknown, or an estimate is malformed.
    """
    present = {
        stage for estimate in estimates if estimate is not None for stage in _part(estimate, "total", "estimate")
    }
    unknown = sorted(present - set(STAGE_NAMES))
    if unknown:
        raise ReportError(f"estimate has figures of stage {unknown[0]!r}; known are {', '.join(STAGE_NAMES)}")
    return tuple(stage for stage in STAGE_NAMES if stage in present)


def figure_of(figures: Mapping[str, Any] | None, stage: str, resource: str) -> Figure:
    """What `figures` (a total or a layer) says about `resource` at `stage`; unknown where it says nothing.

    Raises:
        ReportError: the entry is malformed.
    """
    entry = ((figures or {}).get(stage) or {}).get(resource)
    if entry is None:
        return Figure(stage, None)
    if isinstance(entry, Mapping):
        # A figure that names its own stage keeps it: a column of another stage then refuses it.
        own = entry.get("stage", stage)
        return Figure(own, *(_number(entry.get(key), f"{resource} at {stage}") for key in ("value", "low", "high")))
    return Figure(stage, _number(entry, f"{resource} at {stage}"))


def total_of(estimate: Estimate | None, stage: str, resource: str) -> Figure:
    """The whole design's use of `resource` at `stage`; unknown without an estimate."""
    return figure_of(estimate["total"] if estimate is not None else None, stage, resource)


def pair_layers(before: Estimate | None, after: Estimate | None) -> tuple[LayerPair, ...]:
    """Layers of both estimates by name, in the order of `before`, each new one behind its predecessor.

    Raises:
        ReportError: two layers of one estimate share a name.
    """
    old, new = (_by_name(estimate) for estimate in (before, after))
    order = list(old)
    position = 0
    for name in new:
        if name in old:
            position = order.index(name) + 1
        else:
            order.insert(position, name)
            position += 1
    pairs = []
    for name in order:
        layer = old.get(name) or new[name]
        pairs.append(LayerPair(name, str(layer.get("kind") or ""), old.get(name), new.get(name)))
    return tuple(pairs)


def _by_name(estimate: Estimate | None) -> dict[str, Mapping[str, Any]]:
    layers: Sequence[Mapping[str, Any]] = estimate.get("layers", ()) if estimate is not None else ()
    named = {str(layer["name"]): layer for layer in layers}
    if len(named) != len(layers):
        names = [str(layer["name"]) for layer in layers]
        twice = next(name for name in names if names.count(name) > 1)
        raise ReportError(f"estimate has two layers named {twice!r}; names must be unique")
    return named


def _part(estimate: Estimate, key: str, where: str) -> Mapping[str, Any]:
    part = estimate.get(key) if isinstance(estimate, Mapping) else None
    if not isinstance(part, Mapping):
        raise ReportError(f"{where} has no {key!r} of figures by stage")
    return part


def _number(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ReportError(f"figure {where} is {value!r}; wanted a finite number, or None where it is unknown")
    return value
