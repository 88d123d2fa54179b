"""`to_verilog`: a whole design as a folder of Verilog."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fpgaprune.design import Design, Input, LayerSpec, Reshape, VerilogLayout
from fpgaprune.emulate import emulate, steps_of
from fpgaprune.errors import DesignError, FpgaPruneError, RtlError, TargetError, UnsupportedLayerError, require_kind
from fpgaprune.files import PARSER_ERRORS, hardware_path, in_a_line
from fpgaprune.rtl import names
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.fitted_circuits import Scheduler
from fpgaprune.rtl.kinds import FOLLOWED, FOLLOWING, PAIRED, READS_PACKED, RULES, require_kinds
from fpgaprune.rtl.layer_text import LayerText, layer_text
from fpgaprune.rtl.links import Module, Need, Stream
from fpgaprune.rtl.loads import gate_parts, gate_text, load_port, loads_of, open_input, passed_on
from fpgaprune.rtl.names import verilog_names
from fpgaprune.rtl.pairing import Pair, pair
from fpgaprune.rtl.pipelining import quick_schedule, schedule
from fpgaprune.rtl.planned import DesignHardware
from fpgaprune.rtl.project import RtlLayer, RtlPort, VerilogProject
from fpgaprune.rtl.scheduled_cycles import cycles_of, most_beats, pads
from fpgaprune.rtl.solve import Context, Counter, Solver
from fpgaprune.rtl.top import top_text
from fpgaprune.rtl.wiring import Edge, Wiring
from fpgaprune.target import find_part

FOLDER = "rtl"


def to_verilog(
    design: Design,
    output_dir: str | os.PathLike[str],
    *,
    layout: VerilogLayout | None = None,
    cache: str | os.PathLike[str] | None = None,
    solver_seconds: float = 600.0,
    **changes: Any,
) -> VerilogProject:
    """Write the design to `output_dir` as Verilog-2001 with a `project.json`; see `fpgaprune.to_verilog`.

    Raises:
        UnsupportedLayerError, DesignError, RtlError, ToolError: as for `fpgaprune.to_verilog`.
    """
    require_kind(design, Design, DesignError, "design", "a Design, as fp.make_design gives")
    require_kind(output_dir, (str, os.PathLike), RtlError, "output_dir", "the path of a folder")
    folder = Path(output_dir)
    chosen = replace(layout or VerilogLayout(), **changes)
    chosen.require_fits(design)
    solver = Solver(chosen.adders, folder / "cache" if cache is None else Path(cache), solver_seconds)
    _check(design)
    with _consistent(design):
        return _Network(design, chosen, solver).write(folder)


def plan_verilog(design: Design, layout: VerilogLayout, counter: Counter | None = None) -> DesignHardware:
    """Plan what `to_verilog` makes of `design`, as data, without text; a `counter` of adders makes it quick.

    Raises:
        UnsupportedLayerError, DesignError, RtlError: as for `fpgaprune.to_verilog`.
    """
    layout.require_fits(design)
    require_kinds(design)
    with _consistent(design):
        chosen = schedule if counter is None else quick_schedule
        # da4ml takes minutes: where adders are counted, shared ones decide what is near the break-even.
        adders = "shared" if counter is not None and layout.adders == "da4ml" else layout.adders
        network = _Network(design, layout, Solver(adders), counter, chosen, writes=False)
        inputs, _ = network.plan()
        entries = tuple((network.wiring.edges[port.layer].wire, port.beats) for port in inputs)
        return DesignHardware(tuple(network.wiring.hardware), entries, network.beats)


def operands_of(design: Design, layout: VerilogLayout) -> int:
    """Return how many operands an adder has at most: what the layout asks for, else what the design's part adds."""
    return (3 if _adds_three(design) else 2) if layout.operands is None else layout.operands


def tables_of(design: Design, layout: VerilogLayout) -> int:
    """Return the bits of an index of a small table at most: what the layout asks for, else the inputs of a LUT."""
    return (6 if _adds_three(design) else 4) if layout.tables is None else layout.tables


def _adds_three(design: Design) -> bool:
    with suppress(TargetError):
        return design.part is not None and find_part(design.part).adds_three
    return False


@contextmanager
def _consistent(design: Design) -> Iterator[None]:
    """Name a design whose sizes contradict each other within the block: a file may hold one, no converter makes it."""
    try:
        yield
    except (FpgaPruneError, OSError):
        raise
    except PARSER_ERRORS as error:
        raise RtlError(f"design {design.name!r} contradicts itself: {in_a_line(error)}; make it anew") from error


def _check(design: Design) -> None:
    require_kinds(design)
    # The Verilog must compute what the emulator computes, so a design that the emulator refuses is refused here.
    shapes = [layer.output_shape for layer in design.layers if isinstance(layer.operation, Input)]
    empty = [np.zeros((0, *shape), np.float32) for shape in shapes]
    emulate(design, empty if len(empty) != 1 else empty[0])


class _Network:
    """The Verilog of a design as it grows, layer by layer."""

    def __init__(
        self,
        design: Design,
        layout: VerilogLayout,
        solver: Solver,
        counter: Counter | None = None,
        schedule: Scheduler = schedule,
        writes: bool = True,
    ) -> None:
        self.design, self.layout, self.solver = design, layout, solver
        self.counter, self.schedule, self.writes = counter, schedule, writes
        self.operands, self.tables = operands_of(design, layout), tables_of(design, layout)
        self.top = verilog_names([design.name])[design.name]
        self.names = verilog_names([layer.name for layer in design.layers], taken=[self.top])
        self.texts: dict[str, str] = {}
        self.layers: list[RtlLayer] = []
        self.contexts: dict[str, Context] = {}
        self.load_port = load_port(design, layout)
        self.loading = tuple(
            layer.name for layer in design.layers if self.load_port and layer.name in layout.multipliers
        )
        turns = (cycles_of(design, design[name], layout) for name in layout.multipliers)
        self.beats = max(layout.interval, *(most_beats(design, layer) for layer in design.layers), *turns)
        # If a sample is one beat in every layer, each pipeline takes one in every cycle and may stop as a whole.
        self.wiring = Wiring(design, self.names, waits=self.beats == 1)

    def write(self, folder: Path) -> VerilogProject:
        return self._written(folder, *self.plan())

    def plan(self) -> tuple[list[RtlPort], list[RtlPort]]:
        """Place every layer, and return the ports of the inputs and outputs."""
        bits = self.load_port.width_bits if self.load_port else 0
        self.contexts = {
            step.layer.name: Context(step, self.layout, self.solver, self.beats, self.tables, self.counter, bits)
            for step in steps_of(self.design)
        }
        inputs: list[RtlPort] = []
        outputs: list[RtlPort] = []
        for layer in self.design.layers:
            if isinstance(layer.operation, Input):
                inputs.append(self._entry(layer, len(inputs)))
            elif layer.name not in self.wiring.edges:
                self._layer(layer)
            self.wiring.fork(layer.name)
        for name in self.design.outputs:
            outputs.append(self._exit(name, len(outputs)))
        if self.load_port:
            text = gate_text(self.load_port, inputs, outputs, len(self.loading))
            self.wiring.gate(text, gate_parts(inputs, outputs))
        return inputs, outputs

    def _entry(self, layer: LayerSpec, number: int) -> RtlPort:
        kind = layer.types["result"]
        s = Stream.of(layer.output_shape, kind)
        shape = self.design.given_shape(layer.name)
        port = RtlPort(layer.name, f"s{number or ''}_axis", shape, s.beats, s.lanes, kind)
        self.wiring.enter(port, s, open_input(number) if self.loading else "")
        return port

    def _exit(self, name: str, number: int) -> RtlPort:
        edge = self.wiring.take(name)
        s = edge.stream
        port = RtlPort(name, f"m{number or ''}_axis", self.design.given_shape(name), s.beats, s.lanes, s.kind())
        self.wiring.leave(port, edge)
        return port

    def _layer(self, layer: LayerSpec) -> None:
        context = self.contexts[layer.name]
        sources = [self.wiring.take(name) for name in layer.inputs]
        met: Pair | None = None
        needs = sources[0].needs
        try:
            if isinstance(layer.operation, PAIRED):
                met = pair(context.step, (Chain.begin(sources[0].stream), Chain.begin(sources[1].stream)))
                chain = met.chain
                needs = met.needs((sources[0].needs, sources[1].needs))
                sources = self.wiring.with_room(layer, sources, met, needs)
            else:
                chain = Chain.begin(sources[0].stream)
            RULES[type(layer.operation)](context, chain)
        except (DesignError, RtlError, UnsupportedLayerError) as error:
            raise type(error)(f"layer {layer.name!r} ({layer.kind}): {error}") from error
        chain.renamed(layer.output_shape)
        names = [layer.name]
        first, joined = layer.name, dict[str, list[str]]()
        while (follower := self._follower(names[-1], chain)) is not None:
            name, both = follower
            names.append(name)
            if len(both.links) > len(chain.links):
                first = name
            else:
                joined.setdefault(first, []).append(name)
            chain = both
        if self._is_packed(names[-1]):
            chain.pack()
        chain.notes += dict.fromkeys(note for name in names for note in self.contexts[name].notes)
        edge = self._handed_on(
            layer,
            names[-1],
            sources,
            met,
            chain,
            {name: need[chain.need - 1] for name, need in needs.items()},
            {name: tuple(others) for name, others in joined.items()},
        )
        self.wiring.edges.update(dict.fromkeys(names, edge))

    def _is_packed(self, name: str) -> bool:
        """Return whether every reader of layer `name` takes values of different widths; a reshape hands them on."""
        readers = [layer for layer in self.design.layers if name in layer.inputs]
        return name not in self.design.outputs and all(
            isinstance(reader.operation, READS_PACKED)
            or (isinstance(reader.operation, Reshape) and self._is_packed(reader.name))
            for reader in readers
        )

    def _follower(self, name: str, chain: Chain) -> tuple[str, Chain] | None:
        """Return the layer behind `name` computed in the same module, and the chain of both; None without one."""
        found = next((layer for layer in self.design.layers if name in layer.inputs), None)
        follows = isinstance(self.design[name].operation, FOLLOWED) and self.wiring.readers[name] == 1 and chain.links
        if found is None or not isinstance(found.operation, FOLLOWING) or not follows:
            return None
        both = replace(chain, links=list(chain.links), notes=list(chain.notes))
        RULES[type(found.operation)](self.contexts[found.name], both)
        if any(isinstance(link, Module) for link in both.links[len(chain.links) - 1 :]):
            return None
        both.notes.append(f"{found.name} ({found.kind}) is computed here too, result {found.types['result']}")
        return found.name, both

    def _handed_on(
        self,
        layer: LayerSpec,
        last: str,
        sources: list[Edge],
        met: Pair | None,
        chain: Chain,
        needs: dict[str, Need],
        joined: Mapping[str, tuple[str, ...]],
    ) -> Edge:
        held = max(edge.held for edge in sources) + self.wiring.held(chain)
        if met is None and not chain.links:
            # The layer does not change the beats, so the stream goes on under another name.
            return Edge(sources[0].wire, chain.stream, needs, held)
        shapes = names.shapes_of([edge.stream.shape for edge in sources], layer.output_shape)
        text = self._text(layer, last, sources, met, chain, shapes)
        if self.writes:
            self._listed(layer, text, chain, shapes, joined)
        loads = [passed_on(self.loading.index(layer.name), len(self.loading))] if layer.name in self.loading else []
        wire = self.wiring.layer(layer, text, sources, chain.stream, loads)
        return Edge(wire, chain.stream, needs, held + text.depth)

    def _text(
        self, layer: LayerSpec, last: str, sources: list[Edge], met: Pair | None, chain: Chain, shapes: str
    ) -> LayerText:
        """Write the module that computes `layer` and the layers after it up to `last`."""
        rows = [before.links for before in met.befores] if met else [[]]
        ports = [
            (prefix, edge.stream.bits, row)
            for prefix, edge, row in zip("ab" if met else "s", sources, rows, strict=True)
        ]
        return layer_text(
            self.names[layer.name],
            ports,
            met.module if met else None,
            chain,
            self.layout.levels,
            self.operands,
            self.tables,
            self.wiring.waits,
            any(pads(reader) for reader in self.design.layers if last in reader.inputs),
            names.of_layer(self.design, layer, shapes, chain) if self.writes else "",
            self.beats,
            self.schedule,
        )

    def _listed(
        self, layer: LayerSpec, text: LayerText, chain: Chain, shapes: str, joined: Mapping[str, tuple[str, ...]]
    ) -> None:
        """List the files of a layer, and its place among the layers."""
        module = self.names[layer.name]
        texts = {**text.datapath_files(), f"{module}.v": text.module}
        files = sorted(f"{FOLDER}/{name}" for name in (*texts, *(f"{part}.v" for part in text.library)))
        types = {role: str(kind) for role, kind in layer.types.items()}
        note, leaves = "; ".join(chain.notes), chain.stream.bus
        multiplied = chain.kept, chain.dropped
        self.layers.append(
            RtlLayer(layer.name, module, tuple(files), shapes, types, *multiplied, note, joined, chain.reads, leaves)
        )
        self.texts.update(texts)

    def _written(self, folder: Path, inputs: list[RtlPort], outputs: list[RtlPort]) -> VerilogProject:
        texts = dict(self.texts)
        loads = loads_of(self.design, self.loading, self.load_port) if self.load_port else None
        ports = [*inputs, self.load_port] if self.load_port else inputs
        texts[f"{self.top}.v"] = top_text(
            self.top, names.of_design(self.design), ports, outputs, self.wiring.wires, self.wiring.placed
        )
        for name in self.wiring.library:
            texts[f"{name}.v"] = hardware_path("rtl", f"{name}.v").read_text()
        project = VerilogProject(
            path=folder,
            name=self.design.name,
            top=self.top,
            clock_ns=self.design.clock_ns,
            files=tuple(f"{FOLDER}/{name}" for name in sorted(texts)),
            layers=tuple(self.layers),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            loads=loads,
        )
        project.write({f"{FOLDER}/{name}": text for name, text in texts.items()})
        return project
