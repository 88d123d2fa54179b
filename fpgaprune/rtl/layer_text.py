"""Verilog text of one layer: its modules in a row, and the files that they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.fitted_circuits import Scheduler
from fpgaprune.rtl.layer_writer import LayerWriter
from fpgaprune.rtl.links import Link, Module
from fpgaprune.rtl.pipelining import schedule
from fpgaprune.rtl.planned import Instance, Part


@dataclass(frozen=True)
class LayerText:
    """A layer as Verilog.

    Attributes:
        module: text of the layer's module.
        datapaths: write the text of what it computes, by file name.
        library: modules of `hw/rtl` that it needs.
        clocked: whether its module has a clock.
        depth: registers on the way through its computations.
        rows: for each stream that it reads, its parts before the streams meet.
        meeting: where they meet.
        parts: those behind that.
    """

    module: str
    datapaths: Sequence[Callable[[], Mapping[str, str]]]
    library: frozenset[str]
    clocked: bool
    depth: int
    rows: tuple[tuple[Part, ...], ...]
    meeting: Instance | None
    parts: tuple[Part, ...]

    def datapath_files(self) -> dict[str, str]:
        """Write the datapath of the layer, by file name."""
        return {name: text for write in self.datapaths for name, text in write().items()}


def layer_text(
    module: str,
    ports: Sequence[tuple[str, int, Sequence[Link]]],
    meeting: Module | None,
    chain: Chain,
    levels: int,
    operands: int,
    tables: int,
    waits: bool,
    reader_pauses: bool,
    head: str,
    cycles: int,
    schedule: Scheduler = schedule,
) -> LayerText:
    """Return the module of a layer.

    Args:
        module: its name.
        ports: for each stream that it reads: prefix, bits, and the modules before the streams meet.
        meeting: the module in which two streams meet.
        chain: the modules behind that.
        levels: adder levels between two registers.
        operands: of an adder, at most: 2 or 3.
        tables: bits of the index of a small table, at most.
        waits: whether every pipeline stops as a whole while its output cannot leave, so that none needs a queue.
        reader_pauses: whether the reader of the layer stops now and then, as padding does.
        head: the comment at the top of each file.
        cycles: that a sample may take.
        schedule: chooses the stages of a circuit.
    """
    writer = LayerWriter(module, levels, operands, tables, waits, reader_pauses, head, cycles, schedule)
    ends = [writer.row(links, prefix, bits) for prefix, bits, links in ports]
    rows = tuple(map(tuple, writer.rows))
    if meeting is not None:
        writer.meet(meeting, ends[0][0], ends[1][0])
        start, bits = "pair", meeting.after
    else:
        start, bits = ends[0]
    end, bits = writer.row(chain.links, start, bits)
    names = [name for prefix, width, _ in ports for name in _ports(prefix, width, "input", "output")]
    clock = ["input wire clk", "input wire rst"] if writer.clocked else []
    joined = ",\n".join(
        f"    {text}" for text in [*clock, *writer.ports, *names, *_ports("m", bits, "output", "input")]
    )
    body = writer.body + (
        f"    assign m_data = {end}_data;\n    assign m_valid = {end}_valid;\n    assign {end}_ready = m_ready;\n"
    )
    text = f"{head}module {module} (\n{joined}\n);\n{body}endmodule\n"
    return LayerText(
        text,
        writer.datapaths,
        frozenset(writer.library),
        writer.clocked,
        writer.depth,
        rows,
        None if meeting is None else Instance.of(meeting),
        tuple(writer.rows[-1]),
    )


def _ports(prefix: str, bits: int, forward: str, backward: str) -> list[str]:
    return [
        f"{forward} wire [{bits - 1}:0] {prefix}_data",
        f"{forward} wire {prefix}_valid",
        f"{backward} wire {prefix}_ready",
    ]
