"""Wrong selections, each of which a law or a reference of the other tests must refuse."""

from dataclasses import replace
from itertools import product

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.flow.task import finetuning
from fpgaprune.network import ChannelAxes, alive, flat, zeros
from fpgaprune.select import (
    Block,
    allot,
    choose,
    closure,
    cost,
    criteria,
    data_criteria,
    explicit,
    gradual,
    multipliers,
    protection,
    regrowth,
    rounds,
    sensitivity_curve,
    skeleton,
    units,
)
from fpgaprune.values import MaskSet, named_weights
from tests.contract import (
    test_select_closure,
    test_select_criteria,
    test_select_defaults,
    test_select_finetuning,
    test_select_schedules,
)
from tests.property import test_select, test_select_units
from tests.unit.select import test_choose, test_cost, test_explicit, test_sensitivity, test_units
from tests.unit.select.fakes import fake_model, random_arrays
from tests.unit.select.networks import plain, residual, samples

from .changed_code import change


def is_refused(check, *arguments):
    """Whether `check` fails, by an assertion or by the library's own error."""
    with pytest.raises((AssertionError, fp.FpgaPruneError)):
        check(*arguments)


LAWS = {
    "seed": range(3),
    "granularity": ["weight", "kernel", "filter", "input_channel"],
    "scope": ["network", "layer"],
    "criterion": ["l1"],
}
UNIT_LAWS = {
    "seed": range(3),
    "granularity": ["kernel", Block((2, 3))],
    "criterion": ["random", "geometric_median"],
    "normalize": ["none"],
    "protect": [protection.Protection(min_free=3)],
}


def breaks(law, **choices):
    """Whether a law of the property tests fails for one of the choices: the same each time, and nothing to shrink."""
    for values in product(*choices.values()):
        try:
            law.hypothesis.inner_test(**dict(zip(choices, values, strict=True)))
        except (AssertionError, fp.FpgaPruneError):
            return
    pytest.fail(f"{law.__name__} holds for every choice")


def breaks_the_count():
    breaks(
        test_select.test_the_asked_sparsity_is_met_to_within_one_unit,
        channels=[(3, 5, 4)],
        fraction=[0.3, 0.9],
        **LAWS,
    )


# Units and thresholds: plain arrays, no framework.


def swapped(axes):
    return ChannelAxes(inputs=axes.outputs, outputs=axes.inputs)


def test_filters_along_the_wrong_axis(monkeypatch):
    right = units.Named.partition
    monkeypatch.setattr(
        units.Named, "partition", lambda self, path, shape, axes: right(self, path, shape, swapped(axes))
    )
    breaks_the_count()


@pytest.mark.parametrize("by", [-1, 1])
def test_one_unit_too_few_or_too_many(monkeypatch, by):
    right = allot.lowest
    monkeypatch.setattr(allot, "lowest", lambda scores, count: right(scores, min(max(count + by, 0), len(scores))))
    breaks_the_count()


def test_all_equal_scores_at_the_threshold_go(monkeypatch):
    def lowest(scores, count):
        return np.flatnonzero(scores <= np.sort(scores)[count - 1]) if count else np.empty(0, int)

    monkeypatch.setattr(allot, "lowest", lowest)
    breaks(
        test_select_units.test_the_count_is_met_or_the_largest_that_can_be_is_named, sparsity=[0.5, 0.9], **UNIT_LAWS
    )


def test_one_threshold_where_each_layer_has_its_own(monkeypatch):
    change(monkeypatch, allot, "_groups(units, shares, per_layer)]", "_groups(units, shares, False)]")
    breaks_the_count()


def test_the_first_units_whatever_their_scores(monkeypatch):
    monkeypatch.setattr(allot, "lowest", lambda scores, count: np.arange(count))
    breaks(test_select.test_a_permutation_of_channels_permutes_the_masks, fraction=[0.5], **LAWS)


def test_another_draw_for_each_sparsity(monkeypatch):
    monkeypatch.setattr(
        allot, "lowest", lambda scores, count: np.random.default_rng(count).permutation(len(scores))[:count]
    )
    breaks(
        test_select.test_masks_nest_as_sparsity_grows,
        channels=[(3, 5, 4)],
        fractions=[(0.3, 0.6)],
        with_base=[False],
        **LAWS,
    )


def test_a_draw_without_a_seed(monkeypatch):
    change(monkeypatch, criteria, "_generator(question.seed, path).random", "np.random.default_rng().random")
    breaks(test_select_units.test_masks_nest, fractions=[(0.2, 0.5)], **UNIT_LAWS)


def test_floors_that_are_not_kept(monkeypatch):
    monkeypatch.setattr(protection.Protection, "kept", lambda self, path, scores, *_: np.zeros(len(scores), bool))
    breaks(
        test_select_units.test_the_count_is_met_or_the_largest_that_can_be_is_named, sparsity=[0.5, 0.9], **UNIT_LAWS
    )


def test_channels_that_are_not_kept_alive(monkeypatch):
    monkeypatch.setattr(choose, "skeleton", lambda _model, partitions, *_: none_kept(partitions))
    is_refused(test_select_defaults.test_the_floor_alone_keeps_an_eighth_where_scores_are_as_they_are, "kernel")


def none_kept(partitions):
    return {path: np.zeros(partition.count, bool) for path, partition in partitions.items()}


def test_kept_channels_that_no_one_reads(monkeypatch):
    change(monkeypatch, skeleton, "np.concatenate([fed, reading])", "fed")
    is_refused(test_select_defaults.test_channels_that_stay_are_read_as_well_as_fed)


def test_depthwise_kernels_that_stay_when_their_channel_is_dead(monkeypatch):
    def all_free(model, _masks):
        weights = named_weights(model)
        return {path: np.ones(weights[path].shape, bool) for path in closure.following_paths(model)}

    monkeypatch.setattr(choose, "follow", all_free)
    is_refused(test_select_defaults.test_depthwise_kernels_follow_their_channels)


def test_kernels_and_dense_weights_in_one_count(monkeypatch):
    monkeypatch.setattr(choose, "pool_of", lambda *_: "all")
    is_refused(test_select_defaults.test_kernels_and_dense_weights_are_counted_apart)


def test_single_weights_of_convolutions_and_dense_layers_in_two_counts(monkeypatch):
    monkeypatch.setattr(choose, "SINGLE", None)
    is_refused(test_select_defaults.test_single_weights_of_all_layers_are_counted_together)


def test_a_channel_taken_to_be_alive_although_no_one_reads_it(monkeypatch):
    change(monkeypatch, alive, "read = self._backward(step)", "read = self._all(step.outputs[0])")
    is_refused(test_select_defaults.test_channels_behind_a_bottleneck_count_as_dead)


def test_a_layer_of_its_own_sparsity_that_cannot_give_it_stops_all(monkeypatch):
    right = allot.lock_lowest
    monkeypatch.setattr(
        choose, "lock_lowest", lambda units, shares, *, per_layer: right(units, shares, per_layer=False)
    )
    is_refused(test_select_defaults.test_layers_of_their_own_sparsity_give_what_they_can)


def test_multipliers_of_weights_with_the_inputs_first(monkeypatch):
    def labels(shape, reuse_factor):
        return (np.arange(np.prod(shape)) // reuse_factor).reshape(shape)

    monkeypatch.setattr(multipliers, "multiplier_labels", labels)
    monkeypatch.setattr(units, "multiplier_labels", labels)
    is_refused(test_units.test_a_zero_multiplier_is_whole)


def test_what_overflow_wraps_to_zero_counted_as_small(monkeypatch):
    change(monkeypatch, explicit, "np.abs(array.astype(np.float64)) < fixed.lsb", "np.isfinite(array)")
    is_refused(test_explicit.test_what_wraps_to_zero_stays_free)


def test_bits_counted_where_digits_are_the_cost(monkeypatch):
    monkeypatch.setattr(cost, "count_digits", lambda raw: np.bitwise_count(np.abs(raw)))
    is_refused(test_cost.test_a_score_is_divided_by_the_digits_of_its_unit.hypothesis.inner_test, 0, 6, 2.0)


def test_a_type_with_a_bit_to_spare_for_the_cost(monkeypatch):
    right = cost.FixedType.holding
    monkeypatch.setattr(cost.FixedType, "holding", lambda size, bits: right(2 * size, bits))
    is_refused(test_cost.test_a_score_is_divided_by_the_digits_of_its_unit.hypothesis.inner_test, 0, 6, 2.0)


def test_a_cost_that_nothing_is_divided_by(monkeypatch):
    monkeypatch.setattr(choose, "parse_cost", lambda _: None)
    is_refused(test_cost.test_of_units_that_matter_alike_the_one_with_most_adders_is_locked)
    is_refused(test_cost.test_what_is_left_takes_fewer_adders_than_a_selection_by_size_leaves)


def test_a_base_that_is_not_kept(monkeypatch):
    change(
        monkeypatch,
        choose,
        "_lock_units(choice, question, scores, base,",
        "_lock_units(choice, question, scores, None,",
    )
    is_refused(test_choose.test_what_the_base_locks_counts_and_stays_locked)


# Criteria against their references.


@pytest.fixture(scope="module")
def model():
    network = plain()
    network.compile("sgd", "sparse_categorical_crossentropy")
    return network


@pytest.fixture(scope="module")
def data(model):
    return samples(model)


def test_distances_between_slices_of_the_input(monkeypatch, model):
    right = criteria.geometric_median
    wrong = criteria.Criterion(lambda q: right(replace(q, axes={p: swapped(a) for p, a in q.axes.items()})))
    monkeypatch.setattr(criteria, "CRITERIA", {**criteria.CRITERIA, "geometric_median": wrong})
    monkeypatch.setattr(test_select_criteria, "CRITERIA", criteria.CRITERIA)
    is_refused(test_select_criteria.test_geometric_median, model)


def test_gradients_of_batches_where_single_samples_count(monkeypatch, model, data):
    change(monkeypatch, data_criteria, "step = 1 if single else size", "step = size")
    is_refused(test_select_criteria.test_fisher, model, data)


def test_the_gradient_of_all_samples_where_batches_count(monkeypatch, model, data):
    right = data_criteria.batches
    monkeypatch.setattr(data_criteria, "batches", lambda given, size, *rest: right(given, len(given[0]), *rest))
    is_refused(test_select_criteria.test_taylor, model, data, 4)


def test_outputs_before_the_activation(monkeypatch, model, data):
    at_the_layer = 'next(step.outputs[0] for step in network.steps if f"{step.path}/kernel" == path)'
    change(monkeypatch, data_criteria, "path: _activated(path, network) for", f"path: {at_the_layer} for")
    is_refused(test_select_criteria.test_activation, model, data)


def test_coupling_that_is_ignored(monkeypatch):
    monkeypatch.setattr(choose, "coupled_outputs", lambda *_: {})
    is_refused(test_select_criteria.test_added_channels_leave_together)


# Closure.


def test_a_closure_that_forgets_the_bias(monkeypatch):
    change(monkeypatch, closure, "in np.flatnonzero(none_of(kernel, axis)):", "in ():")
    is_refused(test_select_closure.test_the_bias_and_batch_norm_of_a_filter_without_kernels_follow)


def test_a_closure_that_looks_once(monkeypatch):
    right = zeros.Zeros.update

    def once(self):
        if not self.zero:
            right(self)

    monkeypatch.setattr(zeros.Zeros, "update", once)
    breaks(
        test_select_closure.test_closing_twice_adds_nothing_and_only_adds,
        network=[residual()],
        seed=range(4),
        sparsity=[0.6],
        granularity=["input_channel"],
    )


def test_every_activation_taken_to_keep_zero(monkeypatch):
    monkeypatch.setattr(flat.FlatStep, "keeps_zero", True)
    is_refused(test_select_closure.test_an_activation_that_is_not_zero_at_zero_feeds_its_readers)


def test_a_sum_taken_to_be_zero_where_one_term_is(monkeypatch):
    class Either:
        logical_and = np.logical_or

        def __getattr__(self, name):
            return getattr(np, name)

    monkeypatch.setattr(zeros, "np", Either())
    is_refused(test_select_closure.test_a_sum_is_zero_only_where_all_its_terms_are, residual())


def test_a_softmax_taken_channel_by_channel(monkeypatch):
    monkeypatch.setattr(flat.FlatStep, "mixes_channels", False)
    is_refused(test_select_closure.test_a_softmax_between_layers_reads_every_channel)


# Schedules.


@pytest.fixture
def trained():
    network = plain()
    network.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy")
    return network


def test_a_change_of_locks_that_loses_moments(monkeypatch, trained):
    def anew(model, masks):
        fp.unlock(model)
        model.optimizer = keras.optimizers.Adam(1e-3)
        fp.lock(model, masks)

    monkeypatch.setattr(fp, "relock", anew, raising=False)
    is_refused(test_select_schedules.test_moments_survive_a_change_of_locks, trained)


def test_masks_that_stay_behind_after_a_change(monkeypatch, trained):
    monkeypatch.setattr(fp, "relock", lambda model, masks: None, raising=False)
    is_refused(test_select_schedules.test_the_callback_follows_the_schedule_and_what_is_locked_stays, trained)


def test_a_callback_that_is_a_step_late(monkeypatch, trained):
    right = gradual.GradualLock.on_train_batch_begin

    def late(self, batch, logs=None):
        self._step -= 1
        right(self, batch, logs)
        self._step += 1

    monkeypatch.setattr(gradual.GradualLock, "on_train_batch_begin", late)
    is_refused(test_select_schedules.test_the_callback_follows_the_schedule_and_what_is_locked_stays, trained)


def test_rounds_that_forget_what_was_locked(monkeypatch, trained):
    right = rounds.advance
    monkeypatch.setattr(
        rounds,
        "advance",
        lambda model, share, held, *rest: right(model, share, None, *rest[:-1], {"criterion": drawn()}),
    )
    is_refused(test_select_schedules.test_rounds_nest_and_rewind, trained)


def drawn():
    """A criterion that answers otherwise each time."""
    rng = np.random.default_rng()

    def scores(model, data):
        return {path: rng.random(variable.shape) for path, variable in named_weights(model).items()}

    return scores


def test_rewinding_over_the_locks(monkeypatch, trained):
    right = rounds.rewind
    monkeypatch.setattr(rounds, "rewind", lambda model, weights, masks: right(model, weights, MaskSet({})))
    is_refused(test_select_schedules.test_rounds_nest_and_rewind, trained)


def test_the_smallest_gradients_freed(monkeypatch, trained):
    right = regrowth.mean_gradient_size

    def upside_down(*arguments):
        return {path: 1 / (1 + sizes) for path, sizes in right(*arguments).items()}

    monkeypatch.setattr(regrowth, "mean_gradient_size", upside_down)
    is_refused(test_select_schedules.test_regrowth_frees_the_largest_gradients, trained)


def test_a_flow_that_reports_other_masks(monkeypatch):
    free = "MaskSet({path: mask | True for path, mask in self._masks.items()})"
    change(monkeypatch, finetuning, "Finetuned(self._masks, ", f"Finetuned({free}, ")
    is_refused(test_select_finetuning.test_the_asked_kernels_are_at_zero_when_it_ends, "polynomial_decay")


# Sensitivity.


def test_a_measurement_that_leaves_its_zeros(monkeypatch):
    change(monkeypatch, sensitivity_curve, "variable.assign(before)", "variable.assign(before * (before > 0))")
    is_refused(test_sensitivity.test_each_point_is_the_model_with_one_weight_pruned, fake_model(random_arrays(3)))
