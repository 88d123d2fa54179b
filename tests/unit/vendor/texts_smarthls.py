"""`summary.results.rpt` of SmartHLS in the forms of its releases, with figures of our own."""

from __future__ import annotations

from tests.unit.vendor.texts import grid

HEAD = (
    "\n==================================================================\n"
    "=====  Summary Report for RTL Simulation and FPGA Synthesis  =====\n"
    "==================================================================\n\n"
    "Project name: prj\nFPGA Vendor: MICROSEMI\nDevice Family: PolarFire\nDevice: MPF100T-FCG484I\n\n"
    "Table of Contents\n  1. Simulation Result\n  2. Timing Result of HLS-generated IP Core\n"
    "  3. Resource Usage of HLS-generated IP Core\n\n\n"
)
CALLS = (
    grid(
        [
            "Top-Level Name",
            "Number of calls",
            "Simulation time (cycles)",
            "Call Latency (min/max/avg)",
            "Call II (min/max/avg)",
        ],
        [["myproject_top", "1,201", "1,309", "23 / 42 / 31.00", "5 / 20 / 6.00"]],
    )
    + "\nSimulation time (cycles): 1,309\nSW/HW co-simulation: PASS\n"
)
OLD_CALLS = "Number of calls: 1,201\nCycle latency: 1,309\nSW/HW co-simulation: PASS\n"
NOT_RUN = "N/A. Please run 'SW/HW Co-Simulation' to obtain the simulation result.\n"
NOT_ROUTED = "N/A. Please run 'Synthesize Hardware to FPGA' to obtain the timing result.\n"


def summary_results(
    *,
    simulation: str | None = CALLS,
    routed: bool = True,
    lut: str = "512 + 72 = 584",
    top: str | None = "myproject_top",
    indent: str = "",
) -> str:
    """The report; without `top` in the form of the manual's older example."""
    of = f" of HLS-generated IP Core (top-level module: {top})" if top else ""
    first = "Simulation Result" if top else "Simulation Cycle Latency"
    clocks = grid(
        ["Clock Domain", "Target Period", "Target Fmax", "Worst Slack", "Period", "Fmax"],
        [["clk", "10.000 ns", "100.000 MHz", "4.225 ns", "5.775 ns", "173.160 MHz"]],
    )
    used = grid(
        ["Resource Type", "Used", "Total", "Percentage"],
        [
            ["Fabric + Interface 4LUT*", lut, "108600", "0.54"],
            ["Fabric + Interface DFF*", "397 + 72 = 469" if "=" in lut else "397 + 72", "108600", "0.43"],
            ["I/O Register", "0", "852", "0.00"],
            ["User I/O", "0", "284", "0.00"],
            ["uSRAM", "3", "1008", "0.30"],
            ["LSRAM", "1", "352", "0.28"],
            ["Math", "2", "336", "0.60"],
        ],
    )
    memories = grid(["Local Memories"], [["None"]])
    timing = (
        f"{clocks}\n\nThe reported Fmax is for the HLS core in isolation (from Libero's post-place-and-route timing "
        "analysis).\n"
    )
    return (
        HEAD
        + ("" if simulation is None else f"{indent}====== 1. {first} ======\n\n{simulation}\n")
        + f"{indent}====== 2. Timing Result{of} ======\n\n{timing if routed else NOT_ROUTED}\n"
        + f"{indent}====== 3. Resource Usage{of} ======\n\n{used}\n\n"
        + "* Interface 4LUTs and DFFs are occupied due to the uses of LSRAM, Math, and uSRAM.\n\n"
        + f"{indent}====== 4. Memory Usage ======\n\n{memories}\n"
    )
