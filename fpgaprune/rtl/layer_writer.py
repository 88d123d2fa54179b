"""`LayerWriter`: the body of a layer's module, link by link."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from fpgaprune.rtl.emit import datapath
from fpgaprune.rtl.fitted_circuits import Scheduler, fitted_circuit
from fpgaprune.rtl.links import AROUND, Computation, Link, Loop, Module, SerialTrees, queue_depth
from fpgaprune.rtl.pipelining import Schedule, quick_schedule
from fpgaprune.rtl.planned import CONTAINED, Instance, Looped, Part, Pipeline
from fpgaprune.rtl.scheduled_sums import MODULE, ScheduledSums
from fpgaprune.rtl.scheduled_text import CONTAINS, load_ports, memory_files, scheduled_text
from fpgaprune.rtl.serial import SerialSums
from fpgaprune.rtl.serial_text import LIBRARY, serial_datapath

# A pipeline with more register bits than this for each output bit never stops and ends in a queue, so that it needs no
# enable at every register. With fewer register bits, the queue would cost more than the enable; the narrowest one costs
# as much as one of so many bits.
_FREE_RUNNING = 8
_NARROW = 32
# A pipeline that one beat at a time can pass does so if that saves as many register bits, for a counter takes some.
_SAVES = 64
_WINDOW = "fp_window"
# The most registers between a pixel that enters `fp_window` and the window that leaves.
_WINDOW_CYCLES = 3
# So many more beats can wait while padding inserts its values, and the pixels behind them keep coming.
_PAUSE = 8


class LayerWriter:
    """The body of a layer's module as it grows; arguments as for `layer_text`."""

    def __init__(
        self,
        module: str,
        levels: int,
        operands: int,
        tables: int,
        waits: bool,
        reader_pauses: bool,
        head: str,
        cycles: int,
        schedule: Scheduler,
    ) -> None:
        self.module, self.levels, self.waits, self.cycles = module, levels, waits, cycles
        self.operands, self.tables = operands, tables
        self.slack, self.head, self.schedule = _PAUSE if reader_pauses else 0, head, schedule
        self.body = ""
        self.datapaths: list[Callable[[], Mapping[str, str]]] = []
        self.rows: list[list[Part]] = []
        self.library: set[str] = set()
        self.ports: list[str] = []
        self.clocked = False
        self.depth = 0
        self.count = 0
        self._names: set[str] = set()
        self._plans: dict[int, Schedule] = {}
        self._links: list[Link] = []
        # What comes in a burst shall not wait for long.
        self.spare = cycles // 2

    def row(self, links: Sequence[Link], start: str, bits: int) -> tuple[str, int]:
        """Add `links` to the body, in order, behind stream `start`; return name and bits of the last stream."""
        self.rows.append([])
        return self._linked([self._fitted(link) for link in links], start, bits)

    def _linked(self, links: Sequence[Link], start: str, bits: int) -> tuple[str, int]:
        name = start
        rest = list(links)
        # A plan is found by the identity of its link, which must stay.
        self._links += rest
        while rest:
            run = [rest.pop(0)]
            self._let_settle(run[0], self.spare)
            freely = self._runs_freely(run[0])
            while freely and rest and not isinstance(rest[0], Module | ScheduledSums | Loop):
                run.append(rest.pop(0))
            self.count += 1
            after = f"t{self.count}"
            bits = run[-1].after
            self.body += f"    wire [{bits - 1}:0] {after}_data;\n    wire {after}_valid;\n    wire {after}_ready;\n"
            if freely:
                self._freely(run, name, after)
            elif isinstance(run[0], Module):
                self._module(run[0], name, after)
            elif isinstance(run[0], ScheduledSums):
                self._scheduled(run[0], name, after)
            elif isinstance(run[0], Loop):
                self._loop(run[0], name, after)
            elif isinstance(run[0], Computation):
                self._stopping(run[0], name, after)
            name = after
        return name, bits

    def _fitted(self, link: Link) -> Link:
        """Return `link` with tables as small and adders of as many operands as they may have."""
        if not isinstance(link, Computation):
            return link
        # Weights are read back from their memories. A bias behind a small sum is part of a table, else of an adder.
        tables = 0 if link.role == "products" else self.tables
        circuit = fitted_circuit(link.circuit, tables, self.operands, self.levels, self.schedule)
        return replace(link, circuit=circuit)

    def meet(self, link: Module, a: str, b: str) -> None:
        """Join the streams `a` and `b` as `pair`."""
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

    def _runs_freely(self, link: Link) -> bool:
        """Return whether `link` never stops; the computations behind it, up to the next module, then do not either."""
        if isinstance(link, Module | ScheduledSums | Loop):
            return isinstance(link, Module) and link.name == _WINDOW
        if isinstance(link, SerialSums | SerialTrees):
            return True
        plan = self._plan(link)
        if plan.settles:
            return False
        bits = plan.register_bits(link.circuit) * link.copies + (link.trees.register_bits if link.trees else 0)
        return not self.waits and bits > _FREE_RUNNING * max(link.after, _NARROW)

    def _let_settle(self, link: Link, cycles: int) -> int:
        """Let one beat at a time pass `link` if that saves registers and takes at most `cycles`; return what it takes.

        Weighted sums stay as they are: their adders may be counted and not made.
        """
        if not isinstance(link, Computation) or link.role == "sums":
            return 0
        # An estimate and the text must agree, whichever way both choose stages.
        quick = quick_schedule(link.circuit, self.levels)
        settled = quick.settled(link.circuit)
        taken = link.beats * (quick.depth + 1)
        saved = (quick.register_bits(link.circuit) - settled.register_bits(link.circuit)) * link.copies
        if taken > cycles or saved < _SAVES:
            return 0
        self._plans[id(link)] = self._plan(link).settled(link.circuit)
        return taken

    def _plan(self, link: Computation) -> Schedule:
        if id(link) not in self._plans:
            plan = self.schedule(link.circuit, self.levels)
            if link.trees:
                plan = replace(plan, depth=plan.depth + link.trees.depth)
            self._plans[id(link)] = plan
        return self._plans[id(link)]

    def _module(self, link: Module, before: str, after: str) -> None:
        self.clocked = True
        self._placed(Instance.of(link))
        self.library.update(CONTAINED.get(link.name, ()))
        self.body += (
            f"    {link.name} #({_parameters(link)}) {link.name[3:]}{self.count} (\n"
            "        .clk(clk), .rst(rst),\n"
            f"        .s_data({before}_data), .s_valid({before}_valid), .s_ready({before}_ready),\n"
            f"        .m_data({after}_data), .m_valid({after}_valid), .m_ready({after}_ready)\n    );\n"
        )

    def _computed(self, link: Computation, plan: Schedule, enable: str, arriving: str, leaving: str) -> str:
        """Write the datapath of `link` between two buses; `enable` is used if it has registers.

        Returns:
            The suffix of its name behind the layer's.
        """
        name, label = self._named(link.role)
        self.clocked = self.clocked or plan.depth > 0
        self.rows[-1].append(Pipeline(link.circuit, plan, link.copies, link.trees))
        self.datapaths.append(partial(datapath, name, link.circuit, plan, self.head))
        clock = f".clk(clk), .ce({enable}), " if plan.depth else ""
        if link.copies == 1:
            self.body += f"    {name} {label}_i ({clock}.in_data({arriving}), .out_data({leaving}));\n"
            return label
        a, b = link.before // link.copies, link.after // link.copies
        lane = f"lane_{label}"
        self.body += (
            f"    genvar {lane};\n    generate\n"
            f"        for ({lane} = 0; {lane} < {link.copies}; {lane} = {lane} + 1) begin : lanes_{label}\n"
            f"            {name} compute (\n"
            f"                {clock}.in_data({arriving}[{lane}*{a} +: {a}]),\n"
            f"                .out_data({leaving}[{lane}*{b} +: {b}])\n"
            "            );\n        end\n    endgenerate\n"
        )
        return label

    def _named(self, role: str) -> tuple[str, str]:
        """Find a new name for a module of this layer, and the suffix behind the layer's name."""
        name = f"{self.module}_{role}"
        while name in self._names:
            name += "_again"
        self._names.add(name)
        return name, name[len(self.module) + 1 :]

    def _placed(self, part: Instance) -> None:
        self.library.add(part.module)
        self.rows[-1].append(part)

    def _serial(self, sums: SerialSums | SerialTrees, arriving: str, load: str, leaving: str) -> None:
        """Write `sums`, bit by bit, of the values on the bus `arriving` while `load` is 1."""
        name, label = self._named("sums")
        self.library.update(LIBRARY)
        self.rows[-1].append(sums)
        if isinstance(sums, SerialSums):
            self.datapaths.append(partial(serial_datapath, name, sums, self.head))
        self.body += f"    {name} {label}_i (.clk(clk), .load({load}), .in_data({arriving}), .out_data({leaving}));\n"

    def _scheduled(self, sums: ScheduledSums, before: str, after: str) -> None:
        """Write `sums` of the stream `before`, with the memories of its program."""
        self.clocked = True
        self.depth += sums.levels
        self.library.update(CONTAINS)
        self._placed(
            Instance(MODULE, {**sums.parameters, "OUTPUTS": sums.program.outputs, "LOADED": bool(sums.loaded)})
        )
        if sums.loaded:
            self._placed(Instance("fp_biased", sums.bias_parameters))
            self._placed(Instance("fp_load", sums.load_parameters))
        self.ports += load_ports(sums)
        self.datapaths.append(partial(memory_files, self.module, sums, self.head))
        self.body += scheduled_text(self.module, sums, before, after)

    def _loop(self, link: Loop, before: str, after: str) -> None:
        """Write `link` around the links whose results come back to them."""
        module, number = link.module, self.count
        self.clocked = True
        self.library.update((module.name, *CONTAINED[module.name]))
        left = self.cycles - _cycles_of(link)
        # A plan is found by the identity of its link, so that links are fitted before any is made to settle.
        fitted, states = ([self._fitted(one) for one in part] for part in (link.sums, link.state))
        for one in (*states, *fitted):
            left -= self._let_settle(one, left)
        # One step at a time is under way, so a queue behind a pipeline would stay empty.
        waits, spare = self.waits, self.spare
        self.waits, self.spare = True, 0
        sums, g = self._looped(fitted, f"{after}_x")
        state, r = self._looped(states, f"{after}_n")
        self.waits, self.spare = waits, spare
        self.rows[-1].append(Looped(Instance.of(module), sums, state))
        streams = (("s", before), ("x", f"{after}_x"), ("g", g), ("n", f"{after}_n"), ("r", r), ("m", after))
        ports = ",\n".join(
            f"        .{port}_data({name}_data), .{port}_valid({name}_valid), .{port}_ready({name}_ready)"
            for port, name in streams
        )
        self.body += (
            f"    {module.name} #({_parameters(module)}) {module.name[3:]}{number} (\n        .clk(clk), .rst(rst),\n"
            f"{ports}\n    );\n"
        )

    def _looped(self, links: Sequence[Link], start: str) -> tuple[tuple[Part, ...], str]:
        """Write `links` behind a new stream `start`; their parts, and the name of the last stream."""
        bits = links[0].before
        self.body += f"    wire [{bits - 1}:0] {start}_data;\n    wire {start}_valid;\n    wire {start}_ready;\n"
        self.rows.append([])
        end, _ = self._linked(links, start, bits)
        return tuple(self.rows.pop()), end

    def _stopping(self, link: Computation, before: str, after: str) -> None:
        """Write `link` as a pipeline whose registers all stop while a beat cannot leave."""
        plan = self._plan(link)
        control, enable = ("fp_settle", "1'b1") if plan.settles else ("fp_pipeline", f"{after}_ce")
        depth = plan.settles or plan.depth
        if depth:
            self.depth += depth
            self._placed(Instance(control, {"DEPTH": depth}))
            self.body += "" if plan.settles else f"    wire {enable};\n"
        label = self._computed(link, plan, enable, f"{before}_data", f"{after}_data")
        if depth == 0:
            self.body += f"    assign {after}_valid = {before}_valid;\n    assign {before}_ready = {after}_ready;\n"
            return
        port = "" if plan.settles else f".ce({enable}), "
        self.body += (
            f"    {control} #(.DEPTH({depth})) {control[3:]}_{label} (\n"
            f"        .clk(clk), .rst(rst), .s_valid({before}_valid), .s_ready({before}_ready),\n"
            f"        {port}.m_valid({after}_valid), .m_ready({after}_ready)\n    );\n"
        )

    def _freely(self, run: Sequence[Link], before: str, after: str) -> None:
        """Write computations that never stop, the window before them if any, and a queue in which beats wait."""
        window = run[0] if isinstance(run[0], Module) else None
        sums = [link for link in run if not isinstance(link, Module | ScheduledSums | Loop)]
        depth = sum(self._plan(link).depth if isinstance(link, Computation) else link.cycles for link in sums)
        apart = max((link.period for link in sums if not isinstance(link, Computation)), default=1)
        through = depth + (_WINDOW_CYCLES if window else 0)
        waiting = queue_depth(through, window, self.slack, apart)
        self.depth += through + 2
        self.clocked = True
        self._credit(waiting + 1, before, after)
        data, valid = f"{before}_data", f"{after}_enters"
        if window is None:
            self.body += f"    assign {after}_skipped = 1'b0;\n"
        else:
            data, valid = self._window(window, data, valid, after)
        for number, link in enumerate(sums):
            made = f"{after}_made{number or ''}"
            self.body += f"    wire [{link.after - 1}:0] {made};\n"
            if isinstance(link, Computation):
                self._computed(link, self._plan(link), "1'b1", data, made)
            else:
                self._serial(link, data, valid, made)
            data = made
        if depth:
            valid = self._later(depth, valid, after)
        self._placed(Instance("fp_fifo", {"WIDTH": run[-1].after, "DEPTH": waiting}))
        self.body += (
            f"    fp_fifo #(.WIDTH({run[-1].after}), .DEPTH({waiting})) queue{self.count} (\n"
            f"        .clk(clk), .rst(rst),\n"
            f"        .s_data({data}), .s_valid({valid}), .s_ready(unused_{after}_taken),\n"
            f"        .m_data({after}_data), .m_valid({after}_valid), .m_ready({after}_ready)\n    );\n"
        )

    def _credit(self, room: int, before: str, after: str) -> None:
        """Let a beat of `before` in only while there is a place for it on the way to `after`."""
        self._placed(Instance("fp_credit", {"ROOM": room}))
        self.body += (
            f"    wire {after}_enters;\n    wire {after}_skipped;\n    wire unused_{after}_taken;\n"
            f"    fp_credit #(.ROOM({room})) control{self.count} (\n"
            f"        .clk(clk), .rst(rst), .s_valid({before}_valid), .s_ready({before}_ready),\n"
            f"        .enters({after}_enters), .freed({after}_valid & {after}_ready),\n"
            f"        .skipped({after}_skipped)\n    );\n"
        )

    def _window(self, window: Module, data: str, valid: str, after: str) -> tuple[str, str]:
        """Add the windows of a stream to the body; return the names of their data and of their valid wire."""
        self._placed(Instance.of(window))
        self.library.update(CONTAINED[window.name])
        self.body += (
            f"    wire [{window.after - 1}:0] {after}_window;\n    wire {after}_whole;\n"
            f"    {window.name} #({_parameters(window)}) window{self.count} (\n        .clk(clk), .rst(rst),\n"
            f"        .s_data({data}), .s_valid({valid}),\n"
            f"        .m_data({after}_window), .m_valid({after}_whole), .skipped({after}_skipped)\n    );\n"
        )
        return f"{after}_window", f"{after}_whole"

    def _later(self, depth: int, valid: str, after: str) -> str:
        """Return the wire that repeats `valid`, `depth` cycles later."""
        self._placed(Instance("fp_delay", {"DEPTH": depth}))
        self.body += (
            f"    wire {after}_leaves;\n"
            f"    fp_delay #(.DEPTH({depth})) delay{self.count} (\n"
            f"        .clk(clk), .rst(rst), .in({valid}), .out({after}_leaves)\n    );\n"
        )
        return f"{after}_leaves"


def _cycles_of(link: Loop) -> int:
    """Bound the cycles of a sample in a loop whose pipelines take a beat in every cycle."""
    of = Instance.of(link.module)
    parts = [one.parameters for one in link.sums if isinstance(one, ScheduledSums)]
    sums = sum(part["STEPS"] + part["TURNS"] for part in parts)
    return of["STEPS"] * (of["INPUTS"] + of["UNITS"] + sums + AROUND)


def _parameters(link: Module) -> str:
    return ", ".join(f".{name}({value})" for name, value in link.parameters)
