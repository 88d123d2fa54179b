"""Freezes whole variables by patterns of their paths."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import keras

from fpgaprune.errors import LockError
from fpgaprune.train.places import members, place_of
from fpgaprune.values import NamedWeights, fitting_paths, match_paths, named_weights, near_misses

Pattern = str | re.Pattern[str]


def freeze(model: keras.Model, patterns: Pattern | Iterable[Pattern]) -> list[str]:
    """Freeze each weight whose path matches a pattern: it is in no `trainable_variables` and keeps its bits.

    It stays a weight of the model and is saved with it. This also freezes weights whose layer has no `trainable`
    argument, such as the kernel of an LSTM's cell. A layer without weights left to train becomes
    `trainable=False`, which is saved in the model's file; part of a layer must be frozen again after loading.
    The moving statistics of a `BatchNormalization` stop only if the whole layer is frozen.

    Args:
        model: a built Keras model, compiled or not.
        patterns: globs on weight paths (`encoder/*`, `lstm/*/kernel`) or compiled regular expressions, which
            must match a whole path. A pattern that matches no weight path is compared with Keras's own paths.

    Returns:
        The matching paths in the model's order.

    Raises:
        MaskError: the model is not built, or a glob matches nothing; the message lists near misses.
        LockError: a regular expression matches nothing; a match is moved by its layer and not by training; or
            the optimizer was built already and cannot leave weights out.
    """
    weights = named_weights(model)
    wanted = [patterns] if isinstance(patterns, str | re.Pattern) else list(patterns)
    found = {path for pattern in wanted for path in _matches(pattern, weights)}
    paths = [path for path in weights if path in found]
    layers = list(_layers_left_still(model, {place_of(weights[path]) for path in paths}))
    still = {place_of(variable) for layer in layers for variable in layer.variables}
    for path in paths:
        if not weights[path].value.trainable and place_of(weights[path]) not in still:
            raise LockError(
                f"weight {path!r} is moved by its layer, not by training; freeze the whole layer, as in "
                f"{path.rsplit('/', 1)[0] + '/*'!r}"
            )
    _check_optimizer(model)
    for path in paths:
        weights[path].trainable = False
    for layer in layers:
        layer.trainable = False
    if getattr(model, "train_function", None) is not None:
        model.make_train_function(force=True)
    return paths


def _matches(pattern: Pattern, weights: NamedWeights[Any]) -> list[str]:
    if isinstance(pattern, str):
        return match_paths(pattern, weights)
    found = fitting_paths(pattern.fullmatch, weights)
    if not found:
        raise LockError(
            f"the expression {pattern.pattern!r} matches no weight; {near_misses(pattern.pattern, weights)}"
        )
    return found


def _layers_left_still(model: keras.Model, frozen: set[int]) -> Any:
    for layer in model._flatten_layers(include_self=False, recursive=True):
        own = list(layer.weights)
        if own and all(place_of(variable) in frozen for variable in own):
            yield layer


def _check_optimizer(model: keras.Model) -> None:
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return
    for member in members(optimizer):
        if member.built and (member.use_ema or isinstance(member, keras.optimizers.MultiOptimizer)):
            kind = "keeps an EMA of" if member.use_ema else "assigns an optimizer to"
            raise LockError(
                f"the optimizer {member.name!r} is built and {kind} every weight it was built for; "
                "freeze before compile, or compile again after freezing"
            )
