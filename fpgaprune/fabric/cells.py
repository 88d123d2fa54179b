"""`Family`: what the cells of a synthesised netlist take on a device, by the lists in `hw/synth`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fpgaprune.errors import RtlError, TargetError
from fpgaprune.files import hardware_path
from fpgaprune.measure import RESOURCES, Cells
from fpgaprune.target import Part

_TEXTS = ("family", "name", "models", "source", "date", "note")


@dataclass(frozen=True)
class Family:
    """A device family that yosys synthesises for.

    Attributes:
        family: our name, as `xc7`.
        name: the vendor's name.
        parts: the families of `hw/parts` that it covers.
        synthesis: yosys's commands; `{top}` is the module.
        unnamed: yosys's commands if the cells need no readable names.
        pins: yosys's commands for a top module whose ports are the device's pins.
        maps: name -> content of the files of `hw/synth` that these commands read.
        takes: resource -> cell type -> how much of the resource one cell takes.
        free: cell types that take no resource.
        models: the file of yosys that says what each cell computes.
        source: the document that states the counts.
        date: the day on which the file was written.
        note: what a figure counts.
        place: the table that `fpgaprune.fabric.devices` reads; None if no open tool places and routes the family.
    """

    family: str
    name: str
    parts: tuple[str, ...]
    synthesis: tuple[str, ...]
    unnamed: tuple[str, ...]
    pins: tuple[str, ...]
    maps: Mapping[str, bytes]
    takes: Mapping[str, Mapping[str, int]]
    free: frozenset[str]
    models: str
    source: str
    date: str
    note: str
    place: Mapping[str, Any] | None

    @property
    def adds_three(self) -> bool:
        """Whether its maps make one LUT a bit of a sum of three operands."""
        return "LUT6_2" in self.takes["lut"]

    def count(self, types: Mapping[str, int]) -> Cells:
        """Return what a netlist of `types` (cell type -> number of cells) takes.

        Raises:
            RtlError: a cell type is in none of the family's lists, so its resources are unknown.
        """
        # yosys marks each flattened module with such a cell, which takes nothing on the device.
        real = {cell: number for cell, number in types.items() if cell != "$scopeinfo"}
        known = self.free.union(*self.takes.values())
        unknown = sorted(set(real) - known)
        if unknown:
            raise RtlError(
                f"the netlist for {self.family} has cells {', '.join(unknown)}, which hw/synth/{self.family}.toml "
                "does not list; add what each takes on the device"
            )
        counts = {
            name: sum(self.takes[name].get(cell, 0) * number for cell, number in real.items())
            if name in self.takes
            else None
            for name in RESOURCES
        }
        return Cells(**counts, types=dict(sorted(real.items())))


@cache
def list_families() -> tuple[str, ...]:
    """Return the names of the families that open synthesis knows."""
    return tuple(sorted(path.stem for path in hardware_path("synth").glob("*.toml")))


@cache
def find_family(family: str) -> Family:
    """Find the device family called `family` in `hw/synth`.

    Raises:
        TargetError: the name is unknown; the message lists the known names.
    """
    if family not in list_families():
        raise TargetError(f"family {family!r} is unknown to open synthesis; wanted one of {', '.join(list_families())}")
    document = _document(family)
    synthesis = tuple(document.pop("synthesis"))
    return Family(
        **{key: document.pop(key) for key in _TEXTS},
        parts=tuple(document.pop("parts")),
        synthesis=synthesis,
        unnamed=tuple(document.pop("unnamed", synthesis)),
        pins=tuple(document.pop("pins", synthesis)),
        maps={name: hardware_path("synth", name).read_bytes() for name in document.pop("maps", ())},
        place=document.pop("place", None),
        free=frozenset(document.pop("free", ())),
        takes=document,
    )


def _document(family: str) -> dict[str, Any]:
    """Read the file of `family`; what it, or its table `place`, lacks is that of the family named by its `like`."""
    document = tomllib.loads(hardware_path("synth", f"{family}.toml").read_text(encoding="utf-8"))
    place = document.get("place", {})
    if "like" in place:
        document["place"] = {**_document(place.pop("like"))["place"], **place}
    like = document.pop("like", None)
    return document if like is None else {**_document(like), **document}


def family_of(part: Part) -> str | None:
    """Return the family of open synthesis that `part` belongs to; None if there is none."""
    return next((name for name in list_families() if part.family in find_family(name).parts), None)
