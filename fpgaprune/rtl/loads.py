"""`weights_stream` loads weights into Verilog written for the same kernels; `load_port` is the text of its port."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design, LayerSpec, VerilogLayout
from fpgaprune.errors import RtlError
from fpgaprune.rtl.loaded import beat_bits
from fpgaprune.rtl.planned import Instance
from fpgaprune.rtl.program import Program
from fpgaprune.rtl.project import RtlLoads, RtlPort, VerilogProject
from fpgaprune.rtl.read_back import read_weights
from fpgaprune.rtl.read_program import read_split
from fpgaprune.rtl.scheduled import program_of
from fpgaprune.values import FixedType

# What a load brings.
_LOADED = ("weight", "bias")


def weights_stream(design: Design, project: VerilogProject) -> NDArray[np.int64]:
    """Return the beats, raw integers, that load the weights and biases of `design` into `project`; send them in order.

    Layer by layer in the order of the data: the weights of every kernel kept, output by output and input by input, tap
    by tap; then the biases. A locked kernel has no beat.

    Args:
        design: that of the project, with other weights and biases in its scheduled layers.
        project: Verilog whose layout is `loadable`.

    Returns:
        (N,) raw integers; as bits of the stream `w_axis` they are in two's complement.

    Raises:
        RtlError: the project takes no loads, or `design` differs from its design in more than the weights and biases
            that a load brings: in a type, a shape, another layer's weights, or by a kernel that is not kept there.
        CertificateError: the project's files are gone or changed.
    """
    loads = project.loads
    if loads is None:
        raise RtlError(f"the Verilog of {project.name!r} takes no loads; write it with a layout that is loadable")
    if {layer.name for layer in design.layers} != loads.forms.keys():
        raise RtlError(f"design {design.name!r} has other layers than the Verilog of {project.name!r}; write it anew")
    for layer in design.layers:
        if _form(layer, layer.name in loads.layers) != loads.forms[layer.name]:
            raise RtlError(
                f"layer {layer.name!r} differs from that of the Verilog of {project.name!r} in more than a load brings "
                f"(the weights and biases of {', '.join(loads.layers)}); write the Verilog anew"
            )
    rows = [part for name in loads.layers for part in _beats(design[name], project)]
    return np.concatenate(rows)


def _beats(layer: LayerSpec, project: VerilogProject) -> Iterator[NDArray[np.int64]]:
    """Yield the weights of `layer` at the kernels that `project` keeps, and its biases."""
    row = next(item for item in project.layers if item.layer == layer.name)
    split = read_split(project, row)
    there = Program.parts(_dense(layer, read_weights(project, layer)), split)
    new = Program.parts(_dense(layer, layer.weights["weight"]), split)
    kept = there.any(axis=1)
    if beyond := int((new.any(axis=1) & ~kept).sum()):
        part, output = np.argwhere(new.any(axis=1) & ~kept)[0].tolist()
        raise RtlError(
            f"layer {layer.name!r} has {beyond} kernels that are locked in the Verilog of {project.name!r}, the first "
            f"from channel {part // split} to {output}; a load brings kept kernels alone: write the Verilog anew"
        )
    places = np.argwhere(kept.T)
    yield new[places[:, 1], :, places[:, 0]].reshape(-1)
    yield np.broadcast_to(layer.weights["bias"].reshape(-1), (layer.output_shape[-1],))


def _dense(layer: LayerSpec, weight: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return raw kernels (taps, inputs, outputs); a depthwise kernel is zero between different channels."""
    if not layer.is_depthwise:
        return weight.reshape(-1, *weight.shape[-2:])
    taps = weight.reshape(-1, layer.output_shape[-1])
    found: NDArray[np.int64] = taps[:, None, :] * np.eye(taps.shape[1], dtype=np.int64)
    return found


def load_port(design: Design, layout: VerilogLayout) -> RtlPort | None:
    """Return the stream of loads for `design`; None where weights cannot be loaded."""
    bits = beat_bits(design, layout)
    if not bits:
        return None
    beats = 0
    for name, multipliers in layout.multipliers.items():
        program = program_of(design[name], multipliers)
        beats += program.weights.size + program.outputs
    return RtlPort("weights", PREFIX, (beats,), beats, 1, FixedType(bits, bits))


def loads_of(design: Design, layers: tuple[str, ...], port: RtlPort) -> RtlLoads:
    """Return the loads of the weights of `layers` by the stream `port`, and the form that each layer keeps."""
    return RtlLoads(port, layers, {layer.name: _form(layer, layer.name in layers) for layer in design.layers})


def _form(layer: LayerSpec, loaded: bool) -> str:
    """Digest all that decides what `layer` computes, without the values that a load brings if it is `loaded`."""
    types = sorted((role, str(kind)) for role, kind in layer.types.items())
    digest = hashlib.sha256(repr((layer.operation, layer.inputs, layer.output_shape, types)).encode())
    for role, values in sorted(layer.weights.items()):
        digest.update(repr((role, values.shape)).encode())
        if not (loaded and role in _LOADED):
            digest.update(values.astype("<i8").tobytes())
    return digest.hexdigest()


PREFIX = "w_axis"
_PARTS = ("data", "valid", "end")


def gate_text(port: RtlPort, inputs: Sequence[RtlPort], outputs: Sequence[RtlPort], layers: int) -> str:
    """Write the top module's body before its layers: the path of loads through `layers` layers, and the gate."""
    p = port.prefix
    bits = {"data": f"[{port.width_bits - 1}:0] ", "valid": "", "end": ""}
    first = {"data": f"{p}_tdata", "valid": f"{p}_tvalid & {p}_tready", "end": f"{p}_tvalid & {p}_tready & {p}_tlast"}
    wires = "".join(f"    wire {bits[part]}{_wire(0, layers, part)} = {first[part]};\n" for part in _PARTS)
    wires += "".join(
        f"    wire {bits[part]}{_wire(number, layers, part)};\n" for number in range(1, layers + 1) for part in _PARTS
    )
    taken = ", ".join(f"{one.prefix}_tvalid & {one.prefix}_tready" for one in reversed(inputs))
    left = ", ".join(f"{one.prefix}_tvalid & {one.prefix}_tready & {one.prefix}_tlast" for one in reversed(outputs))
    counted = "".join(
        f"    fp_last #(.BEATS({one.beats})) {one.prefix}_counted (\n        .clk(clk), .rst(reset_gate), "
        f".valid({one.prefix}_tvalid), .ready({one.prefix}_tready), .last(gate_lasts[{number}])\n    );\n"
        for number, one in enumerate(inputs)
    )
    count = len(inputs)
    return (
        f"    // Samples and loads of weights take turns.\n{wires}    wire gate_ready;\n"
        f"    wire [{count - 1}:0] gate_open;\n    wire [{count - 1}:0] gate_lasts;\n"
        f"    assign {p}_tready = gate_ready & ~starting;\n"
        f"    fp_gate #(.INPUTS({count}), .OUTPUTS({len(outputs)})) gate (\n        .clk(clk), .rst(reset_gate),\n"
        f"        .beats({{{taken}}}), .lasts(gate_lasts), .open(gate_open),\n        .ends({{{left}}}),\n"
        f"        .valid({p}_tvalid & ~starting), .last({p}_tlast), .ready(gate_ready),\n"
        f"        .arrived({_wire(layers, layers, 'end')})\n    );\n{counted}"
    )


def gate_parts(inputs: Sequence[RtlPort], outputs: Sequence[RtlPort]) -> list[Instance]:
    """Return the modules that the text of the gate instantiates."""
    gate = Instance("fp_gate", {"INPUTS": len(inputs), "OUTPUTS": len(outputs), "COUNT": 16})
    return [gate, *(Instance("fp_last", {"BEATS": port.beats}) for port in inputs)]


def open_input(number: int) -> str:
    """Return the condition under which input `number` takes a beat."""
    return f"gate_open[{number}]"


def passed_on(number: int, layers: int) -> str:
    """Write the connections of layer `number`, of those that take loads, to the loads that come and go."""
    ends = ((prefix, number + way) for way, prefix in enumerate("ln"))
    return ",\n".join(
        "        " + ", ".join(f".{prefix}_{part}({_wire(at, layers, part)})" for part in _PARTS) for prefix, at in ends
    )


def _wire(number: int, layers: int, part: str) -> str:
    """Return what comes to the layer with `number`; behind the last one only the end is read."""
    return f"{'unused_' if number == layers and part != 'end' else ''}load{number}_{part}"
