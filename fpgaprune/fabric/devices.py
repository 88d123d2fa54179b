"""`Devices`: the parts of a family that nextpnr knows, and its names for them, from `hw/synth`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from fpgaprune.errors import RtlError, TargetError
from fpgaprune.fabric.cells import find_family
from fpgaprune.measure import Cells, capacity_of
from fpgaprune.target import Part, find_part

# What helps where a design is too large.
SMALLER = "choose a larger device, prune more, or give a sample more cycles (interval)"


@dataclass(frozen=True)
class SiteKind:
    """One kind of place on a device.

    Attributes:
        name: in nextpnr's reports.
        holds: figures of which one site holds one each, as `("lut", "ff")` of a logic cell.
    """

    name: str
    holds: tuple[str, ...]

    def without(self, used: int, around: Cells, own: Cells) -> int:
        """Of `used` sites, those that hold something of the project.

        Args:
            used: by the project and by what stands around it, together.
            around: what stands around the project; it is packed as closely as possible.
            own: the project. Where a site holds several figures, it may hold some of both, and is then the project's.
        """
        rest = used - self._needed(around)
        return max(rest, self._needed(own)) if len(self.holds) > 1 else rest

    def _needed(self, cells: Cells) -> int:
        return max(cells[figure] or 0 for figure in self.holds)


@dataclass(frozen=True)
class Device:
    """A part as nextpnr selects it.

    Attributes:
        options: select it; `{package}` and `{speed}` stand for what is asked.
        package: the one that is taken where none is named.
    """

    options: tuple[str, ...]
    package: str


@dataclass(frozen=True)
class Devices:
    """The parts of a family that nextpnr places and routes.

    Attributes:
        name: of the family, as its vendor says it.
        options: of nextpnr, beside those of the device.
        speeds: speed grades, the slowest first; none where the part's name has it.
        sites: figure -> the sites that are counted for it.
        room: figure -> the share of a device up to which a design is comfortable there.
        smallest_first: parts to choose from where none is named.
        devices: part -> device.
    """

    name: str
    options: tuple[str, ...]
    speeds: tuple[int, ...]
    sites: Mapping[str, SiteKind]
    room: Mapping[str, float]
    smallest_first: tuple[str, ...]
    devices: Mapping[str, Device]

    def find(self, device: str) -> Part:
        """The part called `device`.

        Raises:
            TargetError: there is no such part, or it is not of this family.
        """
        part = find_part(device)
        if part.name not in self.devices:
            raise TargetError(f"device {part.name!r} is no {self.name}; wanted one of {', '.join(self.devices)}")
        return part

    def smallest(self, cells: Cells) -> Part:
        """The smallest part that holds `cells` with room to spare; the largest where none does."""
        parts = [find_part(name) for name in self.smallest_first]
        return next((part for part in parts if self._comfortable(cells, part)), parts[-1])

    def _comfortable(self, cells: Cells, part: Part) -> bool:
        there = capacity_of(part)
        return all((cells[name] or 0) <= share * (there[name] or 0) for name, share in self.room.items())

    def check_fits(self, design: str, cells: Cells, part: Part) -> None:
        """`part` has as many of everything as the `cells` of the project named `design` take.

        Raises:
            TargetError: it has too few of one kind; nextpnr would fail while placing.
        """
        for name, wanted, there in cells.against(capacity_of(part)):
            if name in self.sites and wanted > there:
                raise TargetError(f"{design} takes {wanted:,} {name} on {part.name}, which has {there:,}; {SMALLER}")

    def used(self, sites: Mapping[str, int], around: Cells, own: Cells) -> dict[str, int]:
        """Figure -> sites that the project takes, of all those in a report of nextpnr.

        Raises:
            RtlError: the report counts no site of that name.
        """
        missing = [site.name for site in self.sites.values() if site.name not in sites]
        if missing:
            raise RtlError(
                f"nextpnr's report counts no {', '.join(missing)} of {self.name}; "
                "name its sites in the table [place] of the family's file in hw/synth"
            )
        return {figure: site.without(sites[site.name], around, own) for figure, site in self.sites.items()}

    def selecting(self, part: Part, package: str | None, speed: int | None) -> tuple[str, ...]:
        """Nextpnr's options for `part` in `package` at grade `speed`."""
        device = self.devices[part.name]
        asked = {"package": package or device.package, "speed": speed}
        return tuple(option.format(**asked) for option in (*device.options, *self.options))


@cache
def devices_of(family: str) -> Devices:
    """The devices of a family whose file in `hw/synth` has a table `place`.

    Raises:
        TargetError: the family is unknown, or no open tool places and routes it.
    """
    found = find_family(family)
    if found.place is None:
        raise TargetError(f"hw/synth/{family}.toml has no table [place]; add what nextpnr calls the family's sites")
    place = dict(found.place)
    return Devices(
        name=found.name,
        options=tuple(place["options"]),
        speeds=tuple(place.get("speeds", ())),
        sites={figure: SiteKind(row["name"], tuple(row["holds"])) for figure, row in place["sites"].items()},
        room=place["room"],
        smallest_first=tuple(place["smallest_first"]),
        devices={part: Device(tuple(row["options"]), row["package"]) for part, row in place["devices"].items()},
    )
