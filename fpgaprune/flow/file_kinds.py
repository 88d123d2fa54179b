"""What a file that a user names is, told by its name and its first bytes; and which command takes it."""

from __future__ import annotations

from pathlib import Path

from fpgaprune.errors import ConfigError
from fpgaprune.flow.run_directory import MANIFEST

_MODEL_SUFFIXES = (".keras", ".h5", ".hdf5")
_NEEDED = "--data DATA.npz --part PART --sparsity 0.6"

# Kind to what it is and which command takes it, as `{path}`.
_ADVICE: dict[str, tuple[str, str]] = {
    "flow": ("a flow file", "run it with 'fpgaprune run {path}'"),
    "model": ("a Keras model", f"prune it with 'fpgaprune run {{path}} {_NEEDED}'"),
    "onnx": ("an ONNX file", "name the Keras model that it was made of; 'fpgaprune run' writes ONNX itself"),
    "arrays": ("an .npz of arrays", "name data with --data, and masks with --masks"),
    "run": (
        "a run directory",
        "'fpgaprune verify {path}' checks it, 'fpgaprune measure {path}' measures it, 'fpgaprune run FLOW.toml --out "
        "{path}' goes on with it",
    ),
    "project": ("an hls4ml project", "price it with 'fpgaprune estimate {path}'"),
    "design": ("a design", "price it with 'fpgaprune estimate {path}'"),
}


def kind_of(path: Path) -> str | None:
    """`flow`, `model`, `onnx`, `arrays`, `run`, `project` or `design`; None where nobody can tell."""
    suffix = path.suffix.lower()
    if path.is_dir():
        found = {MANIFEST: "run", "saved_model.pb": "model", "firmware": "project"}
        return next((kind for name, kind in found.items() if (path / name).exists()), None)
    if suffix in _MODEL_SUFFIXES:
        return "model"
    named = {".toml": "flow", ".onnx": "onnx", ".npz": "arrays", ".json": "design"}
    return named.get(suffix)


def require_model(path: Path, what: str = "") -> None:
    """`path` may be a Keras model.

    Raises:
        ConfigError: it is something else; the message says which command takes it.
    """
    _require(path, "model", "a Keras model", what)


def require_run(path: Path) -> None:
    """`path` may be a run directory.

    Raises:
        ConfigError: as `require_model`.
    """
    _require(path, "run", "a run directory", "")


def require_design_source(path: Path) -> None:
    """`path` may be a run directory, an hls4ml project or a design.

    Raises:
        ConfigError: as `require_model`.
    """
    if kind_of(path) not in ("run", "project", "design"):
        _require(path, "run", "a run directory, a design.json or an hls4ml project", "")


def require_flow(path: Path) -> None:
    """`path` may be a flow file.

    Raises:
        ConfigError: as `require_model`.
    """
    _require(path, "flow", "a flow file or a Keras model", "")


def needed_with_model(path: Path, missing: list[str]) -> str:
    """What `fpgaprune run` says where a model is named without the options that it needs."""
    verb = "is" if len(missing) == 1 else "are"
    return f"{path} is a Keras model, and {', '.join(missing)} {verb} missing; use 'fpgaprune run {path} {_NEEDED}'"


def _require(path: Path, wanted: str, named: str, what: str) -> None:
    kind = kind_of(path)
    if kind is None or kind == wanted:
        return
    found, advice = _ADVICE[kind]
    raise ConfigError(f"{what}{path} is {found}; wanted {named}: {advice.format(path=path)}")
