"""`verify_bitstream`: the bitstream of a run is read back, and computes the golden samples as the emulation does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import RunError
from fpgaprune.fabric import (
    cells_file,
    digest_of_verilog,
    golden_bytes,
    golden_vectors,
    with_netlist,
)
from fpgaprune.flow.finished.export_certificate import proven_modules, read_certificate, verilog_link
from fpgaprune.flow.finished.handover import golden_samples
from fpgaprune.flow.finished.loading import ABOUT, find_bitstream
from fpgaprune.flow.run import RunDirectory, known_verilog, verilog_of
from fpgaprune.measure import BitstreamLink, LinkCheck
from fpgaprune.readback import BitstreamCheck, Results, check_bitstream
from fpgaprune.rtl import LayerProof, VerilogProject

# Seconds that the comparison of the netlist with the Verilog may take: large designs are not worth a wait.
_PROOF_S = 300.0


def is_handed_over(folder: Path) -> bool:
    """Return whether `export` made the folder."""
    return (folder / ABOUT).is_file()


@dataclass(frozen=True)
class VerifiedBitstream:
    """The last links of a certificate, read again.

    Attributes:
        check: what the bitstream was found to be.
        link: the bitstream's, as the certificate has it; its netlist beside the Verilog is left out where no run was at
            hand.
        verilog: the locked weights in the Verilog for the board; None where no run was at hand, or it locks nothing.
        modules: what its modules compute for all inputs; empty where no run was at hand.
        problems: one line for each claim that does not hold.
    """

    check: BitstreamCheck
    link: BitstreamLink
    verilog: LinkCheck | None
    modules: tuple[LayerProof, ...]
    problems: tuple[str, ...]


def verify_bitstream(source: Path, file: Path | None = None) -> VerifiedBitstream:
    """Read back the bitstream of a run, and compare what it answers the golden samples with the emulation, bit for bit.

    Its cells are compared with those of synthesis, and those with the Verilog. Its digest is compared with that of the
    certificate, and the locked weights are looked for in its Verilog.

    Args:
        source: a run, measured on a board or exported for one; or the folder that `hand_over` made for a board.
        file: the bitstream, if it is not the one that was made.

    Raises:
        RunError: there is no bitstream or there are several, or the golden samples in the folder are not those of the
            run's emulation.
        ReadbackError, ToolError: as for `check_bitstream`.
        CertificateError: the certificate has another form, a locked weight has a product in the Verilog, or a module
            there does not compute its layer.
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
    found = check_bitstream(file or bitstream, board, sent, wanted, samples, results, cells=cells_file(bitstream))
    link = found.link(bitstream.name, board)
    problems: list[str] = []
    certified = read_certificate(bitstream.parent) if file is None else None
    if certified is not None and "bitstream" in certified:
        problems += _not_certified(BitstreamLink.from_json(certified["bitstream"]), found, bitstream)
    verilog: LinkCheck | None = None
    modules: tuple[LayerProof, ...] = ()
    if run is not None:
        design = Design.load(run.file("design.json"))
        project = _verilog_of(run, design, bitstream.parent)
        verilog, _ = verilog_link(run, project, design)
        modules = tuple(proven_modules(project, design))
        link = with_netlist(link, project, board, cache=run.file("synth"), timeout_s=_PROOF_S)
    problems = [*(claim.sentence() for claim in link.claims if not claim.holds), *problems]
    return VerifiedBitstream(found, link, verilog, modules, tuple(problems))


def _not_certified(claim: BitstreamLink, found: BitstreamCheck, bitstream: Path) -> Iterator[str]:
    """Yield a line for each way in which a bitstream is not the one that the certificate speaks of."""
    if claim.sha256 != found.sha256:
        yield f"{bitstream.name} is not the file that was certified: its digest differs"
    if claim.cells_sha256 != found.cells_sha256:
        yield f"{cells_file(bitstream).name} is not the file that was certified: its digest differs"
    if not claim.holds and claim.claims:
        yield f"the certificate says that {bitstream.name} does not hold: {claim.text()}"


def _verilog_of(run: RunDirectory, design: Design, folder: Path) -> VerilogProject:
    """Return the Verilog of the bitstream in `folder`."""
    if not is_handed_over(folder):
        return verilog_of(run, design)
    digest = json.loads((folder / ABOUT).read_text(encoding="utf-8"))["digest"]
    found = next((project for project in known_verilog(run) if digest_of_verilog(project) == digest), None)
    if found is None:
        raise RunError(f"{run.path} has no Verilog with the digest {digest} of {folder}; export the run again")
    return found


def _of_folder(folder: Path) -> tuple[bytes, bytes, int, Results]:
    """Read the words to send, those to expect, the number of samples, and the layout of results in bytes."""
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
    """Check that what must come back is what the emulation of the run's design gives."""
    design = Design.load(run.file("design.json"))
    values = emulate(design, golden_samples(run, design)[0]).reshape(samples, -1)
    if results.to_bytes(values) != wanted:
        raise RunError(f"the golden results beside the bitstream are not those of {run.path}; export the run again")
