"""`RunDirectory`: the artefacts of one run, its manifest, and the lock that keeps a second run out."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fpgaprune.documents import read_json
from fpgaprune.errors import RunError
from fpgaprune.files import digest_file, make_folder, storage, write_bytes

MANIFEST = "manifest.json"
FORMAT = 1
# Artefact to SHA-256; None where it is missing.
Digests = Mapping[str, str | None]
# What compiling and simulating leaves in a project is no part of what was generated.
_BUILD_LEFTOVERS = (".so", ".o", ".log")


class RunDirectory:
    """A folder of artefacts and the manifest that says how each was made."""

    def __init__(self, path: Path) -> None:
        """The directory at `path`, which need not exist yet.

        Raises:
            RunError: `path` is a file, or a folder of something else.
        """
        self.path = path
        self.ran: list[str] = []
        """The stages that were recorded since this object was made."""
        if path.exists() and not path.is_dir():
            raise RunError(f"{path} is a file; name a folder for the run")
        names = {entry.name for entry in path.iterdir()} if path.exists() else set()
        if names - {".lock"} and MANIFEST not in names:
            raise RunError(f"{path} holds other files and no {MANIFEST}; name an empty or new folder for the run")
        self.manifest = self._read_manifest()

    @classmethod
    def existing(cls, path: Path) -> RunDirectory:
        """The run at `path`.

        Raises:
            RunError: there is none.
        """
        if not (path / MANIFEST).is_file():
            raise RunError(
                f"{path} is no run directory: it has no {MANIFEST}; make one with 'fpgaprune run --out {path}'"
            )
        return cls(path)

    def file(self, name: str) -> Path:
        """The path of the artefact `name`."""
        return self.path / name

    def results(self, stage: str) -> dict[str, Any]:
        """What `stage` reported, as JSON data.

        Raises:
            RunError: the stage has not run.
        """
        record = self.manifest["stages"].get(stage)
        if record is None:
            raise RunError(f"{self.path}: stage {stage!r} has not run; run the flow again")
        return dict(record["results"])

    def is_current(self, stage: str, key: str) -> bool:
        """True when `stage` last ran with `key` and its artefacts are still what it wrote."""
        record = self.manifest["stages"].get(stage)
        return record is not None and record["key"] == key and self.digests(record["outputs"]) == record["outputs"]

    def record(self, stage: str, key: str, inputs: Digests, outputs: Digests, results: Any, seconds: float) -> None:
        """The manifest on disk says that `stage` ran."""
        self.manifest["stages"][stage] = {
            "key": key,
            "inputs": dict(inputs),
            "outputs": dict(outputs),
            "results": results,
            "seconds": round(seconds, 2),
        }
        self.ran.append(stage)
        self.write_manifest()

    def write_manifest(self) -> None:
        """The manifest is on disk, whole."""
        write_bytes(self.file(MANIFEST), (json.dumps(self.manifest, indent=1, sort_keys=True) + "\n").encode())

    def digests(self, names: Any) -> dict[str, str | None]:
        """Artefact to SHA-256; None where it is missing."""
        return {name: digest_tree(self.file(name)) for name in names}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """No other process runs in this directory meanwhile; the lock ends with the process, however it ends.

        Raises:
            RunError: another process holds it.
        """
        make_folder(self.path)
        with storage(self.path):
            handle = open(self.path / ".lock", "a+")  # noqa: SIM115 - closed below, whatever the lock says
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                handle.seek(0)
                owner = handle.read().strip() or "another process"
                raise RunError(f"{self.path} is in use by {owner}; wait for it, or name another --out") from error
            handle.truncate(0)
            handle.write(f"process {os.getpid()}")
            handle.flush()
            # What another run wrote while this one waited to look counts.
            self.manifest = self._read_manifest()
            yield

    def _read_manifest(self) -> dict[str, Any]:
        try:
            advice = "delete the run directory and run again"
            # A training that diverged left figures that are no numbers.
            manifest = read_json(self.file(MANIFEST), RunError, "a manifest", advice, strict=False)
        except FileNotFoundError:
            return {"format": FORMAT, "stages": {}}
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or not _are_records(manifest):
            raise RunError(f"{self.file(MANIFEST)} is no manifest of format {FORMAT}; name another --out")
        return manifest


def _are_records(manifest: Mapping[str, Any]) -> bool:
    """Whether `manifest` has stages, each with what `RunDirectory.record` wrote of it."""
    stages, config = manifest.get("stages"), manifest.get("config", {})
    return (
        isinstance(stages, dict)
        and isinstance(config, dict)
        and all(isinstance(record, dict) and _is_record(record) for record in stages.values())
    )


def _is_record(record: Mapping[str, Any]) -> bool:
    tables = (record.get("inputs"), record.get("outputs"))
    return (
        isinstance(record.get("key"), str)
        and isinstance(record.get("results"), dict)
        and isinstance(record.get("seconds"), int | float)
        and all(isinstance(table, dict) and all(map(_is_digest, table.items())) for table in tables)
    )


def _is_digest(entry: tuple[str, Any]) -> bool:
    """Whether `entry` is a file in the folder itself, a manifest points to none elsewhere, and its digest."""
    name, digest = entry
    inside = not name.startswith(("/", "~")) and ".." not in name.split("/") and name.isprintable()
    return inside and isinstance(digest, str | None)


def digest_tree(path: Path) -> str | None:
    """SHA-256 of a file's bytes, or of the files below a folder and their places; None where there is nothing."""
    if path.is_file():
        return digest_file(path)
    if not path.is_dir():
        return None
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.suffix not in _BUILD_LEFTOVERS:
            digest.update(f"{file.relative_to(path)}\0{digest_file(file)}\0".encode())
    return digest.hexdigest()
