"""Renders a `Design` as hls4ml's graph, and writes it: files without stamps, and all else that the folder needs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpgaprune.backends import BACKENDS, faults_of
from fpgaprune.design import Design
from fpgaprune.errors import HlsError
from fpgaprune.hls.call_hls4ml import as_problem, backend_options_of, quiet
from fpgaprune.hls.golden import write_golden
from fpgaprune.hls.layer_list import layer_list
from fpgaprune.hls.own_templates import add_templates, mend_depthwise, mend_lstm
from fpgaprune.hls.readme import readme
from fpgaprune.hls.same_graph import require_same
from fpgaprune.hls.settings import hls_config
from fpgaprune.hls.simulator import write_simulator
from fpgaprune.lowering import PROJECT_NAMES, is_project_name
from fpgaprune.target import Target

if TYPE_CHECKING:
    from fpgaprune.lowering import Samples

DESIGN = "design.json"
_SCRIPTS = ("*.sh", "*.yml", "*.tcl", "*.txt", "Makefile*")


def write_project(folder: Path, graph: Any, design: Design, golden: Samples | None = None) -> None:
    """Write the project of hls4ml's `graph` to `folder`; the same design gives the same bytes in any folder.

    Args:
        folder: the folder that was given to `render`; it does not exist yet.
        graph: the graph from `render`.
        design: the design of the graph.
        golden: golden samples; None for none.
    """
    write_sources(folder, graph, design)
    # hls4ml draws its stamp at random.
    stamp, settled = str(graph.config.get_config_value("Stamp")), _digest(design)
    for path in (path for pattern in _SCRIPTS for path in folder.glob(pattern)):
        text = path.read_text()
        text = text.replace(stamp, settled[: len(stamp)]).replace(str(folder.resolve()), ".").replace(str(folder), ".")
        if path.name == "hls4ml_config.yml":
            # One stamp in forty has no letter, and YAML puts such a stamp in quotes.
            text = re.sub(r"^Stamp: .*$", f"Stamp: {settled[: len(stamp)]}", text, flags=re.MULTILINE)
            text = re.sub(r"^OutputDir: .*$", "OutputDir: .", text, flags=re.MULTILINE)
        path.write_text(text)
    samples = write_golden(folder, design, golden)
    design.save(folder / DESIGN)
    (folder / "README.md").write_text(readme(design, samples))


def write_sources(folder: Path, graph: Any, design: Design) -> None:
    """Write hls4ml's files of `graph`, corrected, and the program of its C simulation to `folder`.

    Stamps and paths stay in the files.

    Args:
        folder: the folder that was given to `render`; it does not exist yet.
        graph: the graph from `render`.
        design: the design of the graph.
    """
    with quiet():
        if design.backend == "Libero":
            _write_libero(graph)
        else:
            graph.write()
    mend_lstm(folder, design)
    mend_depthwise(folder, design)
    add_templates(folder, design)
    if BACKENDS[design.backend].compiles:
        write_simulator(folder, design)


def _write_libero(graph: Any) -> None:
    # The release 1.3.0 of hls4ml lacks the last template that its writer copies; that script needs SmartHLS anyway.
    writer = graph.config.backend.writer
    original = writer.write_build_script

    def write_build_script(model: object) -> None:
        try:
            original(model)
        except FileNotFoundError as error:
            if not str(error.filename).endswith("build_lib.sh"):
                raise

    writer.write_build_script = write_build_script
    try:
        graph.write()
    finally:
        del writer.write_build_script


def _digest(design: Design) -> str:
    digest = hashlib.sha256(json.dumps(design.to_json(), sort_keys=True).encode())
    for layer in design.layers:
        for role in sorted(layer.weights):
            digest.update(layer.weights[role].tobytes())
    return digest.hexdigest()


def render(design: Design, target: Target, folder: Path, backend_options: Mapping[str, Any] | None = None) -> Any:
    """Make hls4ml's graph of `design`; nothing is written yet.

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
