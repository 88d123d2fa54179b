"""Every suggestion, made in the flow that ran, takes what the page says of it.

A suggestion that trains nothing anew takes exactly that: its estimate is that of the design which the changed flow
makes. With other locks or in a network that rounds while it is trained, the weights are others: within the range.
"""

from __future__ import annotations

import pytest

from fpgaprune.measure import ESTIMATED
from tests.quick import quick

from .advised_networks import CASES, followed, ran

# Cycles have no range; where weights are trained anew, a layer may keep a channel more or less.
_CYCLES = 0.05


def follow(name, folder, wanted=lambda suggestion: True):
    run, kinds = ran(name, folder), set()
    for suggestion, found in followed(run, folder, wanted):
        said, knob = suggestion.after, suggestion.knob
        kinds |= set(knob.split(" + "))
        assert found.part == said.part
        if not {"sparsity", "weight_bits", "activation_bits"} & set(knob.split(" + ")):
            assert suggestion.keeps_function
        if suggestion.keeps_function and name != "shared":
            for figure in ("used", "latency_cycles", "interval_cycles", "stage", "whole"):
                assert getattr(found, figure) == getattr(said, figure), (knob, figure)
            continue
        for resource in ESTIMATED:
            promised, taken = said.used[resource], found.used[resource]
            if promised is not None:
                assert promised.low <= taken.value <= promised.high, (knob, resource)
        for time in ("latency_cycles", "interval_cycles"):
            assert getattr(found, time) == pytest.approx(getattr(said, time), rel=_CYCLES, abs=5), (knob, time)
    return kinds


KINDS = ("our Verilog", "strategy", "sparsity", "io_type", "weight_bits", "activation_bits", "part")


@pytest.mark.flow
@pytest.mark.parametrize("number", quick([4], [4, len(KINDS)]))
def test_the_first_suggestion_of_each_kind_takes_what_it_promises(number, tmp_path):
    seen = set()

    def is_first(suggestion):
        kind = suggestion.knob.removeprefix("part + ")
        asked = {one for one in KINDS[:number] if kind.startswith(one)}
        first = asked - seen
        seen.update(asked)
        return bool(first)

    assert set(KINDS[:number]) <= follow("mlp", tmp_path, is_first)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_each_suggestion_for_ten_networks_takes_what_it_promises(name, tmp_path):
    assert follow(name, tmp_path)
