"""What the Verilog of a design is made of, as data: modules of `hw/rtl`, datapaths, and sums bit by bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fpgaprune.rtl.circuit import Circuit
from fpgaprune.rtl.links import Module, SerialTrees, Trees
from fpgaprune.rtl.pipelining import Schedule
from fpgaprune.rtl.serial import SerialSums

# Modules of `hw/rtl` that these modules of `hw/rtl` contain.
CONTAINED = {
    "fp_window": ("fp_line_buffer", "fp_taps"),
    "fp_upsample": ("fp_line_buffer",),
    "fp_transpose": ("fp_line_buffer",),
    "fp_channel_window": ("fp_line_buffer",),
    "fp_recurrent": ("fp_fifo",),
    "fp_reduce": ("fp_fifo",),
    "fp_reverse": ("fp_memory",),
}


# Modules of `hw/rtl` that move the registers of a datapath, and through which no data passes.
CONTROLS = ("fp_pipeline", "fp_settle")


@dataclass(frozen=True)
class Instance:
    """A module of `hw/rtl`.

    Attributes:
        module: its name.
        parameters: by name, the numbers among them.
    """

    module: str
    parameters: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, link: Module) -> Instance:
        """Return the instance of `link`."""
        return cls(link.name, {name: int(value) for name, value in link.parameters if name != "FILL"})

    def __getitem__(self, name: str) -> int:
        return self.parameters[name]


@dataclass(frozen=True)
class Pipeline:
    """A circuit as a pipeline, `copies` times side by side.

    Attributes:
        circuit: what is computed.
        plan: its stages; its depth is that of the trees too.
        copies: how often.
        trees: sums that stand before the circuit, where they were counted and not made.
    """

    circuit: Circuit
    plan: Schedule
    copies: int
    trees: Trees | None = None


@dataclass(frozen=True)
class Looped:
    """Parts whose results come back to them a step later.

    Attributes:
        module: leads the data through the loop.
        sums: parts up to the sums of each unit.
        state: parts from those and the state of the step before to the new ones.
    """

    module: Instance
    sums: tuple[Part, ...]
    state: tuple[Part, ...]


Part = Instance | Pipeline | SerialSums | SerialTrees | Looped


@dataclass(frozen=True)
class LayerHardware:
    """The module of a layer, or what stands between two layers.

    Attributes:
        layer: name of the layer in the design; empty where it belongs to none.
        reads: the streams that it reads.
        leaves: the streams that leave it.
        rows: for each stream that it reads, the parts before the streams meet.
        meeting: where two streams meet.
        parts: those behind that, in the order in which data passes them.
    """

    layer: str
    reads: tuple[str, ...]
    leaves: tuple[str, ...]
    rows: tuple[tuple[Part, ...], ...]
    meeting: Instance | None
    parts: tuple[Part, ...]

    @property
    def every(self) -> tuple[Part, ...]:
        """All parts, those of loops too."""
        before = tuple(part for row in self.rows for part in row)
        found = (*before, *self.parts) if self.meeting is None else (*before, self.meeting, *self.parts)
        return tuple(inner for part in found for inner in _within(part))


def _within(part: Part) -> tuple[Part, ...]:
    return (part.module, *part.sums, *part.state) if isinstance(part, Looped) else (part,)


@dataclass(frozen=True)
class DesignHardware:
    """The hardware of a design.

    Attributes:
        layers: modules of layers and what stands between them, in the order of the data.
        inputs: for each input of the design, its stream and the beats of a sample.
        beats: cycles that a sample may take.
    """

    layers: tuple[LayerHardware, ...]
    inputs: tuple[tuple[str, int], ...]
    beats: int
