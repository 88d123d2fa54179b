"""Cutting in two again and again: known graphs, by a cutter of the test's own and by Mt-KaHyPar."""

import importlib.metadata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.errors import ToolError
from fpgaprune.fabric import cut_again_and_again, floorplan, partitioner


def length(nets, at):
    """Half the perimeter around every net, all together."""
    return sum(wires * np.ptp(at[list(ends)], axis=0).sum() for ends, wires in nets)


def path_of(parts):
    return {(part, part + 1): 1 for part in range(parts - 1)}


@st.composite
def graphs(draw):
    weights = draw(st.lists(st.integers(0, 9), min_size=2, max_size=40))
    part = st.integers(0, len(weights) - 1)
    ends = st.lists(part, min_size=2, max_size=5, unique=True).map(lambda found: tuple(sorted(found)))
    return np.array(weights), draw(st.dictionaries(ends, st.integers(1, 9), max_size=60))


@settings(deadline=None)
@given(graphs(), st.randoms(use_true_random=False), st.sampled_from([(8.0, 8.0), (40.0, 12.0), (3.0, 90.0)]))
def test_parts_stay_within_however_it_is_cut(graph, random, size):
    weights, nets = graph

    def cut(inner, wires, own):
        assert own[-2:] == [0, 0]
        assert all(len(set(ends)) == len(ends) > 1 and max(ends) < len(own) for ends in inner)
        assert len(inner) == len(wires)
        # Only what lies beyond one side, never beyond both, is told to the cutter.
        assert not any({len(own) - 2, len(own) - 1} <= set(ends) for ends in inner)
        return [random.randint(0, 1) for _ in own]

    at = cut_again_and_again(weights, list(nets.items()), *size, cut)
    assert at.shape == (len(weights), 2)
    assert np.all(at >= 0)
    assert np.all(at <= size)


@settings(deadline=None)
@given(graphs(), st.randoms(use_true_random=False), st.sampled_from([0, 1]))
def test_either_side_of_a_cut_gets_its_share_of_the_area(graph, random, axis):
    weights, nets = graph
    asked = []

    def cut(inner, wires, own):
        asked.append([random.randint(0, 1) for _ in own])
        return asked[0]

    # So small that it is cut once.
    size = (8.0, 4.0) if axis == 0 else (4.0, 8.0)
    at = cut_again_and_again(weights, list(nets.items()), *size, cut)
    middles = np.full(len(weights), 4.0)
    if asked:
        sides = np.array(asked[0][:-2])
        border = 8 * weights[sides == 0].sum() / max(1, weights.sum())
        middles = np.where(sides == 0, border / 2, (border + 8) / 2)
    assert np.allclose(at[:, axis], middles)
    assert np.all(at[:, 1 - axis] == 2)


def test_a_part_that_nothing_is_joined_to_stays_in_the_middle():
    at = cut_again_and_again(np.array([1, 1]), [], 64.0, 64.0, None)
    assert at.tolist() == [[32, 32], [32, 32]]


def test_what_lies_beyond_pulls():
    """Four parts in a row, joined in a ring of two pairs: the second cut knows on which side its neighbours lie."""
    asked = []

    def cut(inner, wires, own):
        asked.append({tuple(ends): number for ends, number in zip(inner, wires, strict=True)})
        half = (len(own) - 2) // 2
        return [0] * half + [1] * (len(own) - 2 - half) + [0, 1]

    at = cut_again_and_again(np.ones(4, int), [((0, 1), 1), ((1, 2), 5), ((2, 3), 1)], 64.0, 1.0, cut)
    assert at[:, 0].tolist() == [8, 24, 40, 56]
    assert asked[0] == {(0, 1): 1, (1, 2): 5, (2, 3): 1}
    # Places 2 and 3 are what lies below and above: part 1 is pulled up by part 2, and part 2 down by part 1.
    assert asked[1] == {(0, 1): 1, (1, 3): 5}
    assert asked[2] == {(0, 1): 1, (0, 2): 5}


def test_a_path_is_laid_out_along_its_length():
    nets = path_of(200)
    at = floorplan([1] * 200, nets, 100.0, 4.0, 300)
    ideal = 100 + 4
    assert length(nets.items(), at) < 2 * ideal
    # A cutter that looks at nothing.
    random = np.random.default_rng(0)
    blind = cut_again_and_again(
        np.ones(200, int),
        list(nets.items()),
        100.0,
        4.0,
        lambda inner, wires, own: list(random.integers(0, 2, len(own))),
    )
    assert length(nets.items(), blind) > 10 * ideal


def test_heavy_nets_stay_short_and_areas_even_and_the_same_again():
    # Two groups of 40 parts, each joined to each within, with one wire between them.
    nets = {(a, b): 3 for group in (0, 40) for a in range(group, group + 40) for b in range(a + 1, group + 40)}
    nets[39, 40] = 1
    weights = [2] * 80
    at = floorplan(weights, nets, 16.0, 8.0, 300)
    sides = at[:, 0] > 8
    assert len(set(sides[:40])) == len(set(sides[40:])) == 1
    assert sides[0] != sides[40]
    assert np.array_equal(at, floorplan(weights, nets, 16.0, 8.0, 300))


def test_without_the_partitioner_the_command_is_named(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(ToolError, match=r"install it with: pip install 'fpgaprune\[rtl\]'"):
        partitioner()
    with pytest.raises(ToolError, match="mtkahypar"):
        floorplan([1, 1], {(0, 1): 1}, 8.0, 8.0, 60)
