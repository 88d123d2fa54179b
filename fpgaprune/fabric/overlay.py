"""`overlay_files`: scripts for Vivado that make a project an IP core, and a bitstream for PYNQ around it."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from fpgaprune.errors import TargetError
from fpgaprune.fabric.axi_core import axi_core_of, axi_form
from fpgaprune.files import hardware_path, read_toml
from fpgaprune.rtl import VerilogProject

_LIST = ("axi", "overlays.toml")


class OverlayBoard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A board whose processor reaches the core through a DMA.

    Attributes:
        files: vendor and name of the board's files in Vivado.
        processor: AMD's IP of its processor.
        word_bits: width of the streams.
        source: the documents that state it.
    """

    files: str
    processor: str
    word_bits: int
    source: str


@cache
def list_overlays() -> dict[str, OverlayBoard]:
    """Return a dict: name -> board of `hw/axi/overlays.toml`."""
    document = read_toml(hardware_path(*_LIST), TargetError, "list of overlays", "install fpgaprune again")
    document.pop("date")
    return msgspec.convert(document, dict[str, OverlayBoard])


def overlay_files(project: VerilogProject, board: str, order_number: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Name -> text of the core's Verilog and of the scripts for Vivado, and the form that the driver reads.

    `vivado -mode batch -source block_design.tcl` packages the core (`package_ip.tcl`, IP-XACT in the folder `ip`),
    joins it to the processor and to memory, and leaves `network.bit` and `network.hwh`.

    Raises:
        TargetError: the board is in no list, or the project has several inputs or outputs.
        RtlError: a file of the project is missing.
    """
    boards = list_overlays()
    if board not in boards:
        raise TargetError(f"board {board!r} has no block design; wanted one of {', '.join(boards)}")
    place = boards[board]
    core = {f"axi/{name}": text for name, text in axi_core_of(project, place.word_bits).items()}
    verilog = [name for name in (*project.files, *core) if name.endswith(".v")]
    scripts = {
        "package_ip.tcl": _package(project, order_number, verilog),
        "block_design.tcl": _design(project, board, place, order_number),
    }
    return {**core, **scripts}, axi_form(project, place.word_bits)


def _package(project: VerilogProject, order_number: str, verilog: list[str]) -> str:
    files = "\n".join(f"file copy -force {{{name}}} ip/src" for name in verilog)
    top = f"{project.top}_axi"
    return f"""# The Verilog as an IP core, in the folder ip. Sourced by block_design.tcl.
file delete -force ip build_ip
file mkdir ip/src
{files}
create_project build_ip build_ip -part {order_number} -force
add_files [glob ip/src/*.v]
set_property top {top} [current_fileset]
update_compile_order -fileset sources_1
ipx::package_project -root_dir ip -vendor fpgaprune -library user -taxonomy /UserIP -import_files
set core [ipx::current_core]
set_property name {top} $core
set_property version 1.0 $core
set_property display_name {{{project.name}}} $core
foreach bus {{s_axis m_axis s_axi}} {{
    ipx::associate_bus_interfaces -busif $bus -clock aclk $core
}}
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::save_core $core
close_project
"""


def _design(project: VerilogProject, board: str, place: OverlayBoard, order_number: str) -> str:
    mhz = 1e3 / project.clock_ns
    if place.processor == "processing_system7":
        automation = '{make_external "FIXED_IO, DDR" apply_board_preset "1"}'
        settings = f"CONFIG.PCW_USE_S_AXI_HP0 1 CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ {mhz:g}"
        master, memory = "/ps/M_AXI_GP0", "/ps/S_AXI_HP0"
    else:
        automation = '{apply_board_preset "1"}'
        settings = (
            "CONFIG.PSU__USE__S_AXI_GP2 1 CONFIG.PSU__USE__M_AXI_GP0 1 CONFIG.PSU__USE__M_AXI_GP1 0 "
            f"CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ {mhz:g}"
        )
        master, memory = "/ps/M_AXI_HPM0_FPD", "/ps/S_AXI_HP0_FPD"
    widths = " ".join(
        f"CONFIG.{name} {place.word_bits}"
        for name in (
            *("c_m_axi_mm2s_data_width", "c_m_axis_mm2s_tdata_width"),
            *("c_m_axi_s2mm_data_width", "c_s_axis_s2mm_tdata_width"),
        )
    )
    return f"""# {project.name} on {board}: processor, DMA and core. Run in this folder:
# vivado -mode batch -source block_design.tcl
source package_ip.tcl
create_project overlay build -part {order_number} -force
set found [lsort [get_board_parts -quiet {{{place.files}:*}}]]
if {{[llength $found] == 0}} {{
    error "Vivado has no files of board {place.files}: install them (Tools, Vivado Store, Boards), and run this again"
}}
set_property board_part [lindex $found end] [current_project]
set_property ip_repo_paths ip [current_project]
update_ip_catalog
create_bd_design overlay
create_bd_cell -type ip -vlnv xilinx.com:ip:{place.processor} ps
apply_bd_automation -rule xilinx.com:bd_rule:{place.processor} -config {automation} [get_bd_cells ps]
set_property -dict {{{settings}}} [get_bd_cells ps]
create_bd_cell -type ip -vlnv xilinx.com:ip:axi_dma dma
set_property -dict {{CONFIG.c_include_sg 0 CONFIG.c_sg_length_width 26 {widths}}} [get_bd_cells dma]
create_bd_cell -type ip -vlnv fpgaprune:user:{project.top}_axi network
connect_bd_intf_net [get_bd_intf_pins dma/M_AXIS_MM2S] [get_bd_intf_pins network/s_axis]
connect_bd_intf_net [get_bd_intf_pins network/m_axis] [get_bd_intf_pins dma/S_AXIS_S2MM]
foreach slave {{/dma/S_AXI_LITE /network/s_axi}} {{
    set joined [list Master {master} Slave $slave Clk_slave Auto]
    apply_bd_automation -rule xilinx.com:bd_rule:axi4 -config $joined [get_bd_intf_pins $slave]
}}
# The first master makes the interconnect at the memory's port, the second joins it.
foreach {{source pin}} {{/dma/M_AXI_MM2S {memory} /dma/M_AXI_S2MM /dma/M_AXI_S2MM}} {{
    set joined [list Master $source Slave {memory} Clk_master Auto Clk_slave Auto]
    apply_bd_automation -rule xilinx.com:bd_rule:axi4 -config $joined [get_bd_intf_pins $pin]
}}
assign_bd_address
validate_bd_design
save_bd_design
add_files [make_wrapper -files [get_files overlay.bd] -top]
set_property top overlay_wrapper [current_fileset]
launch_runs impl_1 -to_step write_bitstream -jobs 4
wait_on_run impl_1
if {{[get_property PROGRESS [get_runs impl_1]] ne "100%"}} {{
    error "the implementation did not end: see build/overlay.runs/impl_1"
}}
foreach {{slack kind}} {{STATS.WNS setup STATS.WHS hold}} {{
    set ns [get_property $slack [get_runs impl_1]]
    if {{![string is double -strict $ns] || $ns < 0}} {{
        error "timing is not met, so no network.bit: $kind slack $ns ns at {mhz:g} MHz; take a longer clock_ns"
    }}
}}
file copy -force build/overlay.runs/impl_1/overlay_wrapper.bit network.bit
file copy -force [lindex [glob build/overlay.gen/sources_1/bd/overlay/hw_handoff/*.hwh] 0] network.hwh
"""
