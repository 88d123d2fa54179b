"""`verify_run` checks every claim of a run's certificate again, from the files alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fpgaprune.errors import CertificateError, DesignError, FpgaPruneError, MaskError, RtlError, RunError
from fpgaprune.files import read_json
from fpgaprune.flow.run import CERTIFICATE, MANIFEST, RunDirectory, touched
from fpgaprune.flow.stages import STAGES, artefacts_at
from fpgaprune.measure import LinkCheck
from fpgaprune.values import MaskSet


def verify_run(path: Path) -> tuple[list[LinkCheck], list[str]]:
    """Return the links of the run at `path`, read again, and one line for each claim that does not hold.

    The claims: every file has the digest that the manifest has of it, and its content is as the certificate says. No
    TensorFlow is loaded: `.keras` files are read as HDF5, firmware as text. Only the run itself could check the link
    `memory`; here the file is checked that Keras loaded it from.

    Raises:
        RunError: `path` is not a run folder, a run is in progress in it, or it has no certificate yet.
    """
    if (path / CERTIFICATE).is_file() and not (path / MANIFEST).is_file():
        return [], [f"{MANIFEST} is gone; the run wrote it"]
    try:
        run = RunDirectory.existing(path)
    except RunError as error:
        if not (path / MANIFEST).is_file():
            raise
        return [], [str(error)]
    run.require_unused()
    if run.manifest.get(CERTIFICATE) is None and not run.file(CERTIFICATE).is_file():
        raise RunError(f"{run.path} has no {CERTIFICATE} yet; run the flow to its end first")
    links: list[LinkCheck] = []
    problems: list[str] = []
    try:
        problems.extend(touched(run))
        for link, wrong in _meaning(run):
            links += [] if link is None else [link]
            problems += wrong
    except FpgaPruneError as error:
        problems.append(str(error))
    except Exception as error:
        # A parser may raise anything on changed bytes. `problems` already names the changed file.
        if not problems:
            raise
        problems.append(f"the rest was not checked: a changed file could not be read ({type(error).__name__})")
    return links, problems


def _meaning(run: RunDirectory) -> Iterator[tuple[LinkCheck | None, list[str]]]:
    """Yield each link, read from the files, with a line for each problem; problems of other claims come first."""
    certificate = _certificate(run)
    yield None, list(_mask_problems(run, certificate))
    for stage in STAGES:
        yield None, list(stage.claims(run))
    claims = {link["link"]: LinkCheck.from_json(link) for link in certificate["links"]}
    for number, stage in enumerate(STAGES):
        files = artefacts_at(STAGES[:number], run)
        for name, read in stage.links.items():
            if stage.may_be_left_out and name not in claims:
                continue
            try:
                link = read(files)
            except (CertificateError, DesignError, RtlError) as error:
                yield None, [str(error)]
                continue
            if link is None:
                yield None, [f"{name}: certified, but the run holds no values any more"] if name in claims else []
                continue
            yield link, list(_link_problems(link, claims.get(name)))


def _mask_problems(run: RunDirectory, certificate: Mapping[str, object]) -> Iterator[str]:
    """Yield a line for each mask file that is not the certified one."""
    for stage in STAGES:
        for key in stage.masks:
            if stage.may_be_left_out and key not in certificate:
                continue
            if _masks(run, f"{key}.npz").digest() != certificate.get(key):
                yield f"{key}.npz is not the file that was certified: its digest differs"


def _link_problems(link: LinkCheck, claim: LinkCheck | None) -> Iterator[str]:
    if claim is None:
        yield f"{link.link}: the certificate does not list this link"
        return
    for weight in link.weights:
        if weight.violations:
            yield (
                f"{link.link}: {weight.violations} of {weight.locked} locked elements of {weight.path!r} are not "
                f"{link.wanted}, the first {weight.first_violation}"
            )
    claimed = {weight.path: weight for weight in claim.weights}
    for weight in link.weights:
        if weight.path not in claimed:
            yield f"{link.link}: the certificate does not list {weight.path!r}"
        elif claimed[weight.path].sha256 != weight.sha256:
            yield f"{link.link}: {weight.path!r} has other bits than were certified (SHA-256 differs)"
        elif claimed[weight.path].locked != weight.locked or claimed[weight.path].violations:
            yield f"{link.link}: the certificate's counts for {weight.path!r} are not those of the masks"
    if claim.layers != link.layers:
        yield f"{link.link}: the certificate's counts of zero, power-of-two and distinct weights are not those found"
    for path in claimed.keys() - {weight.path for weight in link.weights}:
        yield f"{link.link}: {path!r} was certified and is gone"


def _certificate(run: RunDirectory) -> dict[str, Any]:
    path = run.file(CERTIFICATE)
    try:
        certificate = read_json(path, RunError, "a certificate", "run the flow again")
    except FileNotFoundError as error:
        raise RunError(f"{run.path} has no {CERTIFICATE} yet; run the flow to its end first") from error
    known = isinstance(certificate, dict) and certificate.get("format") == 1
    links = certificate.get("links") if known else None
    if not isinstance(links, list) or not all(
        isinstance(row, dict) and isinstance(row.get("link"), str) for row in links
    ):
        raise RunError(f"{path} is no certificate of format 1; run the flow again")
    return dict(certificate)


def _masks(run: RunDirectory, name: str) -> MaskSet:
    try:
        return MaskSet.load(run.file(name))
    except MaskError as error:
        raise RunError(str(error)) from error
