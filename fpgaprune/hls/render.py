"""Renders a `Design` as hls4ml's graph of layers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fpgaprune.backends import faults_of
from fpgaprune.design import Design
from fpgaprune.errors import HlsError
from fpgaprune.hls.call_hls4ml import as_problem, backend_options_of, quiet
from fpgaprune.hls.layer_list import layer_list
from fpgaprune.hls.same_graph import require_same
from fpgaprune.hls.settings import hls_config
from fpgaprune.lowering import PROJECT_NAMES, is_project_name
from fpgaprune.target import Target


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
        require_same(graph, design)
        return graph
