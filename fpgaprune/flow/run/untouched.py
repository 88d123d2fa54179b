"""`touched`: files of a run whose digests are not those in its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fpgaprune.flow.run.digests import differences, digest_tree
from fpgaprune.flow.run.run_directory import CERTIFICATE, MANIFEST, RunDirectory


def touched(run: RunDirectory) -> Iterator[str]:
    """One line for each file of `run` that is changed, gone or added, and for each contradiction in the manifest.

    Other files, as the user's notes and logs, are passed over: no claim is made of them, and no stage reads them.

    This does not find changed files if every digest in the manifest was changed too: keep a copy of the manifest, or
    its SHA-256, elsewhere.
    """
    if not run.manifest_is_whole:
        yield (f"{MANIFEST} does not have the digest of itself: it was changed by hand; run the flow again")
    certified = run.manifest.get(CERTIFICATE)
    if certified is None:
        yield f"{MANIFEST} has no digest of {CERTIFICATE}: a stage ran since it was written; run the flow again"
    else:
        yield from differences(CERTIFICATE, certified, digest_tree(run.file(CERTIFICATE)))
    records = run.manifest["stages"]
    for stage in records:
        yield from run.changes(stage)
    yield from _of_other_inputs(records)


def _of_other_inputs(records: dict[str, Any]) -> Iterator[str]:
    """One line for each artefact that a stage read in another version than an earlier stage wrote."""
    wrote = {name: (stage, digest) for stage, record in records.items() for name, digest in record["outputs"].items()}
    for stage, record in records.items():
        for name, read in record["inputs"].items():
            if name in wrote and wrote[name][1] != read:
                yield (
                    f"{MANIFEST}: stage {stage!r} read another {name} than stage {wrote[name][0]!r} wrote; run the "
                    "flow again"
                )
