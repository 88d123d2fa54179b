"""Tells from its name what a file is, and which command takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fpgaprune.errors import ConfigError
from fpgaprune.flow.run import MANIFEST

_NEEDED = "--data DATA.npz --part PART --sparsity 0.6"
_SAVE_WHOLE = "save the whole model with model.save('net.keras')"

# What a command may want, in words.
_WANTED = {
    "flow": "a flow file (.toml) or a network (.keras, .h5, .onnx)",
    "model": "a network (.keras, .h5, .onnx)",
    "run": "a run folder",
    "design": "a run folder, a design.json or an hls4ml project",
}
# Kind to what it is in words, and which command takes `{path}`, or what makes of it a file that one takes.
_ADVICE: dict[str, tuple[str, str]] = {
    "flow": ("a flow file", "run it with 'fpgaprune run {path}'"),
    "model": ("a network", f"prune it with 'fpgaprune run {{path}} {_NEEDED}'"),
    "arrays": ("an .npz of arrays", "name data with --data, and masks with --masks"),
    "run": (
        "a run folder",
        "'fpgaprune verify {path}' checks it, 'fpgaprune measure {path}' measures it, 'fpgaprune run FLOW.toml --out "
        "{path}' goes on with it",
    ),
    "search": ("a folder of 'fpgaprune fit'", "that of its best network is {path}/best"),
    "project": ("an hls4ml project", "price it with 'fpgaprune estimate {path}'"),
    "design": (
        "a JSON file",
        "if it is a design, price it with 'fpgaprune estimate {path}'; if it is a Keras architecture, make a model "
        "of it with 'fpgaprune convert {path} --weights WEIGHTS.h5'",
    ),
    "weights": ("a file of weights without their network", _SAVE_WHOLE),
    "torch": (
        "a program of PyTorch, which is not run",
        "export it: module.eval(); torch.onnx.export(module, torch.zeros(1, CHANNELS, HEIGHT, WIDTH), 'net.onnx', "
        "dynamo=True)",
    ),
    "graph": ("a graph of TensorFlow", "name the Keras model that it was made from"),
    "pickle": ("a pickle, which is code", _SAVE_WHOLE),
    "python": ("a Python file", "name a function in it as {path}:FUNCTION where data or a metric are wanted"),
}
_ENDINGS = {
    ".toml": "flow",
    ".keras": "model",
    ".h5": "model",
    ".hdf5": "model",
    ".onnx": "model",
    ".npz": "arrays",
    ".json": "design",
    **dict.fromkeys((".ckpt", ".index", ".safetensors"), "weights"),
    **dict.fromkeys((".pt", ".pth"), "torch"),
    **dict.fromkeys((".pb", ".pbtxt", ".tflite"), "graph"),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "pickle"),
    ".py": "python",
}
_INSIDE = {MANIFEST: "run", f"best/{MANIFEST}": "search", "saved_model.pb": "model", "firmware": "project"}


def kind_of(path: Path) -> str | None:
    """Return `flow`, `model`, `arrays`, `run`, `project`, `design` or another key of `_ADVICE`; None if unknown."""
    if path.is_dir():
        return next((kind for name, kind in _INSIDE.items() if (path / name).exists()), None)
    return "weights" if path.name.lower().endswith(".weights.h5") else _ENDINGS.get(path.suffix.lower())


def require_kind(path: Path, wanted: Literal["flow", "model", "run", "design"], where: str = "") -> None:
    """Check that `path` is a file of the wanted kind, or that nothing is there yet.

    Args:
        path: what the user named.
        wanted: its kind; a `design` may stand in a run or in an hls4ml project.
        where: begins the message.

    Raises:
        ConfigError: it is something else; the message says which command takes it.
    """
    kind = kind_of(path)
    if kind == wanted or (wanted == "design" and kind in ("run", "project")):
        return
    if kind is None:
        if not path.exists() or (path.is_dir() and wanted in ("run", "design")):
            return  # What reads it says more.
        what = "is a folder" if path.is_dir() else f"ends in {path.suffix!r}" if path.suffix else "has no ending"
        raise ConfigError(f"{where}{path} {what}, so it is none of the files that are known; wanted {_WANTED[wanted]}")
    found, advice = _ADVICE[str(kind)]
    raise ConfigError(f"{where}{path} is {found}; wanted {_WANTED[wanted]}: {advice.format(path=path)}")


def needed_with_model(path: Path, missing: list[str]) -> str:
    """Return the message for a model that is named without the options that it needs."""
    verb = "is" if len(missing) == 1 else "are"
    return f"{path} is a network, and {', '.join(missing)} {verb} missing; use 'fpgaprune run {path} {_NEEDED}'"
