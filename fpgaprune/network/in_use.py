"""`require_in_use` refuses a weight whose stored elements are not those that the model computes with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import FpgaPruneError
from fpgaprune.files import in_a_line
from fpgaprune.network.graph import is_keras_model, signature_of
from fpgaprune.network.meetings import Meetings
from fpgaprune.values import Array, named_weights

if TYPE_CHECKING:
    import keras


# They read, cut and move elements, and leave zero zero and each other number what its type makes of it.
_MOVES = frozenset(
    {
        *("Identity", "ReadVariableOp", "Cast", "StopGradient", "PreventGradient", "EnsureShape", "Snapshot"),
        *("Reshape", "Transpose", "ExpandDims", "Squeeze", "Split", "SplitV", "StridedSlice", "Slice", "Unpack"),
        *("Pack", "ConcatV2", "Tile", "BroadcastTo", "ResourceGather", "GatherV2", "ReverseV2", "Pad", "PadV2"),
    }
)
_SEED = 0


@dataclass(frozen=True)
class _Traced:
    """A model as TensorFlow computes it at inference."""

    meetings: Meetings
    values: Mapping[str, Array]
    _sessions: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: keras.Model) -> _Traced:
        import tensorflow as tf

        computes = tf.function(lambda inputs: model(inputs, training=False), autograph=False)
        function = computes.get_concrete_function(signature_of(model))
        paths = {id(copy): path for path, variable in named_weights(model).items() for copy in _copies(variable)}
        names = {id(v.handle): paths.get(id(v), f"{v.name} ({number})") for number, v in enumerate(function.variables)}
        return cls(Meetings(function, names), {names[id(v.handle)]: v.numpy() for v in function.variables})

    def made(self, path: str) -> list[Any] | None:
        """Return the tensors made of the weight `path`, not by moving its elements alone; None if it is unused.

        Operations that move elements are left out at the end too: the tensors have the order of the weight.
        """
        meetings = [tensor for tensor in self.meetings.tensors if path in self.meetings.variables(tensor)]
        found = {id(tensor): tensor for meeting in meetings for tensor in self._before_moves(meeting, path)}
        return list(found.values()) if meetings else None

    def _before_moves(self, tensor: keras.KerasTensor, path: str) -> Iterable[Any]:
        if path not in self.meetings.variables(tensor) or tensor.op.type == "Placeholder":
            return []
        if tensor.op.type in _MOVES:
            return [found for inner in tensor.op.inputs for found in self._before_moves(inner, path)]
        return [tensor]

    def evaluated(self, tensor: keras.KerasTensor, values: Mapping[str, Array]) -> Array | None:
        """Evaluate `tensor` as if the variables had `values`, by name; None if that needs the rest of the model."""
        import tensorflow as tf

        given = {
            operation.outputs[0].name: values[name]
            for operation in tensor.graph.get_operations()
            if operation.type == "ReadVariableOp"
            for name in self.meetings.variables(operation.outputs[0])
        }
        try:
            return np.asarray(self._session(tensor.graph).run(tensor.name, feed_dict=given))
        except tf.errors.OpError:
            return None

    def _session(self, graph: Any) -> Any:
        """Return a session on a copy of `graph`, made once: a copy takes far longer than a tensor's value."""
        import tensorflow as tf

        if id(graph) not in self._sessions:
            with tf.Graph().as_default() as copy:
                tf.import_graph_def(graph.as_graph_def(), name="")
                self._sessions[id(graph)] = tf.compat.v1.Session(graph=copy)
        return self._sessions[id(graph)]


def _copies(variable: keras.Variable) -> Sequence[Any]:
    """Return the TensorFlow variables of a Keras variable: one, or one for each device."""
    return getattr(variable.value, "values", None) or [variable.value]


def require_in_use(
    model: keras.Model,
    masks: Mapping[str, NDArray[np.bool_]],
    problem: type[FpgaPruneError],
    values: Mapping[str, Array] | None = None,
    *,
    stays: bool,
) -> None:
    """Check that each locked element of a matrix or kernel is, at inference, exactly the value that is computed with.

    Vectors (biases, scales and shifts) are left out: BatchNorm makes one number of several of them.

    Args:
        model: a Keras model that has been built; layers with named arrays compute nothing, and pass.
        masks: weight path to bool array, True = free, False = locked.
        problem: the class of the error.
        values: weight path to the values of locked elements; zero where it has none.
        stays: whether elements at zero must be zero in use whatever the other weights become.

    Raises:
        problem: a layer computes with something else, as after `enable_lora` or `quantize`, or without the weight.
    """
    asked = {path: mask for path, mask in masks.items() if mask.ndim > 1 and not mask.all()}
    if not asked or not is_keras_model(model):
        return
    require_whole(model, asked, problem)
    try:
        traced = _Traced.of(model)
    except Exception as error:  # whatever her layers raise
        raise problem(
            f"what model {model.name!r} computes with cannot be seen, because it cannot be traced: {in_a_line(error)}"
        ) from error
    for path, mask in asked.items():
        wanted = np.zeros(mask.shape) if values is None or path not in values else np.asarray(values[path])
        made = traced.made(path)
        if made is None:
            raise problem(f"weight {path!r} is not in use: the model computes its outputs without it; lock another")
        for tensor in made:
            wrong = _wrong(traced, tensor, path, mask, wanted, stays)
            if wrong:
                raise problem(
                    f"weight {path!r} is not what the model computes with: {wrong} behind operation "
                    f"{tensor.op.name!r}; let the layer compute with the weight as it is, or leave it unlocked"
                )


def _wrong(
    traced: _Traced, tensor: keras.KerasTensor, path: str, mask: NDArray[np.bool_], wanted: Array, stays: bool
) -> str | None:
    """Say what is wrong with the locked elements of `path` in `tensor`; None if nothing is."""
    if tensor.shape != mask.shape:
        return "its elements are not where they were"
    stored = traced.values[path].copy()
    stored[~mask] = wanted.astype(stored.dtype)[~mask]
    used = traced.evaluated(tensor, {**traced.values, path: stored})
    if used is None:
        return "what becomes of its elements cannot be computed"
    differ = int(np.count_nonzero(used[~mask] != stored.astype(used.dtype)[~mask]))
    if differ:
        return f"{differ} of its {np.count_nonzero(~mask)} locked elements have other values"
    if not stays:
        return None
    draws = np.random.default_rng(_SEED)
    others = {name: _moved(value, draws) for name, value in traced.values.items()}
    others[path][~mask] = stored[~mask]
    zeros = ~mask & (stored == 0)
    later = traced.evaluated(tensor, others)
    differ = 0 if later is None else int(np.count_nonzero(later[zeros]))
    return f"{differ} of its {np.count_nonzero(zeros)} locked zeros move with other weights" if differ else None


def _moved(value: Array, draws: np.random.Generator) -> Array:
    """Return `value` as training might leave it; what has no negative element gets none."""
    if value.dtype.kind in "iub":
        return value.copy()
    by = draws.normal(0, 0.5, value.shape)
    plain = value.astype(np.float64)
    return np.asarray(plain * draws.uniform(0.5, 2, value.shape) + (np.abs(by) if (plain >= 0).all() else by)).astype(
        value.dtype
    )


def in_parts(layer: keras.Layer) -> str | None:
    """Say why no array is the kernel of `layer`, and what to do: LoRA or Keras's `quantize()`; None if one is."""
    mode = getattr(layer, "quantization_mode", None)
    if mode:
        return f"Keras's quantize({mode!r}) has made other numbers of it; use the model from before quantize()"
    if getattr(layer, "lora_enabled", False):
        return (
            "LoRA adds to it; model.save_weights('merged.weights.h5') merges the two: load that file into the same "
            "network built without LoRA"
        )
    return None


def require_whole(model: keras.Model, paths: Iterable[str], problem: type[FpgaPruneError]) -> None:
    """Check that no layer of the weights `paths` has its kernel in parts.

    Raises:
        problem: LoRA or Keras's `quantize` has split it.
    """
    if not is_keras_model(model):
        return
    weights = named_weights(model)
    split = [layer for layer in model._flatten_layers(include_self=False) if in_parts(layer)]
    owners = {id(variable): layer for layer in split for variable in layer.variables}
    for path in paths:
        layer = owners.get(id(weights[path]))
        if layer is not None:
            raise problem(f"weight {path!r} is not what layer {layer.name!r} computes with: {in_parts(layer)}")
