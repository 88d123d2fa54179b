"""`plan_removal` finds the channels that can leave a model, without changing the model."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import RemovalError, UnsupportedLayerError, require_kind
from fpgaprune.network import (
    Affine,
    Count,
    Linear,
    Listed,
    Liveness,
    Trace,
    pick_carrier,
    require_unshared,
    trace_channels,
    value_of,
)
from fpgaprune.remove.plan import Collapse, Delta, Indices, LayerChannels, RemovalPlan
from fpgaprune.remove.proof import equivalence
from fpgaprune.remove.rebuilding import rebuild
from fpgaprune.values import named_weights, weight_shapes


def plan_removal(
    model: keras.Model, *, strict: bool = False, tolerance: float = 0.0, inputs: object = None, multiple_of: int = 1
) -> RemovalPlan:
    """Plan what can leave `model` without changing what it computes at inference; the model is unchanged.

    A channel can leave if everything that stays reads it with zero weights, or if it is a constant and the constant is
    0 or can be added to the bias of every reader. It cannot be added if a reader pads with zeros; then one constant
    channel stays and the kernels of all others are added to its kernels. Exact over the reals.

    Args:
        model: a built functional or Sequential keras model.
        strict: raise an error if a layer has no rule; otherwise the layer keeps its channels and the plan says so.
        tolerance: weights of at most this size count as zero; more than 0 makes the removal lossy, and the plan's
            `change` says how much the outputs change.
        inputs: the samples to measure that change on, as in `equivalence`; None for its edge inputs.
        multiple_of: each layer keeps a multiple of this many channels, or all channels. Some that could leave then
            stay, with the reason `multiple`. With 4, reuse factors that divide 4 stay possible.

    Raises:
        RemovalError: the model's graph cannot be read, all its outputs are constants, two layers share a weight, or
            `multiple_of` is below 1.
        UnsupportedLayerError: a layer has no rule, and `strict` is set.

    Examples:
        >>> _ = model.get_layer("conv1").kernel.assign(model.get_layer("conv1").kernel * [1, 0, 1, 1])
        >>> [len(kept) for kept in fp.plan_removal(model).kept["conv1/kernel"]]
        [3, 3, 1, 3]
    """
    require_kind(model, keras.Model, RemovalError, "model", "a Keras model")
    if not tolerance >= 0:
        raise RemovalError(f"tolerance is {tolerance}; wanted 0 or more")
    if multiple_of < 1:
        raise RemovalError(f"multiple_of is {multiple_of}; wanted 1 or more, as 4 for layers of 4, 8, 12 channels")
    require_unshared(model)
    weights = named_weights(model) if model.weights else {}
    paths = {id(variable): path for path, variable in weights.items()}
    trace, alive = _analyse(model, paths, tolerance, multiple_of)
    if strict and trace.unsupported:
        listed = ", ".join(f"{path!r} ({kind})" for path, kind in trace.unsupported.items())
        raise UnsupportedLayerError(
            f"model {model.name!r} has layers that removal has no rule for: {listed}; plan without strict=True to "
            "keep their channels"
        )
    shapes = weight_shapes(model if model.weights else {})
    dropped = tuple(key for key, ids in trace.writes.items() if ids.size and not alive.needed(ids).any())
    kept = {path: _kept(trace, alive, path, shape) for path, shape in shapes.items()}
    for path in set(dropped) & set(trace.members):
        kept.update({weight: (np.arange(0),) * len(shapes[weight]) for weight in trace.members[path]})
    deltas = _deltas(trace, alive, kept)
    config = _config(trace, alive, deltas, shapes)
    made = _made(trace, alive, deltas, shapes)
    collapsed = collapses(trace, alive, dropped)
    before, after = _multiplications(trace, shapes, kept)
    shapes_made, values_made = made_weights(trace, alive, collapsed)
    plan = RemovalPlan(
        model=model.name,
        digest=weights_digest(weights),
        shapes=shapes,
        kept=kept,
        made={**made, **shapes_made},
        deltas={**deltas, **values_made},
        config=config,
        dropped=dropped,
        collapsed=collapsed,
        channels=_explain(trace, alive),
        unsupported=trace.unsupported,
        multiplications=(before, after + made_multiplications(trace, alive, collapsed)),
        lockable=_lockable(trace, alive, shapes),
        tolerance=tolerance,
    )
    if not tolerance:
        return plan
    found = equivalence(model, rebuild(model, plan, "float64"), inputs, tolerance=float("inf"))
    return replace(plan, change={**found.to_json(), "tolerance": None})


def _analyse(model: keras.Model, paths: dict[int, str], tolerance: float, multiple_of: int) -> tuple[Trace, Liveness]:
    """Return the trace of `model` and its needed channels, found again until no other merge can collapse."""
    leaving: dict[str, NDArray[np.bool_]] = {}
    best: tuple[Trace, Liveness] | None = None
    while True:
        trace = Trace(paths, tolerance, leaving=leaving)
        outputs = trace_channels(model, trace)
        if all(channels.known.all() for channels in outputs):
            raise RemovalError(
                f"every output of model {model.name!r} is a constant: the network is dead; prune less, or train again"
            )
        alive = Liveness(trace, multiple_of)
        if best and any((alive.needed(affine.ids) & affine.assumed).any() for affine in trace.affine.values()):
            return best  # a channel that was assumed to leave is needed now
        best = trace, alive
        more = collapsible(trace, alive)
        if not more:
            return best
        leaving = {**leaving, **more}


def weights_digest(weights: dict[str, Any]) -> str:
    """Return the SHA-256 over the paths, shapes and values of `weights`, path to variable."""
    digest = hashlib.sha256()
    for path, variable in weights.items():
        array = np.ascontiguousarray(value_of(variable))
        digest.update(f"{path}\0{array.shape}\0{array.dtype}\0".encode())
        digest.update(array.view(np.uint8).data if array.ndim else array.tobytes())
    return digest.hexdigest()


def _kept(trace: Trace, alive: Liveness, path: str, shape: tuple[int, ...]) -> Indices:
    axes = trace.axes.get(path, (None,) * len(shape))
    indices = []
    for ids, size in zip(axes, shape, strict=True):
        if ids is None:
            indices.append(np.arange(size))
        else:
            needed = alive.needed(ids)
            indices.append(np.flatnonzero(needed if needed.ndim == 1 else needed.any(axis=0)))
    return tuple(indices)


def _deltas(trace: Trace, alive: Liveness, kept: dict[str, Indices]) -> dict[str, Delta]:
    deltas: dict[str, Delta] = {}
    for linear in trace.linears.values():
        outputs = np.flatnonzero(alive.needed(linear.out_ids))
        folded = linear.constant & alive.read(linear) & ~alive.needed(linear.source.ids)
        if not folded.any() or not outputs.size:
            continue
        if linear.absorbs:
            values = linear.taps.constant_part(linear.source, folded)[outputs]
            _put(deltas, linear.bias_path, np.arange(outputs.size), values)
        else:
            values = _merged(linear, np.flatnonzero(folded), alive.carriers(linear), kept[linear.kernel_path])
            _put(deltas, linear.kernel_path, np.arange(values.size), values.reshape(-1))
    return deltas


def _merged(linear: Linear, folded: NDArray[np.intp], carriers: NDArray[np.intp], kept: Indices) -> NDArray[np.float64]:
    """Return the numbers to add to the kernels of the carriers, in the shape of the small kernel."""
    gain = np.zeros([len(axis) for axis in kept])
    view = np.moveaxis(gain, (linear.in_axis, linear.out_axis), (-2, -1))
    inputs, outputs = kept[linear.in_axis], kept[linear.out_axis]
    value = linear.source.value
    for part, rows in linear.taps.rows(folded):
        for k, channel in enumerate(part):
            carrier = pick_carrier(value, channel, carriers)
            if carrier is None:
                raise RemovalError(f"layer {linear.path!r} has no constant channel to stand for channel {channel}")
            share = rows[:, k, outputs] * (value[channel] / value[carrier])
            view[..., int(np.searchsorted(inputs, carrier)), :] += share.reshape(*view.shape[:-2], -1)
    return gain


def _put(deltas: dict[str, Delta], path: str, at: NDArray[np.intp], values: NDArray[np.float64]) -> None:
    some = values != 0
    if some.any():
        deltas[path] = Delta(at[some], values[some])


def _config(
    trace: Trace, alive: Liveness, deltas: dict[str, Delta], shapes: dict[str, tuple[int, ...]]
) -> dict[str, dict[str, Any]]:
    def size(entry: object) -> Any:
        if isinstance(entry, tuple):
            return tuple(size(item) for item in entry)
        if isinstance(entry, Listed):
            return [value for value, stays in zip(entry.values, alive.needed(entry.ids), strict=True) if stays]
        if not isinstance(entry, Count):
            return entry
        needed = alive.needed(entry.ids)
        return int((needed if needed.ndim == 1 else needed.any(axis=1)).sum())

    def shrinks(entry: object) -> bool:
        if isinstance(entry, tuple):
            return any(shrinks(item) for item in entry)
        if isinstance(entry, Listed):
            return len(size(entry)) < len(entry.values)
        return isinstance(entry, Count) and size(entry) < len(entry.ids)

    config: dict[str, dict[str, Any]] = {}
    for path, entries in trace.configs.items():
        smaller = {key: size(entry) for key, entry in entries.items() if shrinks(entry)}
        if smaller:
            config[path] = smaller
    for linear in trace.linears.values():
        if linear.bias_path in deltas and linear.bias_path not in shapes:
            config.setdefault(linear.path, {})["use_bias"] = True
    return config


def _made(
    trace: Trace, alive: Liveness, deltas: dict[str, Delta], shapes: dict[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the biases that only the small model has."""
    return {
        linear.bias_path: linear.bias_shape or (int(alive.needed(linear.out_ids).sum()),)
        for linear in trace.linears.values()
        if linear.bias_path in deltas and linear.bias_path not in shapes
    }


def _multiplications(trace: Trace, shapes: dict[str, tuple[int, ...]], kept: dict[str, Indices]) -> tuple[int, int]:
    before = sum(uses * math.prod(shapes[path]) for path, uses in trace.uses.items())
    after = sum(uses * math.prod(len(axis) for axis in kept[path]) for path, uses in trace.uses.items())
    return before, after


def _lockable(trace: Trace, alive: Liveness, shapes: dict[str, tuple[int, ...]]) -> tuple[str, ...]:
    """Return slices of the biases and shifts of all channels that are non-zero constants at a zero-padded border."""
    at_border = {int(alive.root(np.array(slot))) for slot in trace.borders}
    for linear in trace.linears.values():
        if not linear.absorbs:
            at_border.update(alive.root(linear.source.ids[linear.constant & alive.read(linear)]).tolist())
    slices = []
    for path, axes in trace.axes.items():
        if path.rpartition("/")[2] not in ("bias", "beta") or len(shapes[path]) != 1 or axes[0] is None:
            continue
        held = [k for k, root in enumerate(alive.root(axes[0]).tolist()) if root in at_border]
        if held:
            slices.append(f"{path}[{held}]")
    return tuple(slices)


def _explain(trace: Trace, alive: Liveness) -> tuple[LayerChannels, ...]:
    constants: dict[int, float] = {}
    for linear in trace.linears.values():
        known = linear.source.known
        constants.update(
            zip(alive.root(linear.source.ids[known]).tolist(), linear.source.value[known].tolist(), strict=True)
        )
    layers = []
    for path, owner in trace.owners.items():
        rows = [_fate(trace, alive, int(slot), constants) for slot in owner.ids]
        reasons, values, by = zip(*rows, strict=True)
        layers.append(LayerChannels(path, owner.kind, reasons, values, by))
    return tuple(layers)


def _fate(trace: Trace, alive: Liveness, slot: int, constants: dict[int, float]) -> tuple[str, float | None, str]:
    constant = constants.get(int(alive.root(np.array(slot))))
    if not alive.needed(np.array(slot)):
        return ("unread" if constant is None else "dead"), constant, ""
    reason, by = alive.cause(slot)
    if reason == "read" and slot in trace.partners:
        return "partner", constant, trace.partners[slot]
    if reason == "read" and slot in trace.borders:
        return "border", constant, trace.borders[slot]
    return reason, constant, by


def collapses(trace: Trace, alive: Liveness, dropped: Iterable[str]) -> dict[str, Collapse]:
    """Call key to the replacement, for each merge that stays and has constant branches."""
    gone = set(dropped)
    return {
        key: Collapse(affine.operand, *_layer(key, affine, alive))
        for key, affine in trace.affine.items()
        if key not in gone
    }


def collapsible(trace: Trace, alive: Liveness) -> dict[str, NDArray[np.bool_]]:
    """Call key to the leaving channels, for each merge that could collapse once these channels have left."""
    found = {}
    for key, operands in trace.merges.items():
        leaving = np.logical_not(np.logical_or.reduce([alive.needed(ids) for ids, _ in operands]))
        live = [not (known | leaving).all() for _, known in operands]
        if sum(live) == 1 and not np.array_equal(leaving, trace.leaving.get(key, np.zeros_like(leaving))):
            found[key] = leaving
    return found


def made_weights(
    trace: Trace, alive: Liveness, found: dict[str, Collapse]
) -> tuple[dict[str, tuple[int, ...]], dict[str, Delta]]:
    """Return the shapes and values, by path, of the weights of the replacements."""
    shapes: dict[str, tuple[int, ...]] = {}
    deltas: dict[str, Delta] = {}
    for key, collapse in found.items():
        if collapse.kind is None:
            continue
        affine = trace.affine[key]
        kept = alive.needed(affine.ids)
        count, taps = int(kept.sum()), (1,) * (len(affine.shape) - 1)
        name = collapse.config["name"]
        shapes[f"{name}/kernel"] = (*taps, count, 1)
        deltas[f"{name}/kernel"] = Delta(np.arange(count), affine.scale[kept])
        shapes[f"{name}/bias"] = (count,)
        deltas[f"{name}/bias"] = Delta(np.arange(count), affine.offset[kept])
    return shapes, deltas


def made_multiplications(trace: Trace, alive: Liveness, found: dict[str, Collapse]) -> int:
    """Return how many multiplications the replacements do for one sample."""
    affines = [trace.affine[key] for key, collapse in found.items() if collapse.kind is not None]
    return sum(
        math.prod(size or 1 for size in affine.shape[:-1]) * int(alive.needed(affine.ids).sum()) for affine in affines
    )


def _layer(key: str, affine: Affine, alive: Liveness) -> tuple[str | None, dict[str, object]]:
    kept = alive.needed(affine.ids)
    if (affine.scale[kept] == 1).all() and (affine.offset[kept] == 0).all():
        return None, {}
    kind = "DepthwiseConv1D" if len(affine.shape) == 2 else "DepthwiseConv2D"
    return kind, {"kernel_size": 1, "name": key.replace("#", "_"), "data_format": "channels_last"}
