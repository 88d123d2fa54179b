"""A suggestion is an edit of the flow that ran: what the flow says otherwise stays."""

import pytest

from fpgaprune.advice import OwnFlow, with_keys
from fpgaprune.layout import Edit
from tests.unit.estimate.designs import cnn

DESIGN = cnn()
LAYOUT = {
    "target": {"strategy": "resource", "reuse_factor": 4},
    "hls": {"layers": {"conv": {"reuse_factor": 9}, "dense": {"reuse_factor": 5}}},
}


def keys(flow, settings):
    return OwnFlow(flow).keys(Edit(("knob",), settings, DESIGN))


def test_without_a_flow_the_keys_are_those_of_the_edit():
    assert keys({}, LAYOUT) == LAYOUT


def test_layouts_of_single_layers_give_way_and_their_widths_stay():
    own = {
        "conv": {"strategy": "latency", "weight_bits": 4},
        "mean": {"reuse_factor": 2},
        "relu": {"result": "fixed<8,3>"},
    }
    assert keys({"hls": {"layers": own}}, LAYOUT)["hls"]["layers"] == {
        "relu": {"result": "fixed<8,3>"},
        "conv": {"weight_bits": 4, "reuse_factor": 9},
        "dense": {"reuse_factor": 5},
    }


def test_a_glob_that_stands_after_a_layer_does_not_win_over_the_edit():
    own = {"conv": {"weight_bits": 4}, "*": {"strategy": "latency", "weight_bits": 6}}
    found = keys({"hls": {"layers": own}}, LAYOUT)["hls"]["layers"]
    assert found == {
        "*": {"weight_bits": 6},
        "conv": {"weight_bits": 6, "reuse_factor": 9},
        "dense": {"weight_bits": 6, "reuse_factor": 5},
    }
    assert next(iter(found)) == "*"


def test_a_table_that_must_go_is_written_as_an_empty_one():
    own = {"conv": {"strategy": "latency"}}
    found = keys({"hls": {"layers": own}}, {"target": {"strategy": "resource", "reuse_factor": 4}})
    assert found == {"target": LAYOUT["target"], "hls": {"layers": {}}}


def test_widths_of_single_layers_give_way_to_new_widths_and_their_layouts_stay():
    own = {"conv": {"strategy": "resource", "reuse_factor": 3, "weight_bits": 9}}
    edit = {"hls": {"precision": "widths", "weight_bits": 6, "layers": {"relu": {"activation_bits": 5}}}}
    assert keys({"hls": {"precision": "auto", "layers": own}}, edit)["hls"] == {
        "precision": "widths",
        "weight_bits": 6,
        "layers": {"conv": {"strategy": "resource", "reuse_factor": 3}, "relu": {"activation_bits": 5}},
    }


def test_one_layer_alone_leaves_the_layouts_of_the_others():
    own = {"d*": {"strategy": "resource", "reuse_factor": 3}}
    edit = {"hls": {"layers": {"dense": {"reuse_factor": 8}}}}
    assert keys({"hls": {"layers": own}}, edit)["hls"]["layers"] == {
        **own,
        "dense": {"strategy": "resource", "reuse_factor": 8},
    }


@pytest.mark.parametrize(
    ("select", "asked", "wanted"),
    [
        ({"sparsity": 0.85, "scope": "network"}, 0.9, {"select": {"sparsity": 0.9}}),
        ({"sparsity": 0.85}, 0.5, None),
        (
            {"sparsity": {"a/kernel": 0.9, "*/kernel": 0.3}},
            0.5,
            {"select": {"sparsity": {"a/kernel": 0.9, "*/kernel": 0.5}}},
        ),
        ({"sparsity": {"a/kernel": 0.9}}, 0.5, None),
        ({"sparsity": 0.0, "granularity": "2:4"}, 0.75, None),
        ({}, 0.5, {"select": {"sparsity": 0.5}}),
    ],
)
def test_more_zeros_are_more_than_the_flow_has(select, asked, wanted):
    assert OwnFlow({"select": select}, make=lambda keys: None).sparser(asked) == wanted


def test_nothing_is_pruned_that_will_not_be_trained():
    assert OwnFlow({"select": {"sparsity": 0.2}, "finetune": {"epochs": 0}}).sparser(0.5) is None


def test_keys_of_another_target_stand_in_every_suggestion():
    flow = OwnFlow({"target": {"part": "b"}}, given={"target": {"part": "b"}})
    assert flow.keys(Edit(("x",), {"hls": {"weight_bits": 4}}, DESIGN)) == {
        "target": {"part": "b"},
        "hls": {"weight_bits": 4},
    }
    assert flow.keys(Edit(("x",), {"target": {"part": "c"}}, DESIGN)) == {"target": {"part": "c"}}


def test_keys_replace_those_of_the_flow_and_nothing_else():
    own = {"name": "n", "hls": {"weight_bits": 8, "layers": {"a": {}}}, "data": {"source": "d"}}
    assert with_keys(own, {"hls": {"layers": {}}, "measure": {"interval": 0}}) == {
        "name": "n",
        "hls": {"weight_bits": 8, "layers": {}},
        "data": {"source": "d"},
        "measure": {"interval": 0},
    }
