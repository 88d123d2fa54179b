"""Reports in the form of each tool, with figures of our own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def grid(header: Sequence[str], *groups: Sequence[Sequence[str]], indent: str = "", sign: str = "|") -> str:
    """A table drawn with lines; a border after each group of rows."""
    everything = [header, *(row for group in groups for row in group)]
    widths = [max(len(row[at]) for row in everything) for at in range(len(header))]
    border = indent + "+" + "+".join("-" * (width + 2) for width in widths) + "+"

    def line(row: Sequence[str]) -> str:
        cells = (f" {cell:<{width}} " for cell, width in zip(row, widths, strict=True))
        return indent + sign + sign.join(cells) + sign

    out = [border, line(header), border]
    for group in groups:
        out += [*map(line, group), border]
    return "\n".join(out)


def rule(title: str) -> str:
    bar = "=" * 64
    return f"\n\n{bar}\n== {title}\n{bar}\n"


USED = {
    "DSP": {},
    "Expression": {"FF": "0", "LUT": "32"},
    "FIFO": {"BRAM": "0", "FF": "103", "LUT": "104"},
    "Instance": {"BRAM": "6", "DSP": "9", "FF": "2000", "LUT": "4400"},
    "Memory": {},
    "Multiplexer": {"LUT": "31"},
    "Register": {"FF": "17"},
}
TOTAL = {"BRAM": "6", "DSP": "9", "FF": "2120", "LUT": "4567", "URAM": "0"}
INSTANCES = {
    "dense_latency_config2_U0": ("dense_latency_ap_fixed_config2_s", "6", "5", "1500", "3000"),
    "dense_latency_config5_U0": ("dense_latency_ap_fixed_config5_s", "0", "4", "480", "1350"),
    "relu_config4_U0": ("relu_ap_fixed_relu_config4_s", "0", "0", "20", "50"),
}


def csynth(
    *,
    tool: str = "Vitis HLS",
    design: str = "myproject",
    columns: Sequence[str] = ("Name", "BRAM", "DSP", "FF", "LUT", "URAM"),
    latency: tuple[str, str] = ("243", "2293"),
    interval: tuple[str, str] = ("227", "2277"),
    instances: dict[str, tuple[str, ...]] | None = None,
    total: dict[str, str] | None = None,
    wrap_at: int | None = None,
) -> str:
    """`<top>_csynth.rpt`; `columns` in any order, `wrap_at` breaks names into several lines."""
    printed = {"BRAM": "BRAM_18K", "DSP": "DSP48E" if tool == "Vivado HLS" else "DSP"}
    names = [printed.get(name, name) for name in columns]
    absent = dict.fromkeys(columns, "-")

    def row(name: str, values: dict[str, str]) -> list[str]:
        return [name if column == "Name" else {**absent, **values}[column] for column in columns]

    rows = INSTANCES if instances is None else instances
    return (
        rule(f"{tool} Report for '{design}'")
        + "* Date:           Sat Feb  1 10:00:00 2025\n\n"
        + "* Version:        2022.2 (Build 1 on Oct 13 2022)\n* Project:        myproject_prj\n"
        + "* Solution:       solution1\n* Product family: zynquplus\n* Target device:  xczu9eg-ffvb1156-2-e\n"
        + rule("Performance Estimates")
        + "+ Timing: \n    * Summary: \n"
        + grid(["Clock", "Target", "Estimated", "Uncertainty"], [["ap_clk", "5.00 ns", "3.770 ns", "0.62 ns"]])
        + "\n\n+ Latency: \n    * Summary: \n"
        + merged([], [], [("", *latency, *interval)])
        + "\n\n    + Detail: \n        * Instance: \n"
        + merged(
            ["Instance", "Module"],
            [widest(list(rows)), widest([module for module, *_ in rows.values()])],
            [(f"{name}|{module}|", "9", "10", "1", "2") for name, (module, *_) in rows.items()],
        )
        + "\n\n        * Loop: \n        N/A\n"
        + rule("Utilization Estimates")
        + "* Summary: \n"
        + grid(
            names,
            [row(name, values) for name, values in USED.items()],
            [row("Total", TOTAL if total is None else total)],
            [row("Available", {"BRAM": "1824", "DSP": "2520", "FF": "548160", "LUT": "274080", "URAM": "0"})],
            [row("Utilization (%)", {"BRAM": "~0", "DSP": "~0", "FF": "~0", "LUT": "1", "URAM": "0"})],
        )
        + "\n\n+ Detail: \n    * Instance: \n"
        + grid(
            ["Instance", "Module", "BRAM_18K", "LUT", "FF", printed["DSP"], "URAM"],
            [
                line
                for name, (module, bram, dsp, ff, lut) in rows.items()
                for line in wrapped([name, module, bram, lut, ff, dsp, "0"], wrap_at)
            ],
            [["Total", "", "6", "4400", "2000", "9", "0"]],
            indent="    ",
        )
        + "\n\n    * Memory: \n    N/A\n"
        + rule("Interface")
        + "* Summary: \n"
        + grid(["RTL Ports", "Dir", "Bits"], [["ap_clk", "in", "1"]])
        + "\n"
    )


def widest(names: Sequence[str]) -> int:
    return max([9, *map(len, names)])


def wrapped(cells: list[str], at: int | None) -> list[list[str]]:
    """One row, or several where the first two cells are broken."""
    if at is None:
        return [cells]
    parts = [[cell[i : i + at] for i in range(0, len(cell), at)] for cell in cells[:2]]
    count = max(map(len, parts))
    padded = [[part[i] if i < len(part) else "" for part in parts] for i in range(count)]
    return [[*padded[0], *cells[2:]], *([*pair, *[""] * (len(cells) - 2)] for pair in padded[1:])]


def merged(first: Sequence[str], widths: Sequence[int], rows: Sequence[tuple[str, ...]]) -> str:
    """A table with `Latency (cycles)` over `min` and `max`, and so on."""
    left = "".join("-" * width + "+" for width in widths)
    blank = "".join(" " * width + "|" for width in widths)
    names = "".join(f"{name:^{width}}|" for name, width in zip(first, widths, strict=True))
    border = f"        +{left}---------+---------+----------+-----------+-----+------+----------+"
    out = [
        border,
        f"        |{blank}  Latency (cycles) |  Latency (absolute)  |  Interval  | Pipeline |",
        f"        |{names}   min   |   max   |    min   |    max    | min |  max |   Type   |",
        border,
    ]
    for name, low, high, least, most in rows:
        cells = name.split("|")[:-1]
        text = "".join(f"{cell:<{width}}|" for cell, width in zip(cells, widths, strict=True))
        out.append(f"        |{text}{low:>9}|{high:>9}| 1.215 us | 11.465 us |{least:>5}|{most:>6}| dataflow |")
    return "\n".join([*out, border])


def summary() -> str:
    """`csynth.rpt` of Vitis HLS."""
    header = ["Modules & Loops", "Issue Type", "Slack", "Latency (cycles)", "Latency (ns)", "Iteration Latency"]
    header += ["Interval", "Trip Count", "Pipelined", "BRAM", "DSP", "FF", "LUT", "URAM"]
    rows = [
        "+ myproject*|-|0.05|2293|1.1e+04|-|2277|-|dataflow|6 (~0%)|9 (~0%)|2120 (~0%)|4567 (1%)|-",
        " + dense_latency_ap_fixed_config2_s|-|0.1|10|50.0|-|2|-|yes|6 (~0%)|5 (~0%)|1500 (~0%)|3000 (1%)|-",
        "  o VITIS_LOOP_1|-|7.3|9|45.0|3|1|9|yes|-|-|-|-|-",
        " + relu_ap_fixed_relu_config4_s|-|1.0|?|-|-|?|-|no|-|-|20 (~0%)|50 (~0%)|-",
    ]
    return (
        rule("Synthesis Summary Report of 'myproject'")
        + "+ General Information: \n    * Date:           Sat Feb  1 10:00:00 2025\n"
        + "    * Version:        2022.2 (Build 1 on Oct 13 2022)\n    * Target device:  xczu9eg-ffvb1156-2-e\n\n"
        + "+ Timing Estimate: \n    * Summary: \n"
        + grid(["Clock", "Target", "Estimated", "Uncertainty"], [["ap_clk", "5.00 ns", "3.770 ns", "0.62 ns"]])
        + "\n\n+ Performance & Resource Estimates: \n\n    PS: '+' for module; 'o' for loop; '*' for dataflow\n"
        + two_line_header(header, [row.split("|") for row in rows])
        + rule("HW Interfaces")
        + "* S_AXILITE\n"
    )


def two_line_header(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same table, each header of two words wrapped."""
    text = grid(header, rows, indent="    ").splitlines()
    edges = [at for at, sign in enumerate(text[0]) if sign == "+"]
    upper, lower = list(" " * len(text[0])), list(" " * len(text[0]))
    for (a, b), name in zip(itertools.pairwise(edges), header, strict=True):
        words = name.rsplit(" ", 1)
        upper[a + 1 : b] = f"{words[0] if len(words) == 2 else '':^{b - a - 1}}"
        lower[a + 1 : b] = f"{words[-1]:^{b - a - 1}}"
    for at in edges:
        upper[at] = lower[at] = "|"
    return "\n".join([text[0], "".join(upper), "".join(lower), *text[2:]])


def csynth_xml(*, dsp: str = "DSP", hierarchy: bool = True, interval: str = "2") -> str:
    """`csynth.xml`; `interval` of each module may be a range."""

    def area(lut: int, ff: int, dsps: int, bram: int) -> str:
        return (
            f"<AreaEstimates><Resources><BRAM_18K>{bram}</BRAM_18K><{dsp}>{dsps}</{dsp}><FF>{ff}</FF>"
            f"<LUT>{lut}</LUT><URAM>0</URAM></Resources></AreaEstimates>"
        )

    def module(name: str, low: str, high: str, figures: str) -> str:
        return (
            f"<Module><Name>{name}</Name><PerformanceEstimates><SummaryOfOverallLatency>"
            f"<Best-caseLatency>{low}</Best-caseLatency><Worst-caseLatency>{high}</Worst-caseLatency>"
            f"<PipelineInitiationInterval>{interval}</PipelineInitiationInterval><PipelineType>yes</PipelineType>"
            f"</SummaryOfOverallLatency></PerformanceEstimates>{figures}</Module>"
        )

    tree = (
        "<RTLDesignHierarchy><TopModule><ModuleName>myproject</ModuleName><InstancesList>"
        "<Instance><InstName>dense_U0</InstName><ModuleName>dense_config2</ModuleName><InstancesList>"
        "<Instance><InstName>mult_fu_1</InstName><ModuleName>product</ModuleName></Instance></InstancesList></Instance>"
        "<Instance><InstName>layer2_out_U</InstName><ModuleName>fifo_w16_d8</ModuleName></Instance>"
        "</InstancesList></TopModule></RTLDesignHierarchy>"
    )
    return (
        '<?xml version="1.0" encoding="UTF-8" ?>\n<profile><ReportVersion><Version>2022.2</Version></ReportVersion>'
        "<UserAssignments><unit>ns</unit><Part>xczu9eg-ffvb1156-2-e</Part><TopModelName>myproject</TopModelName>"
        "<TargetClockPeriod>5.00</TargetClockPeriod><ClockUncertainty>0.62</ClockUncertainty></UserAssignments>"
        "<PerformanceEstimates><PipelineType>dataflow</PipelineType><SummaryOfTimingAnalysis>"
        "<EstimatedClockPeriod>3.770</EstimatedClockPeriod></SummaryOfTimingAnalysis><SummaryOfOverallLatency>"
        "<Best-caseLatency>243</Best-caseLatency><Worst-caseLatency>undef</Worst-caseLatency>"
        "<Interval-min>227</Interval-min><Interval-max>2277</Interval-max></SummaryOfOverallLatency>"
        f"</PerformanceEstimates>{area(4567, 2120, 9, 6)}{tree if hierarchy else ''}<ModuleInformation>"
        f"{module('dense_config2', '9', '10', area(3000, 1500, 5, 6))}{module('product', '1', '1', area(10, 0, 1, 0))}"
        f"{module('myproject', '243', 'undef', area(4567, 2120, 9, 6))}</ModuleInformation></profile>\n"
    )


def cosim(*, verilog: str = "Pass", unit: str = "", simulator: bool = True, cycles: bool = True) -> str:
    """`<top>_cosim.rpt`; that of a simulation which failed names no simulator and may state no cycles."""
    empty = "|".join(["          NA"] * 6)
    measured = "       14157|      18887.5|       23290|          NA|          NA|          NA"
    return (
        "Report time       : Sat Feb  1 11:00:00 UTC 2025.\nSolution          : solution1.\n"
        + ("Simulation tool   : xsim.\n\n" if simulator else "\n")
        + "+----------+----------+--------------------------------------+--------------------------------------+\n"
        f"|          |          | {'Latency' + unit:^36} | {'Interval' + unit:^36} |\n"
        "+   RTL    +  Status  +--------------------------------------+--------------------------------------+\n"
        "|          |          |     min    |     avg    |     max    |     min    |     avg    |     max    |\n"
        "+----------+----------+--------------------------------------+--------------------------------------+\n"
        f"|      VHDL|        NA|{empty}|\n"
        f"|   Verilog|{verilog:>10}|{measured if cycles else empty}|\n"
        "+----------+----------+--------------------------------------+--------------------------------------+\n"
    )


def utilization(
    rows: Sequence[Sequence[str]],
    *,
    state: str | None = "Synthesized",
    header: Sequence[str] = ("Site Type", "Used", "Fixed", "Available", "Util%"),
    version: str = "2023.1",
) -> str:
    """`report_utilization`, flat; rows go to the section of their kind."""
    memory = [row for row in rows if any("RAM" in cell and "LUT" not in cell for cell in row)]
    arithmetic = [row for row in rows if any("DSP" in cell for cell in row)]
    logic = [row for row in rows if row not in memory and row not in arithmetic]
    sections = {
        "1. CLB Logic": grid(header, logic) + "\n* Warning! a note",
        "2. BLOCKRAM": grid(header, memory) if memory else "",
        "3. ARITHMETIC": grid(header, arithmetic) if arithmetic else "",
        "4. Primitives": grid(["Ref Name", "Used", "Functional Category"], [["FDRE", "7", "Register"]]),
    }
    contents = "\n".join(sections)
    bodies = "".join(f"{name}\n{'-' * len(name)}\n\n{body}\n\n\n" for name, body in sections.items())
    return vivado_head("report_utilization -file u.rpt", state, version) + (
        f"\nUtilization Design Information\n\nTable of Contents\n-----------------\n{contents}\n\n{bodies}"
    )


def hierarchy(point: str = ".") -> str:
    """`report_utilization -hierarchical -hierarchical_percentages`, columns not in Vivado's order.

    Percentages have the decimal `point` of the machine.
    """
    header = ["Instance", "Module", "FFs", "Total LUTs", "Logic LUTs", "LUTRAMs", "SRLs"]
    header += ["RAMB36", "RAMB18", "URAM", "DSP Blocks"]
    rows = [
        ["myproject", "(top)", "900(0.1%)", "1000(0.2%)", "990", "0", "10", "2(0.1%)", "1(0.1%)", "0", "12(0.5%)"],
        ["  (myproject)", "(top)", "100", "200", "200", "0", "0", "0", "0", "0", "0"],
        ["  dense_U0", "dense_latency_config2", "800", "800", "790", "0", "10", "2", "1", "0", "12"],
    ]
    return vivado_head("report_utilization -hierarchical", "Routed", "2022.2") + (
        "\nUtilization Design Information\n\nTable of Contents\n-----------------\n1. Utilization by Hierarchy\n\n"
        "1. Utilization by Hierarchy\n---------------------------\n\n"
        f"{grid(header, [[cell.replace('.', point) for cell in row] for row in rows])}\n"
    )


def accelerator(state: str | None = "Routed", tiles: str = "41.5 [  2.10%]") -> str:
    """`report_accelerator_utilization`, columns not in Vivado's order."""
    header = ["Name", "REG", "LUT", "LUTAsMem", "BRAM", "URAM", "DSP"]

    def row(name: str, *figures: str) -> list[str]:
        return [name, *(figure if "[" in figure else f"{figure} [  5.00%]" for figure in figures)]

    rows = [
        row("Platform", "150100", "110200", "9000", "190", "0", "4"),
        row("User Budget", "2400000", "1100000", "580000", "1700", "900", "9000"),
        row("   Used Resources", "41000", "30500", "1200", tiles, "3", "96"),
        row("   Unused Resources", "2359000", "1069500", "578800", "1658", "897", "8904"),
        row("myproject", "41000", "30500", "1200", tiles, "3", "96"),
        row("   myproject_1", "41000", "30500", "1200", tiles, "3", "96"),
    ]
    return vivado_head("report_accelerator_utilization -kernels { a } -file k.rpt", state, "2022.2") + (
        "\nAccelerator Utilization Design Information\n\nTable of Contents\n-----------------\n"
        f"1. System Utilization\n\n1. System Utilization\n---------------------\n\n{grid(header, rows)}\n\n\n"
    )


def vivado_head(command: str, state: str | None, version: str = "2023.1") -> str:
    lines = [
        f"| Tool Version : Vivado v.{version} (lin64) Build 1 Sun May 7 15:04:56 MDT 2023",
        "| Date         : Sat Feb  1 12:00:00 2025",
        "| Host         : host running 64-bit Linux",
        f"| Command      : {command}",
        "| Design       : myproject",
        "| Device       : xcvu9pflgb2104-2",
    ]
    lines += [] if state is None else [f"| Design State : {state}"]
    bar = "-" * 60
    return "\n".join(["Copyright 1986-2023 Xilinx, Inc. All Rights Reserved.", bar, *lines, bar, ""])


def timing(*, state: str | None = "Routed", wns: str = "-0.463", net: str = "routed", constrained: bool = True) -> str:
    """`report_timing_summary` with two clocks, or without any constraint."""
    bar = "-" * 60

    def section(name: str) -> str:
        return f"\n{bar}\n| {name}\n| {'-' * len(name)}\n{bar}\n\n"

    clocks = (
        "Clock             Waveform(ns)         Period(ns)      Frequency(MHz)\n"
        "-----             ------------         ----------      --------------\n"
        "ap_clk            {0.000 2.500}        5.000           200.000         \n"
        "  a_generated_one {0.000 5.000}        10.000          100.000         \n\n"
    )
    slacks = f"ap_clk            {wns:>11}       -4.140  \n  a_generated_one       3.000        0.000  \n\n"
    return (
        vivado_head("report_timing_summary -file t.rpt", state)
        + "\nTiming Summary Report\n"
        + section("Design Timing Summary")
        + "    WNS(ns)      TNS(ns)  TNS Failing Endpoints      WHS(ns)  \n"
        + "    -------      -------  ---------------------      -------  \n"
        + f"{wns if constrained else 'inf':>11}  -123456.140                     10        0.097  \n\n\n"
        + (
            "Timing constraints are not met.\n\n"
            if constrained
            else "There are no user specified timing constraints.\n\n"
        )
        + section("Clock Summary")
        + (clocks if constrained else "\n")
        + section("Intra Clock Table")
        + "Clock                 WNS(ns)      TNS(ns)  \n"
        + "-----                 -------      -------  \n"
        + (slacks if constrained else "\n")
        + section("Inter Clock Table")
        + "From Clock    To Clock          WNS(ns)  \n----------    --------          -------  \n\n"
        + section("Timing Details")
        + f"                         net (fo=1, {net})           1.827     2.754    x\n"
    )
