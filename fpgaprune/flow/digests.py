"""SHA-256 of artefacts: of a file, of a folder, and of each file in a folder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from fpgaprune.files import digest_file

# Files that compiling and simulating leave in a project were not generated; nor was Verilator's folder.
_BUILD_LEFTOVERS = (".so", ".o", ".log")
_SIMULATOR = ("rtl", "sim")
# Files and folders that the vendors' tools put into an hls4ml project, beside its folders of sources.
_VENDOR_FOLDERS = (
    *("*_prj", "*.prj", "*_vivado_accelerator", ".Xil", ".autopilot", "logs"),
    *("build", "Catapult*", "hls_output", "reports"),
)
_VENDOR_FILES = (
    *("*.rpt", "*.xml", "*.jou", "*.summary", "*.ndjson", "*.bit", "*.hwh", "*.xsa"),
    *("*-fpga", "*-fpga.*", "catapult.*", "report_data.js", "quartus_data.js"),
)
# The program of a C simulation that was compiled after the run.
_PROGRAM = re.compile(r"firmware/\w+-[0-9a-f]{8}")


def digest_tree(path: Path) -> str | None:
    """SHA-256 of a file's bytes, or of the files below a folder and their places; None where there is nothing."""
    if path.is_file():
        return digest_file(path)
    if not path.is_dir():
        return None
    return _joined(digest_files(path))


def digest_files(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below `folder` by its place there; without what compiling and simulating leaves."""
    return {str(file.relative_to(folder).as_posix()): digest_file(file) for file in _files(folder)}


def changed_files(folder: Path, recorded: Mapping[str, str]) -> Iterator[str]:
    """One line for each file below `folder` that is not as `recorded`: changed, gone or added.

    What a vendor's tool, or a compiler, put there since is none of these: nothing was said of it.
    """
    found = digest_files(folder) if folder.is_dir() else {}
    for place in sorted(recorded.keys() | found.keys()):
        name = f"{folder.name}/{place}"
        if place not in found:
            yield f"{name} is gone; the run wrote it"
        elif place not in recorded:
            if not _is_built_later(PurePosixPath(place)):
                yield f"{name} was added; the run did not write it"
        elif found[place] != recorded[place]:
            yield differs(name)


def differs(name: str) -> str:
    """The line for an artefact whose bytes are not those that were written."""
    return f"{name} is not the file that the run wrote: its SHA-256 differs"


def _joined(digests: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for place, content in digests.items():
        digest.update(f"{place}\0{content}\0".encode())
    return digest.hexdigest()


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
