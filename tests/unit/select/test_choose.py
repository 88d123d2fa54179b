"""`select` by size: counts, order, scopes, a base, and what it refuses."""

import numpy as np
import pytest

from fpgaprune.errors import MaskError
from fpgaprune.select import Protection, select
from fpgaprune.values import MaskSet

from .fakes import fake_model, random_arrays

AXES = {"kernel": (0, 1), "filter": (0, 1, 2), "input_channel": (0, 1, 3)}


@pytest.mark.parametrize("criterion", ["l1", "l2"])
@pytest.mark.parametrize("granularity", sorted(AXES))
def test_the_smallest_units_are_locked(criterion, granularity):
    kernel = np.random.default_rng(1).normal(size=(3, 3, 6, 8)).astype(np.float32)
    masks = select(fake_model({"conv/kernel": kernel}), 0.5, granularity=granularity, criterion=criterion)
    free = masks["conv/kernel"].any(axis=AXES[granularity])
    assert np.array_equal(free, masks["conv/kernel"].all(axis=AXES[granularity])), "a unit is locked whole or not"
    power = 1 if criterion == "l1" else 2
    sizes = (np.abs(kernel.astype(float)) ** power).sum(axis=AXES[granularity])
    assert sizes[~free].max() < sizes[free].min()
    assert free.sum() == free.size // 2


def test_single_weights_are_locked_by_size():
    weight = np.array([[0.5, -0.1], [0.01, 2.0]], np.float32)
    masks = select(fake_model({"dense/kernel": weight}), 0.5, granularity="weight", paths=["dense/kernel"])
    assert masks["dense/kernel"].tolist() == [[True, False], [False, True]]


def test_l1_and_l2_disagree_where_they_should():
    kernel = np.zeros((1, 2, 1, 2), np.float32)
    kernel[0, :, 0, 0] = [1.0, 1.0]  # the larger sum
    kernel[0, :, 0, 1] = [0.0, 1.8]  # the larger sum of squares
    model = fake_model({"conv/kernel": kernel})
    assert not select(model, 0.5, criterion="l1")["conv/kernel"][..., 1].any()
    assert not select(model, 0.5, criterion="l2")["conv/kernel"][..., 0].any()


def test_layer_scope_gives_each_layer_its_share_and_network_scope_one_threshold():
    arrays = random_arrays(0, (2, 8, 8))
    arrays["conv1/kernel"] *= 100
    model = fake_model(arrays)
    layered = select(model, 0.5, scope="layer")
    assert layered["conv1/kernel"].mean() == 0.5
    assert layered["conv2/kernel"].mean() == 0.5
    shared = select(model, 0.5, scope="network", normalize="none")
    assert shared["conv1/kernel"].all()
    assert shared.sparsity == pytest.approx(0.5, abs=0.01)


def test_only_convolutions_are_chosen_unless_paths_are_given():
    arrays = {**random_arrays(0), "dense/kernel": np.ones((4, 3), np.float32)}
    assert sorted(select(fake_model(arrays), 0.3)) == ["conv1/kernel", "conv2/kernel"]
    assert sorted(select(fake_model(arrays), 0.3, paths=["*/kernel"])) == [
        "conv1/kernel",
        "conv2/kernel",
        "dense/kernel",
    ]


def test_what_the_base_locks_counts_and_stays_locked():
    model = fake_model(random_arrays(3))
    base = MaskSet.from_slices(model, ["conv2/kernel[:, :, 0]", "conv1/bias"])
    masks = select(model, 0.4, base=base)
    for path in base:
        assert not masks[path][~base[path]].any()
    kernels = sum((~masks[path].any(axis=(0, 1))).sum() for path in ("conv1/kernel", "conv2/kernel"))
    assert kernels == round(0.4 * (2 * 5 + 5 * 4))


def test_a_base_above_the_asked_sparsity_is_left_as_it_is():
    model = fake_model(random_arrays(3))
    base = MaskSet.from_slices(model, ["conv2/kernel[:, :, :4]"])
    masks = select(model, 0.1, base=base)
    assert np.array_equal(masks["conv2/kernel"], base["conv2/kernel"])
    assert masks["conv1/kernel"].all()


def test_one_unit_of_each_weight_stays():
    arrays = random_arrays(0)
    arrays["conv1/kernel"] *= 1e-6
    masks = select(fake_model(arrays), 0.9)
    assert masks["conv1/kernel"].any(axis=(0, 1)).sum() == 1


def test_equal_scores_are_locked_in_the_order_of_their_index():
    masks = select(fake_model({"conv/kernel": np.ones((3, 3, 2, 4), np.float32)}), 3 / 8)
    assert masks["conv/kernel"].any(axis=(0, 1)).tolist() == [[False, False, False, True], [True] * 4]


def test_the_model_is_unchanged():
    arrays = random_arrays(5)
    before = {path: array.tobytes() for path, array in arrays.items()}
    select(fake_model(arrays), 0.7)
    assert {path: array.tobytes() for path, array in arrays.items()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparsity": -0.1}, "sparsity is -0.1; wanted a fraction from 0 to 1"),
        ({"sparsity": 60}, "sparsity is 60; wanted a fraction from 0 to 1"),
        ({"sparsity": float("nan")}, "sparsity is nan; wanted a fraction from 0 to 1"),
        (
            {"granularity": "column"},
            "granularity 'column' is unknown; wanted one of weight, kernel, filter, input_channel",
        ),
        ({"criterion": "l3"}, "criterion 'l3' is unknown; wanted one of l1, l2"),
        ({"scope": "global"}, "scope 'global' is unknown; wanted one of network, layer"),
        ({"paths": ["conv9/*"]}, "'conv9/*' matches no weight; did you mean conv2/bias"),
        ({"paths": ["conv1/bias"]}, "weight 'conv1/bias' of shape (5,) has no kernel; use granularity 'weight'"),
        ({"sparsity": 1.0}, "sparsity 1.0 cannot be reached in conv1/kernel, conv2/kernel"),
        ({"sparsity": 1.0, "scope": "layer"}, "leaves 0.9000 at most"),
    ],
)
def test_bad_input_is_named_in_one_line(options, message):
    with pytest.raises(MaskError) as error:
        select(fake_model(random_arrays(0)), **{"sparsity": 0.5, **options})
    assert message in str(error.value)
    assert "\n" not in str(error.value)


ONE_CHANNEL = {"first/kernel": np.ones((3, 3, 1, 4), np.float32), "next/kernel": np.ones((3, 3, 4, 4), np.float32)}


@pytest.mark.parametrize("sparsity", [0.3, 0.5, {"first/*": 0.5}])
def test_a_sparsity_that_can_lock_nothing_is_refused_although_it_rounds_to_no_unit(sparsity):
    paths = () if isinstance(sparsity, dict) else ["first/kernel"]
    with pytest.raises(MaskError, match=r"locks nothing in first/kernel: the only unit there has to stay free; take a"):
        select(fake_model(ONE_CHANNEL), sparsity, "input_channel", paths=paths)
    assert select(fake_model(ONE_CHANNEL), 0.0, "input_channel", paths=["first/kernel"]).locked_count == 0


def test_other_weights_of_the_same_pool_are_locked_in_place_of_one_that_cannot_be():
    for sparsity, scope in ((0.5, "network"), (0.5, "layer"), ({"first/*": 0.25, "next/*": 0.5}, "network")):
        masks = select(fake_model(ONE_CHANNEL), sparsity, "input_channel", scope=scope)
        assert masks["first/kernel"].all()
        assert (~masks["next/kernel"]).sum() == 2 * 3 * 3 * 4


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_weights_without_an_order_are_refused(poison):
    arrays = random_arrays(0)
    arrays["conv2/kernel"][0, 0, 1, 1] = poison
    with pytest.raises(MaskError, match="'conv2/kernel' holds NaN or infinity"):
        select(fake_model(arrays), 0.5)


def test_lists_that_are_strings_are_refused():
    with pytest.raises(MaskError, match="paths is the string 'conv1/kernel'; wanted a sequence"):
        select(fake_model(random_arrays(0)), 0.5, paths="conv1/kernel")


def test_sparsity_by_pattern_takes_the_first_that_matches():
    arrays = random_arrays(2, (4, 4, 4, 4))
    shares = {"conv2/kernel": 0.25, "conv*/kernel": 0.75}
    layered = select(fake_model(arrays), shares, scope="layer")
    assert {path: mask.mean() for path, mask in layered.items()} == {
        "conv1/kernel": 0.25,
        "conv2/kernel": 0.75,
        "conv3/kernel": 0.25,
    }
    arrays["conv1/kernel"] *= 100
    shared = select(fake_model(arrays), shares, scope="network", normalize="none")
    assert shared["conv2/kernel"].mean() == 0.75
    # 24 of the 32 kernels of conv1 and conv3 go: all but one of conv3, then nine of conv1.
    assert shared["conv3/kernel"].any(axis=(0, 1)).sum() == 1
    assert shared["conv1/kernel"].any(axis=(0, 1)).sum() == 7


def test_sparsity_by_pattern_leaves_no_room_for_paths():
    with pytest.raises(MaskError, match="leave 'paths' out"):
        select(fake_model(random_arrays(0)), {"conv1/kernel": 0.5}, paths=["conv1/kernel"])


@pytest.mark.parametrize("normalize", ["mean", "max", "l2", "lamp"])
def test_normalisation_takes_the_unit_of_measure_of_a_layer_out(normalize):
    arrays = random_arrays(4, (4, 6, 5))
    plain = select(fake_model(arrays), 0.5, normalize=normalize)
    arrays["conv1/kernel"] *= 64  # a power of two: exact
    assert select(fake_model(arrays), 0.5, normalize=normalize) == plain
    assert select(fake_model(arrays), 0.5, normalize="none") != plain


def test_protected_patterns_stay_and_count():
    model = fake_model(random_arrays(0, (4, 4, 4)))
    masks = select(model, 0.25, protect=["conv1/*"])
    assert masks["conv1/kernel"].all()
    assert masks["conv2/kernel"].mean() == 0.5
    with pytest.raises(MaskError, match=r"0\.4687 at most; ask for less or protect less"):
        select(model, 0.5, protect=["conv1/*"])
    with pytest.raises(MaskError, match="matches no weight"):
        select(model, 0.5, protect=["conv7/*"])


def test_the_floor_of_a_layer_holds():
    arrays = random_arrays(0, (4, 6, 6))
    arrays["conv1/kernel"] *= 1e-3
    floor = select(fake_model(arrays), 0.7, protect=Protection(min_free=7), normalize="none")
    assert floor["conv1/kernel"].any(axis=(0, 1)).sum() == 7


@pytest.mark.parametrize("bad", [{"min_free": -1}, {"min_free": 1.5}, {"min_free": True}, {"patterns": "a"}])
def test_a_protection_that_says_nothing_is_refused(bad):
    with pytest.raises(MaskError, match="wanted"):
        Protection(**bad)


def test_a_function_scores():
    def late_first(model, data):
        assert data == "samples"
        return {"conv/kernel": -np.arange(4.0).reshape(1, 1, 1, 4)}

    masks = select(fake_model({"conv/kernel": np.ones((3, 3, 2, 4))}), 0.5, "filter", late_first, data="samples")
    assert masks["conv/kernel"].any(axis=(0, 1, 2)).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({}, "criterion 'mine' gives no scores for 'conv/kernel'"),
        ({"conv/kernel": np.ones(3)}, r"scores of shape \(3,\) and dtype float64; wanted numbers that broadcast"),
        ({"conv/kernel": np.ones((2, 3, 3, 2, 4))}, "wanted numbers that broadcast"),
        ({"conv/kernel": np.array("a")}, "dtype <U1; wanted numbers"),
        ({"conv/kernel": np.float64("nan")}, "scores with NaN or infinity"),
    ],
)
def test_a_function_that_answers_wrongly_is_named(answer, message):
    def mine(model, data):
        return answer

    with pytest.raises(MaskError, match=message):
        select(fake_model({"conv/kernel": np.ones((3, 3, 2, 4))}), 0.5, criterion=mine)


@pytest.mark.parametrize("criterion", ["taylor", "fisher", "activation"])
def test_missing_data_are_asked_for(criterion):
    with pytest.raises(MaskError, match=f"criterion '{criterion}' needs samples; give data="):
        select(fake_model(random_arrays(0)), 0.5, criterion=criterion)


def test_random_depends_on_the_seed_and_on_nothing_else():
    arrays = random_arrays(0, (6, 8, 8))
    other = {path: array * 3 for path, array in arrays.items()}
    assert select(fake_model(arrays), 0.5, criterion="random", seed=1) == select(
        fake_model(other), 0.5, criterion="random", seed=1
    )
    assert select(fake_model(arrays), 0.5, criterion="random", seed=1) != select(
        fake_model(arrays), 0.5, criterion="random", seed=2
    )
    alone = select(fake_model(arrays), 0.5, criterion="random", scope="layer", paths=["conv2/kernel"])
    assert np.array_equal(
        alone["conv2/kernel"], select(fake_model(arrays), 0.5, criterion="random", scope="layer")["conv2/kernel"]
    )


def test_random_is_fair_between_large_and_small_kernels():
    rng = np.random.default_rng(0)
    arrays = {"conv1/kernel": rng.normal(size=(1, 1, 40, 40)), "conv2/kernel": rng.normal(size=(5, 5, 40, 40))}
    masks = select(fake_model(arrays), 0.3, criterion="random")
    assert masks["conv1/kernel"].mean() == pytest.approx(0.7, abs=0.05)
