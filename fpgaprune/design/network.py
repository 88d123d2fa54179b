"""`Design`: a fixed-point network as plain data, with no Keras and no hls4ml in it.

Everything on the hardware side (emulation, estimates, Verilog, reports) reads only this. A design
is saved as `NAME.json` (structure and types) beside `NAME.npz` (raw integer weights).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design.form import Roles, check_design_form, operation_to_json, read_operation
from fpgaprune.design.operations import Convolution, Operation, Unknown, kind_of
from fpgaprune.errors import DesignError, shown
from fpgaprune.files import read_json, read_npz, write_bytes, write_npz
from fpgaprune.values import FixedType, Summarised, Summary

FORMAT = 5
_ANEW = "make it anew with this fpgaprune"
IO_TYPES = ("io_parallel", "io_stream")


@dataclass(frozen=True)
class LayerSpec:
    """One layer of a `Design`.

    Attributes:
        name: unique in the design.
        inputs: names of the layers whose outputs this one reads, in order.
        output_shape: without the batch axis, channels last.
        types: by role: `result`, `weight`, `bias`, `accum`, `scale`, `table`, `exp_table`, `inv_table`, `inv_inp`, ...
        weights: raw integers by role (`weight`, `bias`, `scale`), value = raw * 2 ** -types[role].fraction;
            a convolution's `weight` is (KH, KW, C_in, C_out), (K, C_in, C_out) in 1-D; a Dense's is (N_in, N_out).
        sources: for each weight role, the Keras weight path that it came from, as `{"weight": "conv2/kernel"}`.
        operation: what it computes, with all that this takes besides types and weights.
        reuse_factor: times one multiplier is used per output position. It is here, and not in a plan of HLS projects,
            because the order of sums (so bits), prices, layouts and the shared multipliers of our Verilog follow it.
        strategy: one of `STRATEGIES`, or None where a layer has no multiplications; here for the same reason.
        project_name: what the layer is called in the files of its HLS project, which allows fewer names than Keras.
            It is here because certification, too, finds the weights of a written project by it, and the name alone does
            not tell it: it depends on the names of all layers of the model, of which a design may lack some.
        model_shape: the shape in which the model takes this input or gives this output, where hardware has another.
    """

    name: str
    inputs: tuple[str, ...]
    output_shape: tuple[int, ...]
    types: Mapping[str, FixedType]
    weights: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    operation: Operation = field(default_factory=Unknown)
    reuse_factor: int = 1
    strategy: str | None = None
    project_name: str = ""
    model_shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.project_name:
            object.__setattr__(self, "project_name", self.name)

    @property
    def kind(self) -> str:
        """What people call such a layer, as `Conv2D`."""
        return kind_of(self.operation, len(self.output_shape))

    @property
    def is_depthwise(self) -> bool:
        """Whether it is a convolution with a kernel of its own for each channel."""
        return isinstance(self.operation, Convolution) and self.operation.depthwise

    @property
    def phases(self) -> tuple[int, ...] | None:
        """Strides of the transposed convolution that it computes; None for any other layer."""
        return self.operation.phases if isinstance(self.operation, Convolution) else None

    @property
    def output_axis(self) -> int:
        """The axis of its weights that numbers the outputs."""
        return -2 if self.is_depthwise else -1


@dataclass(frozen=True, repr=False)
class Design(Summarised):
    """A whole fixed-point network, layers in execution order.

    How a layer computes stands in its operation alone: after a change of `io_type`, `backend`, or a layer's strategy,
    `fpgaprune.backends.as_built` writes there what the backend then makes of it.

    Attributes:
        name: project name, a C identifier.
        layers: `LayerSpec` in topological order, inputs first.
        outputs: names of the layers whose results leave the design.
        io_type: `io_parallel` or `io_stream`.
        backend: the backend that the design was made for, as `Vitis`.
        clock_ns: clock period asked of the tool, in ns.
        part: the full order number asked of the tool, or None.

    Examples:
        >>> design = fp.make_design(model, target, x)
        >>> [layer.name for layer in design.layers]
        ['in', 'conv1', 'conv1_relu', 'flatten', 'dense', 'dense_softmax']
        >>> _ = design.save("design.json")
        >>> fp.Design.load("design.json").outputs
        ('dense_softmax',)
    """

    name: str
    layers: tuple[LayerSpec, ...]
    outputs: tuple[str, ...]
    io_type: str = "io_stream"
    backend: str = "Vitis"
    clock_ns: float = 5.0
    part: str | None = None

    def __post_init__(self) -> None:
        if self.io_type not in IO_TYPES:
            raise DesignError(f"design {self.name!r} has io_type {self.io_type!r}; wanted one of {', '.join(IO_TYPES)}")
        if not self.clock_ns > 0:
            raise DesignError(f"design {self.name!r} has a clock period of {self.clock_ns} ns; wanted more than 0")
        known: set[str] = set()
        for layer in self.layers:
            if layer.name in known:
                raise DesignError(f"design {self.name!r} has two layers named {layer.name!r}; names must be unique")
            for source in layer.inputs:
                if source not in known:
                    raise DesignError(f"layer {layer.name!r} reads {source!r}, which no earlier layer makes")
            for role in layer.weights:
                if role not in layer.types:
                    raise DesignError(f"layer {layer.name!r} has weights {role!r} but no type for them")
            known.add(layer.name)
        for output in self.outputs:
            if output not in known:
                raise DesignError(f"design {self.name!r} has output {output!r}, which no layer makes")

    def __getitem__(self, name: str) -> LayerSpec:
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise DesignError(
            f"design {self.name!r} has no layer {name!r}; it has {', '.join(x.name for x in self.layers)}"
        )

    def _summary(self) -> Summary:
        rows = []
        for layer in self.layers:
            weights = [raw for role, raw in layer.weights.items() if role != "bias"]
            count, zeros = sum(raw.size for raw in weights), sum(int((raw == 0).sum()) for raw in weights)
            shape, result = " × ".join(map(str, layer.output_shape)), str(layer.types["result"])
            rows.append((layer.name, layer.kind, shape, result, *(f"{n:,}" if weights else "" for n in (count, zeros))))
        headings = ("layer", "kind", "output", "result", "weights", "zeros")
        return Summary(f"Design: {self.name}, {len(rows)} layers", headings, rows)

    def given_shape(self, name: str) -> tuple[int, ...]:
        """Return one sample's shape of input or output `name` in the model: hardware may lack a reshaping beside it."""
        layer = self[name]
        return layer.output_shape if layer.model_shape is None else layer.model_shape

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the whole design to `path` (ending in .json) and the .npz beside it; equal designs give equal bytes."""
        target = Path(path)
        arrays = {
            f"{layer.name}/{role}": np.ascontiguousarray(raw, dtype=np.int64)
            for layer in self.layers
            for role, raw in layer.weights.items()
        }
        # The JSON is written last: while it is missing or old, the pair is not yet a new design.
        write_npz(target.with_suffix(".npz"), arrays)
        write_bytes(target, (json.dumps(self.to_json(), indent=1, sort_keys=True) + "\n").encode())
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Design:
        """Return the design that `path` (.json) and the .npz beside it hold.

        Raises:
            DesignError: a file is missing, or is not a design of this format.
        """
        source = Path(path)
        arrays_path = source.with_suffix(".npz")
        try:
            document = read_json(source, DesignError, "a design", _ANEW)
            arrays = read_npz(arrays_path)
        except FileNotFoundError as error:
            raise DesignError(f"no design at {source}: {error.filename} is missing") from error
        except DesignError:
            raise
        except ValueError as error:
            raise DesignError(f"{source} is not a design: {arrays_path.name} is {error}; {_ANEW}") from error
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise DesignError(f"{source} is not a design of format {FORMAT}; {_ANEW}")
        try:
            check_design_form(document, arrays)
            return cls._from_json(document, arrays)
        except DesignError as error:
            raise DesignError(f"{source}: {error}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise DesignError(f"{source} is not a whole design: {shown(error)} is missing or malformed") from error

    def to_json(self) -> dict[str, Any]:
        """Return the structure without the integers, as JSON data."""
        layers = [
            {
                "name": layer.name,
                "inputs": list(layer.inputs),
                "output_shape": list(layer.output_shape),
                "types": {role: str(t) for role, t in layer.types.items()},
                "weights": sorted(layer.weights),
                "sources": dict(layer.sources),
                "operation": operation_to_json(layer.operation),
                "reuse_factor": layer.reuse_factor,
                "strategy": layer.strategy,
                "project_name": layer.project_name,
                "model_shape": None if layer.model_shape is None else list(layer.model_shape),
            }
            for layer in self.layers
        ]
        head = {key: getattr(self, key) for key in ("name", "io_type", "backend", "clock_ns", "part")}
        return {"format": FORMAT, **head, "outputs": list(self.outputs), "layers": layers}

    @classmethod
    def _from_json(cls, document: dict[str, Any], arrays: Mapping[str, NDArray[np.int64]]) -> Design:
        layers = tuple(
            LayerSpec(
                name=row["name"],
                inputs=tuple(row["inputs"]),
                output_shape=tuple(row["output_shape"]),
                types=Roles(row["name"], {role: FixedType.parse(text) for role, text in row["types"].items()}),
                weights={role: arrays[f"{row['name']}/{role}"] for role in row["weights"]},
                sources=row["sources"],
                operation=read_operation(row["operation"]),
                reuse_factor=row["reuse_factor"],
                strategy=row["strategy"],
                project_name=row["project_name"],
                model_shape=None if row["model_shape"] is None else tuple(row["model_shape"]),
            )
            for row in document["layers"]
        )
        head = {key: document[key] for key in ("name", "io_type", "backend", "clock_ns", "part")}
        return cls(layers=layers, outputs=tuple(document["outputs"]), **head)
