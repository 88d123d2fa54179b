"""`Devices`: the parts of a family that nextpnr knows, and its names for them, from `hw/synth`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import msgspec

from fpgaprune.errors import RtlError, TargetError
from fpgaprune.fabric.cells import find_family
from fpgaprune.fabric.pll import PllKind
from fpgaprune.measure import LABELS, RESOURCES, Cells, capacity_of, occupancy_of, share_of
from fpgaprune.target import Part, find_part

# Advice for a design that is too large.
SMALLER = "choose a larger device, prune more, or give a sample more cycles (interval)"


class Placed(NamedTuple):
    """What a design takes of one kind of cell of a device.

    Attributes:
        kind: the resource, or the type of a small memory.
        share: what place and route takes, as a share of the device.
        room: the share that place and route bears.
    """

    kind: str
    share: float
    room: float

    @property
    def fullness(self) -> float:
        """What is taken as a share of what place and route bears."""
        return self.share / self.room


@dataclass(frozen=True)
class SiteKind:
    """One kind of place on a device.

    Attributes:
        name: its name in nextpnr's reports.
        holds: the resources of which a site holds one each, as `("lut", "ff")` for a logic cell.
        more: sites under other names -> how many of this kind one of them takes.
    """

    name: str
    holds: tuple[str, ...]
    more: Mapping[str, int] = field(default_factory=dict)

    def used(self, sites: Mapping[str, int]) -> int:
        """Return how many of the `sites` in a report of nextpnr are of this kind."""
        return sites[self.name] + sum(each * sites.get(name, 0) for name, each in self.more.items())

    def without(self, used: int, around: Cells, own: Cells) -> int:
        """Return how many of the `used` sites hold cells of the project.

        Args:
            used: sites of the project and its harness together.
            around: cells of the harness; they are taken to fill as few sites as possible.
            own: cells of the project. A site that holds cells of both counts as the project's.
        """
        rest = used - self._needed(around)
        return max(rest, self._needed(own)) if len(self.holds) > 1 else rest

    def _needed(self, cells: Cells) -> int:
        return max(cells[name] or 0 for name in self.holds)


@dataclass(frozen=True)
class Device:
    """A part as nextpnr selects it.

    Attributes:
        options: nextpnr's options for it; `{package}` and `{speed}` are filled in.
        package: the package unless another one is asked for.
        packing: the options of the tool that packs its bitstreams.
        memories: cell type -> how many of these small memories, made of LUTs, the device has a place for.
    """

    options: tuple[str, ...]
    package: str
    packing: tuple[str, ...] = ()
    memories: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Devices:
    """The parts of a family that nextpnr places and routes.

    Attributes:
        name: the vendor's name of the family.
        options: nextpnr's options for every device.
        spread: nextpnr's options where the FPGA has cells to spare: the placer takes less time. It might never end by
            them in a crowded FPGA.
        sites: resource -> the sites that are counted for it.
        room: resource -> the share of a device that a design may take if the device is chosen for it.
        memory_room: the share of a device's small memories that place and route bears.
        ff_of: cell type -> the places of registers that one of it takes.
        smallest_first: the parts to choose from.
        devices: part -> device.
        speeds: speed grades, the slowest first; empty if the part's name states the grade.
        priced_as: the family whose price of Verilog stands for this one; None if none does.
        pll: what the PLL of these parts can do; None if no bitstream uses it.
        lut_of: resource -> the LUTs that place and route takes for one of it, beyond those that synthesis counts.
    """

    name: str
    options: tuple[str, ...]
    sites: Mapping[str, SiteKind]
    room: Mapping[str, float]
    smallest_first: tuple[str, ...]
    devices: Mapping[str, Device]
    speeds: tuple[int, ...] = ()
    priced_as: str | None = None
    pll: PllKind | None = None
    lut_of: Mapping[str, float] = field(default_factory=dict)
    memory_room: float = 1.0
    ff_of: Mapping[str, int] = field(default_factory=dict)
    spread: tuple[str, ...] = ()

    def find(self, device: str) -> Part:
        """Return the part called `device`.

        Raises:
            TargetError: there is no such part, or it is not of this family.
        """
        part = find_part(device)
        if part.name not in self.devices:
            raise TargetError(f"device {part.name!r} is no {self.name}; wanted one of {', '.join(self.devices)}")
        return part

    def smallest(self, cells: Cells) -> Part:
        """Return the smallest part that holds `cells` with room to spare; the largest part if none does."""
        parts = [find_part(name) for name in self.smallest_first]
        return next((part for part in parts if self.holds(cells, part)), parts[-1])

    def holds(self, cells: Cells, part: Part) -> bool:
        """Return whether `part` has room for `cells`, and some to spare for place and route."""
        return self.crowding(cells, part) is None and not self._short(cells, part)

    def crowding(self, cells: Cells, part: Part) -> str | None:
        """Say of which kind of cell `part` has little to spare: place and route may take long; None if of none."""
        counts = {name: cells[name] or 0 for name in RESOURCES}
        over = [
            f"{row.share:.0%} of {LABELS.get(row.kind, row.kind)} (of {row.room:.0%})"
            for row in self.placed(counts, part, cells.types)
            if row.fullness > 1
        ]
        return " and ".join(over) or None

    def placed(
        self, counts: Mapping[str, float], part: Part, types: Mapping[str, int] | None = None
    ) -> tuple[Placed, ...]:
        """Return what place and route takes of `part` for `counts` of synthesis, of each kind of cell with a limit.

        Args:
            counts: resource -> count.
            part: one of the devices.
            types: cell type -> number, where synthesis counted them: small memories have places of their own, and take
                those of registers.
        """
        there, types = capacity_of(part), types or {}
        taken = {name: share_of(counts.get(name, 0), there[name] or 0) for name in self.room}
        taken["lut"] = share_of(self.placed_luts(counts), there["lut"] or 0)
        for name, each in self.ff_of.items():
            taken["ff"] += share_of(each * types.get(name, 0), there["ff"] or 0)
        memories = self.devices[part.name].memories.items() if types else ()
        return (
            *(Placed(name, share, self.room[name]) for name, share in taken.items()),
            *(Placed(name, types.get(name, 0) / places, self.memory_room) for name, places in memories),
        )

    def placed_by_estimate(self, counts: Mapping[str, float], memories: int, part: Part) -> tuple[Placed, ...]:
        """Return what place and route takes of `part` for estimated `counts` and small `memories` of one kind."""
        return self.placed(counts, part, dict.fromkeys(self.devices[part.name].memories, memories))

    def placed_luts(self, counts: Mapping[str, float]) -> float:
        """Return the LUTs that place and route takes for `counts` of synthesis."""
        return counts.get("lut", 0) + sum(each * counts.get(name, 0) for name, each in self.lut_of.items())

    def check_fits(self, design: str, cells: Cells, part: Part) -> None:
        """Check that `part` has every resource that the `cells` of the project named `design` take.

        Raises:
            TargetError: the part has too few of one resource; nextpnr would fail while placing.
        """
        for name, wanted, there in self._short(cells, part):
            raise TargetError(
                f"{design} takes {wanted:,} {LABELS[name]} on {part.name}, which has {there:,}; {SMALLER}"
            )

    def _short(self, cells: Cells, part: Part) -> list[tuple[str, int, int]]:
        """Return each resource of which `part` has too little: its name, what `cells` take, what is there."""
        taken = occupancy_of(cells, part).taken
        counted = [(row.resource, row.used, row.capacity) for row in taken if row.resource in self.sites]
        return [row for row in counted if row[1] > row[2]]

    def used(self, sites: Mapping[str, int], around: Cells, own: Cells) -> dict[str, int]:
        """Map each resource to the sites that the project takes, of the `sites` in a report of nextpnr.

        Raises:
            RtlError: a kind of site is missing in the report.
        """
        missing = [site.name for site in self.sites.values() if site.name not in sites]
        if missing:
            raise RtlError(
                f"nextpnr's report counts no {', '.join(missing)} of {self.name}; "
                "name its sites in the table [place] of the family's file in hw/synth"
            )
        return {name: site.without(site.used(sites), around, own) for name, site in self.sites.items()}

    def selecting(self, part: Part, package: str | None, speed: int | None, cells: Cells) -> tuple[str, ...]:
        """Return nextpnr's options for a design of `cells` on `part` in `package` at speed grade `speed`."""
        device = self.devices[part.name]
        spread = self.spread if self.crowding(cells, part) is None else ()
        asked = {"package": package or device.package, "speed": speed}
        return tuple(option.format(**asked) for option in (*device.options, *self.options, *spread))


@cache
def devices_of(family: str) -> Devices:
    """Return the devices of a family whose file in `hw/synth` has a table `place`.

    Raises:
        TargetError: the family is unknown, or no open tool places and routes it.
    """
    found = find_family(family)
    if found.place is None:
        raise TargetError(f"hw/synth/{family}.toml has no table [place]; add nextpnr's names of the family's sites")
    return msgspec.convert({"name": found.name, **found.place}, Devices)
