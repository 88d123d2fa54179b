"""Which concatenations put channels side by side."""

import keras
import pytest

from fpgaprune.network.flat import graph_of, joins_channels


@pytest.mark.parametrize(("axis", "joins"), [(-1, True), (3, True), (1, False), (-2, False)])
def test_the_last_axis_is_counted_from_either_end(axis, joins):
    one, two = keras.Input((4, 4, 2), name="one"), keras.Input((4, 4, 2), name="two")
    graph = graph_of(keras.Model([one, two], keras.layers.Concatenate(axis=axis, name="join")([one, two])))
    (call,) = (call for call in graph.calls if call.path == "join")
    assert joins_channels(call, graph) is joins
