"""Reads and checks an ONNX file before anything is computed, with its own functions put where they are called."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import ModelImportError, shown
from fpgaprune.files import IR_VERSION, PARSER_ERRORS, bodies, does_not_exist, in_a_line, storage_error
from fpgaprune.frontends.onnx.constants import FOLDED
from fpgaprune.frontends.onnx.operators import OPERATORS
from fpgaprune.frontends.onnx.patterns import joined
from fpgaprune.frontends.onnx.qonnx import is_quantiser, with_channels_first, without_quantisers
from fpgaprune.values import Array

if TYPE_CHECKING:
    import onnx

OLDEST, NEWEST = 6, 25
# An older file is brought to this opset by the converter of the package onnx.
_CONVERTED = 9
_MOST_BYTES = 1 << 31
_DOMAINS = ("", "ai.onnx")
# Operator to what a user can do instead.
_INSTEAD = {
    "LayerNormalization": "use nn.BatchNorm1d or nn.BatchNorm2d",
    "InstanceNormalization": "use nn.BatchNorm2d",
    "GroupNormalization": "use nn.BatchNorm2d",
    "QuantizeLinear": "export the network as it was before it was quantised",
    "DequantizeLinear": "export the network as it was before it was quantised",
    "If": "export the network without a condition: model.eval()",
    "Loop": "export the network without a loop; of a recurrent network made in Keras take the .keras file",
    "Scan": "export the network without a loop; of a recurrent network made in Keras take the .keras file",
    "LogSoftmax": "it comes in only where it gives an output of the network",
    "ArgMax": "export the network without its argmax",
    "TopK": "export the network without its choice of classes",
    "NonMaxSuppression": "export the network without its choice of boxes",
}


@dataclass(frozen=True)
class Document:
    """An ONNX file.

    Attributes:
        path: the file.
        model: what it holds, as onnx's `ModelProto`, with all its constants; for onnxruntime, too.
        nodes: the nodes on which the outputs depend, in an order in which they can be computed.
        constants: name to values of every constant that the file stores.
        inputs: name and shape of each input, with the batch first; None for a size that is not fixed.
        outputs: names of the outputs.
        opset: version of the operators.
        notes: what the network that comes in does not compute, a sentence each.
    """

    path: Path
    model: Any
    nodes: tuple[Any, ...]
    constants: dict[str, Array]
    inputs: dict[str, tuple[int | None, ...]]
    outputs: tuple[str, ...]
    opset: int
    notes: tuple[str, ...] = ()

    @property
    def is_quantised(self) -> bool:
        """Whether a node is a quantiser of QONNX, which onnxruntime does not know."""
        return any(is_quantiser(node) for node in self.model.graph.node)

    @property
    def batch(self) -> int | None:
        """The number of samples that the file fixes; None if any number is allowed."""
        return next((shape[0] for shape in self.inputs.values() if shape[0] is not None), None)


def read_document(path: Path) -> Document:
    """Return the ONNX file at `path`; constants may lie in other files of its folder.

    Raises:
        ModelImportError: the file is missing or damaged, refers to files elsewhere, or has an operator that does not
            come in.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ModelImportError(f"{path} is a folder or no file at all; wanted an ONNX file")
        if found.st_size >= _MOST_BYTES:
            raise ModelImportError(f"{path} takes {found.st_size:,} bytes; wanted {_MOST_BYTES:,} at most")
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ModelImportError(does_not_exist(path)) from error
    except OSError as error:
        raise ModelImportError(str(storage_error(error, path, "read"))) from error
    try:
        model = onnx.load_model_from_string(data)
        if not model.graph.node or not model.opset_import:
            raise ValueError("it has no nodes, or was cut short")
        _require_text(model)
        model = with_channels_first(model)
        notes = _leave_out_last_log_softmax(model.graph)
        _require_known(path, model)
        _opset(path, model)
        for tensor in _tensors(model):
            _take_in(tensor, path.parent)
        # Values that the exporter noted inside the graph may be stale, and are not needed.
        del model.graph.value_info[:]
        model = without_functions(model)
        model.ir_version = min(model.ir_version, IR_VERSION)
        onnx.checker.check_model(without_quantisers(model))
        if _opset(path, model) < _CONVERTED:
            model = onnx.version_converter.convert_version(model, _CONVERTED)
        constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        if model.graph.sparse_initializer:
            raise ValueError("it has sparse constants; save them dense")
    except (DecodeError, onnx.checker.ValidationError, *PARSER_ERRORS) as error:
        if isinstance(error, ModelImportError):
            raise
        raise ModelImportError(f"{path} is not a sound ONNX file: {in_a_line(error)}; export it again") from error
    outputs = tuple(value.name for value in model.graph.output)
    nodes = _needed(joined(model.graph), outputs)
    inputs = {value.name: _shape(path, value) for value in model.graph.input if value.name not in constants}
    if not inputs or not outputs:
        raise ModelImportError(f"{path} has no {'input' if not inputs else 'output'}; wanted a network")
    return Document(path, model, nodes, constants, inputs, outputs, _opset(path, model), notes)


def external_files(path: Path) -> tuple[Path, ...]:
    """Find the files beside the ONNX file at `path` in which it keeps constants; none if it is no such file."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(path.read_bytes())
        entries = [entry for tensor in _tensors(model) for entry in tensor.external_data if entry.key == "location"]
        names = sorted({entry.value for entry in entries})
        return tuple(path.parent / name for name in names if (path.parent / name).parent == path.parent)
    except (DecodeError, *PARSER_ERRORS):
        return ()


def _require_text(model: onnx.ModelProto) -> None:
    """Check that every name is text; of other bytes protobuf makes no text."""
    nodes = (*model.graph.node, *(node for function in model.functions for node in function.node))
    names = [name for node in nodes for name in (node.name, node.op_type, node.domain, *node.input, *node.output)]
    names += [one.name for one in (*model.graph.initializer, *model.graph.input, *model.graph.output)]
    names += [entry.name for node in nodes for entry in node.attribute]
    if not all(isinstance(name, str) for name in names):
        raise ValueError("a name in it is no text")


def _leave_out_last_log_softmax(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Make each output of `graph` that a LogSoftmax gives what the LogSoftmax reads, and say so."""
    given = {node.output[0]: node for node in graph.node if node.op_type == "LogSoftmax" and node.domain in _DOMAINS}
    notes = []
    for output in graph.output:
        node = given.get(output.name)
        if node is not None and not any(output.name in other.input for other in graph.node):
            notes.append(
                f"LogSoftmax {shown(node.name or output.name)} at the end is left out: the largest output stays the "
                "largest"
            )
            output.name = node.input[0]
            graph.node.remove(node)
    return tuple(notes)


def _require_known(path: Path, model: onnx.ModelProto) -> None:
    """Check that every operator of `model` comes in, or is computed from constants."""
    local = {(function.domain, function.name) for function in model.functions}
    for node in (*joined(model.graph), *(node for function in model.functions for node in function.node)):
        if (node.domain, node.op_type) in local:
            continue
        if is_quantiser(node):
            continue
        if node.domain not in _DOMAINS or node.op_type not in OPERATORS.keys() | FOLDED or bodies(node):
            kind = node.op_type if node.domain in _DOMAINS else f"{node.domain}.{node.op_type}"
            kind = kind if kind.isprintable() else shown(kind)
            instead = _INSTEAD.get(node.op_type, f"build it of {', '.join(sorted(OPERATORS))}")
            name = node.name or (node.output[0] if node.output else "")
            raise ModelImportError(
                f"{path}: node {shown(name)} is a {kind}, which fpgaprune does not take from ONNX: {instead}"
            )


def _opset(path: Path, model: onnx.ModelProto) -> int:
    versions = [entry.version for entry in model.opset_import if entry.domain in _DOMAINS]
    if len(versions) != 1 or not OLDEST <= versions[0] <= NEWEST:
        found = versions[0] if versions else "none"
        raise ModelImportError(
            f"{path} has opset {found}; wanted {OLDEST} to {NEWEST}: torch.onnx.export(..., opset_version=18)"
        )
    return int(versions[0])


def _tensors(model: onnx.ModelProto) -> Iterator[Any]:
    yield from model.graph.initializer
    nodes = (*model.graph.node, *(node for function in model.functions for node in function.node))
    for node in nodes:
        for entry in node.attribute:
            if entry.HasField("t"):
                yield entry.t
            yield from entry.tensors


def _take_in(tensor: onnx.TensorProto, folder: Path) -> None:
    """Put the values of `tensor`, which may lie in another file of `folder`, into it, and check their number."""
    from onnx import TensorProto, numpy_helper

    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        tensor.raw_data = _external(tensor, entries, folder)
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]
    numpy_helper.to_array(tensor)


def _external(tensor: onnx.TensorProto, entries: dict[str, str], folder: Path) -> bytes:
    name = entries.get("location", "")
    given = Path(name)
    if not name or given.is_absolute() or ".." in given.parts or len(given.parts) != 1 or "\\" in name:
        raise ValueError(f"its constant {shown(tensor.name)} lies in {shown(name)}; wanted a file in its own folder")
    file = folder / given
    try:
        found = file.lstat()
    except OSError as error:
        raise ValueError(f"its constant {shown(tensor.name)} lies in {shown(name)}, which is missing") from error
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"its constant {shown(tensor.name)} lies in {shown(name)}, which is a link or no file")
    offset = int(entries.get("offset", "0"))
    size = int(entries.get("length", found.st_size - offset))
    if offset < 0 or size < 0 or offset + size > found.st_size or size >= _MOST_BYTES:
        raise ValueError(
            f"its constant {shown(tensor.name)} takes {size:,} bytes from {offset:,} on; {shown(name)} has "
            f"{found.st_size:,}"
        )
    with file.open("rb") as opened:
        opened.seek(offset)
        return opened.read(size)


def _needed(nodes: Iterable[Any], outputs: Iterable[str]) -> tuple[Any, ...]:
    nodes = tuple(nodes)
    producers = {name: node for node in nodes for name in node.output if name}
    wanted, rest = set(), list(outputs)
    while rest:
        node = producers.get(rest.pop())
        if node is not None and id(node) not in wanted:
            wanted.add(id(node))
            rest += node.input
    return tuple(node for node in nodes if id(node) in wanted)


def _shape(path: Path, value: Any) -> tuple[int | None, ...]:
    from onnx import TensorProto

    kind = value.type.tensor_type
    where = f"{path}: input {shown(value.name)}"
    if not value.type.HasField("tensor_type") or kind.elem_type != TensorProto.FLOAT:
        name = TensorProto.DataType.Name(kind.elem_type) if value.type.HasField("tensor_type") else "no tensor"
        raise ModelImportError(f"{where} has type {name}; wanted FLOAT: export the network in float32")
    if not kind.HasField("shape") or not kind.shape.dim:
        raise ModelImportError(f"{where} has no axes; wanted the batch first")
    sizes = [axis.dim_value if axis.HasField("dim_value") else None for axis in kind.shape.dim]
    if any(size is None for size in sizes[1:]):
        raise ModelImportError(
            f"{where} has the shape {sizes}: only the batch may be dynamic; export it with a fixed size for each other "
            "axis"
        )
    if any(size is not None and size < 1 for size in sizes) or np.prod([float(s or 1) for s in sizes[1:]]) > 1 << 24:
        raise ModelImportError(f"{where} has the shape {sizes}; wanted at most {1 << 24:,} numbers a sample")
    # A batch of 0 stands for any number in files of old exporters.
    return tuple(sizes)


_MOST_NODES = 100_000
Name = tuple[str, str]


def without_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Inline the functions that `model` defines: each call becomes the nodes of its function.

    Raises:
        ValueError: a function calls itself, or the calls make too many nodes.
    """
    if not model.functions:
        return model
    import onnx.inliner

    bodies = {(function.domain, function.name): function.node for function in model.functions}
    sizes: dict[Name, int] = {}
    total = sum(_size(_name(node), bodies, sizes, ()) for node in model.graph.node)
    if total > _MOST_NODES:
        raise ValueError(f"its functions make {total:,} nodes; wanted {_MOST_NODES:,} at most")
    return onnx.inliner.inline_local_functions(model)


def _name(node: onnx.NodeProto) -> Name:
    return node.domain, node.op_type


def _size(name: Name, bodies: Mapping[Name, Any], sizes: dict[Name, int], around: tuple[Name, ...]) -> int:
    """Count the nodes that a node `name` becomes; `around` are the functions in which it stands."""
    if name not in bodies:
        return 1
    if name in around or len(around) > 100:
        raise ValueError(f"its function {name[1]!r} calls itself")
    if name not in sizes:
        sizes[name] = sum(_size(_name(node), bodies, sizes, (*around, name)) for node in bodies[name])
    return sizes[name]
