"""`Part` says what an FPGA offers, `Target` how a network is to be put on it; parts are read from `hw/`."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from fpgaprune.backends import VERILOG
from fpgaprune.design import IO_TYPES, STRATEGIES
from fpgaprune.errors import TargetError, require_kind, shown
from fpgaprune.files import hardware_path, read_toml, shipped_names

CAPACITIES = ("lut", "ff", "dsp", "bram18", "bram4", "uram")

_TEXTS = ("name", "family", "vendor", "source", "date", "note")

# The slowest clock: the oscillator for low power in an iCE40 UltraPlus (FPGA-DS-02008).
SLOWEST_NS = 100_000.0
_ROUNDED = 1.001
# The clock period unless one is named and the board has no oscillator that a bitstream of ours takes.
_USUAL_NS = 5.0
# Their own tools compile no HLS.
_WITHOUT_HLS = ("Lattice", "Gowin")
# What may follow a device's name in an order number, by vendor: package, speed, temperature. With any other letter or
# digit it is another device: xc7a100tcsg324-1 is an xc7a100t, but xcvu9px is not an xcvu9p.
_ORDER_TAILS = {
    "AMD": r"([il]?[a-z]{2,4}\d{3,4})?(-[\w-]+)?",
    "Gowin": r"c?([a-z]{2,3}\d{2,3}[\w/]*)?",
    "Intel": r"(([a-z]\d)?[a-z]\d{2}\w*)?",
}
# A user's own part is named by its file: `board.toml` or `board.toml:name`.
_OWN_FILE = re.compile(r"(?P<file>.+\.toml)(:(?P<name>.+))?")
_ORDER_TAIL = r"(-[\w-]+)?"


@dataclass(frozen=True)
class Part:
    """An FPGA device and its capacities; a figure that is not published, or has no meaning there, is None.

    Attributes:
        name: device name without package and speed grade, for example `xc7z020`.
        family: marketing family, for example `Zynq-7000`.
        vendor: `AMD`, `Intel`, `Lattice`, `Gowin`, `Microchip`.
        lut: look-up tables of 6 inputs (AMD) or of 4 (Lattice, Gowin, Microchip). None for Intel, whose ALM makes one
            function of 6 inputs or two smaller ones.
        ff: flip-flops.
        dsp: DSP slices (AMD), variable-precision blocks (Intel), 18 x 18 multipliers (the others).
        bram18: block RAMs of 18 Kb (a 36 Kb tile counts as two). None if the device's blocks are smaller.
        uram: 288 Kb UltraRAMs.
        source: the vendor's document that states the figures.
        date: when the entry was written, ISO 8601.
        note: what else a reader must know, or "".
        aliases: other beginnings of its order numbers.
        bram4: block RAMs of 4 Kb, where a device has these in place of those of 18 Kb.
    """

    name: str
    family: str
    vendor: str
    lut: int | None
    ff: int | None
    dsp: int | None
    bram18: int | None
    uram: int | None
    source: str
    date: str
    note: str = ""
    aliases: tuple[str, ...] = ()
    bram4: int | None = None

    @property
    def compiles_hls(self) -> bool:
        """Whether a tool of the vendor builds hls4ml projects; if none does, our Verilog is the way to hardware."""
        return self.vendor not in _WITHOUT_HLS

    @property
    def adds_three(self) -> bool:
        """Whether a LUT and its carry chain add a bit of three numbers: AMD's LUTs of six inputs do (UG474, UG574)."""
        return self.vendor == "AMD"

    def is_meant_by(self, text: str) -> bool:
        """Return whether `text` is the device's name or one of its order numbers, in any case."""
        tail = _ORDER_TAILS.get(self.vendor, _ORDER_TAIL)
        wanted = text.lower()
        names = (name.lower() for name in (self.name, *self.aliases))
        return any(wanted.startswith(name) and re.fullmatch(tail, wanted[len(name) :]) for name in names)


@dataclass(frozen=True)
class NamedBoard:
    """A board whose name stands for its FPGA.

    Attributes:
        name: name of the board.
        part: order number of its FPGA.
        source: the document that states it.
        aliases: other names of the board.
    """

    name: str
    part: str
    source: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A part with clock, io type, strategy, reuse factor and back end.

    Attributes:
        part: the device.
        order_number: the part for the vendor tool, for example `xc7z020clg400-1`; the part's name if no more is known.
        clock_ns: clock period in ns.
        io_type: `io_parallel` (everything at once) or `io_stream` (one position per transfer).
        strategy: how multiplications are laid out, one of `design.STRATEGIES`.
        reuse_factor: how often one multiplier is used per output position.
        backend: hls4ml's backend, or `Verilog` for our own Verilog, which needs neither io type nor strategy.
        board: the board that was named instead of a part; boards that differ in their pins may have one part.

    Examples:
        >>> target = fp.Target.of("pynq-z2", clock_ns=5.0)
        >>> target.part.name, target.part.lut
        ('xc7z020', 53200)
    """

    part: Part
    order_number: str
    clock_ns: float = 5.0
    io_type: str = "io_stream"
    strategy: str = "latency"
    reuse_factor: int = 1
    backend: str = "Vitis"
    board: str | None = None

    def __post_init__(self) -> None:
        if self.io_type not in IO_TYPES:
            raise TargetError(f"target io_type is {self.io_type!r}; wanted one of {', '.join(IO_TYPES)}")
        if self.strategy not in STRATEGIES:
            raise TargetError(f"target strategy is {self.strategy!r}; wanted one of {', '.join(STRATEGIES)}")
        require_clock(self.clock_ns, self.part.family)
        if self.reuse_factor < 1:
            raise TargetError(f"target reuse factor is {self.reuse_factor}; wanted 1 or more")

    @classmethod
    def of(
        cls,
        part: str,
        *,
        clock_ns: float | None = None,
        io_type: str = "io_stream",
        strategy: str = "latency",
        reuse_factor: int = 1,
        backend: str | None = None,
        parts_file: str | os.PathLike[str] | None = None,
    ) -> Target:
        """Return the target for `part`: a device name, a full order number such as `xc7a100tcsg324-1`, or a board.

        Args:
            part: the part; or a file of your own parts: `board.toml` if it holds one part, else `board.toml:name`.
            clock_ns: clock period in ns. Unless given it is that of the oscillator of a board for which open tools make
                bitstreams, else 5 ns.
            io_type: `io_parallel` or `io_stream`.
            strategy: one of `design.STRATEGIES`.
            reuse_factor: how often one multiplier is used per output position.
            backend: hls4ml's backend, or `Verilog` for our own. Unless given it is `Vitis`, and `Verilog` for parts of
                Lattice and Gowin, whose tools build no HLS.
            parts_file: a TOML file like those in `hw/parts`, searched before them.

        Raises:
            TargetError: the part is unknown (the message lists the nearest), or an option is not allowed.
        """
        found = find_part(part, parts_file=parts_file)
        own = _OWN_FILE.fullmatch(part.strip())
        board = None if found.is_meant_by(part.strip()) else named_board(part)
        if board is not None:
            part = board.part
        order_number = part.strip() if own is None else own["name"] or found.name
        backend = backend or ("Vitis" if found.compiles_hls else VERILOG)
        name = None if board is None else board.name
        if clock_ns is None:
            clock_ns = usual_clock_ns(part if name is None else name)
        return cls(found, order_number, clock_ns, io_type, strategy, reuse_factor, backend, name)


def require_clock(clock_ns: float, family: str) -> None:
    """Check that a part of `family` can have a clock of this period.

    A family that is not listed, as that of a part of your own, is bounded by the fastest one that is.

    Raises:
        TargetError: the period is no number above 0, or the clock is faster or slower than any on such a part.
    """
    if isinstance(clock_ns, bool) or not isinstance(clock_ns, int | float) or not 0 < clock_ns < math.inf:
        raise TargetError(f"target clock period is {shown(clock_ns)} ns; wanted a number above 0, as 5")
    fastest = _fastest_mhz()
    mhz, most = 1e3 / clock_ns, fastest.get(family, max(fastest.values()))
    asked = f"target clock period is {clock_ns:g} ns, a clock of {mhz:,.6g} MHz"
    # A clock at the bound itself may come back from a period that was rounded.
    if mhz > most * _ROUNDED:
        known = f"the clock network of {family} parts ends" if family in fastest else "those of all known families end"
        raise TargetError(f"{asked}; {known} at {most:g} MHz: wanted {1e3 / most:.4g} ns or more")
    if clock_ns > SLOWEST_NS:
        raise TargetError(f"{asked}; wanted at most {SLOWEST_NS:,.0f} ns, 10 kHz, the slowest oscillator of any part")


@cache
def _fastest_mhz() -> dict[str, float]:
    """Map family of parts to the fastest clock that one can have, from `hw/family_clocks.toml`."""
    document = read_toml(hardware_path("family_clocks.toml"), TargetError, "list of the clocks of families")
    return {row["name"]: float(row["max_mhz"]) for row in document["family"]}


@cache
def list_parts() -> tuple[Part, ...]:
    """List every known part, in the order of the family files and of the parts in them."""
    return tuple(part for path in sorted(hardware_path("parts").glob("*.toml")) for part in read_parts(path))


def parts_like(part: Part) -> list[Part]:
    """Return the listed parts of the same vendor whose LUTs are known, the smallest first."""
    known = (other for other in list_parts() if other.vendor == part.vendor and other.lut)
    return sorted(known, key=lambda other: (other.lut or 0, other.name))


@cache
def list_boards() -> tuple[NamedBoard, ...]:
    """Return every board that stands for its part, from `hw/board_parts.toml`, in the order of that file."""
    document = read_toml(hardware_path("board_parts.toml"), TargetError, "list of boards")
    return tuple(NamedBoard(**{**row, "aliases": tuple(row.get("aliases", ()))}) for row in document["board"])


def require_target(target: object) -> None:
    """Check that `target` is one, and not the name of its part.

    Raises:
        TargetError: it is something else.
    """
    require_kind(target, Target, TargetError, "target", "a Target, as fp.Target.of('xc7z020', clock_ns=5) gives")


def named_board(name: str) -> NamedBoard | None:
    """Return the board called `name`, in any case, with or without its dashes; None if there is none.

    Raises:
        TargetError: that board is sold with several parts; the message lists them.
    """
    for board in list_boards():
        if any(same_board(name, known) for known in (board.name, *board.aliases)):
            return board
    variants = [board.name for board in list_boards() if board.name.lower().startswith(f"{name.strip().lower()}-")]
    if variants:
        raise TargetError(f"board {name!r} is sold with several parts; say which one: {', '.join(variants)}")
    return None


def serial_board(name: str) -> tuple[str, str | None] | None:
    """Return the file of `hw/boards` that `name` means, and the FPGA of the variant that it names, as `ulx3s-25f`.

    None if it means none of them.
    """
    names = shipped_names("boards", ".toml")
    whole = next((known for known in names if same_board(known, name)), None)
    if whole is not None:
        return whole, None
    with suppress(TargetError):  # It is sold with several parts, none of them in hw/boards.
        found = named_board(name)
        of = None if found is None else next((known for known in names if found.name.startswith(f"{known}-")), None)
        if found is not None and of is not None:
            return of, find_part(found.part).name
    return None


@cache
def usual_clock_ns(part: str) -> float:
    """Return the clock period in ns for a part or board for which none is named.

    A bitstream of ours runs at the clock of its board's oscillator; for any other part it is 5 ns.
    """
    board = serial_board(part)
    if board is None:
        return _USUAL_NS
    document = read_toml(hardware_path("boards", f"{board[0]}.toml"), TargetError, "board file")
    return round(1e3 / float(document["clock_mhz"]), 3)


def same_board(name: str, other: str) -> bool:
    """Return whether both are one name of a board, in any case, with or without dashes."""
    plain, likewise = (re.sub(r"[-_ ]", "", one.lower()) for one in (name, other))
    return plain == likewise


def read_parts(path: Path) -> tuple[Part, ...]:
    """Return the parts in a TOML file of the form of `hw/parts/*.toml`.

    Keys before the tables `part` hold for all of them: `family`, `vendor`, `source`, `date`, `note`. A capacity that is
    left out is unknown.

    Raises:
        TargetError: the file is missing or has another form.
    """
    try:
        document = read_toml(path, TargetError, "parts file", "see hw/parts for the form")
    except FileNotFoundError as error:
        raise TargetError(f"parts file {path} does not exist") from error
    rows = document.pop("part", None)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise TargetError(f"parts file {path} has no list of tables 'part'; see hw/parts for the form")
    parts = tuple(_make_part({**document, **row}, path) for row in rows)
    names = [name.lower() for part in parts for name in (part.name, *part.aliases)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TargetError(f"parts file {path} names {twice!r} twice; wanted each once")
    return parts


def find_part(name: str, *, parts_file: str | os.PathLike[str] | None = None) -> Part:
    """Find the part that `name` means: a device name, a full order number such as `xc7a100tcsg324-1`, or a board.

    Args:
        name: the name in any case, for example `zcu104`; or a file of your own parts: `board.toml` if it holds one
            part, else `board.toml:name`.
        parts_file: a TOML file like those in `hw/parts`, searched before them.

    Raises:
        TargetError: the part is unknown (the message lists the nearest names), or the file is missing or malformed.
    """
    require_kind(name, str, TargetError, "part", "its name, as 'xc7z020'")
    own = _OWN_FILE.fullmatch(name.strip())
    if own is not None:
        return _own_part(Path(own["file"]), own["name"])
    known = list_parts() if parts_file is None else (*read_parts(Path(parts_file)), *list_parts())
    board = None if any(part.is_meant_by(name.strip()) for part in known) else named_board(name)
    return _search(name if board is None else board.part, known, [board.name for board in list_boards()])


def _search(name: str, parts: Sequence[Part], boards: Sequence[str] = ()) -> Part:
    wanted = name.strip()
    part = next((part for part in parts if part.is_meant_by(wanted)), None)
    if part is not None:
        return part
    likeness = {n: _likeness(n.lower(), wanted.lower()) for n in (*(p.name for p in parts), *boards)}
    near = [n for n in sorted(likeness, key=likeness.__getitem__, reverse=True)[:4] if likeness[n][0] >= 0.6]
    hint = f"nearest: {', '.join(near)}" if near else "see 'fpgaprune parts'"
    raise TargetError(f"part {name!r} is unknown; {hint}")


def _likeness(name: str, wanted: str) -> tuple[float, int]:
    """Return how alike the two are, 0..1, and how many characters they have in common at their beginning."""
    # An order number is longer than any name, so only as many of its characters count as the name has.
    ratio = difflib.SequenceMatcher(None, wanted[: len(name)], name).ratio()
    return ratio, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, wanted, strict=False)))


def _own_part(path: Path, name: str | None) -> Part:
    parts = read_parts(path)
    if name is not None:
        return _search(name, parts)
    if len(parts) != 1:
        names = ", ".join(part.name for part in parts)
        raise TargetError(f"parts file {path} holds {names}; say which one, as '{path}:{parts[0].name}'")
    return parts[0]


def _make_part(row: Mapping[str, Any], path: Path) -> Part:
    where = f"parts file {path}: part {row.get('name')!r}"
    unknown = sorted(set(row) - {*_TEXTS, *CAPACITIES, "aliases"})
    if unknown:
        raise TargetError(f"{where} has {unknown[0]!r}; allowed are {', '.join((*_TEXTS, *CAPACITIES, 'aliases'))}")
    texts = {key: str(row[key]) for key in _TEXTS if key in row}
    missing = [key for key in _TEXTS if key != "note" and not texts.get(key)]
    if missing:
        raise TargetError(f"{where} has no {missing[0]!r}")
    for key in CAPACITIES:
        value = row.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise TargetError(f"{where} has {key} = {value!r}; wanted a whole number, 0 or more, or leave it out")
    aliases = row.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) and alias for alias in aliases):
        raise TargetError(f"{where} has aliases = {aliases!r}; wanted a list of names")
    return Part(**texts, **{key: row.get(key) for key in CAPACITIES}, aliases=tuple(aliases))  # type: ignore[arg-type]
