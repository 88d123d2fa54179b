"""What a criterion receives, and criteria that need samples; Keras and TensorFlow load only when one is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import DataError, MaskError
from fpgaprune.network import CHANNELWISE, ChannelAxes, FlatStep, Network, Role, network_of, per_output
from fpgaprune.processes import OnStep
from fpgaprune.values import Array, named_weights, real_array

if TYPE_CHECKING:
    import keras

# For each weight path an array that broadcasts to the weight.
Scores = dict[str, Array]


@dataclass(frozen=True)
class Question:
    """What a criterion receives.

    Attributes:
        model: the Keras model.
        weights: weight path to value, for the weights to be scored.
        axes: weight path to its channel axes.
        data: samples, or None.
        batch_size: samples in a batch of arrays.
        seed: seed of criteria that draw numbers.
        progress: called with `(done, total, note)` after each batch.
    """

    model: Any
    weights: Mapping[str, Array]
    axes: Mapping[str, ChannelAxes]
    data: Any = None
    batch_size: int = 32
    seed: int = 0
    progress: OnStep | None = None


def batches(
    data: object, batch_size: int, progress: OnStep | None = None, note: str = ""
) -> Iterator[tuple[Any, Any, Any]]:
    """Yield up to `batch_size` samples at a time, in order, as `(x, y, sample_weight)`; what the data lack is None.

    Args:
        data: arrays `(x, y)` or `(x, y, sample_weight)`, one array `x`, or an iterable of such batches, which keep
            their size. Where the model has several inputs or outputs, x or y is a list or a dict of arrays, as `fit`
            takes them.
        batch_size: samples in a batch of arrays.
        progress: called with `(done, total, note)` after each batch; `total` is 0 if it is unknown.
        note: name of the work.

    Raises:
        DataError: the data have a wrong form, or hold no samples.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise DataError(f"batch size is {batch_size!r}; wanted a whole number of 1 or more")
    from keras import tree

    source, total = _source(data, batch_size)
    done = 0
    for done, item in enumerate(source, start=1):
        x, y, weights, *_ = (*item, None, None) if isinstance(item, tuple | list) else (item, None, None)
        first = next(iter(tree.flatten(x)), None)
        if not len(getattr(first, "shape", ())):
            raise DataError(f"a batch has a {type(first).__name__} in place of its samples; wanted an array")
        yield x, y, weights
        if progress is not None:
            progress(done, total, note)
    if done == 0:
        raise DataError("the data hold no samples; wanted at least one batch")


def _source(data: object, batch_size: int) -> tuple[Iterable[Any], int]:
    if hasattr(data, "shape") and len(data.shape):
        return _slices((data,), batch_size)
    if isinstance(data, tuple | list) and _are_arrays(data):
        sizes = [len(leaf) for part in data for leaf in _leaves(part)]
        if len(data) > 3 or len(set(sizes)) != 1:
            raise DataError(
                f"data are {len(sizes)} arrays of {', '.join(map(str, sizes))} samples; wanted (x, y) or "
                "(x, y, sample_weight) of equal length"
            )
        return _slices(tuple(data), batch_size)
    if hasattr(data, "__iter__"):
        return data, _length(data)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return (data[at] for at in range(len(data))), len(data)
    raise DataError(f"data are a {type(data).__name__}; wanted arrays (x, y) or an iterable of batches (x, y)")


def _are_arrays(data: Sequence[Any]) -> bool:
    """Return whether `data` are whole arrays, not batches; several inputs or outputs are a list or a dict."""
    several = isinstance(data, tuple) and not all(isinstance(part, tuple) for part in data)
    leaves = [leaf for part in data for leaf in _leaves(part)]
    arrays = all(hasattr(leaf, "shape") and len(leaf.shape) for leaf in leaves)
    return bool(leaves) and arrays and (several or all(hasattr(part, "shape") for part in data))


def _leaves(part: Any) -> list[Any]:
    if isinstance(part, dict):
        return list(part.values())
    return list(part) if isinstance(part, list | tuple) else [part]


def _slices(arrays: tuple[Any, ...], batch_size: int) -> tuple[Iterable[Any], int]:
    from keras import tree

    for what, part in zip(("samples", "labels", "weights"), arrays, strict=False):
        for array in _leaves(part):
            real_array(array, what)
    starts = range(0, len(_leaves(arrays[0])[0]), batch_size)
    return (tree.map_structure(lambda a, s=start: a[s : s + batch_size], arrays) for start in starts), len(starts)


def _length(data: Any) -> int:
    try:
        return max(len(data), 0)
    except TypeError:  # a generator or a dataset of unknown size
        return 0


def taylor(question: Question) -> Scores:
    """Average `(gradient * weight) ** 2` over batches, with the gradient of the loss of one batch: first order.

    The batch size matters, because the gradient of all samples together is nearly zero in a trained network.

    Source: Molchanov, Mallya, Tyree, Frosio, Kautz, "Importance Estimation for Neural Network Pruning", 2019,
    section 3.1, equation 8.
    """
    return _mean_square_change(question, "taylor", single=False)


def fisher(question: Question) -> Scores:
    """Multiply `weight ** 2 / 2` by the mean square of the gradients of single samples: the loss to second order.

    Source: Theis, Korshunova, Tejani, Huszar, "Faster gaze prediction with dense networks and Fisher pruning", 2018,
    section 3.1.
    """
    found = _mean_square_change(question, "fisher", single=True)
    return {path: scores / 2 for path, scores in found.items()}


def activation(question: Question) -> Scores:
    """Return the share of a channel's outputs after its activation that are not zero.

    Source: Hu, Peng, Tai, Tang, "Network Trimming: A Data-Driven Neuron Pruning Approach towards Efficient Deep
    Architectures", 2016, section 3.1 (average percentage of zeros).
    """
    import keras

    network = network_of(question.model)
    if network is None:
        raise MaskError("criterion 'activation' needs a functional or Sequential model, whose graph can be read")
    watched = {path: _activated(path, network) for path in question.weights}
    inputs = question.model.inputs
    # A list of one input would not fit the array that is given.
    probe = keras.Model(
        inputs[0] if len(inputs) == 1 else inputs, [network.tensors[tensor] for tensor in watched.values()]
    )
    alive = dict.fromkeys(watched, 0.0)
    seen = dict.fromkeys(watched, 0)
    for x, _, _ in batches(question.data, question.batch_size, question.progress, "activation"):
        outputs = probe(x, training=False)
        for path, output in zip(watched, outputs if isinstance(outputs, list | tuple) else [outputs], strict=True):
            values = np.asarray(output)
            flat = values.reshape(-1, values.shape[-1])
            alive[path] = alive[path] + (flat != 0).sum(axis=0)
            seen[path] += len(flat)
    return {
        path: per_output(np.asarray(alive[path]) / seen[path], question.axes[path], weight.shape)
        for path, weight in question.weights.items()
    }


def mean_gradient_size(
    model: keras.Model, paths: Sequence[str], data: object, batch_size: int = 32, progress: OnStep | None = None
) -> Scores:
    """Return the absolute gradient of the loss over all samples, for each element of the weights at `paths`.

    Raises:
        MaskError: the model is not compiled, or the data have no labels.
    """
    total: dict[str, Array] = {}
    samples = 0
    for size, gradients in _gradients(model, paths, batches(data, batch_size, progress, "gradients"), "regrowth"):
        samples += size
        for path, gradient in gradients.items():
            total[path] = total.get(path, 0.0) + size * gradient
    return {path: np.abs(value) / samples for path, value in total.items()}


def _mean_square_change(question: Question, name: str, *, single: bool) -> Scores:
    source = batches(question.data, question.batch_size, question.progress, name)
    total: dict[str, Array] = {}
    count = 0
    for _, gradients in _gradients(
        question.model, list(question.weights), source, f"criterion {name!r}", single=single
    ):
        count += 1
        for path, gradient in gradients.items():
            total[path] = total.get(path, 0.0) + np.square(gradient)
    return {
        path: np.square(weight.astype(np.float64)) * total[path] / count for path, weight in question.weights.items()
    }


def _gradients(
    model: keras.Model, paths: Sequence[str], source: Iterator[tuple[Any, Any, Any]], who: str, *, single: bool = False
) -> Iterator[tuple[int, dict[str, Array]]]:
    """Yield samples and the gradients of their mean loss: for each batch, or for each sample where `single`."""
    import tensorflow as tf

    if not getattr(model, "compiled", False):
        raise MaskError(f"{who} needs a loss; call model.compile(loss=...) first")
    weights = named_weights(model)
    tensors = [weights[path].value for path in paths]

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator, unused-ignore]
    def slopes(x: object, y: object, weights: object) -> list[Any]:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(tensors)
            loss = model.compute_loss(x=x, y=y, y_pred=model(x, training=False), sample_weight=weights, training=False)
        found = tape.gradient(loss, tensors, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return [tf.convert_to_tensor(gradient) for gradient in found]

    for x, y, weights in source:
        if y is None:
            raise MaskError(f"{who} needs labels; give data=(x, y)")
        size = int(np.shape(tf.nest.flatten(x)[0])[0])
        step = 1 if single else size
        for start in range(0, size, step):
            part = slice(start, start + step)
            try:
                values = slopes(
                    *(
                        tf.nest.map_structure(lambda a, p=part: None if a is None else tf.convert_to_tensor(a[p]), item)
                        for item in (x, y, weights)
                    )
                )
            except (tf.errors.OpError, ValueError, TypeError) as error:
                # For example, a class number without an output of the network, or samples of another shape.
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                # TensorFlow puts "in user code:" and a traceback first.
                said = next((line for line in lines if "label" in line or "shape" in line), lines[-1] if lines else "")
                raise DataError(f"{who} cannot compute the model's loss of the data: {said[:200]}") from error
            yield step, {path: np.asarray(value, dtype=np.float64) for path, value in zip(paths, values, strict=True)}


def _activated(path: str, network: Network) -> int:
    """Return the tensor behind the activation that follows the layer of weight `path`."""
    steps = [step for step in network.steps if f"{step.path}/" == path[: path.rfind("/") + 1]]
    if not steps:
        raise MaskError(
            f"criterion 'activation' finds no layer of its own that holds {path!r}; leave it out of 'paths'"
        )
    if "/" in steps[0].path:
        raise MaskError(f"criterion 'activation' cannot watch {path!r} inside a nested model; leave it out of 'paths'")
    step: FlatStep | None = steps[0]
    tensor = steps[0].outputs[0]
    while step is not None and step.activation == "linear":
        readers = network.consumers(tensor)
        step = readers[0] if len(readers) == 1 and readers[0].role in CHANNELWISE | {Role.NORM} else None
        tensor = step.outputs[0] if step is not None else tensor
    return tensor
