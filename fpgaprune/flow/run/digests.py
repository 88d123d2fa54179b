"""SHA-256 of artefacts: of a file, of a folder, and of each file in a folder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from fpgaprune.files import digest_file
from fpgaprune.frontends import external_files, is_onnx

# Files that compiling and simulating leave in a project, and Verilator's folder: the run did not generate them.
_BUILD_LEFTOVERS = (".so", ".o", ".log")
_SIMULATOR = ("rtl", "sim")
# Folders and files that the vendors' tools write into an hls4ml project, beside its sources.
_VENDOR_FOLDERS = (
    *("*_prj", "*.prj", "*_vivado_accelerator", ".Xil", ".autopilot", "logs"),
    *("build", "Catapult*", "hls_output", "reports"),
)
_VENDOR_FILES = ("*.rpt", "*.xml", "*.jou", "*.summary", "*.ndjson", "*.bit", "*.hwh", "*.xsa", "catapult.*")
# The program of a C simulation that was compiled after the run.
_PROGRAM = re.compile(r"firmware/\w+-[0-9a-f]{8}")


def digest_tree(path: Path) -> str | None:
    """Return the SHA-256 of a file's bytes, or of a folder's files and their places; None if there is nothing."""
    if path.is_file():
        return digest_file(path)
    if not path.is_dir():
        return None
    content = "".join(f"{place}\0{digest}\0" for place, digest in digest_files(path).items())
    return hashlib.sha256(content.encode()).hexdigest()


def digest_network(path: Path) -> str | None:
    """Return the SHA-256 of a network's file or folder, with the files beside an ONNX file that hold its constants."""
    beside = external_files(path) if is_onnx(path) and path.is_file() else ()
    if not beside:
        return digest_tree(path)
    content = "".join(f"{file.name}\0{digest_tree(file)}\0" for file in (path, *beside))
    return hashlib.sha256(content.encode()).hexdigest()


def digest_files(folder: Path) -> dict[str, str]:
    """Place to SHA-256 for every file below `folder`, except what compiling and simulating leave there."""
    return {str(file.relative_to(folder).as_posix()): digest_file(file) for file in _files(folder)}


def changed_files(folder: Path, recorded: Mapping[str, str]) -> Iterator[str]:
    """Yield one line for each file below `folder` that is not as `recorded`: changed, gone or added.

    Files that a vendor's tool or a compiler added later are passed over: the run makes no claim about them.
    """
    found = digest_files(folder) if folder.is_dir() else {}
    for place in sorted(recorded.keys() | found.keys()):
        if place in recorded or not _is_built_later(PurePosixPath(place)):
            yield from differences(f"{folder.name}/{place}", recorded.get(place), found.get(place))


def differences(name: str, wrote: str | None, found: str | None) -> Iterator[str]:
    """Yield a line if the artefact `name` is changed, gone or added: its digest `found` is not that of the run."""
    if found is None and wrote is not None:
        yield f"{name} is gone; the run wrote it"
    elif wrote is None and found is not None:
        yield f"{name} was added; the run did not write it"
    elif found != wrote:
        yield f"{name} is not the file that the run wrote: its SHA-256 differs"


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        is_simulator = (folder.name, file.relative_to(folder).parts[0]) == _SIMULATOR
        if file.is_file() and file.suffix not in _BUILD_LEFTOVERS and not is_simulator:
            yield file


def _is_built_later(place: PurePosixPath) -> bool:
    top = place.parts[0]
    if len(place.parts) > 1:
        return _PROGRAM.fullmatch(str(place)) is not None or any(fnmatch(top, name) for name in _VENDOR_FOLDERS)
    return any(fnmatch(top, name) for name in _VENDOR_FILES)
