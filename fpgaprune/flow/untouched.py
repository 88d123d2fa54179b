"""`touched`: files of a run whose digests are not those in its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fpgaprune.files import digest_file
from fpgaprune.flow.digests import differs
from fpgaprune.flow.run_directory import CERTIFICATE, MANIFEST, RunDirectory


def touched(run: RunDirectory) -> Iterator[str]:
    """One line for each file of `run` that was changed, is gone or was added, and for what the manifest contradicts.

    Other files beside the artefacts, as notes and logs of the user's, are passed over: no claim is made of them, and no
    stage reads them.

    Who rewrites the files and every digest in the manifest is not found out here: keep a copy of the manifest, or its
    SHA-256, elsewhere.
    """
    if not run.manifest_is_whole:
        yield (
            f"{MANIFEST} does not have the digest of itself: it was changed by hand, or is of an older fpgaprune; run "
            "the flow again"
        )
    certified = run.manifest.get(CERTIFICATE)
    if certified is None:
        yield f"{MANIFEST} has no digest of {CERTIFICATE}: a stage was done since it was written; run the flow again"
    elif not run.file(CERTIFICATE).is_file():
        yield f"{CERTIFICATE} is gone; the run wrote it"
    elif digest_file(run.file(CERTIFICATE)) != certified:
        yield differs(CERTIFICATE)
    records = run.manifest["stages"]
    for stage in records:
        yield from run.changes(stage)
    yield from _of_other_inputs(records)


def _of_other_inputs(records: dict[str, Any]) -> Iterator[str]:
    """Each artefact that a stage read has the digest of what another stage wrote."""
    wrote = {name: (stage, digest) for stage, record in records.items() for name, digest in record["outputs"].items()}
    for stage, record in records.items():
        for name, read in record["inputs"].items():
            if name in wrote and wrote[name][1] != read:
                yield (
                    f"{MANIFEST}: stage {stage!r} read another {name} than stage {wrote[name][0]!r} wrote; run the "
                    "flow again"
                )
