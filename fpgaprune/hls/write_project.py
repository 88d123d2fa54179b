"""A project on disk: hls4ml's files without stamps, dates and paths, and all that a self-contained folder needs."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from fpgaprune.design import Design
from fpgaprune.hls.convert import quiet
from fpgaprune.hls.golden import write_golden
from fpgaprune.hls.hls_backends import BACKENDS
from fpgaprune.hls.lstm_template import mend_lstm
from fpgaprune.hls.own_templates import add_templates
from fpgaprune.hls.quartus_tables import write_tables
from fpgaprune.hls.ranges import Samples
from fpgaprune.hls.readme import readme
from fpgaprune.hls.simulator import write_simulator
from fpgaprune.keras_file import save_keras

DESIGN = "design.json"
_SCRIPTS = ("*.sh", "*.yml", "*.tcl", "*.txt", "Makefile*")


def write_project(folder: Path, graph: Any, folded: Any, design: Design, golden: Samples | None = None) -> None:
    """`folder` is the project of hls4ml's `graph`; the same bytes for the same design, wherever it stands.

    Args:
        folder: the folder that `graph` was made for; it does not exist yet.
        graph: what `convert` returned.
        folded: the model that the graph was made of.
        design: what `extract` returned for it.
        golden: golden samples of the project, with their outputs; None for none.
    """
    write_sources(folder, graph, design)
    stamp, settled = str(graph.config.get_config_value("Stamp")), _digest(design)
    for path in (path for pattern in _SCRIPTS for path in folder.glob(pattern)):
        text = path.read_text()
        text = text.replace(stamp, settled[: len(stamp)]).replace(str(folder.resolve()), ".").replace(str(folder), ".")
        if path.name == "hls4ml_config.yml":
            # One stamp in forty has no letter, and YAML puts such a stamp in quotes.
            text = re.sub(r"^Stamp: .*$", f"Stamp: {settled[: len(stamp)]}", text, flags=re.MULTILINE)
            text = re.sub(r"^OutputDir: .*$", "OutputDir: .", text, flags=re.MULTILINE)
            text = re.sub(r"^KerasModel: .*$", "KerasModel: !keras_model 'keras_model.keras'", text, flags=re.MULTILINE)
        path.write_text(text)
    samples = write_golden(folder, design, golden)
    save_keras(folded, folder / "keras_model.keras")
    design.save(folder / DESIGN)
    (folder / "README.md").write_text(readme(design, samples))


def write_sources(folder: Path, graph: Any, design: Design) -> None:
    """`folder` holds hls4ml's files of `graph`, mended, and the program of its C simulation; stamps and paths stay.

    Args:
        folder: the folder that `graph` was made for; it does not exist yet.
        graph: what `convert` returned.
        design: what `extract` returned for it.
    """
    with quiet():
        if design.backend == "Libero":
            _write_libero(graph)
        else:
            graph.write()
    if design.backend == "Quartus":
        write_tables(folder, design)
    mend_lstm(folder, design)
    add_templates(folder, design)
    if BACKENDS[design.backend].compiles:
        write_simulator(folder, design)


def _write_libero(graph: Any) -> None:
    # hls4ml 1.3.0 is released without a template that its writer copies last of the build scripts, for a compilation
    # which needs SmartHLS anyway.
    writer = graph.config.backend.writer
    original = writer.write_build_script

    def write_build_script(model: Any) -> None:
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
    digest = hashlib.sha256(repr(design.to_json()).encode())
    for layer in design.layers:
        for role in sorted(layer.weights):
            digest.update(layer.weights[role].tobytes())
    return digest.hexdigest()
