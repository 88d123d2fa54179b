"""`layouts_for_board`: how slowly a network must run so that the FPGA of a board has room, by its estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Literal

from fpgaprune.design import Design, Input, LayerSpec, Reshape
from fpgaprune.errors import EstimateError, TargetError
from fpgaprune.fabric import (
    Devices,
    Placed,
    bitstream_seconds,
    find_board,
    find_board_router,
    list_serial_boards,
    luts_within,
    netlist_seconds,
    read_back_seconds,
)
from fpgaprune.layout.choice import choose_layout
from fpgaprune.layout.design_layout import DesignLayout, at_interval, slower_layouts
from fpgaprune.measure import LABELS, capacity_of, interval_words
from fpgaprune.target import Part, find_part

# Minutes for a bitstream unless said. A layout is offered if its bitstream takes this share of them on a free core, or,
# where no time is known, if it has so many LUTs.
_MINUTES, _SHARE, _MANY = 5.0, 0.7, 7000
# A layout that is tried after another one takes at most this much of what that one takes.
_LESS = 0.85
# Shares of the room to choose a layout of each layer for.
SHARES = (1.0, 0.75, 0.5, 0.3)
# A layout that takes at most so many times the cycles is about as quick: its place and route takes less time.
AS_QUICK = 1.25
# So often a layout is chosen for one share.
_TIMES = 5


def board_design(design: Design) -> Design:
    """Return the same network with inputs that a serial line can feed: the N values of a vector come one by one.

    A line brings a byte at a time, so a port as wide as all N values only needs registers that gather them. Without it
    the first layer keeps the values in its memory. Every bit of the results is the same. It is for no part of another
    vendor: the boards' FPGAs have LUTs of four inputs.
    """
    wide = [
        layer
        for layer in design.layers
        if isinstance(layer.operation, Input) and len(layer.output_shape) == 1 and layer.name not in design.outputs
    ]
    if not wide:
        return replace(design, part=None)
    names = {layer.name: _unused(f"{layer.name}_vector", design) for layer in wide}
    layers: list[LayerSpec] = []
    for layer in design.layers:
        if layer.name not in names:
            layers.append(replace(layer, inputs=tuple(names.get(name, name) for name in layer.inputs)))
            continue
        shape, types = layer.output_shape, {"result": layer.types["result"]}
        layers.append(replace(layer, output_shape=(*shape, 1), model_shape=shape))
        layers.append(LayerSpec(names[layer.name], (layer.name,), shape, types, operation=Reshape()))
    return replace(design, part=None, layers=tuple(layers))


def _unused(name: str, design: Design) -> str:
    while any(layer.name == name for layer in design.layers):
        name += "_"
    return name


def layouts_for_board(
    design: Design,
    board: str,
    interval: int | None = None,
    minutes: float = _MINUTES,
    *,
    before: DesignLayout | None = None,
) -> Iterator[tuple[DesignLayout, str]]:
    """Yield the quickest layout of `design` for which the FPGA of `board` has room, then ever smaller ones.

    Place and route needs some room to spare, and time: a layout is small enough for it to end. The estimate of the
    Verilog decides, so nothing is written or synthesised. Each comes with a sentence that says why it is the next; one
    that follows takes at most `_LESS` of the one before it, for which place and route took too long.

    Args:
        design: what is to be computed, as `board_design` gives it.
        board: a board of `hw/boards`, or a TOML file.
        interval: cycles for each sample; chosen unless given. With it, there is one layout.
        minutes: most minutes for place and route; the more there are, the more LUTs it bears.
        before: a layout for which place and route found no place, or took too long: all are smaller.

    Raises:
        TargetError: the design fits in no layout; the message names the board that would take it.
        UnsupportedLayerError, DesignError, RtlError: as for `fpgaprune.to_verilog`.
    """
    room = _Room.on(board, minutes)
    if interval is not None:
        laid = at_interval(design, room.part, interval)
        yield laid, f"{_often(laid)}, as asked, takes {room.amounts(laid)}{room.wait(laid)}"
        return
    usual = at_interval(design, room.part)
    said, smallest, last = f"parallel takes {room.amounts(usual)}{room.wait(usual)}", usual, before
    if room.holds(usual) and room.is_smaller(usual, last):
        yield usual, f"parallel, {_often(usual)}, takes {room.amounts(usual)}"
        last = usual
    for found in _slower(design, room):
        if room.holds(found) and room.is_smaller(found, last):
            yield found, f"{said}; {_often(found)} takes {room.amounts(found)}"
            last = found
        smallest = min(smallest, found, key=room.order)
    if last is not before:
        return
    # What fills more than the room may still fit.
    with suppress(EstimateError):
        fills = DesignLayout.of_chosen(choose_layout(design, room.part, share=1.0), room.part)
        smallest = min(smallest, fills, key=room.order)
    if not room.is_smaller(smallest, before):
        return
    if room.exceeded(smallest):
        raise TargetError(
            f"{design.name} fits {room.board} at no interval: {_often(smallest)} still takes {room.amounts(smallest)}; "
            f"prune more or use fewer bits; {larger_board(design, board)}"
        )
    if smallest is usual:
        yield usual, f"{said}, and no other layout takes less: place and route may take long"
        return
    taken = f"the smallest layout, {_often(smallest)}, takes {room.amounts(smallest)}"
    yield smallest, f"{said}; {taken}: place and route may take long"


def named_on(laid: DesignLayout, board: str) -> str:
    """Name `laid` by what sets it apart from others: `a sample every 63 cycles, in 4,766 LUT`."""
    return f"{_often(laid)}, in {_Room.on(board).luts(laid):,} LUT"


def bitstream_seconds_on(laid: DesignLayout, board: str) -> tuple[float, float] | None:
    """Return the seconds that making and reading the bitstream of `laid` for `board` take; None if there is no law.

    They are those of a free core of the reference.
    """
    room = _Room.on(board)
    luts = room.luts(laid)
    made = bitstream_seconds(room.family, luts)
    return None if made is None else (made, read_back_seconds(room.family, luts) + netlist_seconds(room.family, luts))


def larger_board(design: Design, board: str) -> str:
    """Say which board with a larger FPGA than `board` has room for the design, by the estimate."""
    room = _Room.on(board)
    rooms = {name: _Room.on(name) for name in list_serial_boards()}
    for name, other in sorted(rooms.items(), key=lambda item: item[1].part.lut or 0):
        if (other.part.lut or 0) <= (room.part.lut or 0):
            continue
        layouts = chain([at_interval(design, other.part)], _slower(design, other))
        found = next((laid for laid in layouts if other.holds(laid)), None)
        if found is not None:
            return f"{find_board(name).name} ({name}) would take it: {_often(found)} takes {other.amounts(found)}"
    return "no board that fpgaprune knows would take it"


@dataclass(frozen=True)
class _Room:
    """What the FPGA of a board has for a network after place and route that takes `minutes`."""

    board: str
    family: str
    part: Part
    devices: Devices
    minutes: float

    @classmethod
    def on(cls, name: str, minutes: float = _MINUTES) -> _Room:
        place, router, _ = find_board_router(name)
        return cls(place.name, router.family, find_part(place.device), router.devices, minutes)

    @property
    def many(self) -> float:
        """The LUTs that place and route bears in the minutes."""
        return luts_within(self.family, 60 * self.minutes * _SHARE) or _MANY * self.minutes / _MINUTES

    @property
    def memories(self) -> Mapping[str, int]:
        """Cell type to the places for such memories, which are made of LUTs."""
        return self.devices.devices[self.part.name].memories

    def placed(self, laid: DesignLayout, end: Literal["low", "value"] = "value") -> tuple[Placed, ...]:
        return self.devices.placed_by_estimate(_known(laid, end), laid.memories, self.part)

    def holds(self, laid: DesignLayout) -> bool:
        return self.fullness(laid) <= 1

    def fullness(self, laid: DesignLayout) -> float:
        """Return the share of the resource that is nearest to its limit, or furthest beyond it."""
        return max(self.by_kind(laid).values())

    def by_kind(self, laid: DesignLayout) -> dict[str, float]:
        """Return the share of the room for each kind of cell that `laid` takes."""
        found = {row.kind: row.fullness for row in self.placed(laid)}
        return {**found, "lut": max(found["lut"], self.luts(laid) / self.many)}

    def is_smaller(self, laid: DesignLayout, other: DesignLayout | None) -> bool:
        """Return whether `laid` takes clearly less than `other`, or nothing was tried before it."""
        return other is None or self.fullness(laid) <= _LESS * self.fullness(other)

    def order(self, laid: DesignLayout) -> list[float]:
        """Return the shares of `laid`, the largest first: the smallest layout has the least of them."""
        return sorted((row.share for row in self.placed(laid)), reverse=True)

    @property
    def usable(self) -> Part:
        """The FPGA, less what place and route needs to spare."""
        there = capacity_of(self.part)
        counts: dict[str, Any] = {name: int(share * (there[name] or 0)) for name, share in self.devices.room.items()}
        return replace(self.part, **{**counts, "lut": int(min(counts["lut"], self.many))})

    def exceeded(self, laid: DesignLayout) -> bool:
        """Return whether the FPGA is too small even if the lower end of the estimate is true."""
        return any(row.share > 1 for row in self.placed(laid, "low"))

    def luts(self, laid: DesignLayout) -> int:
        return round(self.devices.placed_luts(_known(laid)))

    def wait(self, laid: DesignLayout) -> str:
        """Return what to know of a design whose place and route is no matter of minutes."""
        return f" (place and route: more than {self.minutes:g} minutes)" if self.luts(laid) > self.many else ""

    def amounts(self, laid: DesignLayout) -> str:
        """Say `about 18,900 (estimated, placed) of 20,736 LUT`, and the shortest resource if that is another."""
        tightest = max(self.placed(laid), key=lambda row: row.fullness).kind
        there: dict[str, int | None] = {**laid.capacity, **self.memories}
        taken = {**_known(laid), **dict.fromkeys(self.memories, laid.memories), "lut": self.luts(laid)}
        named = dict.fromkeys(("lut", tightest))
        # Place and route may take LUTs for carries too; no figure counts the serial harness around the network.
        placed = "estimated, placed" if self.devices.lut_of else "estimated"
        stage = {name: placed if name == "lut" else "estimated" for name in named}
        rows = (f"{taken[name]:,} ({stage[name]}) of {there[name] or 0:,} {LABELS.get(name, name)}" for name in named)
        return f"about {' and '.join(rows)}"


def _known(laid: DesignLayout, end: Literal["low", "value"] = "value") -> dict[str, int]:
    return {name: count for name, count in laid.counts(end).items() if count is not None}


def _often(laid: DesignLayout) -> str:
    return f"a sample {interval_words(laid.interval_cycles)}"


def _slower(design: Design, room: _Room) -> Iterator[DesignLayout]:
    """Yield slower layouts: of those that the room holds the smallest that is about as quick as any; then all.

    Some lay all layers out by one rule, some each layer by its own.
    """
    layouts = [*islice(slower_layouts(design, room.part), 1, None), *_chosen(design, room, SHARES[:1])]
    if held := [laid for laid in layouts if room.holds(laid)]:
        most = AS_QUICK * min(laid.interval_cycles for laid in held)
        yield min((laid for laid in held if laid.interval_cycles <= most), key=room.fullness)
    # Smaller shares are for whoever gives the first layout up, as each takes seconds.
    layouts += _chosen(design, room, SHARES[1:])
    yield from sorted(layouts, key=lambda laid: (laid.interval_cycles, room.fullness(laid)))


def _chosen(design: Design, room: _Room, shares: Sequence[float]) -> list[DesignLayout]:
    """Return layouts of each layer: for each share of the room ever smaller ones, until one takes no more of it."""
    found: list[DesignLayout] = []
    # Where one share is too little, a smaller one is as well.
    with suppress(EstimateError):
        for share in shares:
            part = room.usable
            for _ in range(_TIMES):
                found.append(DesignLayout.of_chosen(choose_layout(design, part, share=share), room.part))
                # The choice counts small memories by itself, whatever the share.
                kinds = room.by_kind(found[-1]).items()
                over = max(each for kind, each in kinds if kind not in room.memories) / share
                if over <= 1:
                    break
                # Registers may take LUTs too, which the choice does not count.
                part = replace(part, lut=int(min(part.lut or 0, (found[-1].counts()["lut"] or 0) / share) / over))
    return found
