"""What open tools measure of a network as Verilog: simulation, synthesis, place and route."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from fpgaprune.measure.chosen_layout import ChosenLayout
from fpgaprune.measure.measurement import OPEN_SYNTH, ROUTE_ECP5, Measurement, Stage, from_plain, to_plain
from fpgaprune.measure.occupancy import Occupancy, occupancy_of
from fpgaprune.measure.resources import RESOURCES, Resources, add
from fpgaprune.target import Part

FLATTENED, SUM = "whole design, flattened", "sum of its layers"


class Cells(Resources[int], frozen=True, kw_only=True, omit_defaults=False):
    """What a netlist takes, counted from its cells; a resource that the family does not have is None.

    Attributes:
        types: cell type -> number of cells in the netlist.
    """

    types: Mapping[str, int] = {}

    @classmethod
    def sum(cls, parts: Iterable[Cells]) -> Cells:
        """Return the sum of `parts`; what one of them does not know is unknown in the sum."""
        listed = list(parts)
        counts = {name: add(part[name] for part in listed) for name in RESOURCES}
        return cls(**counts, types=_merged([p.types for p in listed]))


class ModuleSynthesis(Struct, frozen=True):
    """One module of a project, synthesised by itself and flattened.

    Attributes:
        layer: name of the layer; None for the whole design.
        module: its name in Verilog.
        cells: what it takes; None if synthesis did not end in time.
        kept: multiplications by a constant that the module computes; None if it has no constants.
        dropped: multiplications that a zero weight saved; None if it has no constants.
        seconds: time of the synthesis when it ran.
        left_out: why there are no cells; empty if there are.
    """

    layer: str | None
    module: str
    cells: Cells | None
    kept: int | None = None
    dropped: int | None = None
    seconds: float | None = None
    left_out: str = ""


class Synthesis(Struct, frozen=True):
    """A project after open synthesis for one device family.

    Attributes:
        family: device family.
        tool: name and version of the tool.
        note: what the figures count.
        layers: the layers, in order of execution.
        whole: the whole design, flattened.
        stage: stage of the figures.
    """

    family: str
    tool: str
    note: str
    layers: tuple[ModuleSynthesis, ...]
    whole: ModuleSynthesis
    stage: Stage = OPEN_SYNTH

    @property
    def total(self) -> Cells | None:
        """The cells of the whole design, else the sum of all layers; None if both are unknown."""
        if self.whole.cells is not None:
            return self.whole.cells
        known = [layer.cells for layer in self.layers if layer.cells is not None]
        return Cells.sum(known) if known and len(known) == len(self.layers) else None

    @property
    def total_of(self) -> str | None:
        """What `total` counts: `FLATTENED`, or `SUM`, without the hardware between layers; None without a total."""
        if self.total is None:
            return None
        return FLATTENED if self.whole.cells is not None else SUM

    @property
    def measurements(self) -> tuple[Measurement[int], ...]:
        """The measurement of each layer, and last of the whole design."""
        counted = [(layer.layer, layer.cells) for layer in self.layers] + [(None, self.total)]
        return tuple(Measurement(self.stage, layer, cells or Resources()) for layer, cells in counted)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON data, with the total."""
        return {**to_plain(self), "total": to_plain(self.total), "total_of": self.total_of}


class Routed(Struct, frozen=True):
    """One run of place and route.

    Attributes:
        seed: seed of its random numbers.
        fmax_mhz: highest clock frequency by static timing analysis, at the slowest corner of the speed grade.
        used: sites that the project takes, without the harness.
        seconds: time of the run.
        left_out: why there are no figures; empty if there are.
    """

    seed: int
    fmax_mhz: float | None = None
    used: Resources[int] | None = None
    seconds: float | None = None
    left_out: str = ""


class PlaceAndRoute(Struct, frozen=True):
    """A project placed and routed with several seeds.

    Attributes:
        device: name of the part.
        package: its package.
        speed: its speed grade; None if the part's name states it.
        tool: name and version of the tool.
        target_mhz: frequency asked for.
        runs: one for each seed.
        capacity: sites of the device.
        stage: stage of the figures.
    """

    device: str
    package: str
    speed: int | None
    tool: str
    target_mhz: float
    runs: tuple[Routed, ...]
    capacity: Resources[int]
    stage: Stage = ROUTE_ECP5

    @property
    def reached_mhz(self) -> tuple[float, ...]:
        """The frequencies of the runs that ended."""
        return tuple(run.fmax_mhz for run in self.runs if run.fmax_mhz is not None)

    @property
    def fmax_mhz(self) -> float | None:
        """The median over the runs that ended; None if none did."""
        return statistics.median(self.reached_mhz) if self.reached_mhz else None

    @property
    def fmax_range_mhz(self) -> tuple[float, float] | None:
        """The lowest and the highest over the runs that ended; None if none did."""
        return (min(self.reached_mhz), max(self.reached_mhz)) if self.reached_mhz else None

    @property
    def used(self) -> Resources[int] | None:
        """Sites that the project takes; packing does not depend on the seed."""
        return next((run.used for run in self.runs if run.used is not None), None)

    @property
    def whole(self) -> Measurement[int]:
        """What the whole design takes, and its clock period."""
        clock_ns = None if self.fmax_mhz is None else round(1e3 / self.fmax_mhz, 3)
        return Measurement(self.stage, None, self.used or Resources(), clock_ns=clock_ns)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON data, with the figures over all seeds."""
        derived = {"fmax_mhz": self.fmax_mhz, "fmax_range_mhz": self.fmax_range_mhz, "used": self.used}
        return {**to_plain(self), **to_plain(derived)}


class Simulated(Struct, frozen=True):
    """The Verilog's simulation on held-out samples.

    Attributes:
        left_out: why there was none; None if there was.
        tool: name and version of the simulator.
        samples: number of samples, sent without a pause.
        outputs_unlike_emulation: output values with other bits than the emulation's.
        latency_cycles: from the first value in to the last value out.
        interval_cycles: between two samples; None for one sample.
    """

    left_out: str | None = None
    tool: str = ""
    samples: int = 0
    outputs_unlike_emulation: int = 0
    latency_cycles: int | None = None
    interval_cycles: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the figures, or why there are none, as JSON data."""
        plain: dict[str, Any] = to_plain(self)
        reason = plain.pop("left_out")
        return plain if reason is None else {"left_out": reason}


class Kernels(Struct, frozen=True):
    """The kernels of one convolution.

    Attributes:
        layer: name of the convolution.
        kept: kernels with a weight that is not zero in hardware.
        total: all kernels.
    """

    layer: str
    kept: int
    total: int


class Measured(Struct, frozen=True, rename={"synthesis": str(OPEN_SYNTH), "route": str(ROUTE_ECP5)}):
    """What a run measured with open tools, in the form of `measure.json`.

    Attributes:
        part_family: the family of open synthesis that the run's own part belongs to; None if there is none.
        kernels: the kernels of each convolution.
        synthesis: family -> synthesis.
        route: place and route; None if it was not asked for.
        simulation: simulation of the Verilog.
        built: layer -> note on how its Verilog was made.
        bitstream: the file that configures a board, as JSON data; None if it was not asked for.
        layout: how the layers were laid out for a part; None if no part was named for that.
        format: format of the file.
    """

    part_family: str | None
    kernels: tuple[Kernels, ...]
    synthesis: Mapping[str, Synthesis]
    route: PlaceAndRoute | None
    simulation: Simulated
    built: Mapping[str, str] = {}
    bitstream: Mapping[str, Any] | None = None
    layout: ChosenLayout | None = None
    format: Literal[1] = 1

    def counted_on(self, part: Part, family: str | None = None) -> Occupancy | None:
        """Return what the design takes of `part`, of `family`, as synthesis counted it; None if that is not known.

        Without a family, `part` is that of the run.

        The sum of the layers leaves out the logic between them, so that it cannot say that a design fits.
        """
        found = self.synthesis.get(family or self.part_family or "")
        if found is None or found.total is None:
            return None
        counted = occupancy_of(found.total, part, whole=found.total_of != SUM)
        return None if found.total_of == SUM and counted.fits is None else counted

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        return {
            **to_plain(self),
            "simulation": self.simulation.to_json(),
            str(OPEN_SYNTH): {family: found.to_json() for family, found in self.synthesis.items()},
            str(ROUTE_ECP5): None if self.route is None else self.route.to_json(),
            "layout": None if self.layout is None else self.layout.to_json(),
        }

    @classmethod
    def from_json(cls, data: object) -> Measured:
        """Return the measurement that `to_json` gave.

        Raises:
            ReportError: the data has another form.
        """
        return from_plain(data, cls, "what a run measured")


def _merged(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = sorted({name for each in counts for name in each})
    return {name: sum(each.get(name, 0) for each in counts) for name in names}
