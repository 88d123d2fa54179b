"""Known-bad locks, each of which the contract suite must refuse."""

import importlib.util
import sys
from pathlib import Path

import keras
import pytest
import tensorflow as tf

_FILE = Path(__file__).parents[1] / "contract" / "lock_contract.py"
_SPEC = importlib.util.spec_from_file_location("lock_contract_for_teeth", _FILE)
contract = importlib.util.module_from_spec(_SPEC)
sys.modules["lock_contract_for_teeth"] = contract
_SPEC.loader.exec_module(contract)

ROWS = {row.name: row for row in contract.ROWS}


class Mutant(keras.optimizers.Optimizer):
    """Wraps an optimizer as a lock would; subclasses say what they do wrong."""

    def __init__(self, inner, masks, weights, **_):
        super().__init__(learning_rate=0.0)
        self.inner_optimizer = inner
        self.pairs = [(weights[path], tf.constant(mask)) for path, mask in masks.items()]
        self.values = [tf.constant(weight.numpy()) for weight, _ in self.pairs]

    def build(self, variables):
        if not self.inner_optimizer.built:
            self.inner_optimizer.build(variables)
        super().build(variables)

    def masked(self, grads):
        return [tf.where(mask, grad, 0.0) for grad, (_, mask) in zip(grads, self.pairs, strict=True)]

    def put_back(self):
        for (weight, mask), value in zip(self.pairs, self.values, strict=True):
            weight.assign(tf.where(mask, weight.value, value))

    def finalize_variable_values(self, var_list):
        self.inner_optimizer.finalize_variable_values(var_list)


class GradientMaskOnly(Mutant):
    """What most recipes on the web do."""

    def apply(self, grads, trainable_variables=None):
        self.inner_optimizer.apply(self.masked(grads), trainable_variables)


class ConstraintOnly(Mutant):
    """What `kernel_constraint` does: weights are put back, slots drift."""

    def apply(self, grads, trainable_variables=None):
        self.inner_optimizer.apply(grads, trainable_variables)
        self.put_back()


class ProductInsteadOfWhere(Mutant):
    """What magnitude pruning by a product does."""

    def apply(self, grads, trainable_variables=None):
        self.inner_optimizer.apply(self.masked(grads), trainable_variables)
        for weight, mask in self.pairs:
            weight.assign(weight * tf.cast(mask, weight.dtype))


class NoRestoreAfterFinalize(Mutant):
    """Everything right in the step, and the end of `fit` forgotten."""

    def apply(self, grads, trainable_variables=None):
        slots = [
            (slot, mask, tf.identity(slot.value))
            for weight, mask in self.pairs
            for slot in self.inner_optimizer.variables
            if slot.name.startswith(weight.path.replace("/", "_") + "_")
        ]
        self.inner_optimizer.apply(self.masked(grads), trainable_variables)
        self.put_back()
        for slot, mask, old in slots:
            slot.assign(tf.where(mask, slot.value, old))


class RestoreByAddingZero(NoRestoreAfterFinalize):
    """Locked elements moved by nothing: right on paper, wrong for denormals and -0.0."""

    def apply(self, grads, trainable_variables=None):
        super().apply(grads, trainable_variables)
        for weight, mask in self.pairs:
            weight.assign(weight + tf.where(mask, 0.0, 0.0))


def refused(case, row, mutant, **options):
    with pytest.raises(AssertionError, match=r"array \d"):
        case(ROWS[row], mutant, **options)


@pytest.mark.parametrize("row", ["momentum", "adam", "adamw", "nadam", "lion", "lamb", "schedule_free"])
def test_a_gradient_mask_alone_is_refused_after_free_steps(row):
    refused(contract.after_free_steps, row, GradientMaskOnly)


def test_a_gradient_mask_alone_is_refused_with_weight_decay_from_the_first_step():
    refused(contract.from_the_first_step, "sgd", GradientMaskOnly, weight_decay=0.1)


@pytest.mark.parametrize("row", ["momentum", "adam", "rmsprop"])
def test_a_constraint_alone_is_refused(row):
    refused(contract.from_the_first_step, row, ConstraintOnly)


def test_a_product_is_refused():
    refused(contract.odd_bits_stay, "sgd", ProductInsteadOfWhere)


@pytest.mark.parametrize("row", ["adam", "sgd"])
def test_a_lock_that_forgets_the_end_of_fit_is_refused(row):
    refused(contract.after_free_steps, row, NoRestoreAfterFinalize, use_ema=True, ema_momentum=0.5)


def test_the_same_lock_passes_where_fit_has_no_end():
    contract.after_free_steps(ROWS["adam"], NoRestoreAfterFinalize)


def test_adding_zero_is_refused():
    refused(contract.odd_bits_stay, "adam", RestoreByAddingZero)
