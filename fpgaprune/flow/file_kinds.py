"""Tells from its name what a file is, and which command takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fpgaprune.errors import ConfigError
from fpgaprune.flow.run_directory import MANIFEST

_MODEL_SUFFIXES = (".keras", ".h5", ".hdf5")
_NEEDED = "--data DATA.npz --part PART --sparsity 0.6"

# What a command may want, in words.
_WANTED = {
    "flow": "a flow file or a Keras model",
    "model": "a Keras model",
    "run": "a run folder",
    "design": "a run folder, a design.json or an hls4ml project",
}
# Kind to what it is in words, and which command takes `{path}`.
_ADVICE: dict[str, tuple[str, str]] = {
    "flow": ("a flow file", "run it with 'fpgaprune run {path}'"),
    "model": ("a Keras model", f"prune it with 'fpgaprune run {{path}} {_NEEDED}'"),
    "onnx": ("an ONNX file", "name the Keras model that it was made from; 'fpgaprune run' writes ONNX itself"),
    "arrays": ("an .npz of arrays", "name data with --data, and masks with --masks"),
    "run": (
        "a run folder",
        "'fpgaprune verify {path}' checks it, 'fpgaprune measure {path}' measures it, 'fpgaprune run FLOW.toml --out "
        "{path}' goes on with it",
    ),
    "project": ("an hls4ml project", "price it with 'fpgaprune estimate {path}'"),
    "design": ("a design", "price it with 'fpgaprune estimate {path}'"),
}


def kind_of(path: Path) -> str | None:
    """`flow`, `model`, `onnx`, `arrays`, `run`, `project` or `design`; None if unknown."""
    suffix = path.suffix.lower()
    if path.is_dir():
        found = {MANIFEST: "run", "saved_model.pb": "model", "firmware": "project"}
        return next((kind for name, kind in found.items() if (path / name).exists()), None)
    if suffix in _MODEL_SUFFIXES:
        return "model"
    named = {".toml": "flow", ".onnx": "onnx", ".npz": "arrays", ".json": "design"}
    return named.get(suffix)


def require_kind(path: Path, wanted: Literal["flow", "model", "run", "design"], where: str = "") -> None:
    """`path` may be what is wanted: it is of that kind, or its kind is unknown.

    Args:
        path: what the user named.
        wanted: its kind; a `design` may stand in a run or in an hls4ml project.
        where: begins the message.

    Raises:
        ConfigError: it is something else; the message says which command takes it.
    """
    kind = kind_of(path)
    if kind in (None, wanted) or (wanted == "design" and kind in ("run", "project")):
        return
    found, advice = _ADVICE[str(kind)]
    raise ConfigError(f"{where}{path} is {found}; wanted {_WANTED[wanted]}: {advice.format(path=path)}")


def needed_with_model(path: Path, missing: list[str]) -> str:
    """The message for a model that is named without the options that it needs."""
    verb = "is" if len(missing) == 1 else "are"
    return f"{path} is a Keras model, and {', '.join(missing)} {verb} missing; use 'fpgaprune run {path} {_NEEDED}'"
