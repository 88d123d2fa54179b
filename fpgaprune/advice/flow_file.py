"""`OwnFlow`: the flow that made a design; a suggestion is an edit of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from fpgaprune.design import Design
from fpgaprune.layout import Edit, Settings, joined

# The keys of a layer that follow from those of the whole network, and the section and key that sets them anew.
_REPLACED = {
    ("target", "strategy"): ("strategy", "reuse_factor"),
    ("hls", "precision"): ("weight_bits", "activation_bits"),
}


@dataclass(frozen=True)
class OwnFlow:
    """The flow that made a design.

    Attributes:
        document: its sections as plain data; empty if no flow is known.
        make: gives the design that the flow makes with other values of some keys, as far as that is known before it
            runs; None if it cannot run with them. The estimate of a suggestion is that of this design.
        given: keys that differ from those of the flow that ran; every suggestion states them too.
    """

    document: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[[Settings], Design | None] | None = None
    given: Settings = field(default_factory=dict)

    def keys(self, edit: Edit) -> Settings:
        """Return the keys of the flow file that `edit` changes, each with its whole new value.

        What the flow says of other layers, and of other things about a layer, is part of the value.
        """
        keys = {section: dict(table) for section, table in joined(self.given, edit.settings).items()}
        entries = keys.get("hls", {}).pop("layers", {})
        named = self.document.get("hls", {}).get("layers", {})
        own = {
            layer: {key: value for key, value in entry.items() if value is not None} for layer, entry in named.items()
        }
        stale = {
            key
            for (section, name), replaced in _REPLACED.items()
            if name in edit.settings.get(section, {})
            for key in replaced
        }
        layers = _layers(own, entries, stale)
        if layers != own:
            keys.setdefault("hls", {})["layers"] = layers
        return {section: table for section, table in keys.items() if table}

    def sparser(self, sparsity: float) -> Settings | None:
        """Return the keys that lock at least `sparsity`; None if the flow locks as much, or trains nothing."""
        select = self.document.get("select")
        if select is None:
            return {"select": {"sparsity": {"*/kernel": sparsity}, "scope": "layer"}}
        own = select.get("sparsity", 0.0)
        if ":" in select.get("granularity", "") or not self.document.get("finetune", {}).get("epochs", 1):
            return None
        if isinstance(own, Mapping):
            raised = {pattern: max(share, sparsity) for pattern, share in own.items()}
            return None if raised == own else {"select": {"sparsity": raised}}
        return {"select": {"sparsity": sparsity}} if sparsity > own else None

    @property
    def can_lock(self) -> bool:
        """Whether it is known what the network is with other locks."""
        return self.make is not None or not self.document


def with_keys(document: Mapping[str, Any], keys: Settings) -> dict[str, Any]:
    """Return `document` with `keys`, as `OwnFlow.keys` gives them, in place of its own."""
    return {**document, **{section: {**document.get(section, {}), **table} for section, table in keys.items()}}


def _layers(own: Mapping[str, Any], entries: Mapping[str, Any], stale: set[str]) -> dict[str, Any]:
    """Make the table `[hls.layers]`: `own` without the keys `stale`, then `entries`, which override them."""
    kept = {name: {key: value for key, value in entry.items() if key not in stale} for name, entry in own.items()}
    found = dict(kept)
    for name, entry in entries.items():
        meant: dict[str, Any] = {}
        for pattern, keys in kept.items():
            if fnmatchcase(name, pattern):
                meant |= keys
        found.pop(name, None)
        found[name] = meant | entry
    return {name: entry for name, entry in found.items() if entry}
