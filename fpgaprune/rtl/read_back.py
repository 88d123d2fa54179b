"""The weights that are in the Verilog, read back from its text: the last link of a certificate.

Every value of a datapath is a weighted sum of inputs until a bit is cut off or compared. The sums are followed
through the text of the files, adder by adder, so what is found here is what a synthesis tool will find.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fpgaprune.certificate import LinkCheck, check_link
from fpgaprune.design import Design, LayerSpec
from fpgaprune.errors import CertificateError
from fpgaprune.masks import MaskSet
from fpgaprune.rtl.project import RtlLayer, RtlProject

_WIRE = re.compile(r"^ *wire (?:signed )?\[\d+:0\] ([vy]\d+) = (.*);$", re.M)
_REGISTER = re.compile(r"^ *(v\d+_d\d+) <= (\w+);$", re.M)
_BUS = re.compile(r"input wire \[(\d+):0\] in_data")
_INPUT = re.compile(r"^(?:\$signed\(|\{1'b0, )in_data\[(?:\d+):(\d+)\][)}]$")
_NAME = re.compile(r"\bv\d+(?:_d\d+)?\b")
_TERM = r"\(?(?:\$signed\([^()]*\)|-?\d+'s[dh]?-?\w+|v\d+(?:_d\d+)?)(?: <<< \d+\))?"
_SUM = re.compile(rf"^({_TERM})(?: ([+-]) ({_TERM}))?$")
_PART = re.compile(r"^\(?(?:\$signed\()?(v\d+(?:_d\d+)?)(?:\[\d+:(\d+)\]\))?(?: <<< (\d+)\))?$")

# The link of a run's Verilog, which lies in the folder `rtl` there.
VERILOG_LINK = "rtl/verilog"

# A sum: coefficients of inputs (by place) and of values behind a cut (by name).
_Form = dict[int | str, int]


def check_verilog(project: RtlProject, design: Design, masks: MaskSet) -> LinkCheck:
    """The link of a project's Verilog: no locked weight's product is in it.

    Raises:
        CertificateError: a locked weight of several axes belongs to no layer whose products can be read back.
    """
    arrays: dict[str, NDArray[np.int64]] = {}
    reasons: dict[str, str] = {}
    modules = {layer.layer: layer for layer in project.layers}
    for layer in design.layers:
        for role, path in layer.sources.items():
            if path not in masks:
                continue
            if role != "weight":
                reasons[path] = "added once for each output, not multiplied"
                continue
            if layer.name not in modules or not _readable(modules[layer.name]):
                raise CertificateError(
                    f"weight {path!r} is locked, and layer {layer.name!r} keeps its weights in memory, where zeros are "
                    "multiplied as well: make its products at once (fold 1)"
                )
            arrays[path] = read_weights(project, layer)
    missing = [path for path in masks if path not in arrays and path not in reasons]
    for path in missing:
        if masks[path].ndim > 1:
            raise CertificateError(
                f"{project.path.name}: weight {path!r} is locked but belongs to no layer of {design.name!r}"
            )
        reasons[path] = "merged into another layer's constants"
    return check_link(f"{project.path.name}/verilog", arrays, masks, reasons)


def read_weights(project: RtlProject, layer: LayerSpec) -> NDArray[np.int64]:
    """The raw weights of a layer as its Verilog has them, each output's times a power of two, in the design's shape.

    Raises:
        CertificateError: the layer has no Verilog of its own, or not of this form.
    """
    row = next((item for item in project.layers if item.layer == layer.name), None)
    if row is None or not _readable(row):
        raise CertificateError(f"layer {layer.name!r} has no products in {project.path} that can be read back")
    datapath = _Datapath.read(project, row)
    shape = layer.weights["weight"].shape
    if layer.kind.startswith("Depthwise"):
        channels = layer.output_shape[-1]
        taps = int(np.prod(shape)) // channels
        matrix = datapath.matrix(taps * channels, channels).reshape(taps, channels, channels)
        found = np.stack([matrix[:, channel, channel] for channel in range(channels)], axis=-1)
        # A channel reads no other channel's taps.
        if np.count_nonzero(matrix) != np.count_nonzero(found):
            raise CertificateError(f"layer {layer.name!r}: a channel of the Verilog reads another one's values")
        return found.reshape(shape)
    outputs = shape[-1]
    return datapath.matrix(int(np.prod(shape)) // outputs, outputs).reshape(shape)


def _readable(layer: RtlLayer) -> bool:
    return any(name.endswith(f"/{layer.module}_sums.v") for name in layer.files)


@dataclass
class _Datapath:
    """The lines of a datapath, from all of its files."""

    bits: int
    wires: Mapping[str, str]
    forms: dict[str, _Form] = field(default_factory=dict)

    @classmethod
    def read(cls, project: RtlProject, layer: RtlLayer) -> _Datapath:
        own = f"/{layer.module}_sums"
        names = [name for name in layer.files if name.endswith(f"{own}.v") or f"{own}_part" in name]
        try:
            texts = [(project.path / name).read_text() for name in names]
        except FileNotFoundError as error:
            raise CertificateError(f"{project.path}: {error.filename} is gone; write the Verilog again") from error
        bus = next(
            (found for text in texts if f"module {layer.module}_sums " in text for found in _BUS.findall(text)), None
        )
        if bus is None:
            raise CertificateError(f"{project.path}: the datapath of layer {layer.layer!r} has no input bus")
        wires: dict[str, str] = {}
        for text in texts:
            wires.update(_WIRE.findall(text))
            wires.update(_REGISTER.findall(text))
        return cls(int(bus) + 1, wires)

    def matrix(self, inputs: int, outputs: int) -> NDArray[np.int64]:
        """The coefficient of each input in each output, (inputs, outputs)."""
        if self.bits % inputs:
            raise CertificateError(f"a bus of {self.bits} bits does not carry {inputs} values")
        width = self.bits // inputs
        found = np.zeros((inputs, outputs), np.int64)
        for output in range(outputs):
            for form in self._cone(f"y{output}", width):
                for place, coefficient in form.items():
                    if isinstance(place, int) and coefficient:
                        found[place, output] = coefficient
        return found

    def _cone(self, output: str, width: int) -> Iterator[_Form]:
        """Every sum that `output` depends on, followed to its inputs or to the cuts before it."""
        if output not in self.wires:
            raise CertificateError(f"the Verilog has no output {output}")
        stack = _NAME.findall(self.wires[output])
        seen: set[str] = set()
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            form = self._form(name, width)
            yield form
            for part in form:
                if isinstance(part, str):
                    stack.extend(_NAME.findall(self.wires[part]))

    def _form(self, name: str, width: int) -> _Form:
        """The sum that `name` is; operands come first, so that no recursion goes deep."""
        stack = [name]
        while stack:
            top = stack[-1]
            text = self.wires.get(top)
            if text is None:
                raise CertificateError(f"the Verilog reads {top}, which nothing drives")
            terms = None if _INPUT.match(text) else _terms(text)
            waiting = [operand for operand, _ in terms or [] if operand not in self.forms]
            if waiting:
                stack.extend(waiting)
                continue
            self.forms[top] = self._made(top, text, terms, width)
            stack.pop()
        return self.forms[name]

    def _made(self, name: str, text: str, terms: list[tuple[str, int]] | None, width: int) -> _Form:
        entry = _INPUT.match(text)
        if entry:
            return {int(entry[1]) // width: 1}
        if terms is None:
            return {name: 1}
        form: _Form = {}
        for operand, factor in terms:
            for part, coefficient in self.forms[operand].items():
                form[part] = form.get(part, 0) + factor * coefficient
        return form


def _terms(text: str) -> list[tuple[str, int]] | None:
    """The values that `text` adds up, each with its factor; None where it is no sum."""
    found = _SUM.match(text)
    if not found:
        return None
    terms = []
    for part, sign in ((found[1], 1), (found[3], -1 if found[2] == "-" else 1)):
        if part is None or not _NAME.search(part):
            continue
        value = _PART.match(part)
        # Bits that are cut off below are no part of a sum.
        if not value or (value[2] or "0") != "0":
            return None
        terms.append((value[1], sign << int(value[3] or 0)))
    return terms
