"""The stage `quantise`: what it writes is what the hardware holds, under the same locks; off, it leaves nothing."""

import json
from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.emulate import emulate
from fpgaprune.errors import ConfigError
from fpgaprune.flow.engine import check_flow, parse_config
from fpgaprune.flow.run import RunDirectory, Silent
from fpgaprune.flow.stages import (
    STAGES,
    Known,
    NetworkFiles,
    StageContext,
    artefacts_at,
    hardware_of,
    inputs_of,
    stage_named,
)
from fpgaprune.flow.task import predict, start_session
from fpgaprune.frontends import load_keras
from fpgaprune.lowering import Precision, quantize
from fpgaprune.quantise import without_last_rounding
from fpgaprune.target import Target
from fpgaprune.values import FixedType, HeldValues, MaskSet, count_digits, gathered, weight_arrays
from tests.quick import quick

from .stage_runs import stage_context

FILES = ("quantised.keras", "quantised_masks.npz", "quantised_types.json")
HOLD = {"hold": "digits(1)", "rounds": 2}


def network(small):
    """A convolution with BatchNorm, one dilated in groups, a transposed and a separable one, and logits.

    A small one has neither the second nor the third.
    """
    more = [
        layers.Conv2D(4, 2, dilation_rate=2, groups=2, name="wide"),
        layers.Conv2DTranspose(4, 3, strides=2, padding="same", name="up"),
    ]
    return keras.Sequential(
        [
            keras.Input((6, 6, 2), name="x"),
            layers.Conv2D(4, 3, name="conv"),
            layers.BatchNormalization(name="bn"),
            layers.ReLU(name="relu"),
            *([] if small else more),
            layers.SeparableConv2D(3, 3, name="sep"),
            layers.Flatten(name="flat"),
            layers.Dense(2, name="dense"),
        ]
    )


def context(folder, small=False, **keys):
    """A run whose removed network waits to be trained on; every third weight of its kernels is locked."""
    start_session(3)
    rng = np.random.default_rng(3)
    x = rng.random((48, 6, 6, 2), dtype=np.float32)
    y = (x.mean(axis=(1, 2, 3)) > 0.5).astype(np.int64)
    config = parse_config(
        {
            "quantise": {"epochs": 2, **keys},
            "hls": {"weight_bits": 3, "activation_bits": 4},
            "finetune": {"batch_size": 8},
        },
        "flow.toml",
    )
    model, masks = network(small), {}
    for path in (
        "conv/kernel",
        "up/kernel",
        "up/bias",
        "sep/depthwise_kernel",
        "sep/pointwise_kernel",
        "dense/kernel",
        "conv/bias",
    ):
        layer, name = path.split("/")
        if small and layer == "up":
            continue
        (variable,) = [v for v in model.get_layer(layer).weights if v.name == name]
        masks[path] = (np.arange(np.prod(variable.shape)) % 3 > 0).reshape(variable.shape)
        variable.assign(np.where(masks[path], variable, 0))
    return stage_context(folder, config, model, masks, (x, y), "removed")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """What the stage was given, and what it returned."""
    given = context(tmp_path_factory.mktemp("run"))
    return given, stage_named("quantise").run(given)


def test_every_weight_is_one_that_the_hardware_holds(done):
    given, _ = done
    types = json.loads(given.run.file("quantised_types.json").read_text())
    model = load_keras(given.run.file("quantised.keras"))
    rounded = [layer for layer in model.layers if layer.weights]
    assert [layer.name for layer in rounded] == ["conv", "wide", "up", "sep_depthwise", "sep", "dense"]
    for layer in rounded:
        for role, values in zip(("weight", "bias"), layer.get_weights(), strict=False):
            kind = FixedType.parse(types[layer.name][role])
            assert kind.width == 3 or role == "bias"
            np.testing.assert_array_equal(values, kind.to_float(kind.to_raw(values)))


def test_locks_of_kernels_hold_under_the_names_that_folding_gives(done):
    given, results = done
    before, after = (given.masks(name) for name in ("removed_masks.npz", "quantised_masks.npz"))
    for was, now in (
        *(("conv/kernel",) * 2, ("dense/kernel",) * 2),
        *(("sep/depthwise_kernel", "sep_depthwise/kernel"), ("sep/pointwise_kernel", "sep/kernel")),
    ):
        np.testing.assert_array_equal(before[was], after[now])
    # A bias has taken in the shift of BatchNorm; where that is zero, its lock holds.
    kernels = {"conv/kernel", "up/kernel", "dense/kernel", "sep_depthwise/kernel", "sep/kernel"}
    assert set(after) - {"conv/bias"} == kernels | {"up/bias", "wide/kernel"}
    # The kernels of plain convolutions are zero between the taps and outside the groups that nothing locked, too.
    assert np.count_nonzero(after["wide/kernel"]) == 2 * 2 * 2 * 4
    assert after["wide/kernel"].shape == (3, 3, 4, 4)
    np.testing.assert_array_equal(gathered(after["up/kernel"], (3, 3, 4, 4), (2, 2)), before["up/kernel"])
    np.testing.assert_array_equal(after["up/bias"][:4], before["up/bias"])
    assert np.count_nonzero(weight_arrays(load_keras(given.run.file("quantised.keras")))["wide/kernel"]) <= 32
    (link,) = results.links
    assert (link.link, link.violations) == ("quantised.keras", 0)
    assert list(stage_named("quantise").claims(given.run)) == []


def test_another_mask_of_a_kernel_is_found(done, tmp_path):
    given, _ = done
    run = RunDirectory(tmp_path)
    masks = {path: mask.copy() for path, mask in given.masks("quantised_masks.npz").items()}
    given.masks("removed_masks.npz").save(run.file("removed_masks.npz"))
    run.file("removed.keras").write_bytes(given.run.file("removed.keras").read_bytes())
    masks["dense/kernel"][:] = True
    masks["up/kernel"] = np.roll(masks["up/kernel"], 1, axis=-1)
    MaskSet(masks).save(run.file("quantised_masks.npz"))
    assert list(stage_named("quantise").claims(run)) == [
        f"quantised_masks.npz: the mask for {path!r} is not that of removed_masks.npz"
        for path in ("dense/kernel", "up/kernel")
    ]


def test_the_hardware_has_the_types_of_the_training_and_computes_what_was_trained(done):
    given, results = done
    types = json.loads(given.run.file("quantised_types.json").read_text())
    hardware = hardware_of(given.config, given.data).with_types(types)
    model = load_keras(given.run.file("quantised.keras"))
    design = hardware.design(model)
    for layer, kinds in types.items():
        assert {role: str(design[layer].types[role]) for role in kinds} == kinds
    outputs = emulate(design, given.data.x_test)
    lost = given.judge(model).lost(given.trained_outputs(), outputs)
    assert lost == results.rounded.after


def test_later_stages_read_the_network_that_was_trained_on(done):
    given, results = done
    number = STAGES.index(stage_named("quantise"))
    run = RunDirectory(given.run.path)
    run.record("remove", "k", {}, run.digests(["removed.keras"]), {}, 1.0)
    export = stage_named("export")
    assert inputs_of(export, STAGES, artefacts_at(STAGES[:number], run)) == ("removed.keras", "removed_masks.npz")
    run.record("quantise", "k", {}, run.digests(FILES), results.to_json(), 1.0)
    assert inputs_of(export, STAGES, artefacts_at(STAGES[: number + 1], run)) == FILES[:2]
    assert inputs_of(stage_named("hls"), STAGES, artefacts_at(STAGES[: number + 1], run))[-4:] == (
        *FILES,
        "quantised_held.npz",
    )


def test_its_part_of_the_report_says_what_rounding_costs_before_and_after(done):
    given, results = done
    before, after = stage_named("quantise").part(given, results).checks
    assert (before.measured, after.measured) == (results.rounded.before.lost, results.rounded.after.lost)
    assert stage_named("quantise").readings(results) == {"after": results.metric}
    (line,) = stage_named("quantise").outcome(results)
    assert line.text.startswith("quantised   accuracy lost to rounding: ")


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """The same with every kept weight held at a power of two in the end."""
    given = context(tmp_path_factory.mktemp("held"), small=True, **HOLD)
    return given, stage_named("quantise").run(given)


def test_every_kept_weight_is_held_at_a_power_of_two_and_certified(held):
    given, results = held
    values = HeldValues.load(given.run.file("quantised_held.npz"))
    types = json.loads(given.run.file("quantised_types.json").read_text())
    masks, model = given.masks("quantised_masks.npz"), weight_arrays(load_keras(given.run.file("quantised.keras")))
    kernels = [path for path in model if path.endswith("/kernel")]
    assert set(values.masks) == set(kernels)
    for path in kernels:
        np.testing.assert_array_equal(values.masks[path], ~masks[path])
        kind = FixedType.parse(types[path.partition("/")[0]]["weight"])
        assert kind.width == 4  # one bit more than asked for, so that the next power of two is a value too
        assert (count_digits(kind.to_raw(model[path])) <= 1).all()
    assert results.held == sum(int(masks[path].sum()) for path in kernels) == values.count
    links = {link.link: link for link in results.links}
    assert list(links) == ["quantised.keras", "quantised.keras, held values"]
    assert links["quantised.keras, held values"].locked == values.count
    assert list(stage_named("quantise").outcome(results))[1].text.startswith(f"held        {values.count:,} weights")


def test_the_hardware_holds_what_was_held_and_another_value_is_found(held):
    given, _ = held
    values = HeldValues.load(given.run.file("quantised_held.npz"))
    types = json.loads(given.run.file("quantised_types.json").read_text())
    hardware = hardware_of(given.config, given.data).with_types(types)
    design = hardware.design(load_keras(given.run.file("quantised.keras")))
    for path, array in values.values.items():
        layer = design[path.partition("/")[0]]
        exact = layer.types["weight"].to_float(layer.weights["weight"])
        here = ~values.masks[path]
        np.testing.assert_array_equal(exact.reshape(array.shape)[here], array[here])
    path = given.run.file("quantised_held.npz")
    whole = path.read_bytes()
    moved = {name: 2 * array for name, array in values.values.items()}
    HeldValues(values.masks, moved).save(path)
    link = stage_named("quantise").links["quantised.keras, held values"](given.artefacts)
    path.write_bytes(whole)
    assert 0 < link.violations <= values.count


def test_more_rounds_than_epochs_are_refused_before_anything_is_trained():
    config = parse_config({"quantise": {"epochs": 2, "hold": "digits(1)"}}, "flow.toml")
    *_, check = stage_named("quantise").checks(Known(config, None))
    with pytest.raises(ConfigError, match=r"in 6 rounds, and quantise.epochs is 2; wanted an epoch for each round"):
        check()
    with pytest.raises(ConfigError, match=r"wanted digits\(1\)"):
        parse_config({"quantise": {"hold": "powers"}}, "flow.toml")


@pytest.mark.parametrize("keys", [pytest.param({}, marks=pytest.mark.slow, id="free"), pytest.param(HOLD, id="held")])
def test_a_training_that_was_killed_goes_on_as_if_undisturbed(done, held, tmp_path, keys):
    class KilledError(Exception):
        pass

    class Killer(Silent):
        def step(self, done, total, note=""):
            if done > total // 2:
                raise KilledError

    given, _ = held if keys else done
    again = context(tmp_path, small=bool(keys), **keys)
    with pytest.raises(KilledError):
        stage_named("quantise").run(replace(again, progress=Killer()))
    assert again.run.file("quantise.checkpoint.npz").is_file()
    start_session(3)
    stage_named("quantise").run(again)
    assert not again.run.file("quantise.checkpoint.npz").exists()
    for name in (*FILES, *(["quantised_held.npz"] if keys else [])):
        assert again.run.file(name).read_bytes() == given.run.file(name).read_bytes()


def test_without_epochs_nothing_is_written_and_what_was_is_gone(tmp_path):
    run = RunDirectory(tmp_path)
    for name in (*FILES, "quantised_held.npz"):
        run.file(name).write_text("of before")
    config = parse_config({}, "flow.toml")
    assert stage_named("quantise").run(StageContext(run, config, None, Silent())) is None
    assert not any(run.file(name).exists() for name in FILES)
    assert list(stage_named("quantise").claims(run)) == []


@pytest.mark.parametrize(
    ("hls", "again"), [({"simulate": 0}, False), ({"simulate_s": 9.0}, False), ({"weight_bits": 5}, True)]
)
def test_only_what_decides_the_types_trains_anew(hls, again):
    flow = {"finetune": {"quantised": True}, "quantise": {"epochs": 2}}
    configs = parse_config(flow, "flow"), parse_config({**flow, "hls": hls}, "flow")
    for stage in (stage_named("finetune"), stage_named("quantise")):
        first, second = (stage.settings(config) for config in configs)
        assert (first != second) == again


def test_one_type_for_every_sum_is_refused_before_anything_is_trained(tmp_path):
    np.savez(
        tmp_path / "d.npz",
        **{f"x_{p}": np.zeros((4, 8, 8, 1)) for p in ("train", "test")},
        y_train=[0, 1, 0, 1],
        y_test=[0, 1, 0, 1],
    )
    document = {"data": {"source": str(tmp_path / "d.npz")}, "hls": {"precision": "fixed<16,6>"}}
    check_flow(parse_config(document, "flow.toml"))
    with pytest.raises(
        ConfigError, match=r"quantise.epochs: hls.precision is 'fixed<16,6>', one type for every sum too"
    ):
        check_flow(parse_config({**document, "quantise": {"epochs": 1}}, "flow.toml"))


def test_a_layer_that_cannot_be_rounded_is_refused_before_anything_is_trained():
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="a"), layers.LayerNormalization(name="norm")])
    assert list(stage_named("quantise").foresee(parse_config({}, "flow.toml"), None, model)) == []
    (line,) = stage_named("quantise").foresee(parse_config({"quantise": {"epochs": 1}}, "flow.toml"), None, model)
    assert line.startswith("quantise.epochs: layer 'norm' is a LayerNormalization, for which")


@pytest.mark.parametrize("last", [layers.Softmax(), layers.Activation("sigmoid")])
def test_the_training_sees_probabilities_before_they_are_rounded(last):
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4, name="d"), last])
    x = np.random.default_rng(0).random((32, 3), dtype=np.float32)
    rounded = quantize(model, Target.of("xc7z020clg400-1"), x, Precision(4, 4))
    seen, given = (predict(one, x) for one in (without_last_rounding(rounded), rounded))
    lsb = rounded.layers[-1].types["result"].lsb
    assert (seen % lsb != 0).any()
    # The tables of a softmax are off by less than a 128th.
    assert np.abs(seen - given).max() <= lsb + 1 / 128
    assert (given % lsb == 0).all()


def fine_tuned(folder, **keys):
    """A small `context`, with a trained network whose selection waits to be fine-tuned while it rounds."""
    given = context(folder, small=True)
    config = parse_config(
        {
            "finetune": {"epochs": 3, "batch_size": 8, "quantised": True, **keys},
            "select": {"sparsity": 0.5, "granularity": "weight"},
            "hls": {"weight_bits": 3, "activation_bits": 4},
        },
        "flow.toml",
    )
    with given.run.locked():
        for old, new in (("removed.keras", "trained.keras"), ("removed_masks.npz", "selection.npz")):
            given.run.file(new).write_bytes(given.run.file(old).read_bytes())
    return replace(given, config=config, network=None)


SCHEDULES = [{"kind": "one_shot"}, {"kind": "polynomial_decay", "frequency": 2}]


@pytest.mark.parametrize("schedule", quick(SCHEDULES[1:], SCHEDULES))
def test_fine_tuning_that_rounds_keeps_its_locks_and_hands_its_types_on(tmp_path, schedule):
    given = fine_tuned(tmp_path, schedule=schedule)
    results = stage_named("finetune").run(given)
    model, masks = load_keras(given.run.file("finetuned.keras")), given.masks("masks.npz")
    weights = weight_arrays(model)
    assert {"conv/kernel", "sep_depthwise/kernel", "sep/kernel", "dense/kernel"} <= set(masks)
    assert all((weights[path][~mask] == 0).all() for path, mask in masks.items())
    types = json.loads(given.run.file("finetuned_types.json").read_text())
    # The weights train on as floats: rounding them is left to the end.
    kind = FixedType.parse(types["conv"]["weight"])
    assert (kind.to_float(kind.to_raw(weights["conv/kernel"])) != weights["conv/kernel"]).any()
    for old, new in (("finetuned.keras", "removed.keras"), ("masks.npz", "removed_masks.npz")):
        given.run.file(new).write_bytes(given.run.file(old).read_bytes())
    on = replace(given, network=NetworkFiles("removed.keras", "removed_masks.npz"))
    rounded = stage_named("quantise").run(on)
    assert json.loads(given.run.file("quantised_types.json").read_text()) == types
    # No epoch of [quantise]: the network is the one that was fine-tuned, bit for bit.
    assert rounded.metric.samples == 48
    outputs = emulate(hardware_of(on.config, on.data).with_types(types).design(model), on.data.x_test)
    assert on.judge(model).reading(outputs).value == results.metric.value


def test_weights_decay_in_both_trainings(tmp_path):
    """Each step leaves nothing of a kernel, but what the optimizer adds."""
    keys = {"batch_size": 8, "weight_decay": 100.0}
    given = fine_tuned(tmp_path / "fine", learning_rate=0.01, **keys)
    stage_named("finetune").run(given)
    on = context(tmp_path / "on", small=True, learning_rate=0.01)
    flow = {"quantise": {"epochs": 2, "learning_rate": 0.01}, "hls": {"weight_bits": 8}, "finetune": keys}
    stage_named("quantise").run(replace(on, config=parse_config(flow, "flow.toml")))
    for file in (given.run.file("finetuned.keras"), on.run.file("quantised.keras")):
        kernels = [weight for path, weight in weight_arrays(load_keras(file)).items() if path.endswith("kernel")]
        assert max(abs(kernel).max() for kernel in kernels) < 0.05


def test_another_decay_trains_anew():
    flows = [
        {"finetune": {"quantised": True, "weight_decay": decay}, "quantise": {"epochs": 2}} for decay in (0.0, 0.1)
    ]
    for stage in (stage_named("finetune"), stage_named("quantise")):
        first, second = (stage.settings(parse_config(flow, "flow")) for flow in flows)
        assert first != second


def test_weights_to_go_back_to_are_refused_where_fine_tuning_rounds():
    schedule = {"kind": "rounds", "rewind_to": 0}
    config = parse_config({"finetune": {"quantised": True, "schedule": schedule}}, "flow.toml")
    types, rewind = stage_named("finetune").checks(Known(config, None))
    types()
    with pytest.raises(ConfigError, match="rewind_to names weights of a network that does not round"):
        rewind()
