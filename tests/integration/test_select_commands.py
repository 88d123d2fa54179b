"""Selection as a user asks for it: `fpgaprune select`, `sensitivity`, `convert`, and schedules in a flow."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fpgaprune.network import read_keras_weights, save_keras
from fpgaprune.values import MaskSet
from tests.integration.warm_commands import command
from tests.unit.select.networks import plain

pytestmark = pytest.mark.flow
MAKER = Path(__file__).parents[1] / "unit" / "select" / "make_tfmot_models.py"


def fpgaprune(*arguments, folder):
    return command([*map(str, arguments)], folder, os.environ)


def succeed(*arguments, folder):
    done = fpgaprune(*arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved model of three classes with one zero kernel, and data for it."""
    folder = tmp_path_factory.mktemp("saved")
    model = plain()
    kernel = model.get_layer("conv2").kernel
    values = kernel.numpy()
    values[:, :, 1, 2] = 0
    kernel.assign(values)
    save_keras(model, folder / "model.keras")
    rng = np.random.default_rng(0)
    arrays = {f"x_{part}": rng.normal(size=(24, 6, 6, 1)) for part in ("train", "test")}
    np.savez(folder / "data.npz", **arrays, y_train=np.arange(24) % 3, y_test=np.arange(24) % 3)
    return folder


def test_filters_go_first_and_sparsity_counts_what_is_left(folder):
    options = ("--criterion", "taylor", "--data", "data.npz", "--granularity", "weight", "--json")
    narrow = ("--filters", "conv1/kernel=0.5", "--out", "narrow.npz")
    succeed("select", "model.keras", *narrow, *options, folder=folder)
    succeed("select", "model.keras", *narrow[:2], "--sparsity", "0.5", *options, folder=folder)
    first, both = (MaskSet.load(folder / name) for name in ("narrow.npz", "masks.npz"))
    dead = ~first["conv1/kernel"].any(axis=(0, 1, 2))
    assert dead.sum() == len(dead) // 2
    assert not any((both[path] & ~first[path]).any() for path in first), "what the filters lock stays locked"
    # Of the narrow network half of the weights is free.
    left = {path: mask.copy() for path, mask in first.items() if path in ("conv1/kernel", "conv2/kernel", "out/kernel")}
    left["conv2/kernel"][:, :, dead, :] = False
    kept = sum(int(both[path].sum()) for path in left)
    assert abs(kept - sum(int(mask.sum()) for mask in left.values()) / 2) <= 1
    wrong = fpgaprune("select", "model.keras", "--filters", "half", folder=folder)
    assert wrong.returncode == 2
    assert "--filters is 'half'; wanted a fraction such as 0.8" in " ".join(wrong.stderr.split())


def test_every_option_of_select_reaches_the_masks(folder):
    options = [
        *("--granularity", "block(-1, -1, 1, 5)", "--sparsity", "conv2/kernel=0.5", "--sparsity", "conv*/kernel=0.25"),
        *("--criterion", "taylor", "--data", "data.npz", "--samples", "16", "--batch-size", "8", "--normalize", "lamp"),
        *("--lock", "out/bias[1]", "--zeros", "--fixed", "out/kernel=fixed<4,1>", "--close", "--min-free", "2"),
    ]
    said = json.loads(succeed("select", "model.keras", *options, "--json", folder=folder))
    masks = MaskSet.load(folder / said["masks"])
    whole = ~masks["conv2/kernel"].any(axis=(0, 1, 3))
    assert whole.sum() == 2, "half of four blocks, a kernel high and all five outputs wide"
    assert not masks["conv2/kernel"][:, :, 1, 2].any()
    assert not masks["out/bias"][1]
    small = np.abs(read_keras_weights(folder / "model.keras")["out/kernel"]) < 0.125
    assert not masks["out/kernel"][small & (read_keras_weights(folder / "model.keras")["out/kernel"] >= 0)].any()
    assert {addition["slice"].split("[")[0] for addition in said["additions"]} >= {"conv1/kernel", "conv1/bias"}


def test_the_cost_reaches_the_masks_from_the_command_line(folder):
    chosen = {}
    for cost in ("none", "adders(6)", "adders(6, 0)"):
        options = ["--sparsity", "0.5", "--cost", cost, "--out", "costed.npz", "--quiet"]
        succeed("select", "model.keras", *options, folder=folder)
        masks = MaskSet.load(folder / "costed.npz")
        chosen[cost] = {path: mask.tobytes() for path, mask in masks.items()}
    assert chosen["adders(6, 0)"] == chosen["none"] != chosen["adders(6)"]


def test_what_a_selection_cuts_too_far_is_said(folder):
    options = ["--sparsity", "0.25", "--lock", "out/kernel[:, 1]", "--out", "cut.npz"]
    (warning,) = json.loads(succeed("select", "model.keras", *options, "--json", folder=folder))["warnings"]
    assert (warning["layer"], warning["rule"]) == ("out", "dead_output")
    assert (warning["kept_channels"], warning["total_channels"]) == (2, 3)
    shown = succeed("select", "model.keras", *options, folder=folder)
    assert f"warning: {warning['text']}" in shown
    assert "warning" not in succeed("select", "model.keras", "--sparsity", "0.5", "--out", "cut.npz", folder=folder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["select", "model.keras", "--sparsity", "0.5", "--criterion", "magic"], "wanted one of l1, l2, random"),
        (
            ["select", "model.keras", "--sparsity", "0.5", "--criterion", "taylor"],
            "needs samples; name them with --data",
        ),
        (["select", "model.keras", "--sparsity", "1.5"], "select.sparsity is 1.5"),
        (["select", "model.keras", "--sparsity", "half"], "--sparsity is 'half'; wanted a fraction"),
        (["select", "model.keras", "--sparsity", "0.5", "--sparsity", "a=0.5"], "wanted one value, or 'glob=value'"),
        (["select", "model.keras", "--cost", "luts(6)"], "cost 'luts(6)' is unknown; wanted none, or adders"),
        (["select", "model.keras", "--granularity", "rows"], "granularity 'rows' is unknown"),
        (["select", "model.keras", "--sparsity", "0.5", "--granularity", "multiplier"], "multiplier(resource_unrolled"),
        (["select", "gone.keras", "--sparsity", "0.5"], "model file gone.keras does not exist"),
        (["sensitivity", "gone.keras"], "model file gone.keras does not exist"),
    ],
)
def test_bad_input_is_one_line_exit_status_2_and_nothing_written(folder, arguments, message):
    before = sorted(folder.iterdir())
    done = fpgaprune(*arguments, "--quiet", folder=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.slow
def test_a_sparsity_beyond_reach_names_the_largest(folder):
    options = ["--sparsity", "0.95", "--protect", "conv1/*", "--quiet"]
    done = fpgaprune("select", "model.keras", *options, "--out", "no.npz", folder=folder)
    assert done.returncode == 2
    assert "what must stay free leaves 0.7916 at most" in done.stderr
    assert not (folder / "no.npz").exists()


@pytest.mark.slow
def test_sensitivity_goes_on_where_it_was_stopped(folder):
    question = ["sensitivity", "model.keras", "--data", "data.npz", "--sparsity", "0.25", "--sparsity", "0.5"]
    whole = json.loads(succeed(*question, "--json", "--out", "whole", folder=folder))
    assert len(whole["points"]) == 4
    assert re.fullmatch(r"accuracy on \d+ held-out samples", whole["measure"])
    assert {file.name for file in (folder / "whole").iterdir()} == {
        f"sensitivity.{kind}" for kind in ("json", "md", "svg")
    }
    stopped = json.loads((folder / "whole" / "sensitivity.json").read_text())
    stopped["points"] = stopped["points"][:2]
    # What was measured before is taken over, not measured again.
    stopped["points"][0]["accuracy"] = 0.123
    (folder / "part").mkdir()
    (folder / "part" / "sensitivity.json").write_text(json.dumps(stopped))
    resumed = json.loads(succeed(*question, "--json", "--out", "part", folder=folder))
    assert resumed["points"][0]["accuracy"] == 0.123
    assert resumed["points"][1:] == whole["points"][1:]


@pytest.mark.slow
def test_a_flow_in_rounds_goes_back_to_early_weights(tmp_path):
    (tmp_path / "rounds.toml").write_text(
        "name = 'rounds'\n[train]\nepochs = 2\n[select]\nsparsity = 0.6\nclose = true\n[finetune]\nepochs = 1\n"
        "[finetune.schedule]\nkind = 'rounds'\nrounds = 2\nrewind_to = 1\nregrow_fraction = 0.1\n[hls]\nsimulate = 4\n"
    )
    succeed("run", "rounds.toml", "--quiet", folder=tmp_path)
    run = tmp_path / "runs" / "rounds"
    stages = json.loads((run / "manifest.json").read_text())["stages"]
    changes = stages["finetune"]["results"]["changes"]
    assert [number for number, _ in changes] == [0, 1]
    assert changes[1][1] == 0.6
    masks = MaskSet.load(run / "masks.npz")
    kernels = [~masks[f"conv{number}/kernel"].any(axis=(0, 1)) for number in (1, 2, 3)]
    assert sum(int(kernel.sum()) for kernel in kernels) >= round(0.6 * sum(kernel.size for kernel in kernels))
    assert stages["select"]["results"]["locked"] == 0, "what goes is decided on the way"
    early, trained = (np.load(run / "early.npz"), read_keras_weights(run / "trained.keras"))
    assert set(early) == set(trained)
    assert any((early[path] != trained[path]).any() for path in trained)
    succeed("verify", run, "--quiet", folder=tmp_path)


@pytest.mark.slow
def test_a_model_that_tfmot_pruned_is_taken_by_every_command(tmp_path):
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
    subprocess.run([sys.executable, str(MAKER), str(tmp_path), "wrapped.h5"], check=True, env=environment, timeout=900)
    said = json.loads(succeed("convert", "wrapped.h5", "--masks", "masks.npz", "--json", folder=tmp_path))
    imported = MaskSet.load(tmp_path / said["masks"])
    assert said["found"]["max_abs_error"] <= 1e-6
    assert imported.locked_count == 140
    masks = json.loads(succeed("select", "wrapped.h5", "--zeros", "--json", folder=tmp_path))
    assert all(masks["weights"][path]["locked"] >= (~mask).sum() for path, mask in imported.items())
    weights = read_keras_weights(tmp_path / said["model"])
    assert all(not weights[path][~mask].any() for path, mask in imported.items() if path in weights)
