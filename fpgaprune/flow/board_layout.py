"""`layout_for_board`: how slowly a network must run so that a board's FPGA has room for it, by its Verilog's price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fpgaprune.design import Design
from fpgaprune.errors import EstimateError, TargetError
from fpgaprune.estimate import choose_layout, verilog_price
from fpgaprune.fabric import Devices, find_board, find_board_router, list_serial_boards
from fpgaprune.measure import ESTIMATED, LABELS, VerilogPrice, capacity_of, interval_words
from fpgaprune.target import Part, find_part

# Cycles for each sample, as multiples of the fewest that the design can have.
_SLOWER = (4, 16, 64, 256)
# The packaged nextpnr places and routes 7,000 LUT on an ECP5 in a minute of a free core; more did not end in five.
_MANY = 7000
# Shares of the FPGA to choose a layout of each layer for, where no interval is enough for all layers alike.
_SHARES = (0.6, 0.4, 0.25)


@dataclass(frozen=True)
class BoardLayout:
    """A layout of a design on one board.

    Attributes:
        why: what was chosen, and for which price, as a sentence.
        fields: of `VerilogLayout`; none for the usual layout, in which a sample takes the fewest cycles.
    """

    why: str
    fields: Mapping[str, Any] = field(default_factory=dict)


def layout_for_board(design: Design, board: str, interval: int | None = None) -> BoardLayout:
    """The quickest layout of `design` for which the FPGA of `board` has room, and some to spare for place and route.

    The price of the Verilog decides, so nothing is written or synthesised.

    Args:
        design: what is to be computed.
        board: a board of `hw/boards`, or a TOML file.
        interval: cycles for each sample; chosen unless given.

    Raises:
        TargetError: the design fits in no layout; the message names the board that would take it.
        UnsupportedLayerError, DesignError, RtlError: as for `fpgaprune.to_verilog`.
    """
    room = _Room.on(board)
    usual = room.plain(design, 0 if interval is None else interval)
    if interval is not None:
        return BoardLayout(f"{usual}, as asked, takes {room.amounts(usual)}{room.wait(usual)}", usual.fields)
    if room.holds(usual):
        return BoardLayout(f"parallel, {usual}, takes {room.amounts(usual)}{room.wait(usual)}")
    quickest, smallest = _quickest(design, room, usual)
    said = f"parallel takes {room.amounts(usual)}"
    if quickest is not None:
        taken = f"{quickest} takes {room.amounts(quickest)}{room.wait(quickest)}"
        return BoardLayout(f"{said}; {taken}", quickest.fields)
    if room.exceeded(smallest):
        raise TargetError(
            f"{design.name} fits {room.board} at no interval: {smallest} still takes {room.amounts(smallest)}; "
            f"prune more or use fewer bits; {_other_board(design, room)}"
        )
    if smallest is usual:
        return BoardLayout(f"{said}, and no other layout takes less: place and route may take long")
    return BoardLayout(
        f"{said}; the smallest layout, {smallest}, takes {room.amounts(smallest)}: place and route may take long",
        smallest.fields,
    )


@dataclass(frozen=True)
class _Priced:
    """A layout and its price; as text, how often a sample can come."""

    fields: Mapping[str, Any]
    price: VerilogPrice

    def __str__(self) -> str:
        return f"a sample {interval_words(self.price.interval_cycles)}"

    def counts(self, end: str = "value") -> dict[str, int]:
        """Resource -> the middle of the price, or its `low` end."""
        found = {name: self.price.resources[name] for name in ESTIMATED}
        return {name: getattr(figure, end) for name, figure in found.items() if figure is not None}


@dataclass(frozen=True)
class _Room:
    """What the FPGA of a board has for a network."""

    board: str
    part: Part
    devices: Devices
    family: str

    @classmethod
    def on(cls, name: str) -> _Room:
        place, router, _ = find_board_router(name)
        devices = router.devices
        return cls(place.name, find_part(place.device), devices, devices.priced_as or router.family)

    def plain(self, design: Design, interval: int) -> _Priced:
        """All layers by the same rule, with so many cycles for each sample."""
        return _Priced({"interval": interval}, verilog_price(design, self.family, interval=interval))

    def shares(self, priced: _Priced, end: str = "value") -> dict[str, float]:
        return self.devices.shares(priced.counts(end), self.part)

    def holds(self, priced: _Priced) -> bool:
        return all(share <= self.devices.room[name] for name, share in self.shares(priced).items())

    def exceeded(self, priced: _Priced) -> bool:
        """Whether the FPGA is too small even if the lower end of the price is true."""
        return any(share > 1 for share in self.shares(priced, "low").values())

    def luts(self, priced: _Priced) -> int:
        return round(self.devices.placed_luts(priced.counts()))

    def wait(self, priced: _Priced) -> str:
        """What to know of a design whose place and route is no matter of minutes."""
        return ": place and route takes more than five minutes" if self.luts(priced) > _MANY else ""

    def amounts(self, priced: _Priced) -> str:
        """`about 18,900 (estimated, placed) of 20,736 LUT`, and the resource that is shortest if that is another."""
        shares, there = self.shares(priced), capacity_of(self.part)
        tightest = max(shares, key=lambda name: shares[name] / self.devices.room[name])
        taken = {**priced.counts(), "lut": self.luts(priced)}
        named = dict.fromkeys(("lut", tightest))
        # Place and route takes LUTs for carries too; no figure counts the serial port around the network.
        stage = {name: "estimated, placed" if name == "lut" else "estimated" for name in named}
        rows = (f"{taken[name]:,} ({stage[name]}) of {there[name] or 0:,} {LABELS[name]}" for name in named)
        return f"about {' and '.join(rows)}"


def _quickest(design: Design, room: _Room, usual: _Priced) -> tuple[_Priced | None, _Priced]:
    """The quickest slower layout for which there is room, None if there is none, and the smallest that was seen."""
    smallest = usual
    for found in _slower(design, room, usual):
        if room.holds(found):
            return found, found
        smallest = min(smallest, found, key=lambda priced: sorted(room.shares(priced).values(), reverse=True))
    return None, smallest


def _slower(design: Design, room: _Room, usual: _Priced) -> Iterator[_Priced]:
    """Layouts in which a sample takes more cycles: all layers by one rule, then a rule for each layer."""
    yield from _intervals(design, room, usual)
    # This takes seconds, so it comes last. Where one share is too little, a smaller one is as well.
    with suppress(EstimateError):
        for share in _SHARES:
            chosen = choose_layout(design, room.part, room.family, share=share)
            yield _Priced(chosen.settings, chosen.price)


def _intervals(design: Design, room: _Room, usual: _Priced) -> Iterator[_Priced]:
    for factor in _SLOWER:
        yield room.plain(design, factor * max(usual.price.interval_cycles, 1))


def _other_board(design: Design, room: _Room) -> str:
    """Which board with a larger FPGA would take the design, by the price."""
    rooms = {name: _Room.on(name) for name in list_serial_boards()}
    for name, other in sorted(rooms.items(), key=lambda item: item[1].part.lut or 0):
        if (other.part.lut or 0) <= (room.part.lut or 0):
            continue
        usual = other.plain(design, 0)
        found = next((one for one in (usual, *_intervals(design, other, usual)) if other.holds(one)), None)
        if found is not None:
            return f"{find_board(name).name} ({name}) would take it: {found} takes {other.amounts(found)}"
    return "no board that fpgaprune knows would take it"
