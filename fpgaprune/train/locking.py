"""Sets, changes and removes the lock of a compiled model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from fpgaprune.errors import LockError
from fpgaprune.network import require_in_use, require_whole
from fpgaprune.train.lock_guard import erase_guards, remove_guards, write_guards
from fpgaprune.train.locked_optimizer import LockedGradients, LockedOptimizer
from fpgaprune.train.places import place_of, tf_variable
from fpgaprune.train.values import Values, held_values, read
from fpgaprune.values import MaskSet, named_weights


def lock(
    model: keras.Model,
    masks: MaskSet | Mapping[str, Any],
    values: Values = "zero",
    *,
    locked_gradients: LockedGradients = "zero",
) -> None:
    """Set locked elements of `model` to `values`; they keep these bits through any further `fit`.

    Their optimizer slots keep their bits too. The model keeps its optimizer with its state; it may have been
    fitted before.

    Args:
        model: a compiled and built Keras model.
        masks: weight path, or Keras's own `variable.path`, to bool array, True = free, False = locked.
        values: "zero", "current" or weight path to array; only locked elements matter.
        locked_gradients: "zero" keeps gradients of locked elements out of gradient clipping; "keep" leaves
            them in the norm.

    Raises:
        LockError: the model is not compiled, is locked already, or a value cannot be held; or a layer computes with
            something else than the weight, as after `enable_lora` or Keras's `quantize`.
        MaskError: a path is unknown, a shape differs or a mask is not bool.

    Examples:
        >>> masks = fp.MaskSet.from_slices(model, ["conv1/kernel[:, :, 0, 2]"])
        >>> fp.lock(model, masks)
        >>> _ = model.fit(x, y, verbose=0)
        >>> float(abs(model.get_layer("conv1").kernel[:, :, 0, 2]).numpy().max())
        0.0
    """
    if locked_optimizer(model) is not None:
        raise LockError(f"model {model.name!r} is locked already; change the lock with fp.relock")
    masks = MaskSet(masks).fitted(model)
    weights, arrays, held = _checked(model, masks, values)
    require_in_use(model, masks, LockError, arrays, stays=True)
    inner = _usable(_inner(model.optimizer))
    with model.distribute_strategy.scope():
        locked = LockedOptimizer(
            inner,
            held,
            values=values if isinstance(values, str) else {path: arrays[path] for path in held},
            locked_gradients=locked_gradients,
            weights=weights,
        )
        locked.build(model.trainable_variables)
    for path, array in arrays.items():
        if path not in held:
            current = read(weights[path])
            current[~masks[path]] = array[~masks[path]]
            weights[path].assign(current)
    _set_inner(model, locked)
    write_guards(model, ((path, weights[path]) for path in held))
    _retrace(model)


def relock(model: keras.Model, masks: MaskSet | Mapping[str, Any], values: Values = "zero") -> None:
    """Change the locked set of a locked model to `masks` from the next step on; slots keep their bits.

    Nothing is traced again if the first lock covers the weights in `masks`. Elements that become free start from
    the values and the slots at which they were held.

    Args:
        model: a locked model; also from a callback while it is being fitted.
        masks: weight path to bool array, True = free, False = locked; a missing weight becomes free.
        values: as in `lock`.

    Raises:
        LockError: the model is not locked, or, as in `lock`, a value cannot be held or is not what the model computes
            with.
        MaskError: a path is unknown, a shape differs or a mask is not bool.

    Examples:
        >>> fp.lock(model, fp.MaskSet.from_slices(model, ["conv1/kernel[:, :, 0, 2]"]))
        >>> fp.relock(model, fp.MaskSet.from_slices(model, ["conv1/kernel[:, :, 0, 3]"]))
        >>> _ = model.fit(x, y, verbose=0)
    """
    locked = _required(model)
    locked.build(model.trainable_variables)
    masks = MaskSet(masks).fitted(model)
    _, arrays, _ = _checked(model, masks, values)
    before = locked.masks
    newly = {path: mask for path, mask in masks.items() if path not in before or before[path].all()}
    require_in_use(model, newly, LockError, arrays, stays=True)
    covered = set(before)
    if set(masks) <= covered and (locked.holds_zero_only is False or values == "zero"):
        locked.change(masks, values)
        return
    free = {path: mask | True for path, mask in before.items() if path not in masks}
    unlock(model)
    lock(model, MaskSet({**free, **masks}), values, locked_gradients=locked.locked_gradients)


def unlock(model: keras.Model) -> None:
    """Give the model its own optimizer back, with its state; every element is free, and weights do not change.

    This also frees a model that only remembers its lock: loaded without its optimizer, or compiled again.

    Raises:
        LockError: the model is not locked.

    Examples:
        >>> fp.lock(model, fp.select(model, 0.5))
        >>> fp.unlock(model)
        >>> type(model.optimizer).__name__
        'Adam'
    """
    compiled = getattr(model, "optimizer", None) is not None
    locked = locked_optimizer(model) if compiled else None
    remembers = remove_guards(named_weights(model).values())
    erase_guards(model)
    if locked is not None:
        _set_inner(model, locked.inner_optimizer)
        _retrace(model)
    elif not remembers:
        _required(model)
    elif compiled:
        _set_inner(model, _usable(_inner(model.optimizer)))
        _retrace(model)


def locked_optimizer(model: keras.Model) -> LockedOptimizer | None:
    """Return the lock of a compiled model, or None.

    Raises:
        LockError: the model is not compiled.
    """
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        raise LockError(f"model {getattr(model, 'name', model)!r} is not compiled; call model.compile(...) first")
    inner = _inner(optimizer)
    return inner if isinstance(inner, LockedOptimizer) else None


def _checked(model: keras.Model, masks: MaskSet, values: Values) -> tuple[dict[str, Any], dict[str, Any], MaskSet]:
    """Return the weights by path, the values to hold, and the masks of weights that the optimizer trains."""
    require_whole(model, masks, LockError)
    weights = named_weights(model)
    arrays = held_values(values, masks, weights)
    trained = {place_of(variable) for variable in model.trainable_variables}
    for path in masks:
        if place_of(weights[path]) not in trained and not weights[path].value.trainable:
            raise LockError(
                f"weight {path!r} is moved by its layer, not by the optimizer, so a lock cannot hold it; "
                "set the layer's trainable=False instead"
            )
    return weights, arrays, MaskSet({path: mask for path, mask in masks.items() if place_of(weights[path]) in trained})


def _required(model: keras.Model) -> LockedOptimizer:
    locked = locked_optimizer(model)
    if locked is None:
        raise LockError(f"model {model.name!r} is not locked; call fp.lock first")
    return locked


def _inner(optimizer: keras.Optimizer) -> keras.Optimizer:
    # A lock is inside the loss scaling, which skips steps with non-finite gradients.
    return optimizer.inner_optimizer if isinstance(optimizer, keras.optimizers.LossScaleOptimizer) else optimizer


def _usable(optimizer: keras.Optimizer) -> keras.Optimizer:
    """Return `optimizer`, or a copy if its slots have no values because its first step was refused in tracing."""
    if all(bool(tf_variable(variable).is_initialized()) for variable in optimizer.variables):
        return optimizer
    return type(optimizer).from_config(optimizer.get_config())


def _set_inner(model: keras.Model, optimizer: keras.Optimizer) -> None:
    compiled_with, outer = getattr(model, "_compile_config", None), model.optimizer
    if isinstance(outer, keras.optimizers.LossScaleOptimizer):
        outer.inner_optimizer = optimizer
    else:
        model.optimizer = optimizer
    # Keras saves the optimizer that `compile` was given; Keras itself may have added the loss scaling.
    if compiled_with is not None:
        was_given = compiled_with.config.get("optimizer") is outer
        compiled_with.config["optimizer"] = model.optimizer if was_given else optimizer


def _retrace(model: keras.Model) -> None:
    # A train function that was traced before ignores the change; `fit` may be running it now.
    if model.train_function is not None:
        model.make_train_function(force=True)
