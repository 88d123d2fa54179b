"""`Graph` tells which node writes and which nodes read each tensor of an ONNX graph, and changes the graph.

The code that writes ONNX files and the code that reads them both use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import FpgaPruneError, shown
from fpgaprune.files.documents import PARSER_ERRORS, in_a_line
from fpgaprune.files.missing_file import does_not_exist
from fpgaprune.files.whole_files import storage_error

if TYPE_CHECKING:
    import onnx

# onnx writes newer formats than onnxruntime reads; every onnxruntime since 1.18 reads this one.
IR_VERSION = 10
# The key in a file's metadata under which `export_onnx` describes the initialiser of each weight.
LAYOUT_KEY = "fpgaprune.layout"


def read_onnx(path: Path, problem: type[FpgaPruneError]) -> onnx.ModelProto:
    """Return the model in the ONNX file at `path`, with all its constants; no other file is read.

    Raises:
        problem: the file is missing, damaged, not ONNX, or refers to other files.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise problem(does_not_exist(path)) from error
    except OSError as error:
        raise problem(str(storage_error(error, path, "read"))) from error
    try:
        model = onnx.load_model_from_string(data)
        onnx.checker.check_model(model)
        for graph in _graphs(model.graph):
            _check_constants(graph)
    except (DecodeError, onnx.checker.ValidationError, *PARSER_ERRORS) as error:
        raise problem(f"{path} is not an ONNX file: {in_a_line(error)}; export it again") from error
    return model


def _graphs(graph: Any) -> Iterator[Any]:
    """Yield `graph` and the graphs inside its nodes."""
    yield graph
    for node in graph.node:
        for body in bodies(node):
            yield from _graphs(body)


def _check_constants(graph: Any) -> None:
    """Check that every constant of `graph` is in the file, with as many values as its shape says."""
    from onnx import TensorProto, numpy_helper

    inside = [entry.t for node in graph.node for entry in node.attribute if entry.HasField("t")]
    for tensor in (*graph.initializer, *inside):
        if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
            raise ValueError(f"its constant {shown(tensor.name)} lies in another file; save it in one file")
        numpy_helper.to_array(tensor)
    if graph.sparse_initializer:
        raise ValueError("it has sparse constants; save them dense")


class Graph:
    """A view of the graph `proto`; after a change of the graph, make a new view."""

    def __init__(self, proto: Any) -> None:
        self.proto = proto
        self.producers = {tensor: node for node in proto.node for tensor in node.output}
        self.outputs = {value.name for value in proto.output}
        self._readers: dict[str, list[Any]] = {}
        for node in proto.node:
            for tensor in dict.fromkeys(node.input):
                self._readers.setdefault(tensor, []).append(node)
        self._constants = {tensor.name: tensor for tensor in proto.initializer}
        self._values = {value.name: value for value in (*proto.input, *proto.output, *proto.value_info)}

    def readers(self, tensor: str) -> list[Any]:
        """Return the nodes that read `tensor`."""
        return self._readers.get(tensor, [])

    def only_reader(self, tensor: str) -> Any | None:
        """Return the node that reads `tensor`; None if several do, or if the tensor is an output of the graph."""
        readers = self.readers(tensor)
        return readers[0] if len(readers) == 1 and tensor not in self.outputs else None

    def constant(self, tensor: str) -> NDArray[Any] | None:
        """Return the values of `tensor`; None if it is computed."""
        from onnx import numpy_helper

        return numpy_helper.to_array(self._constants[tensor]) if tensor in self._constants else None

    def shape(self, tensor: str) -> tuple[int, ...] | None:
        """Return the sizes of all axes of `tensor`; None if one is unknown."""
        if tensor in self._constants:
            return tuple(self._constants[tensor].dims)
        kind = self._values[tensor].type.tensor_type if tensor in self._values else None
        if kind is None or not kind.HasField("shape"):
            return None
        if not all(axis.HasField("dim_value") for axis in kind.shape.dim):
            return None
        return tuple(axis.dim_value for axis in kind.shape.dim)

    def add_constant(self, name: str, values: NDArray[Any]) -> str:
        """Add a constant and return its name: `name`, with a number if that is taken."""
        from onnx import numpy_helper

        taken = self._constants.keys() | self._values.keys() | self.producers.keys()
        free = next(n for n in chain([name], (f"{name}_{i}" for i in count())) if n not in taken)
        tensor = numpy_helper.from_array(np.ascontiguousarray(values), free)
        self.proto.initializer.append(tensor)
        self._constants[free] = tensor
        return free

    def drop(self, node: Any) -> None:
        """Remove `node`, whose output equals its first input."""
        source, tensor = node.input[0], node.output[0]
        self.proto.node.remove(node)
        # An output of the graph keeps its name.
        old, new = (source, tensor) if tensor in self.outputs else (tensor, source)
        for other in self.proto.node:
            other.input[:] = [new if name == old else name for name in other.input]
            other.output[:] = [new if name == old else name for name in other.output]
        self.sweep()

    def sweep(self) -> None:
        """Remove the constants that nothing reads."""
        read = {tensor for node in self.proto.node for tensor in node.input} | self.outputs
        replace_entries(self.proto.initializer, (t for t in self.proto.initializer if t.name in read))


def replace_entries(field: Any, entries: Iterable[Any]) -> None:
    """Replace all entries of the repeated `field` of a message; `entries` may be some of its own in another order."""
    kept = [type(entry).FromString(entry.SerializeToString()) for entry in entries]
    del field[:]
    field.extend(kept)


def attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of `node` by name."""
    from onnx import helper

    return {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}


def set_attribute(node: Any, name: str, value: Any) -> None:
    """Set the attribute `name` of `node` to `value`; None removes it."""
    from onnx import helper

    kept = [entry for entry in node.attribute if entry.name != name]
    replace_entries(node.attribute, kept if value is None else [*kept, helper.make_attribute(name, value)])


def bodies(node: Any) -> list[Any]:
    """Return the graphs inside `node`, such as the body of a loop."""
    return [graph for entry in node.attribute for graph in (*([entry.g] if entry.HasField("g") else []), *entry.graphs)]
