"""What would make a network fit: each change is one of the flow that ran, and takes what it promises."""

from __future__ import annotations

import tempfile
import tomllib
from functools import cache
from pathlib import Path

import keras
import numpy as np
from keras import layers

import fpgaprune as fp
from fpgaprune.advice import OwnFlow, advise_on_flow
from fpgaprune.flow import RunDirectory, advice_on, changed_flow
from fpgaprune.flow.engine import parse_config, read_config
from fpgaprune.layout import DesignLayout
from tests.integration.advised_networks import advice_of, followed, ran

from ._asking import refused


@cache
def _run() -> RunDirectory:
    """A run that locks 60 % of the kernels of a small CNN, for a part that is too small."""
    return ran("cnn", Path(tempfile.mkdtemp()))


def _dense(part: str, *widths: int) -> tuple[fp.Design, fp.Target]:
    """A network of two Dense layers and logits, for `part`."""
    inputs, first, second = widths
    stack = [layers.Dense(first, activation="relu", name="a"), layers.Dense(second, activation="relu", name="b")]
    model = keras.Sequential([keras.Input((inputs,), name="x"), *stack, layers.Dense(4, name="c")])
    x = np.random.default_rng(0).random((32, inputs), dtype=np.float32)
    target = fp.Target.of(part)
    return fp.make_design(model, target, x), target


def the_sparsity_of_the_flow_rises(folder: Path) -> None:
    """A flow that locks 60 % is told to lock more, by the same key, and so changed it takes what was promised."""
    run = _run()
    [(said, found)] = followed(run, folder, lambda one: one.knob == "sparsity")
    [(key, sparsity)] = tomllib.loads(said.change)["select"].items()
    assert key == "sparsity"
    assert sparsity > 0.6
    assert said.after.used.lut.low <= found.used.lut.value <= said.after.used.lut.high


def another_layout_takes_what_it_promises(folder: Path) -> None:
    """A flow that gets the layout of a suggestion for its part makes a design of exactly the promised figures."""
    run = _run()
    [first] = [one for one in advice_of(run).suggestions if one.knob.startswith("strategy")][:1]
    [(said, found)] = followed(run, folder, lambda one: one == first)
    assert said.keeps_function
    assert found == said.after


def fewer_bits_take_what_they_promise(folder: Path) -> None:
    """A flow that gets the bits of a suggestion makes a design of exactly the promised figures."""
    for said, found in followed(_run(), folder, lambda one: one.knob == "weight_bits"):
        assert not said.keeps_function
        assert found == said.after


def what_the_flow_says_of_a_layer_stays(folder: Path) -> None:
    """A layer whose bits the flow gives keeps them in another layout, and a glob of layers does not undo the change."""
    design, target = _dense("xc7s6", 24, 24, 16)
    own = {"a": {"weight_bits": 4, "strategy": "latency"}, "*": {"reuse_factor": 1}}
    flow = OwnFlow({"hls": {"layers": own}, "target": {"part": "xc7s6"}})
    found = [
        one for one in advise_on_flow(flow, design, target).suggestions if "strategy" in one.knob and one.keeps_function
    ]
    assert found
    for one in found:
        table = tomllib.loads(one.change)["hls"]["layers"]
        assert table["a"]["weight_bits"] == 4
        assert table["a"].get("strategy") != "latency"
        assert "*" not in table


def a_network_of_many_weights_is_told_of_our_verilog_first(folder: Path) -> None:
    """A network that no hls4ml project brings onto a Pynq-Z2 fits it as our Verilog, which is what stands first."""
    design, target = _dense("pynq-z2", 192, 96, 64)
    first = fp.advise(design, target).suggestions[0]
    assert (first.knob, first.after.part, first.fits_upper) == ("our Verilog", "xc7z020", True)
    parse_config(tomllib.loads(first.change), "change")
    chosen = fp.choose_layout(design, target.part, "xc7")
    assert first.after == DesignLayout.of_chosen(chosen, target.part)


def a_part_without_open_tools_is_not_told_of_our_verilog(folder: Path) -> None:
    """For an Intel part, which open synthesis does not know, no Verilog is suggested."""
    design, _ = _dense("xc7s6", 24, 24, 16)
    intel = fp.Target.of("5cseba6")
    assert all(one.knob != "our Verilog" for one in fp.advise(design, intel).suggestions)


def nothing_is_suggested_without_an_estimate(folder: Path) -> None:
    """Every suggestion has figures and can be written: none is a strategy without a price, or a command with a gap."""
    for one in advice_of(_run()).suggestions:
        assert one.after.used.lut is not None
        assert "RUN" not in one.change
        assert "distributed_arithmetic" not in one.change
        parse_config(tomllib.loads(one.change), "change")


def a_user_without_a_flow_file_gets_the_changed_one(folder: Path) -> None:
    """The flow file of a run, as it is or with a change, is printed whole and says the same as the run."""
    run = _run()
    (folder / "own.toml").write_text(changed_flow(run.path))
    config = read_config(folder / "own.toml")
    assert config.model_dump(mode="json") == run.manifest["config"]
    for number, one in enumerate(advice_of(run).suggestions, start=1):
        (folder / "changed.toml").write_text(changed_flow(run.path, number))
        changed = read_config(folder / "changed.toml").model_dump(mode="json")
        keys = tomllib.loads(one.change)
        assert {section for section in changed if changed[section] != run.manifest["config"][section]} <= keys.keys()


def a_change_that_is_not_there_is_refused(folder: Path) -> None:
    """A number beyond the suggestions is refused with how many there are."""
    refused(lambda: changed_flow(_run().path, 99), "no change 99", r"suggests \d+ changes")


def a_network_that_is_not_trained_gets_no_more_zeros(folder: Path) -> None:
    """A flow without epochs of fine-tuning is not told to lock more, because nothing would make up for it."""
    assert OwnFlow({"select": {"sparsity": 0.2}, "finetune": {"epochs": 0}}).sparser(0.5) is None
    assert OwnFlow({"select": {"sparsity": 0.2}, "finetune": {"epochs": 3}}).sparser(0.5) is not None


def another_part_than_that_of_the_run_stands_in_every_change(folder: Path) -> None:
    """Advice for another part than the run's states that part, so that the change does what it promises there."""
    advice = advice_on(_run().path, part="xc7s15")
    assert advice.suggestions
    for one in advice.suggestions:
        assert "part" in tomllib.loads(one.change).get("target", {})
        assert "select" not in tomllib.loads(one.change)  # unknown without training again
