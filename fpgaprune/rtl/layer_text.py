"""Verilog text of one layer: its modules in a row, and the files that they need."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.emit import datapath
from fpgaprune.rtl.links import Computation, Link, Module
from fpgaprune.rtl.schedule import schedule

# A pipeline that has more than so many registers for each bit that leaves it runs freely into a queue, so that no
# enable must reach them all. Below, the queue would take more than the enable does.
_FREE_RUNNING = 8
# Modules of hw/rtl that others of them need.
_NEEDED = {"fp_window": ("fp_line_buffer",), "fp_upsample": ("fp_line_buffer",)}


@dataclass(frozen=True)
class LayerText:
    """A layer as Verilog.

    Attributes:
        files: text by file name.
        library: modules of `hw/rtl` that it needs.
        clocked: whether its module has a clock.
        depth: registers on the way through its computations.
    """

    files: Mapping[str, str]
    library: frozenset[str]
    clocked: bool
    depth: int


def header(lines: Sequence[str]) -> str:
    """A comment of `lines`, folded."""
    folded = [part for line in lines for part in textwrap.wrap(line, 110, subsequent_indent="  ") or [""]]
    return "".join(f"// {line}".rstrip() + "\n" for line in folded)


def layer_text(
    module: str,
    ports: Sequence[tuple[str, int, Sequence[Link]]],
    meeting: Module | None,
    chain: Chain,
    levels: int,
    head: str,
) -> LayerText:
    """The module of a layer.

    Args:
        module: its name.
        ports: for each stream that it reads: prefix, bits, and the modules before the streams meet.
        meeting: the module in which two streams meet.
        chain: the modules behind that.
        levels: adder levels between two registers.
        head: the comment at the top of each file.
    """
    writer = _Writer(module, levels, head)
    ends = [writer.row(links, prefix, bits) for prefix, bits, links in ports]
    if meeting is not None:
        writer.meet(meeting, ends[0][0], ends[1][0])
        start, bits = "pair", meeting.after
    else:
        start, bits = ends[0]
    end, bits = writer.row(chain.links, start, bits)
    names = [name for prefix, width, _ in ports for name in _ports(prefix, width, "input", "output")]
    clock = ["input wire clk", "input wire rst"] if writer.clocked else []
    joined = ",\n".join(f"    {text}" for text in [*clock, *names, *_ports("m", bits, "output", "input")])
    body = writer.body + (
        f"    assign m_data = {end}_data;\n    assign m_valid = {end}_valid;\n    assign {end}_ready = m_ready;\n"
    )
    text = f"{head}module {module} (\n{joined}\n);\n{body}endmodule\n"
    return LayerText({**writer.files, f"{module}.v": text}, frozenset(writer.library), writer.clocked, writer.depth)


def _ports(prefix: str, bits: int, forward: str, backward: str) -> list[str]:
    return [
        f"{forward} wire [{bits - 1}:0] {prefix}_data",
        f"{forward} wire {prefix}_valid",
        f"{backward} wire {prefix}_ready",
    ]


class _Writer:
    """The body of a layer's module as it grows."""

    def __init__(self, module: str, levels: int, head: str) -> None:
        self.module = module
        self.levels = levels
        self.head = head
        self.body = ""
        self.files: dict[str, str] = {}
        self.library: set[str] = set()
        self.clocked = False
        self.depth = 0
        self.count = 0
        self._names: set[str] = set()

    def row(self, links: Sequence[Link], start: str, bits: int) -> tuple[str, int]:
        """`links` one after another behind the stream `start`; the name and bits of the last stream."""
        name = start
        for link in links:
            self.count += 1
            after = f"t{self.count}"
            bits = link.after
            self.body += f"    wire [{bits - 1}:0] {after}_data;\n    wire {after}_valid;\n    wire {after}_ready;\n"
            if isinstance(link, Module):
                self._module(link, name, after)
            else:
                self._computation(link, name, after)
            name = after
        return name, bits

    def meet(self, link: Module, a: str, b: str) -> None:
        """The streams `a` and `b` have become `pair`."""
        self.library.add(link.name)
        clock = ""
        if link.name == "fp_append":
            self.clocked = True
            clock = "        .clk(clk), .rst(rst),\n"
        parameters = ", ".join(f".{name}({value})" for name, value in link.parameters)
        self.body += (
            f"    wire [{link.after - 1}:0] pair_data;\n    wire pair_valid;\n    wire pair_ready;\n"
            f"    {link.name} #({parameters}) both (\n{clock}"
            f"        .a_data({a}_data), .a_valid({a}_valid), .a_ready({a}_ready),\n"
            f"        .b_data({b}_data), .b_valid({b}_valid), .b_ready({b}_ready),\n"
            "        .m_data(pair_data), .m_valid(pair_valid), .m_ready(pair_ready)\n    );\n"
        )

    def _module(self, link: Module, before: str, after: str) -> None:
        self.clocked = True
        self.library.update((link.name, *_NEEDED.get(link.name, ())))
        parameters = ", ".join(f".{name}({value})" for name, value in link.parameters)
        self.body += (
            f"    {link.name} #({parameters}) {link.name[3:]}{self.count} (\n"
            "        .clk(clk), .rst(rst),\n"
            f"        .s_data({before}_data), .s_valid({before}_valid), .s_ready({before}_ready),\n"
            f"        .m_data({after}_data), .m_valid({after}_valid), .m_ready({after}_ready)\n    );\n"
        )

    def _computation(self, link: Computation, before: str, after: str) -> None:
        name = f"{self.module}_{link.role}"
        while name in self._names:
            name += "_again"
        self._names.add(name)
        plan = schedule(link.circuit, self.levels)
        self.files.update(datapath(name, link.circuit, plan, self.head))
        clock, leaving = "", f"{after}_data"
        if plan.depth == 0:
            self.body += f"    assign {after}_valid = {before}_valid;\n    assign {before}_ready = {after}_ready;\n"
        elif plan.register_bits(link.circuit) * link.copies > _FREE_RUNNING * link.after:
            clock, leaving = ".clk(clk), .ce(1'b1), ", f"{after}_made"
            self._freely(plan.depth, link.after, before, after)
        else:
            clock = f".clk(clk), .ce({after}_ce), "
            self._stopping(plan.depth, before, after)
        self.clocked = self.clocked or plan.depth > 0
        if link.copies == 1:
            self.body += f"    {name} compute{self.count} ({clock}.in_data({before}_data), .out_data({leaving}));\n"
            return
        a, b = link.before // link.copies, link.after // link.copies
        lane = f"lane{self.count}"
        self.body += (
            f"    genvar {lane};\n    generate\n"
            f"        for ({lane} = 0; {lane} < {link.copies}; {lane} = {lane} + 1) begin : lanes{self.count}\n"
            f"            {name} compute (\n"
            f"                {clock}.in_data({before}_data[{lane}*{a} +: {a}]),\n"
            f"                .out_data({leaving}[{lane}*{b} +: {b}])\n"
            "            );\n        end\n    endgenerate\n"
        )

    def _stopping(self, depth: int, before: str, after: str) -> None:
        """The control of a pipeline whose registers all wait together while a beat cannot leave."""
        self.depth += depth
        self.library.add("fp_pipeline")
        self.body += (
            f"    wire {after}_ce;\n    fp_pipeline #(.DEPTH({depth})) control{self.count} (\n"
            f"        .clk(clk), .rst(rst), .s_valid({before}_valid), .s_ready({before}_ready),\n"
            f"        .ce({after}_ce), .m_valid({after}_valid), .m_ready({after}_ready)\n    );\n"
        )

    def _freely(self, depth: int, bits: int, before: str, after: str) -> None:
        """The control of a pipeline that never waits, and the queue in which its beats do."""
        # What a beat takes through pipeline and queue, and its leave until that is known; a power of two fills memory.
        room = 1 << (depth + 2).bit_length()
        self.depth += depth + 2
        self.library.update(("fp_credit", "fp_fifo"))
        self.body += (
            f"    wire [{bits - 1}:0] {after}_made;\n    wire {after}_leaves;\n    wire unused_{after}_taken;\n"
            f"    fp_credit #(.DEPTH({depth}), .ROOM({room})) control{self.count} (\n"
            f"        .clk(clk), .rst(rst), .s_valid({before}_valid), .s_ready({before}_ready),\n"
            f"        .leaves({after}_leaves), .freed({after}_valid & {after}_ready)\n    );\n"
            f"    fp_fifo #(.WIDTH({bits}), .DEPTH({room})) queue{self.count} (\n"
            f"        .clk(clk), .rst(rst),\n"
            f"        .s_data({after}_made), .s_valid({after}_leaves), .s_ready(unused_{after}_taken),\n"
            f"        .m_data({after}_data), .m_valid({after}_valid), .m_ready({after}_ready)\n    );\n"
        )
