"""Verilog text of one layer: its modules in a row, and the files that they need."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.emit import datapath
from fpgaprune.rtl.links import Computation, Link, Module
from fpgaprune.rtl.schedule import Schedule, schedule

# A pipeline that has more than so many registers for each bit that leaves it runs freely into a queue, so that no
# enable must reach them all. Below, the queue would take more than the enable does.
_FREE_RUNNING = 8
# So many stages come from an accumulator that saturates, where addend after addend waits for its turn. An addition and
# its clipping then share a clock: half the stages make a quarter to a half of the registers.
_LONG = 64
# Registers between a pixel that comes into a window and the window that leaves.
_WINDOW_CLOCKS = 2
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


@dataclass(frozen=True)
class _Made:
    """A computation and its pipeline."""

    link: Computation
    plan: Schedule

    @property
    def runs_freely(self) -> bool:
        """Whether a queue behind it takes less than an enable of all its registers."""
        bits = self.plan.register_bits(self.link.circuit) * self.link.copies
        return self.plan.depth > 0 and bits > _FREE_RUNNING * self.link.after


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
        rest = list(links)
        while rest:
            run = [rest.pop(0)]
            if _is_window(run[0]) and rest and isinstance(rest[0], Computation):
                run.append(rest.pop(0))
            self.count += 1
            after = f"t{self.count}"
            bits = run[-1].after
            self.body += f"    wire [{bits - 1}:0] {after}_data;\n    wire {after}_valid;\n    wire {after}_ready;\n"
            self._run(run, name, after)
            name = after
        return name, bits

    def meet(self, link: Module, a: str, b: str) -> None:
        """The streams `a` and `b` have become `pair`."""
        self.library.add(link.name)
        clock = ""
        if link.name == "fp_append":
            self.clocked = True
            clock = "        .clk(clk), .rst(rst),\n"
        self.body += (
            f"    wire [{link.after - 1}:0] pair_data;\n    wire pair_valid;\n    wire pair_ready;\n"
            f"    {link.name} #({_parameters(link)}) both (\n{clock}"
            f"        .a_data({a}_data), .a_valid({a}_valid), .a_ready({a}_ready),\n"
            f"        .b_data({b}_data), .b_valid({b}_valid), .b_ready({b}_ready),\n"
            "        .m_data(pair_data), .m_valid(pair_valid), .m_ready(pair_ready)\n    );\n"
        )

    def _run(self, run: Sequence[Link], before: str, after: str) -> None:
        """One module, one computation, or a window with the computation behind it."""
        window = run[0] if isinstance(run[0], Module) and _is_window(run[0]) else None
        if isinstance(run[0], Module) and window is None:
            self._module(run[0], before, after)
            return
        made = _Made(run[-1], self._planned(run[-1])) if isinstance(run[-1], Computation) else None
        self.clocked = self.clocked or window is not None or (made is not None and made.plan.depth > 0)
        if window is not None or (made is not None and made.runs_freely):
            self._freely(window, made, before, after)
        elif made is not None and made.plan.depth:
            self._stopping(made.plan.depth, before, after)
            self._computed(made, f"{after}_ce", f"{before}_data", f"{after}_data")
        elif made is not None:
            self.body += f"    assign {after}_valid = {before}_valid;\n    assign {before}_ready = {after}_ready;\n"
            self._computed(made, "", f"{before}_data", f"{after}_data")

    def _module(self, link: Module, before: str, after: str) -> None:
        self.clocked = True
        self.library.update((link.name, *_NEEDED.get(link.name, ())))
        self.body += (
            f"    {link.name} #({_parameters(link)}) {link.name[3:]}{self.count} (\n"
            "        .clk(clk), .rst(rst),\n"
            f"        .s_data({before}_data), .s_valid({before}_valid), .s_ready({before}_ready),\n"
            f"        .m_data({after}_data), .m_valid({after}_valid), .m_ready({after}_ready)\n    );\n"
        )

    def _planned(self, link: Computation) -> Schedule:
        plan = schedule(link.circuit, self.levels)
        return schedule(link.circuit, max(self.levels, 2)) if plan.depth > _LONG else plan

    def _computed(self, made: _Made, enable: str, arriving: str, leaving: str) -> None:
        """A datapath between two buses; it has a clock where it has an `enable`."""
        link = made.link
        name = f"{self.module}_{link.role}"
        while name in self._names:
            name += "_again"
        self._names.add(name)
        self.files.update(datapath(name, link.circuit, made.plan, self.head))
        clock = f".clk(clk), .ce({enable}), " if enable else ""
        if link.copies == 1:
            self.body += f"    {name} compute{self.count} ({clock}.in_data({arriving}), .out_data({leaving}));\n"
            return
        a, b = link.before // link.copies, link.after // link.copies
        lane = f"lane{self.count}"
        self.body += (
            f"    genvar {lane};\n    generate\n"
            f"        for ({lane} = 0; {lane} < {link.copies}; {lane} = {lane} + 1) begin : lanes{self.count}\n"
            f"            {name} compute (\n"
            f"                {clock}.in_data({arriving}[{lane}*{a} +: {a}]),\n"
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

    def _freely(self, window: Module | None, made: _Made | None, before: str, after: str) -> None:
        """A window, a computation, or both, which never wait, and the queue in which beats do."""
        n, depth = self.count, made.plan.depth if made else 0
        through = depth + (_WINDOW_CLOCKS if window else 0)
        # What a beat takes through all of it, and its leave until that is known; a power of two fills memory.
        room = 1 << (through + 2).bit_length()
        self.depth += through + 2
        self.library.update(("fp_credit", "fp_fifo"))
        self.body += (
            f"    wire {after}_enters;\n    wire {after}_skipped;\n    wire unused_{after}_taken;\n"
            f"    fp_credit #(.ROOM({room})) control{n} (\n"
            f"        .clk(clk), .rst(rst), .s_valid({before}_valid), .s_ready({before}_ready),\n"
            f"        .enters({after}_enters), .freed({after}_valid & {after}_ready),\n"
            f"        .skipped({after}_skipped)\n    );\n"
        )
        data, valid = f"{before}_data", f"{after}_enters"
        if window is None:
            self.body += f"    assign {after}_skipped = 1'b0;\n"
        else:
            self.library.update((window.name, *_NEEDED[window.name]))
            self.body += (
                f"    wire [{window.after - 1}:0] {after}_window;\n    wire {after}_whole;\n"
                f"    {window.name} #({_parameters(window)}) window{n} (\n        .clk(clk), .rst(rst),\n"
                f"        .s_data({data}), .s_valid({valid}),\n"
                f"        .m_data({after}_window), .m_valid({after}_whole), .skipped({after}_skipped)\n    );\n"
            )
            data, valid = f"{after}_window", f"{after}_whole"
        if made is not None:
            self.body += f"    wire [{made.link.after - 1}:0] {after}_made;\n"
            self._computed(made, "1'b1" if depth else "", data, f"{after}_made")
            data = f"{after}_made"
        if depth:
            self.library.add("fp_delay")
            self.body += (
                f"    wire {after}_leaves;\n"
                f"    fp_delay #(.DEPTH({depth})) delay{n} (\n"
                f"        .clk(clk), .rst(rst), .in({valid}), .out({after}_leaves)\n    );\n"
            )
            valid = f"{after}_leaves"
        bits = made.link.after if made else window.after if window else 0
        self.body += (
            f"    fp_fifo #(.WIDTH({bits}), .DEPTH({room})) queue{n} (\n"
            f"        .clk(clk), .rst(rst),\n"
            f"        .s_data({data}), .s_valid({valid}), .s_ready(unused_{after}_taken),\n"
            f"        .m_data({after}_data), .m_valid({after}_valid), .m_ready({after}_ready)\n    );\n"
        )


def _is_window(link: Link) -> bool:
    return isinstance(link, Module) and link.name == "fp_window"


def _parameters(link: Module) -> str:
    return ", ".join(f".{name}({value})" for name, value in link.parameters)
