"""`write_handoff`: a Verilog project with everything that a vendor's tools need to build and to simulate it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fpgaprune.errors import TargetError, ToolError
from fpgaprune.fabric import testbench
from fpgaprune.fabric.synthesis import read_sources
from fpgaprune.fabric.vectors import Vectors
from fpgaprune.files import make_folder, write_bytes
from fpgaprune.processes import ToolRun, run_tool
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import find_part

# Tool -> its product, advice if it is missing, and its arguments in the folder of the hand-off.
_TOOLS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "vivado": (
        "AMD Vivado",
        "source settings64.sh of Vivado",
        ("-mode", "batch", "-nojournal", "-nolog", "-source", "vivado.tcl"),
    ),
    "quartus_sh": ("Intel Quartus", "add its bin folder to PATH", ("-t", "quartus.tcl")),
}
_SIMULATORS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "vivado": ("vivado", ("-mode", "batch", "-nojournal", "-nolog", "-source", "simulate.tcl")),
    "quartus_sh": ("vsim", ("-c", "-do", "simulate.do")),
}


@dataclass(frozen=True, slots=True)
class Handoff:
    """A folder that a vendor's tool builds as it is, on this machine or on another one.

    Attributes:
        path: the folder.
        tool: `vivado` or `quartus_sh`.
        order_number: the part's order number.
        reports: the folder of the tool's reports.
    """

    path: Path
    tool: str
    order_number: str
    reports: Path

    def build(self, timeout_s: float = 7200.0, on_line: Callable[[str], None] | None = None) -> ToolRun:
        """Synthesise, place and route the design with the vendor's tool; its reports are in `reports`.

        Raises:
            ToolError: the tool is missing (the message says what to run on a machine that has it), died or ran too
                long; every process that it started is ended, and its log is kept.
        """
        product, advice, arguments = _TOOLS[self.tool]
        make_folder(self.reports)
        return run_tool((self.tool, *arguments), self.path, timeout_s, on_line, product=product, advice=advice)

    def simulate(self, timeout_s: float = 3600.0, on_line: Callable[[str], None] | None = None) -> ToolRun:
        """Return the vendor's simulator ran the test bench, and every word equals that of the emulation.

        Raises:
            ToolError: as for `build`, or a word differs.
        """
        program, arguments = _SIMULATORS[self.tool]
        product, advice, _ = _TOOLS[self.tool]
        run = run_tool(
            (program, *arguments),
            self.path,
            timeout_s,
            on_line,
            log_name="simulate.log",
            product=f"the simulator of {product}",
            advice=advice,
        )
        log = run.log.read_text(encoding="utf-8", errors="replace")
        if testbench.PASS not in log or testbench.FAIL in log:
            raise ToolError(f"the test bench of {self.path} did not pass; its output is in {run.log}")
        return run


def write_handoff(project: VerilogProject, part: str, vectors: Vectors, output_dir: str | os.PathLike[str]) -> Handoff:
    """Write the project's Verilog, constraints, scripts and a self-checking test bench to `output_dir`.

    For AMD parts: `clock.xdc`, `vivado.tcl` (non-project mode, out of context) and `simulate.tcl`. For Intel parts:
    `clock.sdc`, `quartus.tcl` (all pins virtual) and `simulate.do`. In the folder, `vivado -mode batch -source
    vivado.tcl` or `quartus_sh -t quartus.tcl` does what `build` does. Equal input gives equal bytes.

    Args:
        project: as `to_verilog` writes it.
        part: full order number, as `xc7z020clg400-1` or `10AX115N2F45E1SG`.
        vectors: as `golden_vectors` makes them.
        output_dir: is made if it is missing.

    Raises:
        TargetError: the part is unknown, is given without its package, or comes from another vendor.
        RtlError: a file of the project is missing.
    """
    device = find_part(part)
    order_number = part.strip()
    if device.vendor not in ("AMD", "Intel"):
        raise TargetError(f"part {order_number!r} is of {device.vendor}; the hand-off takes AMD and Intel parts")
    if order_number.lower() == device.name:
        raise TargetError(f"part {order_number!r} is not a full order number; name package and speed grade too")
    folder = Path(output_dir)
    sources = read_sources(project, project.files)
    ports = (*project.inputs, *project.outputs)
    verilog = [name for name in sources if name.endswith(".v")]
    texts = {testbench.vector_file(port): vectors.hexadecimal(port) for port in ports}
    texts["testbench.v"] = testbench.testbench_of(project, vectors)
    clock = f"create_clock -name clk -period {project.clock_ns:g} [get_ports clk]\n"
    if device.vendor == "AMD":
        tool, reports = "vivado", "reports"
        texts |= {"clock.xdc": clock, "vivado.tcl": _vivado(project, order_number, verilog)}
        texts["simulate.tcl"] = _xsim(verilog)
    else:
        tool, reports = "quartus_sh", "output_files"
        texts |= {"clock.sdc": clock, "quartus.tcl": _quartus(project, order_number, verilog)}
        texts["simulate.do"] = _questa(verilog)
    for name, content in {**sources, **{name: text.encode() for name, text in texts.items()}}.items():
        write_bytes(folder / name, content)
    return Handoff(folder, tool, order_number, folder / reports)


def _vivado(project: VerilogProject, part: str, verilog: list[str]) -> str:
    return f"""# Non-project mode, out of context: no pins, no buffers. Run in this folder:
# vivado -mode batch -source vivado.tcl
set_part {part}
file mkdir reports
{_lines("read_verilog", verilog)}
read_xdc -mode out_of_context clock.xdc
synth_design -top {project.top} -part {part} -mode out_of_context
report_utilization -file reports/{project.top}_utilization_synth.rpt
report_utilization -hierarchical -file reports/{project.top}_hierarchy_synth.rpt
report_timing_summary -file reports/{project.top}_timing_synth.rpt
opt_design
place_design
phys_opt_design
route_design
report_utilization -file reports/{project.top}_utilization_routed.rpt
report_utilization -hierarchical -file reports/{project.top}_hierarchy_routed.rpt
report_timing_summary -file reports/{project.top}_timing_routed.rpt
write_checkpoint -force {project.top}.dcp
"""


def _xsim(verilog: list[str]) -> str:
    files = " ".join(_word(name) for name in [*verilog, "testbench.v"])
    return f"""# The test bench in Vivado's simulator. Run in this folder: vivado -mode batch -source simulate.tcl
exec >@stdout 2>@stderr xvlog {files}
exec >@stdout 2>@stderr xelab {testbench.TOP} -s {testbench.TOP}
exec >@stdout 2>@stderr xsim {testbench.TOP} -runall
"""


def _quartus(project: VerilogProject, part: str, verilog: list[str]) -> str:
    return f"""# Run in this folder: quartus_sh -t quartus.tcl
load_package flow
project_new {project.top} -overwrite
set_global_assignment -name DEVICE {part}
set_global_assignment -name TOP_LEVEL_ENTITY {project.top}
set_global_assignment -name PROJECT_OUTPUT_DIRECTORY output_files
{_lines("set_global_assignment -name VERILOG_FILE", verilog)}
set_global_assignment -name SDC_FILE clock.sdc
# Streams are wider than a package has pins: every port but the clock stays inside the device.
set_instance_assignment -name VIRTUAL_PIN ON -to *
set_instance_assignment -name VIRTUAL_PIN OFF -to clk
execute_flow -compile
project_close
"""


def _questa(verilog: list[str]) -> str:
    files = " ".join(_word(name) for name in [*verilog, "testbench.v"])
    return f"""# The test bench in Questa. Run in this folder: vsim -c -do simulate.do
vlib work
vlog {files}
vsim {testbench.TOP}
run -all
quit -f
"""


def _lines(command: str, names: list[str]) -> str:
    return "\n".join(f"{command} {_word(name)}" for name in names)


def _word(name: str) -> str:
    """Write `name` as one word of Tcl."""
    return f"{{{name}}}"
