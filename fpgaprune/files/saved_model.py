"""Reads the configuration of a `.keras` or `.h5` file before any library makes a model of it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpgaprune.errors import FpgaPruneError, shown
from fpgaprune.files.documents import PARSER_ERRORS, in_a_line, parse_json
from fpgaprune.files.missing_file import does_not_exist
from fpgaprune.files.whole_files import storage_error

WEIGHTS = "model.weights.h5"
_CONFIG, _METADATA = "config.json", "metadata.json"
_AGAIN = "save or copy the model again"
_MAX_CONFIG = 1 << 26
_MAX_WEIGHTS, _MAX_GROWTH = 1 << 28, 50
_WALK = Path(__file__).with_name("hdf5_walk.py")
_WALK_S = 300.0
# Digests of HDF5 files that were read completely, or that this process wrote.
_SOUND: set[str] = set()


@dataclass(frozen=True)
class Configuration:
    """The configuration in a file of a model.

    Attributes:
        document: JSON data: `config.json`, or the attribute `model_config` of an `.h5` file, with its `training_config`
            as the `compile_config` of a `.keras` file.
        version: version of the Keras that wrote the file; "" if unknown.
    """

    document: dict[str, Any]
    version: str


def read_configuration(path: Path, problem: type[FpgaPruneError]) -> Configuration:
    """Return the configuration of the model in the `.keras` or `.h5` file at `path`; no class that it names is loaded.

    Raises:
        problem: the file is damaged, or is not such a file.
    """
    # Commands that read no model start faster without it.
    import h5py

    try:
        if _is_archive(path):
            with zipfile.ZipFile(path) as archive:
                version = _metadata(archive).get("keras_version", "")
                document = _document(_member(archive, _CONFIG, _MAX_CONFIG))
        else:
            _walk(path, hashlib.sha256(path.read_bytes()).hexdigest())
            with h5py.File(path, "r") as file:
                version = _text(file.attrs.get("keras_version", ""))
                if "model_config" not in file.attrs:
                    raise ValueError("the file holds weights without a model; save the whole model")
                document = _document(_text(file.attrs["model_config"]))
                if "training_config" in file.attrs:
                    document["compile_config"] = _compilation(_document(_text(file.attrs["training_config"])))
    except PARSER_ERRORS as error:
        raise _as_problem(path, error, problem) from error
    return Configuration(document, str(version))


def read_weights(path: Path, problem: type[FpgaPruneError]) -> bytes:
    """Read the HDF5 file with the weights: inside the `.keras` file at `path`, or the `.h5` file itself.

    Everything in it can be read.

    Raises:
        problem: the file is damaged, or refers to other files.
    """
    try:
        if not _is_archive(path):
            data = path.read_bytes()
            _walk(path, hashlib.sha256(data).hexdigest())
            return data
        with zipfile.ZipFile(path) as archive:
            data = _member(archive, WEIGHTS, max(_MAX_WEIGHTS, _MAX_GROWTH * path.stat().st_size))
        digest = hashlib.sha256(data).hexdigest()
        if digest not in _SOUND:
            with tempfile.NamedTemporaryFile(prefix="fpgaprune-", suffix=".h5") as copy:
                copy.write(data)
                copy.flush()
                _walk(Path(copy.name), digest)
    except PARSER_ERRORS as error:
        raise _as_problem(path, error, problem) from error
    return data


def know_weights(data: bytes) -> None:
    """Note that this process wrote the HDF5 file `data`, so that it need not be checked when it is read."""
    _SOUND.add(hashlib.sha256(data).hexdigest())


def _is_archive(path: Path) -> bool:
    """Return whether `path` is a `.keras` file and not an `.h5` file."""
    import h5py

    if path.is_dir():
        raise ValueError("it is a folder; wanted a .keras or .h5 file")
    with open(path, "rb") as file:
        empty = not file.read(1)
    if empty:
        raise ValueError(f"it is empty; {_AGAIN}")
    zipped, is_hdf5 = zipfile.is_zipfile(path), h5py.is_hdf5(path)
    if zipped and is_hdf5:
        raise ValueError(f"it is a .keras and an .h5 file at once; {_AGAIN}")
    suffix = path.suffix.lower()
    if suffix == ".keras" and not zipped:
        raise ValueError(
            f"it is not a .keras, .h5 or SavedModel file, or was cut short: a .keras file is a zip archive; {_AGAIN}"
        )
    if not zipped and not is_hdf5:
        raise ValueError(f"it is not a .keras, .h5 or SavedModel file, or was cut short; {_AGAIN}")
    return zipped


def _document(text: str | bytes) -> dict[str, Any]:
    try:
        found = parse_json(text, infinite=True)
    except ValueError as error:
        raise ValueError(f"its configuration cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ValueError("its configuration is not a JSON object")
    return found


def _compilation(training: dict[str, object]) -> dict[str, Any]:
    """Return `training_config` of an `.h5` file in the form of a `.keras` file, whose classes have modules."""
    homes = {"optimizer_config": "optimizers", "loss": "losses", "metrics": "metrics"}
    return {key.removesuffix("_config"): _housed(value, homes.get(key)) for key, value in training.items()}


def _housed(value: object, home: str | None) -> Any:
    if isinstance(value, list):
        return [_housed(item, home) for item in value]
    if not isinstance(value, dict) or home is None:
        return value
    if "class_name" in value:
        return {"module": f"keras.{home}", "registered_name": None, **value}
    return {key: _housed(item, home) for key, item in value.items()}


def _metadata(archive: zipfile.ZipFile) -> dict[str, Any]:
    names = archive.namelist()
    strange = [name for name in names if name not in (_CONFIG, _METADATA, WEIGHTS)]
    if strange or len(set(names)) < len(names):
        what = f"holds {shown(strange[0])}" if strange else "holds a file twice"
        raise ValueError(f"it {what}; wanted {_CONFIG}, {_METADATA} and {WEIGHTS}")
    found = parse_json(_member(archive, _METADATA, _MAX_CONFIG)) if _METADATA in names else {}
    if not isinstance(found, dict):
        raise ValueError(f"its {_METADATA} is not a JSON object")
    return found


def _member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    if name not in archive.namelist():
        raise ValueError(f"it holds no {name}; {_AGAIN}")
    size = archive.getinfo(name).file_size
    if size > most:
        raise ValueError(f"its {name} takes {size:,} bytes; wanted {most:,} at most")
    return archive.read(name)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, str):
        return value
    raise ValueError(f"its attribute is a {type(value).__name__}; wanted text")


def _walk(path: Path, digest: str) -> None:
    """Check that all of the HDF5 file at `path` can be read, once, in a process that may loop or crash."""
    if digest in _SOUND:
        return
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", str(_WALK), str(path)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", timeout=_WALK_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError("its HDF5 is damaged: reading it does not end") from error
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reason = (
            lines[-1].partition(": ")[2] if lines and done.returncode > 0 else "reading it does not end, or breaks off"
        )
        raise ValueError(f"its HDF5 is damaged: {reason}")
    _SOUND.add(digest)


def _as_problem(path: Path, error: BaseException, problem: type[FpgaPruneError]) -> FpgaPruneError:
    if isinstance(error, FpgaPruneError):
        return error
    if isinstance(error, FileNotFoundError):
        return problem(does_not_exist(path))
    if isinstance(error, OSError) and error.errno and not isinstance(error, zipfile.BadZipFile):
        return problem(str(storage_error(error, path, "read")))
    return problem(f"{path} is not a whole {'.keras' if path.suffix == '.keras' else 'model'} file: {in_a_line(error)}")
