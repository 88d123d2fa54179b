"""Granularities: which elements are one unit, and that hls4ml's own loops agree."""

import math
import warnings
from itertools import pairwise, product

import keras
import numpy as np
import pytest

from fpgaprune.design import ReuseWarning, legal_reuse_factors
from fpgaprune.errors import MaskError
from fpgaprune.network import DEPTHWISE, PLAIN, TRANSPOSED
from fpgaprune.select import (
    Block,
    Multiplier,
    Named,
    NofM,
    Partition,
    multiplier_labels,
    parse_granularity,
    select,
    used_reuse_factor,
)

from .fakes import FakeLayer, FakeModel, FakeVariable, fake_model

SHAPE = (3, 2, 4, 5)


@pytest.mark.parametrize(
    ("granularity", "axes", "unit_of"),
    [
        (Named("weight"), PLAIN, lambda h, w, i, o: (h, w, i, o)),
        (Named("kernel"), PLAIN, lambda h, w, i, o: (i, o)),
        (Named("filter"), PLAIN, lambda h, w, i, o: o),
        (Named("filter"), TRANSPOSED, lambda h, w, i, o: i),
        (Named("filter"), DEPTHWISE, lambda h, w, i, o: (i, o)),
        (Named("input_channel"), PLAIN, lambda h, w, i, o: i),
        (Named("input_channel"), TRANSPOSED, lambda h, w, i, o: o),
        (Named("input_channel"), DEPTHWISE, lambda h, w, i, o: i),
        (Block((3, 2)), PLAIN, lambda h, w, i, o: (h, w, i // 3, o // 2)),
        (Block((2, 2, 2, 2)), PLAIN, lambda h, w, i, o: (h // 2, w // 2, i // 2, o // 2)),
        (Block((-1, -1, 1, 1)), PLAIN, lambda h, w, i, o: (i, o)),
        (Block((-1, 99)), PLAIN, lambda h, w, i, o: (h, w)),
        (Multiplier("latency"), PLAIN, lambda h, w, i, o: (h, w, i, o)),
        (Multiplier("resource", 6), PLAIN, lambda h, w, i, o: (o * 24 + h * 8 + w * 4 + i) // 6),
        (NofM(2, 4), PLAIN, lambda h, w, i, o: (h, w, i // 4, o)),
        (NofM(1, 3), PLAIN, lambda h, w, i, o: (h, w, i // 3, o)),
    ],
)
def test_elements_fall_into_the_units_that_the_name_says(granularity, axes, unit_of):
    partition = granularity.partition("conv/kernel", SHAPE, axes)
    labels = np.broadcast_to(partition.labels, SHAPE)
    names = {}
    for at in product(*map(range, SHAPE)):
        names.setdefault(unit_of(*at), set()).add(int(labels[at]))
    assert all(len(numbers) == 1 for numbers in names.values())
    assert sorted(min(numbers) for numbers in names.values()) == list(range(partition.count))
    assert partition.sizes().tolist() == np.bincount(labels.ravel(), minlength=partition.count).tolist()


def test_pooling_agrees_with_a_slow_loop():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=SHAPE)
    flags = rng.random(SHAPE) < 0.9
    for granularity in (
        Named("kernel"),
        Named("filter"),
        Block((3, 2)),
        Multiplier("resource", 12),
        Block((2, 1, 3, 5)),
    ):
        partition: Partition = granularity.partition("conv/kernel", SHAPE, PLAIN)
        labels = np.broadcast_to(partition.labels, SHAPE).ravel()
        units = range(partition.count)
        assert np.allclose(partition.mean(scores), [scores.ravel()[labels == u].mean() for u in units], rtol=1e-13)
        assert partition.first(scores).tolist() == [scores.ravel()[labels == u][0] for u in units]
        assert partition.all(flags).tolist() == [bool(flags.ravel()[labels == u].all()) for u in units]
        chosen = rng.random(partition.count) < 0.5
        assert np.array_equal(partition.spread(chosen).ravel(), chosen[labels])


def test_n_of_m_keeps_the_best_n_of_each_m_input_channels():
    weight = np.random.default_rng(0).normal(size=(2, 2, 8, 3)).astype(np.float32)
    masks = select(fake_model({"conv/kernel": weight}), granularity="2:4")
    for h, w, group, o in product(range(2), range(2), range(2), range(3)):
        part = np.s_[h, w, 4 * group : 4 * group + 4, o]
        kept = masks["conv/kernel"][part]
        assert kept.sum() == 2
        assert np.abs(weight[part])[kept].min() > np.abs(weight[part])[~kept].max()
    assert masks.sparsity == 0.5


def test_a_last_group_that_is_short_keeps_n_too():
    masks = select(fake_model({"conv/kernel": np.ones((1, 1, 5, 2))}), granularity="2:4")
    assert masks["conv/kernel"][0, 0, :, 0].tolist() == [False, False, True, True, True]


def test_n_of_all_keeps_the_best_n_of_each_output_and_all_where_there_are_fewer():
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(size=shape) for name, shape in (("a/kernel", (9, 3)), ("b/kernel", (2, 4, 5)))}
    masks = select(fake_model({**weights, "c/kernel": np.ones((2, 6))}), granularity="3:all", paths=["*"])
    for path, weight in weights.items():
        size = np.abs(weight)
        assert (masks[path] == (size >= np.sort(size, axis=-2)[..., -3:-2, :])).all()
        assert (masks[path].sum(axis=-2) == 3).all()
    assert masks["c/kernel"].all()


@pytest.mark.parametrize(
    ("pattern", "sparsities", "kept"),
    [("2:8", (0, 0.25, 0.5, 0.75), (8, 6, 4, 2)), ("2:all", (0, 0.5, 0.9, 1), (8, 5, 3, 2))],
)
def test_on_the_way_to_a_pattern_ever_fewer_stay(pattern, sparsities, kept):
    chosen = parse_granularity(pattern)
    scores = np.random.default_rng(2).normal(size=(8, 5))
    steps = [chosen.on_the_way(sparsity).lock(scores, PLAIN) for sparsity in sparsities]
    assert [set(mask.sum(axis=0)) for mask in steps] == [{count} for count in kept]
    assert all((late <= early).all() for early, late in pairwise(steps)), "what was locked stays so"
    assert (chosen.lock(scores, PLAIN) == steps[-1]).all()


@pytest.mark.parametrize("pattern", ["0:4", "4:4", "5:4", "2:0", "0:0", "0:all"])
def test_a_pattern_that_locks_all_or_nothing_is_refused(pattern):
    with pytest.raises(MaskError, match=f"granularity '{pattern}' keeps {pattern[0]} of {pattern[2:]}; wanted at"):
        parse_granularity(pattern)


def test_n_of_m_says_its_own_sparsity():
    model = fake_model({"conv/kernel": np.ones((1, 1, 8, 2))})
    select(model, 0.75, granularity="1:4")
    with pytest.raises(MaskError, match=r"sparsity is 0\.6; granularity '1:4' decides it: leave sparsity out"):
        select(model, 0.6, granularity="1:4")


# What the three loops of nnet_dense_resource.h do, written as they run: which multiplier reads which weight.
def hls4ml_multipliers(n_in, n_out, reuse):
    block_factor = -(-n_in * n_out // reuse)
    reads = {}
    for ir in range(reuse):
        w_index = ir
        for im in range(block_factor):
            if w_index >= n_in * n_out:
                break
            reads[w_index] = im
            w_index += reuse
    return reads


@pytest.mark.parametrize("shape", [(6, 4), (3, 3, 2, 4), (3, 4, 5)])
def test_multipliers_are_those_of_hls4ml(shape):
    n_in, n_out = math.prod(shape[:-1]), shape[-1]
    for reuse in legal_reuse_factors(n_in, n_out, "resource"):
        reads = hls4ml_multipliers(n_in, n_out, reuse)
        # hls4ml puts the output channels first before it flattens.
        labels = np.moveaxis(multiplier_labels(shape, reuse), -1, 0).ravel()
        assert labels.tolist() == [reads[at] for at in range(n_in * n_out)]


def used(path, shape, strategy, asked, io_type="io_stream"):
    """The reuse factor, and what was said of it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        factor = used_reuse_factor(path, shape, strategy, asked, io_type)
    assert all(warning.category is ReuseWarning for warning in said)
    return factor, [str(warning.message) for warning in said]


def test_the_reuse_factor_is_the_one_that_the_project_has_and_a_moved_one_is_said():
    shape = (6, 4)  # legal: 1, 2, 3, 6, 12, 24
    assert used("d/kernel", shape, "resource", 6) == (6, [])
    assert used("d/kernel", shape, "resource", {"c*": 2, "d*": 3}) == (3, [])
    moved = "layer 'd' (6 inputs, 4 outputs) has reuse factor 6, the nearest to 5 that strategy 'resource' can build"
    assert used("d/kernel", shape, "resource", 5) == (6, [moved])
    assert used("d/kernel", shape, "resource", 9)[0] == 6  # of two equally near the smaller
    assert used("d/kernel", shape, "resource", 999)[0] == 24
    # Unrolled neither 1 nor the whole product on one multiplier is legal.
    assert used("d/kernel", shape, "resource_unrolled", 999)[0] == 12
    assert used("d/kernel", shape, "resource_unrolled", 1)[0] == 2
    assert used("one/kernel", (2, 2), "resource_unrolled", 4, "io_parallel")[0] == 2


@pytest.mark.parametrize(
    ("shape", "io_type", "message"),
    [
        ((1, 1), "io_stream", "can have no reuse factor with strategy 'resource_unrolled': name the other weights"),
        ((3, 3, 6, 4), "io_parallel", "has no template in io_parallel: choose io_stream, or strategy 'resource'"),
    ],
)
def test_a_weight_that_the_project_cannot_share_out_is_refused(shape, io_type, message):
    with pytest.raises(MaskError, match=message):
        Multiplier("resource_unrolled", 4, io_type).partition("d/kernel", shape, PLAIN)


@pytest.mark.parametrize(
    ("granularity", "message"),
    [
        ("multiplier(latency, 4)", "leaves it to the synthesis tool which weights share a multiplier"),
        (Multiplier("latency", {"conv*": 4}), "leaves it to the synthesis tool which weights share a multiplier"),
        ("multiplier(distributed_arithmetic, 1)", "has no multipliers to free; use granularity 'weight'"),
        ("multiplier(fast, 2)", "strategy 'fast' is unknown; wanted one of latency, resource"),
        ("multiplier(resource, 2, io_wild)", "io_type 'io_wild' is unknown; wanted one of io_"),
        ("multiplier(resource)", r"granularity 'multiplier\(resource\)' is unknown"),
        ("block(4, x)", r"granularity 'block\(4, x\)' is unknown; wanted one of weight.*block\(4, 4\)"),
        ("block(0, 4)", "block shape is"),
        (Multiplier("resource", 0), "reuse factor for 'conv/kernel' is 0; wanted a whole number of 1 or more"),
        (Multiplier("resource", {"dense*": 2}), "no reuse factor is given for 'conv/kernel'"),
        (Block((1, 1, 1, 1, 1)), "has fewer axes than the block"),
        ("5:4", "keeps 5 of 4; wanted at least 1 and fewer"),
        (7, "granularity 7 is unknown; wanted one of weight"),
    ],
)
def test_granularities_that_cannot_be_are_named(granularity, message):
    with pytest.raises(MaskError, match=message):
        select(fake_model({"conv/kernel": np.ones((3, 3, 2, 4))}), 0.5, granularity)


@pytest.mark.parametrize("shape", [(0, 1), (), (2.0, 1), (-2, 1), (True, 2)])
def test_block_shapes_that_cannot_be_are_refused(shape):
    with pytest.raises(MaskError, match="block shape is"):
        Block(shape)


def test_a_zero_multiplier_is_whole():
    weight = np.random.default_rng(0).normal(size=(3, 3, 4, 8)).astype(np.float32)
    masks = select(fake_model({"conv/kernel": weight}), 0.5, Multiplier("resource_unrolled", 9))
    groups = np.moveaxis(masks["conv/kernel"], -1, 0).reshape(-1, 9)
    assert (groups.all(axis=1) | ~groups.any(axis=1)).all()
    assert (~groups.any(axis=1)).sum() == groups.shape[0] // 2


class DepthwiseConv2D(FakeLayer):
    """Stands for Keras's; one of the user's own of that name is not known to be depthwise."""

    __module__ = "keras.layers"


def test_a_filter_of_a_depthwise_layer_is_one_kernel():
    weight = np.arange(1.0, 13.0).reshape(1, 1, 6, 2)
    model = FakeModel([DepthwiseConv2D("dw", [FakeVariable("dw/kernel", weight)])])
    assert select(model, 0.5, "filter", paths=["dw/kernel"])["dw/kernel"].ravel().tolist() == [False] * 6 + [True] * 6


@pytest.mark.parametrize(
    ("layer", "path", "named"),
    [
        (keras.layers.DepthwiseConv2D(2, name="l"), "l/kernel", "a depthwise layer"),
        (keras.layers.Conv2DTranspose(4, 2, name="l"), "l/kernel", "a transposed convolution"),
        (keras.layers.EinsumDense("abcd,dhs->abchs", (None, None, 2, 3), name="l"), "l/kernel", "an attention or Ein"),
        (keras.layers.MultiHeadAttention(2, 3, name="l"), "l/query/kernel", "an attention or EinsumDense layer"),
        (keras.layers.MultiHeadAttention(2, 3, name="l"), "l/attention_output/kernel", "an attention or EinsumDense"),
    ],
)
def test_multipliers_of_layers_that_hls4ml_does_not_share_out_are_refused_by_what_the_layer_is(layer, path, named):
    image = keras.Input((4, 4, 4))
    twice = isinstance(layer, keras.layers.MultiHeadAttention)
    model = keras.Model(image, layer(image, image) if twice else layer(image))
    with pytest.raises(MaskError, match=rf"weight '{path}' belongs to {named}.*: leave it out with paths, or use gran"):
        select(model, 0.5, Multiplier("resource", 2), paths=[path])
    select(model, 0.0, "kernel", paths=[path])


@pytest.mark.parametrize(
    ("text", "granularity"),
    [
        ("kernel", Named("kernel")),
        ("2:4", NofM(2, 4)),
        ("block(4, 2)", Block((4, 2))),
        ("block(-1,-1,1,1)", Block((-1, -1, 1, 1))),
        ("multiplier(resource_unrolled, 9)", Multiplier("resource_unrolled", 9)),
        ("multiplier(resource, 4, io_parallel)", Multiplier("resource", 4, "io_parallel")),
        (Block((3,)), Block((3,))),
    ],
)
def test_granularities_are_read(text, granularity):
    assert parse_granularity(text) == granularity
