"""`verify_bitstream`: the bitstream of a run is read back, and computes the golden samples as the emulation does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import RunError
from fpgaprune.fabric import golden_bytes, golden_vectors
from fpgaprune.flow.finished.handover import golden_samples
from fpgaprune.flow.finished.loading import ABOUT, find_bitstream
from fpgaprune.flow.run import RunDirectory, verilog_of
from fpgaprune.readback import BitstreamCheck, Results, check_bitstream
from fpgaprune.rtl import VerilogProject


def is_handed_over(folder: Path) -> bool:
    """Whether `export` made the folder."""
    return (folder / ABOUT).is_file()


def verify_bitstream(source: Path, file: Path | None = None) -> BitstreamCheck:
    """Read back the bitstream of a run, and compare what it answers the golden samples with the emulation, bit for bit.

    Args:
        source: a run, measured on a board or exported for one; or the folder that `hand_over` made for a board.
        file: the bitstream, if it is not the one that was made.

    Raises:
        RunError: there is no bitstream or there are several, or the golden samples in the folder are not those of the
            run's emulation.
        ReadbackError, ToolError: as for `check_bitstream`.
    """
    board, bitstream = find_bitstream(source)
    run = None if is_handed_over(source) else RunDirectory.existing(source)
    if is_handed_over(bitstream.parent):
        sent, wanted, samples, results = _of_folder(bitstream.parent)
        if run is not None:
            _require_emulation(run, wanted, samples, results)
    else:
        assert run is not None  # noqa: S101  a bitstream that stands beside no such file was found in a run
        design = Design.load(run.file("design.json"))
        project: VerilogProject = verilog_of(run, design)
        vectors = golden_vectors(project, design, golden_samples(run, design))
        sent, wanted = golden_bytes(project, vectors)
        samples, results = vectors.samples, Results.of(project.outputs[0])
    cache = None if run is None else run.file("sim")
    return check_bitstream(file or bitstream, board, sent, wanted, samples, results, cache=cache)


def _of_folder(folder: Path) -> tuple[bytes, bytes, int, Results]:
    """What is sent, what must come back, how many samples, and how results stand in bytes."""
    about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    try:
        line: dict[str, Any] = about["line"]
        results = msgspec.convert(line["results"], Results)
        sent, wanted = ((folder / line[name]).read_bytes() for name in ("sent", "wanted"))
        samples = int(about["samples"])
        whole = len(sent) == samples * line["in_bytes"] and len(wanted) == samples * line["out_bytes"]
    except (OSError, KeyError, TypeError, ValueError, msgspec.ValidationError):
        whole = False
    if not whole:
        raise RunError(f"{folder} has no golden samples for a serial line; export the run again")
    return sent, wanted, samples, results


def _require_emulation(run: RunDirectory, wanted: bytes, samples: int, results: Results) -> None:
    """What must come back is what the emulation of the run's design gives."""
    design = Design.load(run.file("design.json"))
    values = emulate(design, golden_samples(run, design)[0]).reshape(samples, -1)
    if results.to_bytes(values) != wanted:
        raise RunError(f"the golden results beside the bitstream are not those of {run.path}; export the run again")
