"""`check_verilog`: the weights in the Verilog, read back from its text, are the last link of a certificate.

Every value of a datapath is a weighted sum of inputs until a bit is cut off or compared. The sums are followed
through the text of the files, adder by adder, so what is found here is what a synthesis tool will find.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design, LayerSpec, Recurrent
from fpgaprune.errors import CertificateError, require_kind
from fpgaprune.measure import LinkCheck, check_link
from fpgaprune.rtl.gate_weights import parted_weights
from fpgaprune.rtl.project import RtlLayer, VerilogProject
from fpgaprune.rtl.read_datapath import Datapath, has_datapath
from fpgaprune.rtl.read_memory import read_memory
from fpgaprune.rtl.read_program import read_program
from fpgaprune.rtl.read_serial import SerialDatapath
from fpgaprune.values import MaskSet, gathered

# The link of a run's Verilog, which lies in the folder `rtl` there.
VERILOG_LINK = "rtl/verilog"


def check_verilog(project: VerilogProject, design: Design, masks: MaskSet) -> LinkCheck:
    """Check that no locked weight has a product in a project's Verilog, or a word of a memory that is not 0.

    Raises:
        CertificateError: a locked weight of several axes belongs to no layer whose products can be read back.

    Examples:
        >>> masks = fp.select(model, 0.5)
        >>> _ = fp.finetune(model, masks, x, y)
        >>> design = fp.make_design(model, target, x)
        >>> fp.check_verilog(fp.to_verilog(design, "verilog"), design, masks).violations
        0
    """
    require_kind(project, VerilogProject, CertificateError, "project", "a project, as fp.to_verilog gives")
    require_kind(design, Design, CertificateError, "design", "a Design, as fp.make_design gives")
    masks = MaskSet(masks)
    arrays: dict[str, NDArray[np.int64]] = {}
    reasons: dict[str, str] = {}
    for layer in design.layers:
        for role, path in layer.sources.items():
            if path not in masks:
                continue
            if role not in ("weight", "recurrent_weight"):
                reasons[path] = "added once for each output, not multiplied"
                continue
            arrays[path] = gathered(read_weights(project, layer, role), masks[path].shape, layer.phases)
    missing = [path for path in masks if path not in arrays and path not in reasons]
    for path in missing:
        if masks[path].ndim > 1:
            raise CertificateError(
                f"{project.path.name}: weight {path!r} is locked but belongs to no layer of {design.name!r}"
            )
        reasons[path] = "merged into another layer's constants"
    return check_link(f"{project.path.name}/verilog", arrays, masks, reasons)


def read_weights(project: VerilogProject, layer: LayerSpec, role: str = "weight") -> NDArray[np.int64]:
    """Read the raw weights of a layer from its Verilog, in the design's shape; each output's times a power of two.

    Behind a sum of few bits stands a table, whose text is not undone: the weights of such an output come without their
    common factor, and all of them may be negated; where the sum is in the table, they are 1.

    Args:
        project: the Verilog.
        layer: of its design.
        role: `weight`, or `recurrent_weight` of a recurrent layer.

    Raises:
        CertificateError: the layer has no Verilog of its own, or its text is not in the form that `to_verilog` writes.
    """
    row = next((item for item in project.layers if item.layer == layer.name), None)
    shape = layer.weights["weight"].shape
    if row is not None and isinstance(layer.operation, Recurrent):
        return parted_weights(_joined(project, row, layer), layer, role)
    if row is not None and has_datapath(row, "kernels"):
        return _scheduled(project, row, layer)
    if row is not None and has_datapath(row, "products"):
        return read_memory(project, row, int(np.prod(shape[:-1])), shape[-1]).reshape(shape)
    if row is None or not has_datapath(row, "sums"):
        raise CertificateError(f"layer {layer.name!r} has no products in {project.path} that can be read back")
    taps = int(np.prod(shape[:-1]))
    if layer.is_depthwise:
        channels = layer.output_shape[-1]
        taps = int(np.prod(shape)) // channels
        matrix = _sums(project, row, taps * channels, channels).reshape(taps, channels, channels)
        found = np.stack([matrix[:, channel, channel] for channel in range(channels)], axis=-1)
        # A channel reads no other channel's taps.
        if np.count_nonzero(matrix) != np.count_nonzero(found):
            raise CertificateError(f"layer {layer.name!r}: a channel of the Verilog reads another one's values")
        return found.reshape(shape)
    return _sums(project, row, taps, shape[-1]).reshape(shape)


def _joined(project: VerilogProject, row: RtlLayer, layer: LayerSpec) -> NDArray[np.int64]:
    """Return the matrix of both products of a recurrent layer."""
    inputs = sum(len(layer.weights[role]) for role in ("weight", "recurrent_weight"))
    outputs = 2 * layer.weights["weight"].shape[1]
    if has_datapath(row, "kernels"):
        found: NDArray[np.int64] = read_program(project, row, inputs, outputs)[0]
        return found
    return Datapath.read(project, row, "sums").matrix(inputs, outputs, row.reads)


def _scheduled(project: VerilogProject, row: RtlLayer, layer: LayerSpec) -> NDArray[np.int64]:
    """Return the weights of a scheduled layer, in the design's shape."""
    shape = layer.weights["weight"].shape
    if not layer.is_depthwise:
        return read_program(project, row, shape[-2], shape[-1]).reshape(shape)
    channels = layer.output_shape[-1]
    kernels = read_program(project, row, channels, channels)
    found = np.diagonal(kernels, axis1=1, axis2=2)
    if np.count_nonzero(kernels) != np.count_nonzero(found):
        raise CertificateError(f"layer {layer.name!r}: a channel of the Verilog reads another one's values")
    return found.reshape(shape)


def _sums(project: VerilogProject, row: RtlLayer, inputs: int, outputs: int) -> NDArray[np.int64]:
    """Return each input's coefficient in each output of a layer's sums (inputs, outputs); 0 for what is always 0."""
    leaving = list(range(outputs))
    if row.leaves is not None:
        leaving = [number for number, place in enumerate(row.leaves.places(outputs)) if place.bits]
    found = np.zeros((inputs, outputs), np.int64)
    serial = SerialDatapath.read(project, row, "sums")
    if serial is None:
        found[:, leaving] = Datapath.read(project, row, "sums").matrix(inputs, len(leaving), row.reads)
        return found
    words = serial.matrix(inputs)
    if not has_datapath(row, "finish"):
        return words
    found[:, leaving] = words @ Datapath.read(project, row, "finish").matrix(words.shape[1], len(leaving))
    return found
