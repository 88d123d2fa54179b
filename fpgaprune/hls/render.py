"""Renders a `Design` as hls4ml's graph of layers, and refuses a graph that is not the design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fpgaprune.backends import as_built, faults_of
from fpgaprune.design import Design, LayerSpec, Pooling
from fpgaprune.errors import HlsError
from fpgaprune.hls.call_hls4ml import as_problem, backend_options_of, quiet
from fpgaprune.hls.extract import extract_layers
from fpgaprune.hls.layer_list import layer_list
from fpgaprune.hls.settings import hls_config
from fpgaprune.lowering import PROJECT_NAMES, is_project_name
from fpgaprune.target import Target

_SAME = ("inputs", "output_shape", "operation", "strategy", "reuse_factor")


def render(design: Design, target: Target, folder: Path, backend_options: Mapping[str, Any] | None = None) -> Any:
    """hls4ml's graph of `design`; nothing is written yet.

    Args:
        design: the network, for the io type and the back end of `target`.
        target: part, clock, strategy and reuse of the project.
        folder: the project's folder.
        backend_options: further settings of the backend, as `{"clock_uncertainty": "20%", "board": "pynq-z2"}`.

    Raises:
        HlsError: the design's name is no C identifier, hls4ml has no layer for an operation, cannot make the project,
            builds a layer wrongly, knows no such option, or its graph differs from the design.
    """
    for fault in faults_of(design):
        raise HlsError(fault)
    if not is_project_name(design.name):
        raise HlsError(f"project name {design.name!r} is not a free C identifier; {PROJECT_NAMES}")
    import hls4ml

    import fpgaprune.hls.stream_quantizer  # noqa: F401

    options = backend_options_of(target, backend_options or {})
    with quiet(), as_problem(f"hls4ml cannot make a project of {design.name!r} for {target.backend}"):
        found = layer_list(design)
        config = hls4ml.utils.config.create_config(
            output_dir=str(folder),
            project_name=design.name,
            backend=target.backend,
            io_type=target.io_type,
            part=target.order_number,
            clock_period=target.clock_ns,
            **options,
        )
        config |= {"InputData": None, "OutputPredictions": None, "HLSConfig": hls_config(found, target)}
        graph = hls4ml.model.ModelGraph.from_layer_list(config, found.entries, found.inputs, found.outputs)
        _require_same(graph, design)
        return graph


def _require_same(graph: Any, design: Design) -> None:
    """Every layer of hls4ml's `graph` is that of `design`, bit for bit."""
    _require_all_layers([node.name for node in graph.get_layers()], design)
    raws = {layer.name: layer.weights for layer in design.layers if layer.strategy is not None}
    types = {layer.name: layer.types for layer in design.layers}
    layers, outputs = extract_layers(graph, raws, types, {layer.project_name: layer.name for layer in design.layers})
    made = as_built(replace(design, layers=layers, outputs=outputs))
    if made.outputs != design.outputs:
        raise HlsError(
            f"hls4ml's graph has outputs {', '.join(made.outputs)}; the design has {', '.join(design.outputs)}: choose "
            "another io type, or write the design as Verilog"
        )
    for layer in made.layers:
        _require_same_layer(layer, design[layer.name], design.backend)


def _require_all_layers(nodes: list[str], design: Design) -> None:
    wanted = {layer.project_name: layer.name for layer in design.layers}
    for name in wanted:
        if name not in nodes:
            raise HlsError(
                f"hls4ml leaves out layer {wanted[name]!r} of the design, and changes the layers beside it instead: "
                "choose another io type, or write the design as Verilog"
            )
    for node in nodes:
        if node not in wanted:
            raise HlsError(
                f"hls4ml adds layer {node!r}, which the design does not have: choose another io type, or write the "
                "design as Verilog"
            )


def _require_same_layer(made: LayerSpec, wanted: LayerSpec, backend: str) -> None:
    facts = {what: (getattr(made, what), getattr(wanted, what)) for what in _SAME}
    for role in sorted({*made.types, *wanted.types}):
        # The backend Catapult widens this type by itself, for sums that cannot overflow.
        if not (role == "accum" and backend == "Catapult" and isinstance(wanted.operation, Pooling)):
            facts[f"type of {role}"] = (made.types.get(role), wanted.types.get(role))
    for what, (found, asked) in facts.items():
        if found != asked:
            raise HlsError(
                f"hls4ml made layer {wanted.name!r} with {what.replace('_', ' ')} {found}; the design has {asked}: "
                "give the layer another strategy, reuse factor or type"
            )
    for role, raw in wanted.weights.items():
        if role not in made.weights or not np.array_equal(made.weights[role], raw):
            raise HlsError(f"hls4ml made layer {wanted.name!r} with other {role} integers than the design has")
