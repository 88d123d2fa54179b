"""`axi_core_of`: a project's Verilog as a core with AXI4-Streams of words and registers on AXI4-Lite."""

from __future__ import annotations

from typing import Any, NamedTuple

from fpgaprune.errors import TargetError
from fpgaprune.fabric.beats import beat_bytes
from fpgaprune.fabric.identity import identity_of
from fpgaprune.files import hardware_path
from fpgaprune.rtl import RtlPort, VerilogProject

# Widths that AMD's AXI DMA has.
WORDS = (32, 64, 128, 256, 512)
# Bits of a register on AXI4-Lite.
_REGISTER = 32
_FILES = ("fp_axis_unpack.v", "fp_axis_pack.v", "fp_axi_core.v")
# Signals that pass from the core's pins to `fp_axi_core` as they are: direction, width in Verilog, name.
_SIGNALS = (
    ("input", "", "aclk"),
    ("input", "", "aresetn"),
    ("input", "[{high}:0]", "s_axis_tdata"),
    ("input", "", "s_axis_tvalid"),
    ("output", "", "s_axis_tready"),
    ("input", "", "s_axis_tlast"),
    ("output", "[{high}:0]", "m_axis_tdata"),
    ("output", "[{keep}:0]", "m_axis_tkeep"),
    ("output", "", "m_axis_tvalid"),
    ("input", "", "m_axis_tready"),
    ("output", "", "m_axis_tlast"),
    ("input", "[7:0]", "s_axi_awaddr"),
    ("input", "", "s_axi_awvalid"),
    ("output", "", "s_axi_awready"),
    ("input", "[31:0]", "s_axi_wdata"),
    ("input", "[3:0]", "s_axi_wstrb"),
    ("input", "", "s_axi_wvalid"),
    ("output", "", "s_axi_wready"),
    ("output", "[1:0]", "s_axi_bresp"),
    ("output", "", "s_axi_bvalid"),
    ("input", "", "s_axi_bready"),
    ("input", "[7:0]", "s_axi_araddr"),
    ("input", "", "s_axi_arvalid"),
    ("output", "", "s_axi_arready"),
    ("output", "[31:0]", "s_axi_rdata"),
    ("output", "[1:0]", "s_axi_rresp"),
    ("output", "", "s_axi_rvalid"),
    ("input", "", "s_axi_rready"),
)


def slot_bits(port: RtlPort, word_bits: int) -> int:
    """Return the bits that a beat of `port` takes on a stream of words: a power of two bytes, or whole words."""
    size = 8 * beat_bytes(port)
    return 1 << (size - 1).bit_length() if size <= word_bits else -(-size // word_bits) * word_bits


def axi_core_of(project: VerilogProject, word_bits: int = 64) -> dict[str, str]:
    """Return a dict: name -> text of the files of module `{top}_axi`, beside those of the project.

    Args:
        project: as `to_verilog` writes it, with one input and one output.
        word_bits: width of both streams.

    Raises:
        TargetError: no DMA has that width, the project has several inputs or outputs, or a beat of its loads is wider
            than a register.
        RtlError: a file of the project is missing.
    """
    if word_bits not in WORDS:
        raise TargetError(f"streams of {word_bits} bits: wanted {', '.join(map(str, WORDS))}")
    identity = identity_of(project)
    source, sink = identity.source, identity.sink
    high, keep = word_bits - 1, word_bits // 8 - 1
    loads = _loads(project)
    pins = ",\n".join(
        f"    {way:<6} wire {width.format(high=high, keep=keep)} {name}".replace("wire  ", "wire ")
        for way, width, name in _SIGNALS
    )
    through = ",\n".join(f"        .{name}({name})" for _, _, name in _SIGNALS)
    text = f"""// {project.name} as a core: fp_axi_core.v says what its registers and streams are.
module {project.top}_axi (
{pins}
);
    wire rst, in_tvalid, in_tready, in_tlast, out_tvalid, out_tready, out_tlast;
    wire [{source.width_bits - 1}:0] in_tdata;
    wire [{sink.width_bits - 1}:0] out_tdata;
{loads.wires}    fp_axi_core #(
        .WORD_BITS({word_bits}), .DIGEST(64'h{identity.digest}),
        .IN_BITS({source.width_bits}), .IN_SLOT({slot_bits(source, word_bits)}), .IN_BEATS({source.beats}),
        .OUT_BITS({sink.width_bits}), .OUT_SLOT({slot_bits(sink, word_bits)}), .OUT_BEATS({sink.beats}){loads.bits}
    ) core (
{through},
        .design_rst(rst),
        .to_design_tdata(in_tdata), .to_design_tvalid(in_tvalid), .to_design_tready(in_tready),
        .to_design_tlast(in_tlast),
        .from_design_tdata(out_tdata), .from_design_tvalid(out_tvalid), .from_design_tready(out_tready),
        {loads.of_core}
    );
    {project.top} network (
        .clk(aclk), .rst(rst),
        .{source.prefix}_tdata(in_tdata), .{source.prefix}_tvalid(in_tvalid), .{source.prefix}_tready(in_tready),
        .{source.prefix}_tlast(in_tlast), .{sink.prefix}_tdata(out_tdata), .{sink.prefix}_tvalid(out_tvalid),
        .{sink.prefix}_tready(out_tready), .{sink.prefix}_tlast(out_tlast){loads.of_design}
    );
endmodule
"""
    shared = {name: hardware_path("axi", name).read_text(encoding="utf-8") for name in _FILES}
    return {**shared, f"{project.top}_axi.v": text}


class _Loads(NamedTuple):
    """Verilog text of what carries loads of weights from the registers to the design."""

    wires: str
    bits: str
    of_core: str
    of_design: str


def _loads(project: VerilogProject) -> _Loads:
    if project.loads is None:
        names = "load_tdata", "load_tvalid", "load_tlast"
        return _Loads("", "", ", ".join([*(f".{name}()" for name in names), ".load_tready(1'b0)"]), "")
    port = project.loads.port
    if port.width_bits > _REGISTER:
        raise TargetError(
            f"{project.name} takes loads of {port.width_bits} bits a beat, and a register has {_REGISTER}; "
            "give weights and biases fewer bits, or write it without loads"
        )
    signals = "tdata", "tvalid", "tlast", "tready"
    return _Loads(
        f"    wire load_tvalid, load_tlast, load_tready;\n    wire [{port.width_bits - 1}:0] load_tdata;\n",
        f",\n        .LOADS(1), .LOAD_BITS({port.width_bits})",
        ", ".join(f".load_{signal}(load_{signal})" for signal in signals),
        "," + "\n        " + ", ".join(f".{port.prefix}_{signal}(load_{signal})" for signal in signals),
    )


def axi_form(project: VerilogProject, word_bits: int = 64) -> dict[str, Any]:
    """Return how samples and results stand on the streams, for the driver `hw/handover/network.py`."""
    ports = {"in": project.inputs[0], "out": project.outputs[0]}
    return {"word_bits": word_bits, **{way: _form(port, word_bits) for way, port in ports.items()}}


def _form(port: RtlPort, word_bits: int) -> dict[str, Any]:
    kind = port.type
    return {
        "shape": list(port.shape),
        "beats": port.beats,
        "lanes": port.lanes,
        "slot_bits": slot_bits(port, word_bits),
        "width": kind.width,
        "integer": kind.integer,
        "signed": kind.signed,
        "rounding": kind.rounding,
        "overflow": kind.overflow,
    }
