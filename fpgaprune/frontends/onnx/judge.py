"""Compares an imported network with onnxruntime, the interpreter of its own format."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ModelImportError, shown
from fpgaprune.frontends.loaded import ImportDifference
from fpgaprune.frontends.onnx.document import Document
from fpgaprune.frontends.onnx.layer_plan import LayerPlan
from fpgaprune.frontends.onnx.qonnx import in_standard_operators
from fpgaprune.frontends.onnx.value import Value
from fpgaprune.parser_errors import in_a_line

RANDOM_SAMPLES = 256
LARGEST_DIFFERENCE = 1e-5
_NUMBERS_AT_A_TIME = 1 << 22


def judged(document: Document, plan: LayerPlan, model: Any, samples: Any = None) -> ImportDifference:
    """The largest difference between `model` and onnxruntime, relative to the largest number of each output.

    Args:
        document: the file.
        plan: the layers of the model.
        model: the model of the file.
        samples: samples of the user's, one array for each input, in the shapes of Keras; added to random ones.

    Raises:
        ModelImportError: the difference is larger than rounding explains, or onnxruntime cannot run the file.
    """
    rng = np.random.default_rng(0)
    random = [rng.standard_normal((RANDOM_SAMPLES, *value.shape), np.float32) for value in plan.inputs]
    given = random if samples is None else _with_samples(document, plan, random, samples)
    import keras

    session = _session(document, plan)
    ends = {**dict(zip(document.outputs, plan.outputs, strict=True)), **plan.watched}
    probe = keras.Model(model.inputs, [model.get_layer(value.layer).output for value in ends.values()])
    most_relative = most_absolute = 0.0
    count = len(given[0])
    at_a_time = max(1, min(count, _NUMBERS_AT_A_TIME // max(array[0].size for array in given)))
    wanted: list[list[Any]] = []
    found: list[list[Any]] = []
    for start in range(0, count, at_a_time):
        part = [array[start : start + at_a_time] for array in given]
        wanted.append(_run(document, plan, session, part, tuple(ends)))
        result = probe(part, training=False)
        found.append([np.asarray(array) for array in (result if isinstance(result, list) else [result])])
    for at, (name, value) in enumerate(ends.items()):
        own = np.concatenate([part[at] for part in found])
        theirs = np.concatenate([as_keras(part[at], value) for part in wanted])
        largest = float(np.max(np.abs(theirs))) if theirs.size else 0.0
        absolute = float(np.max(np.abs(own - theirs))) if theirs.size else 0.0
        relative = absolute / largest if largest else absolute
        if not relative <= LARGEST_DIFFERENCE:
            raise ModelImportError(
                f"{document.path}: output {shown(name)} differs from onnxruntime by {relative:.3g} of its largest "
                f"number; wanted {LARGEST_DIFFERENCE:g} at most, so the network is not taken"
            )
        most_relative, most_absolute = max(most_relative, relative), max(most_absolute, absolute)
    return ImportDifference("onnxruntime", most_relative, most_absolute, count)


def _with_samples(document: Document, plan: LayerPlan, random: list[NDArray[Any]], samples: Any) -> list[NDArray[Any]]:
    own = [np.asarray(one, np.float32) for one in (samples if isinstance(samples, list | tuple) else [samples])]
    shapes = [value.shape for value in plan.inputs]
    if [array.shape[1:] for array in own] != shapes or len({len(array) for array in own}) != 1:
        raise ModelImportError(
            f"{document.path} takes samples of shape {', '.join(map(str, shapes))} in Keras; got "
            f"{', '.join(str(array.shape[1:]) for array in own)}"
        )
    return [np.concatenate(pair) for pair in zip(random, own, strict=True)]


def _session(document: Document, plan: LayerPlan) -> Any:
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = in_standard_operators(document.model)
    for name in plan.watched:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    for value in (*model.graph.input, *model.graph.output):
        dims = value.type.tensor_type.shape.dim
        if value.name in (*document.inputs, *document.outputs) and len(dims) and not _is_small(document):
            dims[0].dim_param = "batch"
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # onnxruntime raises errors of its own classes, which have no common base.
        raise ModelImportError(f"onnxruntime cannot run {document.path}: {in_a_line(error)}") from error


def _is_small(document: Document) -> bool:
    """Whether the file fixes a batch of so few samples that they are run in such groups."""
    return document.batch is not None and document.batch <= RANDOM_SAMPLES


def _run(
    document: Document, plan: LayerPlan, session: Any, given: list[NDArray[Any]], names: tuple[str, ...]
) -> list[NDArray[Any]]:
    """The tensors `names` of onnxruntime for samples in the shapes of Keras."""
    feeds = [_as_onnx(array, value) for array, value in zip(given, plan.inputs, strict=True)]
    count = len(given[0])
    group = document.batch if _is_small(document) and document.batch else count
    parts = []
    for start in range(0, count, group):
        # The last group is filled up with its first sample.
        rows = np.minimum(np.arange(start, start + group), count - 1)
        try:
            part = session.run(list(names), dict(zip(document.inputs, (a[rows] for a in feeds), strict=True)))
        except Exception as error:
            # As above.
            raise ModelImportError(f"onnxruntime cannot run {document.path}: {in_a_line(error)}") from error
        if any(np.ndim(array) == 0 or len(array) != group for array in part):
            raise ModelImportError(f"{document.path} gives an output without the batch as its first axis")
        parts.append(part)
    return [np.concatenate(arrays)[:count] for arrays in zip(*parts, strict=True)]


def _as_onnx(array: NDArray[Any], value: Value) -> NDArray[Any]:
    """`array` in the order of the axes in ONNX."""
    order = [value.axes.index(axis) + 1 for axis in range(1, value.rank)]
    return np.ascontiguousarray(array.transpose([0, *order]))


def as_keras(array: NDArray[Any], value: Value) -> NDArray[Any]:
    """`array` of onnxruntime in the order of the axes in Keras."""
    if array.ndim != value.rank or array.shape[1:] != value.sizes:
        raise ModelImportError(f"onnxruntime gives the shape {array.shape[1:]}; Keras {value.sizes}")
    missing = [axis for axis in range(1, value.rank) if axis not in value.axes]
    return array.transpose([0, *value.axes, *missing]).reshape(len(array), *value.shape)
