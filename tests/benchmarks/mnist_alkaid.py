"""alkaid's Verilog of one window of each convolution that HGQ2 trained: `python mnist_alkaid.py MODEL.keras FOLDER`.

With the word `whole` behind it, of the whole network, a Dense one.

alkaid lays a whole image out at once, so a layer of it is one window of 3 × 3 positions here, with its ReLU: what our
Verilog has once, and moves over the image. Counted by the same synthesis. Needs HGQ2 and `pip install alkaid`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import keras
import mnist_hgq
from alkaid.codegen import RTLModel
from alkaid.converter import trace_model
from alkaid.trace import HWConfig, trace
from hgq.layers import QConv2D

from fpgaprune.fabric import YOSYS, find_family, find_open_tool, make_netlist

TIMEOUT_S = 3600.0


def main(path: Path, folder: Path, *, whole: bool) -> None:
    """Prints LUTs, FF and latency of each convolution, or of the whole network."""
    model = keras.models.load_model(path, compile=False)
    if whole:
        count(model, "network", folder)
        return
    for name in mnist_hgq.READERS[:2]:
        layer = model.get_layer(name)
        one = QConv2D.from_config(layer.get_config())
        window = keras.Sequential([keras.Input((3, 3, layer.kernel.shape[2])), one])
        for variable, value in zip(one.weights, layer.weights, strict=True):
            variable.assign(value)
        count(window, name, folder)


def count(model: Any, name: str, folder: Path) -> None:
    """Prints LUTs, FF and latency of alkaid's Verilog of `model`."""
    _, cells, latency = verilog(model, name, folder)
    print(f"{name}: {cells.lut:,} LUT, {cells.ff:,} FF, latency {latency}", flush=True)


def verilog(
    model: Any, name: str, folder: Path, inputs_kif: tuple[int, int, int] | None = None
) -> tuple[Any, Any, int]:
    """alkaid's logic of `model`, which computes what its Verilog does; the cells of that Verilog, and its latency.

    `inputs_kif` is the type of its input, sign, integer and fractional bits, where its first layer does not say it.
    """
    family, yosys = find_family("xc7"), find_open_tool(YOSYS)
    # alkaid 0.8.2 stops at tables of values that are 0 or -1, which PQuantML's quantisers leave.
    solver = {"hard_dc": 5} if inputs_kif is None else {"hard_dc": 5, "binary_lut": False}
    logic = trace(*trace_model(model, HWConfig(1, 1, -1), solver, inputs_kif=inputs_kif))
    # One adder between two registers, as in our Verilog.
    options = {"flavor": "verilog", "latency_cutoff": 1.2, "ternary_fuse": True, "print_latency": False}
    made = RTLModel(logic, folder / name, name, **options)
    made.write()
    sources = {file.name: file.read_bytes() for file in sorted((folder / name).rglob("*.v"))}
    netlist = make_netlist(sources, name, family, folder / "cache", yosys, TIMEOUT_S, named=False)
    return logic, family.count(netlist.types), made.latency[-1] if isinstance(made.latency, tuple) else made.latency


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), whole="whole" in sys.argv)
