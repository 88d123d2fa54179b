"""`LockedOptimizer`: any Keras optimizer, but chosen elements of its weights keep their exact bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from fpgaprune.errors import LockError
from fpgaprune.train.hold import Hold, held
from fpgaprune.train.lock_guard import constraints_aside, set_guards
from fpgaprune.train.lock_plan import Plan, decode_mask, held_array, settle
from fpgaprune.train.places import find_slots, known_variables, members, place_of, resolve_places, tf_variable
from fpgaprune.train.values import Values, held_values, read
from fpgaprune.values import MaskSet, by_weight_path

_ELEMENTWISE = frozenset(
    {
        *(keras.optimizers.SGD, keras.optimizers.RMSprop, keras.optimizers.Adam, keras.optimizers.AdamW),
        *(keras.optimizers.Adamax, keras.optimizers.Nadam, keras.optimizers.Adagrad, keras.optimizers.Adadelta),
        *(
            keras.optimizers.Ftrl,
            keras.optimizers.Lion,
            keras.optimizers.ScheduleFreeAdamW,
            keras.optimizers.MultiOptimizer,
        ),
    }
)


def is_elementwise(optimizer: keras.optimizers.Optimizer) -> bool:
    """Return whether each element's update, apart from clipping, is known to depend on that element alone.

    False for Lamb (trust ratio), Adafactor (factors), Muon (orthogonal update) and any class that is not Keras's own.
    """
    return type(optimizer) in _ELEMENTWISE


def clips_by_norm(optimizer: keras.optimizers.Optimizer) -> bool:
    """Return whether a large gradient of one element makes the updates of the others smaller."""
    return bool(optimizer.clipnorm or optimizer.global_clipnorm)


def divides_by_gradients(optimizer: keras.optimizers.Optimizer) -> bool:
    """Return whether a row or column of zero gradients makes the whole weight NaN, as in Keras's Adafactor (0 / 0)."""
    return isinstance(optimizer, keras.optimizers.Adafactor)


def zero_locked(gradient: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Return `gradient` where `mask` is True, and +0.0 where it is False, even in place of NaN.

    Args:
        gradient: a tensor of the weight's shape, or `tf.IndexedSlices` over its first axis.
        mask: bool tensor of the weight's shape, True = free.
    """
    if isinstance(gradient, tf.IndexedSlices):
        rows = tf.gather(mask, gradient.indices)
        kept = tf.where(rows, gradient.values, tf.zeros_like(gradient.values))
        return tf.IndexedSlices(kept, gradient.indices, gradient.dense_shape)
    return tf.where(mask, gradient, tf.zeros_like(gradient))


LockedGradients = Literal["zero", "keep"]


@keras.saving.register_keras_serializable(package="fpgaprune")
class LockedOptimizer(keras.optimizers.Optimizer):
    """The optimizer `inner`, which never changes a bit of a locked element or of its slots, one number each.

    Free elements are updated exactly as `inner` alone would do from the same gradients, in which those of locked
    elements are zero where they would reach others; a constraint sees locked elements as they are held. What belongs to
    no element (iterations, Nadam's product, Adafactor's factors of rows and columns) keeps advancing.

    To scale the loss, put this optimizer inside: `LossScaleOptimizer(LockedOptimizer(inner, masks))`.

    Examples:
        >>> masks = fp.MaskSet.from_slices(model, ["conv1/kernel[:, :, 0, 2]"])
        >>> model.compile(fp.LockedOptimizer(keras.optimizers.Adam(), masks), "sparse_categorical_crossentropy")
        >>> _ = model.fit(x, y, verbose=0)
    """

    def __init__(
        self,
        inner_optimizer: keras.Optimizer,
        masks: MaskSet | Mapping[str, Any],
        *,
        values: Values = "zero",
        locked_gradients: LockedGradients = "zero",
        weights: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        """Make a lock that takes effect when the optimizer is built.

        Args:
            inner_optimizer: any Keras optimizer but a `LossScaleOptimizer`; it may be built already.
            masks: weight path to bool array, True = free, False = locked.
            values: the values of locked elements: "zero", "current" (their values when the optimizer is built) or
                weight path to array.
            locked_gradients: "zero" sets gradients of locked elements to zero before clipping, so that they do
                not shrink the free ones; "keep" leaves them in the norm, as without a lock.
            weights: weight path to variable (`fpgaprune.values.weights.named_weights(model)`); without it a path
                means the variable whose own path ends with it.
            name: name of the optimizer.

        Raises:
            LockError: the optimizer cannot be locked, or an option is unknown.
            MaskError: a mask is not bool.
        """
        if isinstance(inner_optimizer, keras.optimizers.LossScaleOptimizer):
            raise LockError(
                "inner_optimizer is a LossScaleOptimizer, which skips steps; "
                "wrap the other way round: LossScaleOptimizer(LockedOptimizer(inner, masks))"
            )
        if isinstance(inner_optimizer, LockedOptimizer) or not isinstance(inner_optimizer, keras.optimizers.Optimizer):
            raise LockError(
                f"inner_optimizer is a {type(inner_optimizer).__name__}; wanted a Keras optimizer that is not locked"
            )
        if locked_gradients not in ("zero", "keep"):
            raise LockError(f"locked_gradients is {locked_gradients!r}; wanted 'zero' or 'keep'")
        super().__init__(learning_rate=0.0, name=name)
        self.inner_optimizer = inner_optimizer
        self.locked_gradients = locked_gradients
        weights = weights or {}
        values = values if isinstance(values, str) else by_weight_path(values, weights)
        self._plan = Plan(MaskSet(by_weight_path(masks, weights)), values, weights)

    # What the optimizer holds

    @property
    def masks(self) -> MaskSet:
        """The masks in force now."""
        if not self.built:
            return self._plan.masks
        return MaskSet({hold.path: read(hold.mask) for hold in self._plan.holds})

    @property
    def holds_zero_only(self) -> bool:
        """Whether all locked elements are zero, so that the lock stores no values."""
        return self._plan.zero

    def change(self, masks: MaskSet, values: Values = "zero") -> None:
        """Change the locked set to `masks` from the next step on; slots keep their bits, nothing is traced again.

        Weights of this lock that are not in `masks` become free and keep their values.

        Raises:
            LockError: the optimizer is not built, or the lock holds zeros only and `values` are others.
            MaskError: the lock does not cover a path, or a mask does not fit its weight.
        """
        if not self.built:
            raise LockError("this lock knows no weight before its first step; call build(model.trainable_variables)")
        plan = self._plan
        held_variables = known_variables({hold.path: hold.variable for hold in plan.holds})
        masks = masks.fitted(held_variables.map(lambda variable: tuple(variable.shape)))
        wanted = held_values(values, masks, held_variables)
        if plan.zero and any(np.any(array[~masks[path]]) for path, array in wanted.items()):
            raise LockError("this lock holds zeros only; lock again with values to hold others")
        for hold in plan.holds:
            mask = masks.get(hold.path, np.ones(hold.mask.shape, dtype=bool))
            hold.mask.assign(mask)
            if hold.path in wanted:
                if hold.value is not None:
                    hold.value.assign(wanted[hold.path])
                settle(hold, mask, wanted[hold.path])

    def settle(self) -> None:
        """Set every locked element to its held value, whatever was assigned since the last step."""
        for hold in self._plan.holds:
            settle(hold, read(hold.mask), held_array(hold))

    # What Keras calls

    def build(self, var_list: Sequence[keras.Variable]) -> None:
        """Make the slots; the lock then holds the variables in `var_list`.

        Raises:
            LockError: a mask fits no variable, or `inner_optimizer` was built for others.
        """
        var_list = list(var_list)
        # Keras's reader of .h5 files builds an optimizer for no variable at all; the first step builds it for all.
        if self.built or not var_list:
            return
        with tf.init_scope():
            places = resolve_places(self._plan.masks, var_list, self._plan.weights, self._plan.positions)
            weights = known_variables({path: var_list[at] for path, at in places.items()})
            arrays = self._plan.arrays(weights)
            self._build_inner(var_list)
            super().build(var_list)
            slots = find_slots(self.inner_optimizer, var_list)
            holds = []
            for path, at in places.items():
                holds.append(self._hold(path, var_list[at], arrays[path], tuple(slots[at])))
                settle(holds[-1], self._plan.masks[path], arrays[path])
            set_guards((hold.path, hold.variable) for hold in holds)
            self._plan.holds = tuple(holds)
            self._plan.positions = places

    def _build_inner(self, var_list: list[Any]) -> None:
        if not self.inner_optimizer.built:
            self.inner_optimizer.build(var_list)
            return
        known = {place_of(variable) for variable in self.inner_optimizer._trainable_variables}
        for variable in var_list:
            if place_of(variable) not in known:
                raise LockError(
                    f"the optimizer {self.inner_optimizer.name!r} was built for other variables: it does not know "
                    f"{getattr(variable, 'path', variable.name)!r}; compile with a new one"
                )

    def _hold(self, path: str, variable: keras.Variable, array: object, slots: tuple[Any, ...]) -> Hold:
        mask = self._plan.masks[path]
        stem = path.replace("/", "_")
        with self._distribution_strategy.extended.colocate_vars_with(tf_variable(variable)):
            mask_variable = self._constant(mask, "bool", f"{stem}_mask")
            value = None if self._plan.zero else self._constant(array, variable.dtype, f"{stem}_held")
        return Hold(path, variable, mask_variable, value, slots)

    def _constant(self, array: Any, dtype: Any, name: str) -> Any:
        def initializer(shape: object, dtype: object = None) -> Any:
            del shape  # the array's own
            return tf.constant(array, dtype=dtype)

        return self.add_variable(array.shape, initializer=initializer, dtype=dtype, name=name)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        """Take one step of `inner_optimizer`; locked elements keep their held bits."""
        if not self.built:
            self.build(list(trainable_variables or ()))
        variables = self._trainable_variables if trainable_variables is None else list(trainable_variables)
        # If each element is computed alone, the results of locked ones are discarded, so their gradients do not matter.
        inside = list(members(self.inner_optimizer))
        apart = all(is_elementwise(member) and not clips_by_norm(member) for member in inside)
        unsafe = any(divides_by_gradients(member) for member in inside)
        if self.locked_gradients == "zero" and not apart and not unsafe:
            masks = {place_of(hold.variable): hold.mask for hold in self._plan.holds}
            grads = [
                zero_locked(grad, masks[place_of(variable)].value)
                if grad is not None and place_of(variable) in masks
                else grad
                for grad, variable in zip(grads, variables, strict=True)
            ]
        with constraints_aside(variables) as constraints, self._held():
            self.inner_optimizer.apply(list(grads), variables)
        # A constraint that scales a whole column has to see the locked elements as they are held.
        for hold in self._plan.holds:
            if id(hold.variable) in constraints:
                now = tf.convert_to_tensor(hold.variable.value)
                hold.variable.assign(tf.where(hold.mask.value, constraints[id(hold.variable)](now), now))

    def _held(self) -> AbstractContextManager[None]:
        inside = list(members(self.inner_optimizer))
        # Adafactor divides by a slot that it has just written, where a held 0 would spoil free elements.
        fused = inside if all(map(is_elementwise, inside)) else []
        return held(self._plan.holds, fused, self._distribution_strategy)

    def finalize_variable_values(self, var_list: Sequence[Any]) -> None:
        """Finalize as `inner_optimizer` does (perhaps by its EMA), but locked elements keep their bits."""
        with self._held():
            self.inner_optimizer.finalize_variable_values(var_list)

    def scale_loss(self, loss: tf.Tensor) -> tf.Tensor:
        """Scale the loss as `inner_optimizer` does."""
        return self.inner_optimizer.scale_loss(loss)

    def exclude_from_weight_decay(self, var_list: Any = None, var_names: Any = None) -> None:
        """Exclude variables as `inner_optimizer` does."""
        self.inner_optimizer.exclude_from_weight_decay(var_list=var_list, var_names=var_names)

    @property
    def variables(self) -> list[Any]:
        """Own variables (masks, held values), then those of `inner_optimizer`."""
        return [*self._variables, *self.inner_optimizer.variables]

    @property
    def learning_rate(self) -> Any:
        """The learning rate of `inner_optimizer`."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: Any) -> None:
        self.inner_optimizer.learning_rate = learning_rate

    @property
    def iterations(self) -> Any:
        """The steps that `inner_optimizer` has taken."""
        return self.inner_optimizer.iterations

    @property
    def loss_scale_factor(self) -> Any:
        """The loss scale factor of `inner_optimizer`."""
        return self.inner_optimizer.loss_scale_factor if hasattr(self, "inner_optimizer") else None

    @loss_scale_factor.setter
    def loss_scale_factor(self, factor: Any) -> None:
        if hasattr(self, "inner_optimizer"):
            self.inner_optimizer.loss_scale_factor = factor

    def get_config(self) -> dict[str, Any]:
        """Return the inner optimizer and the whole lock: masks, held values, and the variable of each."""
        return {
            "name": self.name,
            "inner_optimizer": keras.saving.serialize_keras_object(self.inner_optimizer),
            "locked_gradients": self.locked_gradients,
            **self._plan.encode(),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: object = None) -> LockedOptimizer:
        """Return an unbuilt optimizer with the lock that `get_config` described."""
        inner = keras.saving.deserialize_keras_object(config["inner_optimizer"], custom_objects=custom_objects)
        masks = MaskSet({path: decode_mask(path, entry) for path, entry in config["masks"].items()})
        optimizer = cls(inner, masks, locked_gradients=config["locked_gradients"], name=config["name"])
        optimizer._plan.decode(config)
        return optimizer
