"""Writes a project: hls4ml's files without stamps, dates and paths, and everything else that the folder needs."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpgaprune.backends import BACKENDS
from fpgaprune.design import Design
from fpgaprune.hls.call_hls4ml import quiet
from fpgaprune.hls.golden import write_golden
from fpgaprune.hls.own_templates import add_templates, mend_lstm
from fpgaprune.hls.readme import readme
from fpgaprune.hls.simulator import write_simulator

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
