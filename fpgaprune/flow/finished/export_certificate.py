"""`certify_export`: the certificate of a folder for a board, from the run's first link to the bitstream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from fpgaprune import __version__
from fpgaprune.design import Design
from fpgaprune.errors import CertificateError, RunError
from fpgaprune.files import read_json
from fpgaprune.flow.run import CERTIFICATE, RunDirectory
from fpgaprune.flow.stages import MASKS, STAGES, artefacts_at
from fpgaprune.measure import BitstreamLink, LinkCheck
from fpgaprune.rtl import VERILOG_LINK, LayerProof, VerilogProject, check_verilog, prove_project

# What the link of the exported Verilog is called.
_LINK = "Verilog for the board"


def certify_export(run: RunDirectory, project: VerilogProject, design: Design, last: BitstreamLink) -> dict[str, Any]:
    """Return the certificate as JSON data: the run's links, that of the exported Verilog, and the bitstream's.

    The Verilog holds no product of a locked weight; the bitstream's cells are those of the Verilog. So its memories and
    constants hold no locked weight either.

    Args:
        run: the run that is exported.
        project: its Verilog for the board.
        design: what the Verilog computes.
        last: the link of the bitstream.

    Raises:
        CertificateError: a locked weight has a product in the Verilog, or a module does not compute its layer.
    """
    known = (
        read_json(run.file(CERTIFICATE), RunError, "a certificate", "run the flow again") if _is_certified(run) else {}
    )
    links: list[dict[str, Any]] = [link for link in known.get("links", []) if link["link"] != VERILOG_LINK]
    verilog, left_out = verilog_link(run, project, design)
    if verilog is not None:
        links.append(verilog.to_json())
    return {
        "format": 1,
        "fpgaprune": __version__,
        "run": run.path.name,
        "links": links,
        "not_read": left_out,
        "modules": [msgspec.to_builtins(proof) for proof in proven_modules(project, design)],
        "bitstream": last.to_json(),
    }


def _is_certified(run: RunDirectory) -> bool:
    return run.file(CERTIFICATE).is_file()


def verilog_link(run: RunDirectory, project: VerilogProject, design: Design) -> tuple[LinkCheck | None, str | None]:
    """Return the locked weights of a run in Verilog for a board; or why they could not be looked for.

    Raises:
        CertificateError: a locked weight has a product there.
    """
    files = artefacts_at(STAGES, run)
    masks = files.named(MASKS)
    if masks is None or not run.file(masks).is_file():
        return None, f"{run.path.name} has no masks, so no weight is locked"
    try:
        found = replace(check_verilog(project, design, files.masks()), link=_LINK)
    except CertificateError as error:
        return None, str(error)
    wrong = "; ".join(_violations(found))
    if wrong:
        raise CertificateError(f"{_LINK}: {wrong}; run the flow again")
    return found, None


def proven_modules(project: VerilogProject, design: Design) -> list[LayerProof]:
    """Return what each module of the Verilog computes for all inputs.

    Raises:
        CertificateError: one does not compute its layer.
    """
    found = prove_project(project, design)
    wrong = next((proof for proof in found if proof.holds is False), None)
    if wrong is not None:
        raise CertificateError(f"{_LINK}: {wrong.sentence()}; write the Verilog again")
    return found


def _violations(link: LinkCheck) -> Iterator[str]:
    for weight in link.weights:
        if weight.violations:
            yield f"{weight.violations} of {weight.locked} locked elements of {weight.path!r} have a product there"


def read_certificate(folder: Path) -> dict[str, Any] | None:
    """Return the certificate of a folder that was handed over; None if it has none.

    Raises:
        RunError: it is damaged.
    """
    path = folder / CERTIFICATE
    if not path.is_file():
        return None
    found: dict[str, Any] = read_json(path, RunError, "a certificate", "export the run again")
    return found
