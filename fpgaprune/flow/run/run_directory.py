"""`RunDirectory`: the artefacts of one run, its manifest, and the lock that keeps a second run out."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fpgaprune.errors import RunError
from fpgaprune.files import LOCK_OWNER, is_draft, locked_file, make_folder, read_json, require_unlocked, write_bytes
from fpgaprune.flow.run.digests import changed_files, differences, digest_files, digest_tree

MANIFEST = "manifest.json"
CERTIFICATE = "certificate.json"
REPORT = "report.json"
FORMAT = 1
# Artefact to SHA-256; None if it is missing.
Digests = Mapping[str, str | None]
LOCK = ".lock"
# The key under which the manifest holds the SHA-256 of its other keys.
_OWN_DIGEST = "digest"


class RunDirectory:
    """A folder of artefacts and the manifest that says how each was made."""

    def __init__(self, path: Path) -> None:
        """Open the directory at `path`, which need not exist yet.

        Raises:
            RunError: `path` is a file, or a folder of something else.
        """
        self.path = path
        self.ran: list[str] = []
        """The stages that were recorded since this object was made."""
        if path.exists() and not path.is_dir():
            raise RunError(f"{path} is a file; name a folder for the run")
        names = {entry.name for entry in path.iterdir()} if path.exists() else set()
        others = {name for name in names - {LOCK} if not is_draft(name)}
        if others and MANIFEST not in names and not self._was_begun():
            raise RunError(f"{path} holds other files and no {MANIFEST}; name an empty or new folder for the run")
        self.manifest = self._read_manifest()

    @classmethod
    def existing(cls, path: Path) -> RunDirectory:
        """Open the run at `path`.

        Raises:
            RunError: there is none.
        """
        if not (path / MANIFEST).is_file():
            raise RunError(
                f"{path} is not a run folder: it has no {MANIFEST}; make one with 'fpgaprune run --out {path}'"
            )
        return cls(path)

    def file(self, name: str) -> Path:
        """Return the path of the artefact `name`."""
        return self.path / name

    def write_json(self, name: str, content: object) -> None:
        """Write the artefact `name` as JSON data, keys sorted."""
        write_bytes(self.file(name), (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())

    def read_json(self, name: str) -> Any:
        """Return the JSON data in the artefact `name`.

        Raises:
            RunError: it is damaged.
        """
        return read_json(self.file(name), RunError, "what the flow wrote", "run the flow again")

    def read_report(self) -> dict[str, Any]:
        """Return the JSON data of `report.json`, with its answers.

        Raises:
            RunError: there is none, it is damaged, or an earlier fpgaprune wrote it, whose reports had no answers.
        """
        try:
            content = self.read_json(REPORT)
        except FileNotFoundError as error:
            raise RunError(f"{self.path} has no {REPORT}, because the run has not ended; run the flow again") from error
        if not isinstance(content, dict) or not isinstance(content.get("verdicts"), dict):
            raise RunError(
                f"{self.file(REPORT)} has no answers, because an earlier fpgaprune wrote it; run the flow again: "
                f"fpgaprune run {self.file('flow.toml')} --out {self.path}"
            )
        return content

    def results(self, stage: str) -> dict[str, Any]:
        """Return what `stage` reported, as JSON data.

        Raises:
            RunError: the stage has not run.
        """
        record = self.manifest["stages"].get(stage)
        if record is None:
            raise RunError(f"{self.path}: stage {stage!r} has not run; run the flow again")
        return dict(record["results"])

    def is_current(self, stage: str, key: str) -> bool:
        """Return whether `stage` last ran with `key` and its artefacts have not changed since."""
        record = self.manifest["stages"].get(stage)
        return record is not None and record["key"] == key and not any(self.changes(stage))

    def changes(self, stage: str) -> Iterator[str]:
        """Yield one line for each file of `stage` that is not as it wrote it: changed, gone or added."""
        record = self.manifest["stages"][stage]
        for name, wrote in record["outputs"].items():
            path = self.file(name)
            if name in record.get("files", {}):
                yield from changed_files(path, record["files"][name])
            else:
                yield from differences(name, wrote, digest_tree(path))

    def record(self, stage: str, key: str, inputs: Digests, outputs: Digests, results: object, seconds: float) -> None:
        """Note in the manifest on disk that `stage` ran."""
        self.manifest["stages"][stage] = {
            "key": key,
            "inputs": dict(inputs),
            "outputs": dict(outputs),
            "files": {name: digest_files(self.file(name)) for name in outputs if self.file(name).is_dir()},
            "results": results,
            "seconds": round(seconds, 2),
        }
        self.ran.append(stage)
        # The certificate does not know of this stage yet.
        self.manifest.pop(CERTIFICATE, None)
        self.write_manifest()

    def write_certificate(self, certificate: Mapping[str, object]) -> None:
        """Write `certificate.json`; the manifest holds its digest."""
        self.write_json(CERTIFICATE, certificate)
        self.manifest[CERTIFICATE] = digest_tree(self.file(CERTIFICATE))
        self.write_manifest()

    def write_manifest(self) -> None:
        """Write the manifest, whole, with a digest of itself."""
        self.manifest[_OWN_DIGEST] = self._own_digest()
        self.write_json(MANIFEST, self.manifest)

    @property
    def manifest_is_whole(self) -> bool:
        """Whether the manifest still has the digest that it holds of itself: no field was changed by hand."""
        return self.manifest.get(_OWN_DIGEST) == self._own_digest()

    def _own_digest(self) -> str:
        content = {key: value for key, value in self.manifest.items() if key != _OWN_DIGEST}
        # The digest is over the manifest as it is read: keys that are numbers become text, and are sorted as text.
        return hashlib.sha256(json.dumps(json.loads(json.dumps(content)), sort_keys=True).encode()).hexdigest()

    def digests(self, names: Any) -> dict[str, str | None]:
        """Map artefact to SHA-256; None if it is missing."""
        return {name: digest_tree(self.file(name)) for name in names}

    @contextlib.contextmanager
    def locked(self, folders: Iterable[str] = ()) -> Iterator[None]:
        """Keep other processes out of this directory within the block; the lock ends with the process in any case.

        Args:
            folders: further folders in which a killed run may have left drafts.

        Raises:
            RunError: another process holds it.
        """
        with locked_file(make_folder(self.path) / LOCK, self._in_use):
            self._drop_drafts(folders)
            # Another run may have written since this object was made.
            self.manifest = self._read_manifest()
            yield

    def require_unused(self) -> None:
        """Check that no other process runs in this directory now; nothing is written.

        Raises:
            RunError: another process does.
        """
        require_unlocked(self.path / LOCK, self._in_use)

    def _in_use(self, owner: str) -> RunError:
        return RunError(f"{self.path} is in use by {owner}; wait for it, or name another --out")

    def _was_begun(self) -> bool:
        """Return whether a run once held the lock of this folder: then that run wrote the files in it."""
        try:
            return (self.path / LOCK).read_text().startswith(LOCK_OWNER)
        except (OSError, UnicodeDecodeError):
            return False

    def _drop_drafts(self, folders: Iterable[str]) -> None:
        """Delete what a killed run had begun to write; nobody else writes now."""
        hidden = (entry for folder in folders for entry in self.file(folder).rglob(".*"))
        for entry in [*self.path.iterdir(), *hidden]:
            if is_draft(entry.name):
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)

    def _read_manifest(self) -> dict[str, Any]:
        try:
            advice = "delete the run folder and run again"
            # A diverged training leaves figures that are NaN.
            manifest = read_json(self.file(MANIFEST), RunError, "a manifest", advice, strict=False)
        except FileNotFoundError:
            return {"format": FORMAT, "stages": {}}
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or not _are_records(manifest):
            raise RunError(f"{self.file(MANIFEST)} is no manifest of format {FORMAT}; name another --out")
        return manifest


def _are_records(manifest: Mapping[str, object]) -> bool:
    """Return whether `manifest` has stages, each with the fields that `RunDirectory.record` writes."""
    stages, config = manifest.get("stages"), manifest.get("config", {})
    return (
        isinstance(stages, dict)
        and isinstance(config, dict)
        and all(isinstance(config.get(table, {}), dict) for table in ("train", "data"))
        and _is_origin(manifest.get("network"))
        and all(isinstance(record, dict) and _is_record(record) for record in stages.values())
    )


def _is_origin(network: object) -> bool:
    """Return whether `network` has the fields of an `Origin`; a run that has not begun has none."""
    keys = {"kind", "source", "content", "flow"}
    return network is None or (isinstance(network, dict) and network.keys() == keys)


def _is_record(record: Mapping[str, object]) -> bool:
    tables = (record.get("inputs"), record.get("outputs"))
    return (
        isinstance(record.get("key"), str)
        and isinstance(record.get("results"), dict)
        and isinstance(record.get("seconds"), int | float)
        and all(isinstance(table, dict) and all(map(_is_digest, table.items())) for table in tables)
    )


def _is_digest(entry: tuple[str, Any]) -> bool:
    """Return whether `entry` is the name of a file inside the folder, and its digest."""
    name, digest = entry
    inside = not name.startswith(("/", "~")) and ".." not in name.split("/") and name.isprintable()
    return inside and isinstance(digest, str | None)


def touched(run: RunDirectory) -> Iterator[str]:
    """Yield one line for each file of `run` that is changed, gone or added, and for each contradiction in the manifest.

    Other files, as the user's notes and logs, are passed over: no claim is made of them, and no stage reads them.

    This does not find changed files if every digest in the manifest was changed too: keep a copy of the manifest, or
    its SHA-256, elsewhere.
    """
    if not run.manifest_is_whole:
        yield f"{MANIFEST} does not have the digest of itself: it was changed by hand; run the flow again"
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
    """Yield one line for each artefact that a stage read in another version than an earlier stage wrote."""
    wrote = {name: (stage, digest) for stage, record in records.items() for name, digest in record["outputs"].items()}
    for stage, record in records.items():
        for name, read in record["inputs"].items():
            if name in wrote and wrote[name][1] != read:
                yield (
                    f"{MANIFEST}: stage {stage!r} read another {name} than stage {wrote[name][0]!r} wrote; run the "
                    "flow again"
                )
