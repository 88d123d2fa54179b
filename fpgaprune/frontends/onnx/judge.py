"""Compares an imported network with onnxruntime, the interpreter of its own format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fpgaprune.errors import ModelImportError, shown
from fpgaprune.files import in_a_line
from fpgaprune.frontends.loaded import ImportDifference
from fpgaprune.frontends.onnx.document import Document
from fpgaprune.frontends.onnx.layer_plan import LayerPlan
from fpgaprune.frontends.onnx.qonnx import in_standard_operators
from fpgaprune.frontends.onnx.value import Value
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras
    import onnxruntime

RANDOM_SAMPLES = 256
LARGEST_DIFFERENCE = 1e-5
# Of large networks fewer samples are compared, so that at most this many numbers are computed.
_NUMBERS = 1 << 27
_FEWEST_SAMPLES = 2
_NUMBERS_AT_A_TIME = 1 << 24
# A number so near to the middle between two steps may be rounded to either.
_NEAR = 1e-6


def judged(document: Document, plan: LayerPlan, model: object, samples: object = None) -> ImportDifference:
    """Return the largest difference between `model` and onnxruntime, relative to the largest number of each output.

    Where the network rounds, one step may hang on the last bit of a float. So each part between two quantisers is
    compared for itself, on what onnxruntime gives to it, and each quantiser on what onnxruntime gives to that.

    Args:
        document: the file.
        plan: the layers of the model.
        model: the model of the file.
        samples: samples of the user's, one array for each input, in the shapes of Keras; added to random ones.

    Raises:
        ModelImportError: the difference is larger than rounding explains, or onnxruntime cannot run the file.
    """
    rng = np.random.default_rng(0)
    count = max(_FEWEST_SAMPLES, min(RANDOM_SAMPLES, _NUMBERS // sum(prod(one.shape) for one in plan.layers.values())))
    random = [rng.standard_normal((count, *value.shape), np.float32) for value in plan.inputs]
    given = random if samples is None else _with_samples(document, plan, random, samples)
    parts = _Parts(document, plan, model)
    session = _session(document, parts.names)
    count = len(given[0])
    numbers = sum(value.elements for value in (*plan.inputs, *parts.ends.values()))
    at_a_time = max(1, min(count, _NUMBERS_AT_A_TIME // numbers))
    for start in range(0, count, at_a_time):
        part = [array[start : start + at_a_time] for array in given]
        found = _run(document, plan, session, part, parts.names)
        parts.compare(part, dict(zip(parts.names, found, strict=True)))
    relative, absolute = parts.difference()
    return ImportDifference("onnxruntime", relative, absolute, count)


class _Parts:
    """The parts of a network between its quantisers, and how far each is from onnxruntime."""

    def __init__(self, document: Document, plan: LayerPlan, model: keras.Model) -> None:
        import keras

        self.document, self.plan = document, plan
        # The outputs of the parts; what a quantiser gives is compared apart.
        rounded = {rounding.rounded.layer for rounding in plan.roundings}
        outputs = dict(zip(document.outputs, plan.outputs, strict=True))
        known = {value.layer for value in plan.inputs} | rounded
        ends = {**outputs, **plan.watched, **{one.names[0]: one.given for one in plan.roundings}}
        self.ends = {name: value for name, value in ends.items() if value.layer not in known}
        tensor: Callable[[str], Any] = lambda layer: model.get_layer(layer).output  # noqa: E731
        starts = [
            *model.inputs,
            *(tensor(layer) for layer in dict.fromkeys(one.rounded.layer for one in plan.roundings)),
        ]
        self.probe = keras.Model(starts, [tensor(value.layer) for value in self.ends.values()]) if self.ends else None
        self.quantisers = [
            keras.Model(tensor(rounding.given.layer), tensor(rounding.rounded.layer)) for rounding in plan.roundings
        ]
        self.names = tuple(dict.fromkeys((*self.ends, *(name for one in plan.roundings for name in one.names))))
        self.largest = dict.fromkeys(self.ends, 0.0)
        self.absolute = dict.fromkeys(self.ends, 0.0)

    def compare(self, given: list[Array], theirs: dict[str, Array]) -> None:
        """Compare what the parts make of the samples `given`, and of what onnxruntime gives to each part."""
        starts: dict[str, Array] = {}
        for rounding, quantiser in zip(self.plan.roundings, self.quantisers, strict=True):
            x, y = (as_keras(theirs[name], rounding.given) for name in rounding.names)
            whole = rounding.grid.whole_of(y)
            own = np.asarray(quantiser(x, training=False))
            if not np.array_equal(own, whole):
                near = _NEAR * float(np.max(np.abs(x), initial=0.0))
                low, high = rounding.grid.whole(x - near), rounding.grid.whole(x + near)
                if not all(((low <= one) & (one <= high)).all() for one in (whole, own)):
                    self._refuse(rounding.names[1], "is rounded otherwise by onnxruntime")
            starts[rounding.rounded.layer] = whole.astype(np.float32)
        if self.probe is None:
            return
        result = self.probe([*given, *starts.values()], training=False)
        for (name, value), array in zip(
            self.ends.items(), result if isinstance(result, list) else [result], strict=True
        ):
            wanted = as_keras(theirs[name], value)
            self.largest[name] = max(self.largest[name], float(np.max(np.abs(wanted), initial=0.0)))
            difference = float(np.max(np.abs(np.asarray(array) - wanted), initial=0.0))
            # A difference that is no number is the largest of all.
            self.absolute[name] = difference if difference != difference else max(self.absolute[name], difference)

    def difference(self) -> tuple[float, float]:
        """Return the largest relative and the largest absolute difference.

        Raises:
            ModelImportError: one is larger than rounding explains.
        """
        most = 0.0
        for name in self.ends:
            relative = self.absolute[name] / self.largest[name] if self.largest[name] else self.absolute[name]
            if not relative <= LARGEST_DIFFERENCE:
                self._refuse(
                    name,
                    f"differs from onnxruntime by {relative:.3g} of its largest number; wanted {LARGEST_DIFFERENCE:g} "
                    "at most",
                )
            most = max(most, relative)
        return most, max(self.absolute.values(), default=0.0)

    def _refuse(self, name: str, what: str) -> NoReturn:
        kind = "output" if name in self.document.outputs else "tensor"
        raise ModelImportError(f"{self.document.path}: {kind} {shown(name)} {what}, so the network is not taken")


def _with_samples(document: Document, plan: LayerPlan, random: list[Array], samples: object) -> list[Array]:
    own = [np.asarray(one, np.float32) for one in (samples if isinstance(samples, list | tuple) else [samples])]
    shapes = [value.shape for value in plan.inputs]
    if [array.shape[1:] for array in own] != shapes or len({len(array) for array in own}) != 1:
        raise ModelImportError(
            f"{document.path} takes samples of shape {', '.join(map(str, shapes))} in Keras; got "
            f"{', '.join(str(array.shape[1:]) for array in own)}"
        )
    return [np.concatenate(pair) for pair in zip(random, own, strict=True)]


def _session(document: Document, names: Sequence[str]) -> onnxruntime.InferenceSession:
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = in_standard_operators(document.model)
    for name in names:
        if name in document.outputs or name in document.inputs:
            continue
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
    """Return whether the file fixes a batch of so few samples that they are run in such groups."""
    return document.batch is not None and document.batch <= RANDOM_SAMPLES


def _run(document: Document, plan: LayerPlan, session: Any, given: list[Array], names: tuple[str, ...]) -> list[Array]:
    """Return the tensors `names` of onnxruntime for samples in the shapes of Keras."""
    feeds = [_as_onnx(array, value) for array, value in zip(given, plan.inputs, strict=True)]
    entering = dict(zip(document.inputs, feeds, strict=True))
    asked = [name for name in names if name not in entering]
    count = len(given[0])
    group = document.batch if _is_small(document) and document.batch else count
    parts = []
    for start in range(0, count, group):
        # The last group is filled up with its first sample.
        rows = np.minimum(np.arange(start, start + group), count - 1)
        try:
            part = session.run(asked, {name: array[rows] for name, array in entering.items()})
        except Exception as error:
            # As above.
            raise ModelImportError(f"onnxruntime cannot run {document.path}: {in_a_line(error)}") from error
        if any(np.ndim(array) == 0 or len(array) != group for array in part):
            raise ModelImportError(f"{document.path} gives an output without the batch as its first axis")
        parts.append(part)
    found = dict(zip(asked, (np.concatenate(arrays)[:count] for arrays in zip(*parts, strict=True)), strict=True))
    return [entering[name] if name in entering else found[name] for name in names]


def _as_onnx(array: Array, value: Value) -> Array:
    """Return `array` in the order of the axes in ONNX."""
    order = [value.axes.index(axis) + 1 for axis in range(1, value.rank)]
    return np.ascontiguousarray(array.transpose([0, *order]))


def as_keras(array: Array, value: Value) -> Array:
    """Return `array` of onnxruntime in the order of the axes in Keras."""
    if array.ndim != value.rank or array.shape[1:] != value.sizes:
        raise ModelImportError(f"onnxruntime gives the shape {array.shape[1:]}; Keras {value.sizes}")
    order = value.column_order()
    if order is not None:
        return array[:, order]
    missing = [axis for axis in range(1, value.rank) if axis not in value.axes]
    return array.transpose([0, *value.axes, *missing]).reshape(len(array), *value.shape)
