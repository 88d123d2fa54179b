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


def csynth_xml(*, dsp: str = "DSP", hierarchy: bool = True) -> str:
    """`csynth.xml`."""

    def area(lut: int, ff: int, dsps: int, bram: int) -> str:
        return (
            f"<AreaEstimates><Resources><BRAM_18K>{bram}</BRAM_18K><{dsp}>{dsps}</{dsp}><FF>{ff}</FF>"
            f"<LUT>{lut}</LUT><URAM>0</URAM></Resources></AreaEstimates>"
        )

    def module(name: str, low: str, high: str, figures: str) -> str:
        return (
            f"<Module><Name>{name}</Name><PerformanceEstimates><SummaryOfOverallLatency>"
            f"<Best-caseLatency>{low}</Best-caseLatency><Worst-caseLatency>{high}</Worst-caseLatency>"
            f"<PipelineInitiationInterval>2</PipelineInitiationInterval><PipelineType>yes</PipelineType>"
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


def cosim(*, verilog: str = "Pass", unit: str = "") -> str:
    """`<top>_cosim.rpt`."""
    empty = "|".join(["          NA"] * 6)
    return (
        "Report time       : Sat Feb  1 11:00:00 UTC 2025.\nSolution          : solution1.\n"
        "Simulation tool   : xsim.\n\n"
        "+----------+----------+--------------------------------------+--------------------------------------+\n"
        f"|          |          | {'Latency' + unit:^36} | {'Interval' + unit:^36} |\n"
        "+   RTL    +  Status  +--------------------------------------+--------------------------------------+\n"
        "|          |          |     min    |     avg    |     max    |     min    |     avg    |     max    |\n"
        "+----------+----------+--------------------------------------+--------------------------------------+\n"
        f"|      VHDL|        NA|{empty}|\n"
        f"|   Verilog|{verilog:>10}|        14157|      18887.5|       23290|          NA|          NA|          NA|\n"
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


def hierarchy() -> str:
    """`report_utilization -hierarchical -hierarchical_percentages`, columns not in Vivado's order."""
    header = ["Instance", "Module", "FFs", "Total LUTs", "Logic LUTs", "LUTRAMs", "SRLs"]
    header += ["RAMB36", "RAMB18", "URAM", "DSP Blocks"]
    rows = [
        ["myproject", "(top)", "900(0.1%)", "1000(0.2%)", "990", "0", "10", "2(0.1%)", "1(0.1%)", "0", "12(0.5%)"],
        ["  (myproject)", "(top)", "100", "200", "200", "0", "0", "0", "0", "0", "0"],
        ["  dense_U0", "dense_latency_config2", "800", "800", "790", "0", "10", "2", "1", "0", "12"],
    ]
    return vivado_head("report_utilization -hierarchical", "Routed", "2022.2") + (
        "\nUtilization Design Information\n\nTable of Contents\n-----------------\n1. Utilization by Hierarchy\n\n"
        f"1. Utilization by Hierarchy\n---------------------------\n\n{grid(header, rows)}\n"
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


def timing(*, state: str | None = "Routed", wns: str = "-0.463", net: str = "routed") -> str:
    """`report_timing_summary` with two clocks."""
    bar = "-" * 60

    def section(name: str) -> str:
        return f"\n{bar}\n| {name}\n| {'-' * len(name)}\n{bar}\n\n"

    return (
        vivado_head("report_timing_summary -file t.rpt", state)
        + "\nTiming Summary Report\n"
        + section("Design Timing Summary")
        + "    WNS(ns)      TNS(ns)  TNS Failing Endpoints      WHS(ns)  \n"
        + "    -------      -------  ---------------------      -------  \n"
        + f"{wns:>11}  -123456.140                     10        0.097  \n\n\nTiming constraints are not met.\n\n"
        + section("Clock Summary")
        + "Clock             Waveform(ns)         Period(ns)      Frequency(MHz)\n"
        + "-----             ------------         ----------      --------------\n"
        + "ap_clk            {0.000 2.500}        5.000           200.000         \n"
        + "  a_generated_one {0.000 5.000}        10.000          100.000         \n\n"
        + section("Intra Clock Table")
        + "Clock                 WNS(ns)      TNS(ns)  \n"
        + "-----                 -------      -------  \n"
        + f"ap_clk            {wns:>11}       -4.140  \n"
        + "  a_generated_one       3.000        0.000  \n\n"
        + section("Inter Clock Table")
        + "From Clock    To Clock          WNS(ns)  \n----------    --------          -------  \n\n"
        + section("Timing Details")
        + f"                         net (fo=1, {net})           1.827     2.754    x\n"
    )


FIT_VALUES = {
    "Fitter Status": "Successful - Sat Feb  1 13:00:00 2025",
    "Quartus Prime Version": "22.1.0 Build 174 03/30/2022 SC Pro Edition",
    "Revision Name": "top",
    "Top-level Entity Name": "myproject",
    "Family": "Arria 10",
    "Device": "10AX115S2F45I1SG",
    "Logic utilization (in ALMs)": "2,825 / 427,200 ( < 1 % )",
    "Total registers": "3821",
    "Total block memory bits": "575,968 / 55,562,240 ( 1 % )",
    "Total RAM Blocks": "87 / 2,713 ( 3 % )",
    "Total DSP Blocks": "4 / 1,518 ( < 1 % )",
}


def fit_rpt(values: dict[str, str] | None = None) -> str:
    """`<revision>.fit.rpt`, columns of the entities not in Quartus' order."""
    shown = FIT_VALUES if values is None else values
    header = ["Compilation Hierarchy Node", "Dedicated Logic Registers", "ALMs needed [=A-B+C]", "DSP Blocks"]
    header += ["Combinational ALUTs", "Entity Name"]
    rows = [
        ["|", "3821 (21)", "2824.5 (10.3)", "4 (0)", "4,100 (15)", "myproject"],
        ["   |dense_1:dense_1_inst|", "3800 (3800)", "2814.2 (2814.2)", "4 (4)", "4085 (4085)", "dense_1"],
    ]
    return (
        "Fitter report for top\nSat Feb  1 13:00:00 2025\nQuartus Prime Version 22.1.0\n\n\n---------------------\n"
        "; Table of Contents ;\n---------------------\n  1. Legal Notice\n  2. Fitter Summary\n"
        "---- Place Stage Reports ----\n      3. Fitter Resource Utilization by Entity\n  4. Fitter Messages\n\n\n\n"
        "----------------\n; Legal Notice ;\n----------------\nA notice.\n\n"
        + titled("Fitter Summary", semicolons(None, [[name, value] for name, value in shown.items()]))
        + titled("Fitter Resource Utilization by Entity", semicolons(header, rows))
        + titled("Fitter Messages", "")
        + "Info: done\n"
    )


def semicolons(header: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> str:
    text = grid(header or rows[0], rows if header else rows[1:], sign=";").splitlines()
    return "\n".join(text[1:] if header else [*text[1:2], *text[3:]])


def titled(title: str, table: str) -> str:
    border = "+" + "-" * 60 + "+"
    return f"\n{border}\n; {title:<58} ;\n{border}\n{table}\n\n"


def fit_summary() -> str:
    """`<revision>.fit.summary`."""
    return "\n".join(f"{name} : {value}" for name, value in FIT_VALUES.items()) + "\n"


def ruled(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns are underlined: text to the left, figures to the right."""
    widths = [max(len(row[at]) for row in [header, *rows]) for at in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = (
            f"{cell:>{width}}" if cell[:1].isdigit() or cell[:1] == "-" else f"{cell:<{width}}"
            for cell, width in zip(row, widths, strict=True)
        )
        return "  " + " ".join(cells)

    return "\n".join([line(header), "  " + " ".join("-" * width for width in widths), *map(line, rows)])


def catapult(latency: str = "25") -> str:
    """`rtl.rpt`."""
    processes = ruled(
        ["Process", "Real Operation(s) count", "Latency", "Throughput", "Reset Length", "II", "Comments"],
        [
            ["/myproject/nnet::dense<a_t, b_t, config2>/core", "24", "1", "3", "0", "0", ""],
            ["/myproject/nnet::relu<b_t, c_t, relu_config4>/core", "8", "-1", "3", "0", "0", "stall"],
            ["Design Total:", "1970", latency, "3", "1", "0", ""],
        ],
    )
    clocks = ruled(
        ["Clock Signal", "Edge", "Period", "Sharing Alloc (%)", "Uncertainty", "Used by Processes/Blocks"],
        [["clk", "rising", "5.000", "0.00", "0.000000", "/myproject/core"]],
    )
    return (
        "--  Catapult Ultra Synthesis 2024.1_1/1091966 (Production Release)\n-- Solution Settings: myproject.v1\n"
        f"  Current state: extract\n\nProcesses/Blocks in Design\n{processes}\n  \nClock Information\n{clocks}\n  \n"
        "Area Scores\n                    Post-Scheduling    Post-DP & FSM Post-Assignment \n"
        "  ----------------- --------------- ---------------- ---------------\n"
        "  Total Area Score:   560291.8        588659.5         586221.4\n"
    )


def libero(*, routed: bool = True, simulated: bool = True) -> str:
    """`summary.results.rpt` of SmartHLS."""
    simulation = (
        grid(
            [
                "Top-Level Name",
                "Number of calls",
                "Simulation time (cycles)",
                "Call Latency (min/max/avg)",
                "Call II (min/max/avg)",
            ],
            [["myproject_top", "5,601", "5,605", "3 / 4 / 3.00", "1 / 2 / 1.00"]],
        )
        + "\nSW/HW co-simulation: PASS\n"
    )
    clocks = grid(
        ["Clock Domain", "Target Period", "Target Fmax", "Worst Slack", "Period", "Fmax"],
        [["clk", "10.000 ns", "100.000 MHz", "5.775 ns", "4.225 ns", "236.686 MHz"]],
    )
    used = grid(
        ["Resource Type", "Used", "Total", "Percentage"],
        [
            ["Fabric + Interface 4LUT*", "488 + 72", "108600", "0.52"],
            ["Fabric + Interface DFF*", "397 + 72", "108600", "0.43"],
            ["uSRAM", "0", "1008", "0.00"],
            ["LSRAM", "2", "352", "0.57"],
            ["Math", "3", "336", "0.00"],
        ],
    )
    return (
        "====== 1. Simulation Result ======\n\n"
        + (simulation if simulated else "N/A. Please run the co-simulation.\n")
        + "\n====== 2. Timing Result ======\n\n"
        + (clocks if routed else "N/A. Please run place and route.\n")
        + f"\n\n====== 3. Resource Usage ======\n\n{used}\n\n* Interface 4LUTs and DFFs are occupied by hard blocks.\n"
    )


def report_data() -> str:
    """`report_data.js` of the Intel HLS compiler, columns not in its order."""
    return (
        'var infoJSON={"name":"Info","rows":[{"name":"Project Name","data":["myproject"]},'
        '{"name":"Target Family, Device","data":["Arria10, 10AX115S2F45I1SG"]},'
        '{"name":"i++ Version","data":["22.1.0 Build 174"]}]};\n'
        'var areaJSON={"columns":["","FFs","ALUTs","DSPs","RAMs","MLABs","Details"],"type":"module",'
        '"total":[2000,1000,12,30,4],"total_percent":[1,1,1,1,1],'
        '"children":[{"name":"dense_1","type":"function","data":[1500,800,12,20,0]}]};\n'
        'var fileJSON=[{\'content\':"x" + "y"}];\n'
    )


def quartus_data(clock: str = "250.0") -> str:
    """`quartus_data.js` of the Intel HLS compiler."""
    alm = "TBD" if clock == "TBD" else "2824.5"
    return (
        f'var quartusJSON={{"quartusFitClockSummary":{{"nodes":[{{"name":"clock","clock":"{clock}"}}]}},'
        '"quartusFitResourceUsageSummary":{"nodes":[{"name":"dense_1","alm":"900.0","reg":"100","dsp":"4","ram":"7"},'
        f'{{"name":"Quartus Fitter: Device","alm":"{alm}","reg":"3821","dsp":"12","ram":"30","mlab":"0"}}]}}}};\n'
    )
