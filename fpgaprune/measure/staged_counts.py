"""`StagedCounts`: what one design takes as our own Verilog, stage by stage, without and with its serial harness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, to_builtins

from fpgaprune.measure.estimate import VerilogPrice
from fpgaprune.measure.measurement import from_plain, interval_words
from fpgaprune.measure.open_tools import PlaceAndRoute, Synthesis
from fpgaprune.measure.resources import LABELS, OF_VERILOG, Figure, Resources

Row = tuple[str | int | None, ...]
HEADERS = ("resource", "estimated", "synthesised", "placed", "synthesised,\nwith harness", "placed,\nwith harness")


class StagedCounts(Struct, frozen=True):
    """What one design takes in one layout: one count for each stage, None where the stage was not reached.

    Attributes:
        design: name of the design.
        interval_cycles: cycles between two samples.
        where: family of open synthesis, device, and board, as far as they are known.
        estimated: what open synthesis is expected to count.
        synthesised: what open synthesis counted for the whole design, flattened.
        placed: sites after place and route, without those of a harness.
        synthesised_in_harness: what open synthesis counted with the serial harness of the board.
        placed_in_harness: sites after place and route with the serial harness of the board.
    """

    design: str
    interval_cycles: int
    where: tuple[str, ...]
    estimated: Resources[Figure]
    synthesised: Resources[int] = Resources()
    placed: Resources[int] = Resources()
    synthesised_in_harness: Resources[int] = Resources()
    placed_in_harness: Resources[int] = Resources()

    @classmethod
    def of(
        cls,
        price: VerilogPrice,
        family: str,
        synthesis: Synthesis | None = None,
        route: PlaceAndRoute | None = None,
        bitstream: Mapping[str, Any] | None = None,
    ) -> StagedCounts:
        """Return the counts of the design that `price` estimates for `family`, by all tools that counted this layout.

        `bitstream` is that of a board as JSON data; its place and route stands in where there is no other.
        """
        made = {} if bitstream is None else bitstream
        harness = {key: _counts(made.get(key)) for key in ("used", "used_alone", "synthesised", "synthesised_alone")}
        synthesised = None if synthesis is None else synthesis.whole.cells
        placed = None if route is None else route.used
        device = made.get("device") if route is None else route.device
        named = (family, device, made.get("board"))
        return cls(
            price.design,
            price.interval_cycles,
            tuple(dict.fromkeys(str(name) for name in named if name)),
            price.resources,
            harness["synthesised_alone"] if synthesised is None else synthesised,
            harness["used_alone"] if placed is None else placed,
            harness["synthesised"],
            harness["used"],
        )

    @property
    def title(self) -> str:
        """Which design the counts are of, and where."""
        return f"{self.design} as our Verilog, a sample {interval_words(self.interval_cycles)}: {', '.join(self.where)}"

    def rows(self) -> list[Row]:
        """List each resource that is known at some stage: its name, and its count at each stage of `HEADERS`."""
        found: list[Row] = []
        for name in OF_VERILOG:
            figure = self.estimated[name]
            tools = (self.synthesised, self.placed, self.synthesised_in_harness, self.placed_in_harness)
            counts = (None if figure is None else figure.value, *(stage[name] for stage in tools))
            if any(count is not None for count in counts):
                found.append((LABELS[name], *counts))
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON data."""
        plain: dict[str, Any] = to_builtins(self)
        return plain

    def ranges(self) -> str:
        """Return the 80 % range of each estimate, in a line."""
        known = [(LABELS[name], figure) for name in OF_VERILOG if (figure := self.estimated[name]) is not None]
        return ", ".join(f"{label} {figure.low:,} to {figure.high:,}" for label, figure in known)


def _counts(data: object) -> Resources[int]:
    return Resources() if data is None else from_plain(data, Resources[int], "what a bitstream takes")
