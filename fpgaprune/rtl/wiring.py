"""`Wiring`: the streams between the modules of a network, with forks where one has several readers, and queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fpgaprune.design import Design, LayerSpec
from fpgaprune.errors import RtlError
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.layer_text import LayerText
from fpgaprune.rtl.links import Need, Stream
from fpgaprune.rtl.pairing import Pair
from fpgaprune.rtl.planned import Instance, LayerHardware
from fpgaprune.rtl.project import RtlPort
from fpgaprune.rtl.top import Placed, Wire


@dataclass(frozen=True)
class Edge:
    """Output stream of a layer.

    Attributes:
        wire: its name in the top module.
        stream: the shape and the types of its beats.
        needs: for each input of the network and each fork before, how many of its beats each beat of the stream waits
            for.
        held: beats that the modules from the inputs to here can hold.
    """

    wire: str
    stream: Stream
    needs: Mapping[str, Need]
    held: int


class Wiring:
    """The streams of a network as it grows.

    Attributes:
        names: of the layers' modules.
        waits: whether a pipeline stops as a whole, and beats wait in none of its registers.
        readers: for each layer, how many read it.
        edges: the output stream of each layer.
        wires, placed: of the top module, in its order.
        hardware: the parts placed so far.
        library: modules of `hw/rtl` that they need.
    """

    def __init__(self, design: Design, names: Mapping[str, str], waits: bool) -> None:
        self.names = names
        self.waits = waits
        self.readers = Counter([*(source for layer in design.layers for source in layer.inputs), *design.outputs])
        self.edges: dict[str, Edge] = {}
        self.wires: list[Wire] = []
        self.placed: list[Placed] = []
        self.hardware: list[LayerHardware] = []
        self.library: set[str] = {"fp_last"}
        self._branches: dict[str, list[Edge]] = {}

    def wire(self, name: str, stream: Stream) -> str:
        """Return a new wire of the top module that carries `stream`."""
        self.wires.append(Wire(f"n_{name}", stream.bits))
        return f"n_{name}"

    def between(self, reads: list[str], leaves: list[str], part: Instance) -> None:
        """Place `part` between two layers, or at an output."""
        self.library.add(part.module)
        self.hardware.append(LayerHardware("", tuple(reads), tuple(leaves), ((),) * len(reads), None, (part,)))

    def enter(self, port: RtlPort, stream: Stream, gate: str) -> None:
        """Let `stream` come in at `port`, while the condition `gate` holds if there is one."""
        wire = self.wire(self.names[port.layer], stream)
        self.edges[port.layer] = Edge(wire, stream, {port.layer: np.arange(1, stream.beats + 1)}, 0)
        self.placed.append(Placed.entry(port, wire, gate))

    def leave(self, port: RtlPort, edge: Edge) -> None:
        """Let the stream of `edge` leave at `port`."""
        self.placed.append(Placed.exit(port, edge.wire))
        self.between([edge.wire], [], Instance("fp_last", {"BEATS": port.beats}))

    def gate(self, text: str, parts: list[Instance]) -> None:
        """Place the gate at which loads and samples take turns before all layers."""
        self.placed.insert(0, Placed(text, "reset_gate"))
        self.library.add("fp_gate")
        last = self.hardware[-1]
        self.hardware[-1] = replace(last, parts=(*last.parts, *parts))

    def layer(self, layer: LayerSpec, text: LayerText, sources: list[Edge], stream: Stream, loads: list[str]) -> str:
        """Place the module of `layer`, with the connections `loads`; the wire that carries its `stream`."""
        name, reads = self.names[layer.name], [edge.wire for edge in sources]
        wire = self.wire(name, stream)
        self.placed.append(Placed.layer(name, text.clocked, reads, wire, loads))
        self.hardware.append(LayerHardware(layer.name, tuple(reads), (wire,), text.rows, text.meeting, text.parts))
        self.library |= text.library
        return wire

    def take(self, name: str) -> Edge:
        """Return the stream of layer `name` for its next reader."""
        return self._branches[name].pop(0) if name in self._branches else self.edges[name]

    def fork(self, name: str) -> None:
        """Make as many streams of layer `name` as it has readers."""
        edge = self.edges[name]
        if not self.readers[name]:
            raise RtlError(f"layer {name!r} is read by nothing and is no output; take it out of the design")
        if self.readers[name] == 1:
            return
        # Where branches meet again, a beat of one waits for beats that left this fork later.
        beats = np.arange(1, edge.stream.beats + 1)
        edge = self.edges[name] = replace(edge, needs={**edge.needs, name: beats})
        found, rest = [], edge.wire
        for number in range(self.readers[name] - 1):
            one = self.wire(f"{self.names[name]}_to{number}", edge.stream)
            two = self.wire(f"{self.names[name]}_rest{number}", edge.stream)
            self.placed.append(Placed.fork(f"{self.names[name]}_fork{number}", edge.stream.bits, rest, one, two))
            self.between([rest], [one, two], Instance("fp_fork", {"WIDTH": edge.stream.bits}))
            found.append(replace(edge, wire=one))
            rest = two
        self._branches[name] = [*found, replace(edge, wire=rest)]

    def held(self, chain: Chain) -> int:
        """Count the beats that `chain` holds beside those in the registers of its computations."""
        return 0 if self.waits else chain.held

    def with_room(self, layer: LayerSpec, sources: list[Edge], met: Pair, together: Mapping[str, Need]) -> list[Edge]:
        """Put `sources` behind queues that are deep enough for beats that wait and for unequal delays."""
        held = [edge.held + self.held(before) for edge, before in zip(sources, met.befores, strict=True)]
        roomy = []
        for place, edge in enumerate(sources):
            depth = max(0, held[1 - place] - held[place])
            if not self.waits:
                depth += met.room(place, edge.needs, together) + 2
            roomy.append(self._with_queue(layer, edge, place, depth) if depth else edge)
        return roomy

    def _with_queue(self, layer: LayerSpec, edge: Edge, place: int, depth: int) -> Edge:
        # A queue delays by two cycles, a register by one.
        module, parameter = ("fp_fifo", f", .DEPTH({depth})") if depth > 1 else ("fp_register", "")
        wire = self.wire(f"{self.names[layer.name]}_wait{place}", edge.stream)
        name = f"{self.names[layer.name]}_fifo{place}"
        self.placed.append(Placed.queue(f"{module} #(.WIDTH({edge.stream.bits}){parameter})", name, edge.wire, wire))
        self.between([edge.wire], [wire], Instance(module, {"WIDTH": edge.stream.bits, "DEPTH": depth}))
        return replace(edge, wire=wire)
