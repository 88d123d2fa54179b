"""Plans and names the layers of Keras for a whole ONNX graph, node by node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fpgaprune.errors import ModelImportError, shown
from fpgaprune.files import PARSER_ERRORS, attributes, in_a_line
from fpgaprune.frontends.onnx.constants import BATCH, FOLDED, folded
from fpgaprune.frontends.onnx.document import Document
from fpgaprune.frontends.onnx.layer_plan import LayerPlan, largest
from fpgaprune.frontends.onnx.node import Given, NodeStep
from fpgaprune.frontends.onnx.operators import OPERATORS
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.qonnx import is_quantiser
from fpgaprune.frontends.onnx.value import Value, channels_last

if TYPE_CHECKING:
    import onnx

_MOST_ELEMENTS = 1 << 26
# These take (N, C, ...): what leads to them has its channels last in Keras.
_OF_IMAGES = frozenset(
    {
        *("Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "BatchNormalization", "Resize"),
        *("Upsample", "PRelu", "ConvTranspose", "DepthToSpace", "SpaceToDepth"),
    }
)
# These reduce an image over its pixels, or a sequence over its steps.
_OF_PIXELS = frozenset({"ReduceMean", "ReduceMax", "ReduceSum"})
# Where these saturate, two networks that differ give the same.
_FLATTENS = frozenset({"Softmax", "Sigmoid", "Tanh", "HardSigmoid"})
_ORDERS_ELEMENTS = frozenset({"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "MatMul", "Gemm", "Shape"})


def plan_network(document: Document) -> LayerPlan:
    """Return the layers that compute what the graph of `document` does.

    Raises:
        ModelImportError: a node cannot become layers; the message names it.
    """
    network = _Network(document)
    for name, shape in document.inputs.items():
        network.enter(name, shape)
    for node in document.nodes:
        try:
            # Numbers that overflow do not come through the comparison with onnxruntime.
            with np.errstate(all="ignore"):
                network.take(node)
        except PARSER_ERRORS as error:
            if isinstance(error, ModelImportError):
                raise
            raise ModelImportError(
                f"{document.path}: node {shown(node.name)} ({node.op_type}) has settings of the wrong kind, or that "
                f"contradict each other: {in_a_line(error)}"
            ) from error
        if largest(network.plan) > _MOST_ELEMENTS:
            raise ModelImportError(
                f"{document.path}: node {shown(node.name)} ({node.op_type}) gives a tensor of more than "
                f"{_MOST_ELEMENTS:,} numbers a sample"
            )
    return network.ended()


class _Network:
    """The plan as it grows, and what each tensor of the graph is in it."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.plan = LayerPlan()
        self.tensors: dict[str, Given] = {"": None}
        self.tensors |= {name: Parameter.of_file(name, array) for name, array in document.constants.items()}
        self.readers = Counter(name for node in document.nodes for name in node.input)
        self.readers.update(document.outputs)
        self.given_by: dict[str, list[str]] = {}

    def enter(self, name: str, shape: tuple[int | None, ...]) -> None:
        """Add the input `name`."""
        sizes = tuple(int(size or 0) for size in shape[1:])
        if not sizes:
            raise ModelImportError(
                f"{self.document.path}: input {shown(name)} has one axis only; wanted the batch and at least one more"
            )
        rank = len(shape)
        axes = channels_last(rank) if rank in (3, 4) and self._is_image(name, rank) else tuple(range(1, rank))
        self._note(name, self.plan.enter(input_name(name), sizes, axes))

    def take(self, node: onnx.NodeProto) -> None:
        """Add the layers of `node`, or compute it."""
        given = tuple(self._tensor(node, name) for name in node.input)
        if node.op_type == "Shape" and isinstance(given[0], Value):
            start, end = (attributes(node).get(key, default) for key, default in (("start", 0), ("end", None)))
            sizes = list(given[0].sizes)
            sizes.insert(given[0].batch, BATCH)
            self.tensors[node.output[0]] = Parameter(np.array(sizes, np.int64)[start:end])
            return
        step = self._step(node, given)
        if not any(isinstance(one, Value) for one in given):
            self._fold(node, given, step)
            return
        if node.op_type not in OPERATORS:
            step.refuse(
                "reads a computed tensor; fpgaprune takes this operator for constants only: leave it out, or try the "
                "other exporter, dynamo=False"
            )
        found = OPERATORS[node.op_type](step)
        for name, value in zip(node.output, found if isinstance(found, tuple) else (found,), strict=False):
            self._note(name, value)

    def ended(self) -> LayerPlan:
        """Return the plan with its outputs.

        Raises:
            ModelImportError: an output is a constant.
        """
        for name in self.document.outputs:
            value = self.tensors.get(name)
            if not isinstance(value, Value):
                raise ModelImportError(f"{self.document.path}: output {shown(name)} does not depend on the input")
            if value.batch:
                raise ModelImportError(
                    f"{self.document.path}: output {shown(name)} has its batch as axis {value.batch}; wanted it first: "
                    "in PyTorch build recurrent layers with batch_first=True"
                )
            value = self.plan.unflattened(value)
            if value.layer in {entry.layer for entry in self.plan.inputs}:
                value = self.plan.each("Activation", "output", value, {"activation": "linear"}, nonnegative=False)
            self.plan.outputs.append(value)
        self.plan.watched = dict(self._before_last_functions())
        return self.plan

    def _before_last_functions(self) -> Iterator[tuple[str, Value]]:
        """Yield what the last functions of the network read, if no output of the network says it already."""
        ends = {*self.document.inputs, *self.document.outputs}
        for node in self.document.nodes:
            if node.op_type in _FLATTENS and set(node.output) & ends and node.input[0] not in ends:
                value = self.tensors[node.input[0]]
                if isinstance(value, Value) and value.flat is None and not value.batch:
                    yield node.input[0], value

    def _step(self, node: onnx.NodeProto, given: tuple[Given, ...]) -> NodeStep:
        constants = [one.name for one in given if isinstance(one, Parameter) and one.name]
        module = module_name(node)
        return NodeStep(
            self.plan,
            str(self.document.path),
            node.name or (node.output[0] if node.output else ""),
            node.op_type,
            attributes(node),
            given,
            tuple(node.input),
            tuple(node.output),
            layer_name(node.name, node.op_type, constants, module),
            module,
            self.document.opset,
            tuple(bool(self.readers[name]) for name in node.output),
            self._is_shared,
            self.document.batch,
        )

    def _is_shared(self, layer: str) -> bool:
        return any(self.readers[name] != 1 for name in self.given_by.get(layer, []))

    def _fold(self, node: onnx.NodeProto, given: tuple[Given, ...], step: NodeStep) -> None:
        if node.op_type not in FOLDED and not is_quantiser(node):
            step.refuse("reads constants only, and is none of the operators that are computed in advance")
        try:
            results = folded(node, [one for one in given if not isinstance(one, Value)], self.document.opset)
        except ValueError as error:
            step.refuse(str(error))
        for name, result in zip((name for name in node.output if name), results, strict=False):
            self.tensors[name] = result
            if node.op_type == "Identity" and _PARAMETER.match(name):
                # PyTorch stores equal parameters once: the mean of a new BatchNorm is its bias.
                self.tensors[name] = replace(Parameter.of_file(name, result.values), of_module=(name,))

    def _tensor(self, node: onnx.NodeProto, name: str) -> Given:
        if name not in self.tensors:
            raise ModelImportError(
                f"{self.document.path}: node {shown(node.name)} ({node.op_type}) reads {shown(name)}, which no node "
                "gives"
            )
        return self.tensors[name]

    def _note(self, name: str, value: Value) -> None:
        self.tensors[name] = value
        self.given_by.setdefault(value.layer, []).append(name)

    def _is_image(self, name: str, rank: int) -> bool:
        """Return whether the first node that asks for an order of the axes of `name` asks for (N, C, ...)."""
        reached = {name}
        for node in self.document.nodes:
            if not reached & set(node.input):
                continue
            if node.op_type in _OF_IMAGES or (node.op_type in _OF_PIXELS and rank == 4):
                return True
            if node.op_type in _ORDERS_ELEMENTS:
                return False
            reached |= set(node.output)
        return False


_SCOPES = "pkg.torch.onnx.name_scopes"
_PARAMETER = re.compile(r"^(?P<layer>.+)\.(?P<kind>weight|bias|running_mean|running_var)$")
_OPERATOR = re.compile(r"^[A-Z][A-Za-z0-9]*(?P<number>_\d+)?$")
_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 60


def module_name(node: onnx.NodeProto) -> str:
    """Return the module of PyTorch that `node` is a part of, by what either exporter notes; "" if it is not known."""
    if node.name.startswith("/"):
        return re.sub(r"_\d+$", "", _of_torch([part for part in node.name.split("/")[:-1] if part]))
    scopes = next((entry.value for entry in node.metadata_props if entry.key == _SCOPES), "")
    # The names of all modules around it, and of the operator.
    found = re.findall(r"'([\w.]*)'", scopes)
    return found[-2] if len(found) > 1 else ""


def layer_name(node: str, operator: str, constants: Sequence[str], module: str = "") -> str:
    """Return the name of the layer that the node `node` becomes.

    A parameter `features.0.weight` names its layer; else the node does: `/features/features.1/Relu` is `features.1`.
    A layer of Keras is named as it was: `sequential/conv2d/Conv2D` is `conv2d`.

    Args:
        node: name of the node; may be empty.
        operator: its operator.
        constants: names of the constants that it reads.
        module: the module of PyTorch that it is a part of, if that is known.
    """
    for constant in constants:
        found = _PARAMETER.match(constant.rpartition("::")[2] if "::" in constant else constant)
        if found is not None:
            return _allowed(found["layer"])
    parts = [part for part in node.split("/") if part and "PartitionedCall" not in part]
    name = ""
    if node.startswith("/"):
        name = _of_torch(parts)
    elif module:
        name = module
    elif len(parts) > 1:
        name = parts[-2] if _OPERATOR.match(parts[-1]) else parts[-1]
    elif parts and not _OPERATOR.match(parts[0]):
        name = parts[0]
    return _allowed(name) if name else operator.lower()


def _of_torch(parts: Sequence[str]) -> str:
    """Return a module's name: each part of a path repeats those of the modules around it, or is an attribute's name."""
    name, number = "", ""
    for at, part in enumerate(parts):
        found = _OPERATOR.match(part) if at == len(parts) - 1 else None
        if found is not None:
            number = found["number"] or ""
        elif not name or part.startswith(f"{name}."):
            name = part
        elif not name.endswith(f".{part}"):
            last = part.rpartition(".")[0]
            name = f"{name.removesuffix(last).rstrip('.')}.{part}" if last and name.endswith(last) else f"{name}.{part}"
    return f"{name}{number}" if name else ""


def input_name(name: str) -> str:
    """Return the name of an input in Keras."""
    return _allowed(name.removesuffix(":0")) or "input"


def _allowed(name: str) -> str:
    plain = _FOREIGN.sub("_", name).strip("_.-")
    return plain[:_LONGEST] if re.match(r"[A-Za-z0-9]", plain) else f"layer_{plain}"[:_LONGEST]
