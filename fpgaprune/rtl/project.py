"""`VerilogProject`: the Verilog of a design as a folder of files with a list of what is in it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from fpgaprune.errors import RtlError
from fpgaprune.files import read_json, write_bytes
from fpgaprune.rtl.bus import Bus
from fpgaprune.values import FixedType, Summarised, Summary

FORMAT = 1
LIST = "project.json"


@dataclass(frozen=True)
class RtlPort:
    """One AXI4-Stream of the top module.

    Attributes:
        layer: the layer of the design whose input or output the stream carries.
        prefix: of the port names, as `s_axis` in `s_axis_tdata`.
        shape: of one sample, channels last.
        beats: per sample.
        lanes: values in one beat, value 0 in the lowest bits.
        type: of each value.
    """

    layer: str
    prefix: str
    shape: tuple[int, ...]
    beats: int
    lanes: int
    type: FixedType

    @property
    def width_bits(self) -> int:
        """Bits of `tdata`."""
        return self.lanes * self.type.width

    @property
    def words(self) -> int:
        """Words of 32 bits that hold `tdata`."""
        return -(-self.width_bits // 32)


@dataclass(frozen=True)
class RtlLayer:
    """One layer of a design as a Verilog module.

    Attributes:
        layer: name in the design.
        module: name in Verilog.
        files: all that the module needs, relative to the project's folder.
        shapes: as `10x10x8 -> 8x8x16`.
        types: by role.
        kept, dropped: multiplications by a constant that the module computes, and those that a zero weight saved;
            None where the layer multiplies by no constants.
        note: remarks on how it was made; empty if there are none.
        joined: layer of the design -> the layers behind it that the same datapath computes.
        reads: the inputs of its sums; None where it makes none at once.
        leaves: what leaves it; None where nothing is known of it.
    """

    layer: str
    module: str
    files: tuple[str, ...]
    shapes: str
    types: dict[str, str]
    kept: int | None = None
    dropped: int | None = None
    note: str = ""
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reads: Bus | None = None
    leaves: Bus | None = None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the layer of a row of JSON."""
        joined = {name: tuple(names) for name, names in row.get("joined", {}).items()}
        buses = {name: Bus.of_row(row[name]) for name in ("reads", "leaves") if row.get(name)}
        return cls(**{**row, "files": tuple(row["files"]), "joined": joined, **buses})


@dataclass(frozen=True)
class RtlLoads:
    """The stream through which the weights of scheduled layers are loaded.

    Attributes:
        port: the stream; one beat is a weight or a bias.
        layers: those whose weights and biases it carries, in order.
        forms: layer of the design -> digest of all that a load does not change.
    """

    port: RtlPort
    layers: tuple[str, ...]
    forms: Mapping[str, str]


@dataclass(frozen=True, repr=False)
class VerilogProject(Summarised):
    """A design written as Verilog-2001 below `path`, with `project.json` naming every part.

    Attributes:
        path: the folder.
        name: of the design.
        top: the top module.
        clock_ns: clock period that the design asks for.
        files: every Verilog file, relative to `path`, in an order that compiles.
        layers: every layer that has a module of its own, in order of execution.
        inputs, outputs: the streams of the top module.
        loads: one more stream in, for weights; None where they cannot be loaded.
    """

    path: Path
    name: str
    top: str
    clock_ns: float
    files: tuple[str, ...]
    layers: tuple[RtlLayer, ...]
    inputs: tuple[RtlPort, ...]
    outputs: tuple[RtlPort, ...]
    loads: RtlLoads | None = None

    def _summary(self) -> Summary:
        rows = [(layer.layer, layer.module, layer.shapes) for layer in self.layers]
        title = f"VerilogProject: top module {self.top} and {len(rows)} layers in {self.path}"
        streams = ", ".join(f"{port.prefix} ({port.layer})" for port in (*self.inputs, *self.outputs))
        return Summary(title, ("layer", "module", "values"), rows, [f"streams: {streams}"])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the project that the folder `path` (or its `project.json`) holds.

        Raises:
            RtlError: there is none, or not of this format.
        """
        folder = Path(path)
        folder = folder.parent if folder.name == LIST else folder
        source = folder / LIST
        try:
            document = read_json(source, RtlError, "a Verilog project", "write it anew with to_verilog")
        except FileNotFoundError:
            raise RtlError(f"no Verilog project at {folder}: {LIST} is missing; write it with to_verilog") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise RtlError(f"{source} is not a Verilog project of format {FORMAT}; write it anew with this fpgaprune")
        try:
            return cls(
                path=folder,
                name=document["name"],
                top=document["top"],
                clock_ns=float(document["clock_ns"]),
                files=tuple(document["files"]),
                layers=tuple(RtlLayer.of_row(row) for row in document["layers"]),
                inputs=tuple(_port(row) for row in document["inputs"]),
                outputs=tuple(_port(row) for row in document["outputs"]),
                loads=_loads(document["loads"]) if "loads" in document else None,
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RtlError(f"{source} is not a whole Verilog project: {error!r} is missing or malformed") from error

    def write(self, texts: Mapping[str, str]) -> None:
        """Write `texts`, the Verilog by path, and the list of the project; Verilog of an earlier design goes."""
        for name, text in sorted(texts.items()):
            write_bytes(self.path / name, text.encode())
        # A tool that takes the whole folder would read a file that an earlier design left.
        for folder in {(self.path / name).parent for name in texts}:
            for stale in folder.glob("*.v"):
                if stale.relative_to(self.path).as_posix() not in texts:
                    stale.unlink()
        self.save()

    def save(self) -> Path:
        """List the project in `project.json` in its folder; equal projects give equal bytes."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "name": self.name,
            "top": self.top,
            "clock_ns": self.clock_ns,
            "files": list(self.files),
            "layers": [asdict(layer) for layer in self.layers],
            "inputs": [_row(port) for port in self.inputs],
            "outputs": [_row(port) for port in self.outputs],
        }
        if self.loads is not None:
            document["loads"] = {**asdict(self.loads), "port": _row(self.loads.port)}
        return write_bytes(self.path / LIST, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode())


def _row(port: RtlPort) -> dict[str, Any]:
    return {**asdict(port), "type": str(port.type)}


def _loads(row: dict[str, Any]) -> RtlLoads:
    return RtlLoads(_port(row["port"]), tuple(row["layers"]), row["forms"])


def _port(row: dict[str, Any]) -> RtlPort:
    return RtlPort(**{**row, "shape": tuple(row["shape"]), "type": FixedType.parse(row["type"])})
