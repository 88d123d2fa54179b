"""`Edit`: a changed design, and the lines of the flow file that make the change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fpgaprune.backends import as_built
from fpgaprune.design import Design, LayerSpec
from fpgaprune.files import toml_key, toml_value

Settings = Mapping[str, Any]
# The order of the sections.
_SECTIONS = ("target", "select", "hls", "measure")


@dataclass(frozen=True)
class Edit:
    """A changed design.

    Attributes:
        knobs: names of the settings that changed.
        settings: section of the flow file to the keys that change, as `{"target": {"strategy": "resource"}}`; of
            `[hls.layers]` only the layers that change.
        design: the changed design.
        keeps_function: whether the changed design computes the same, apart from rounding.
    """

    knobs: tuple[str, ...]
    settings: Settings
    design: Design
    keeps_function: bool = True

    def then(self, other: Edit) -> Edit:
        """Return both changes; `other` was made on the design of this one."""
        return Edit(
            tuple(dict.fromkeys((*self.knobs, *other.knobs))),
            joined(self.settings, other.settings),
            other.design,
            self.keeps_function and other.keeps_function,
        )


def with_layers(design: Design, layers: Sequence[LayerSpec]) -> Design:
    """Return `design` with other `layers`, as hls4ml would build it."""
    return as_built(replace(design, layers=tuple(layers)))


def flow_text(settings: Settings) -> str:
    """Write `settings` as TOML: keys, then a table for each section, and `[hls.layers]` with a line for each layer."""
    single = {key: value for key, value in settings.items() if not isinstance(value, Mapping)}
    blocks = ["\n".join(_lines(single))] if single else []
    for section in sorted(settings.keys() - single.keys(), key=_place(list(settings))):
        table = settings[section]
        # A table without entries needs a line too.
        plain = {key: value for key, value in table.items() if (section, key) != ("hls", "layers") or not value}
        if plain:
            blocks.append("\n".join([f"[{section}]", *_lines(plain)]))
        if len(plain) < len(table):
            blocks.append("\n".join(["[hls.layers]", *_lines(table["layers"])]))
    return "\n\n".join(blocks)


def _place(sections: list[str]) -> Callable[[str], tuple[int, int]]:
    """Return where a section stands: first those that suggestions change, then the others as they come."""
    return lambda name: (_SECTIONS.index(name) if name in _SECTIONS else len(_SECTIONS), sections.index(name))


def _lines(table: Settings) -> Iterator[str]:
    return (f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items())


def joined(*parts: Settings) -> dict[str, Any]:
    """Return all of `parts` in one; a later part wins, and tables are joined key by key.

    The schedule of `[finetune]` is one value: the keys of one kind mean nothing to another.
    """
    found: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            own = found.get(key)
            nested = isinstance(own, Mapping) and isinstance(value, Mapping) and key != "schedule"
            found[key] = joined(own, value) if nested else value  # type: ignore[arg-type]
    return found
