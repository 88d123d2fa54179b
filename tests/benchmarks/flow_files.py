"""Flow files with other paths and lengths, run as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
# How the examples chose weights when some published figures were made.
TAYLOR = {"criterion": "taylor", "normalize": "none", "samples": 4000, "batch_size": 500}


def example(name: str, /, **changes: Any) -> dict[str, Any]:
    """The flow file `examples/NAME.toml`, with `changes`: of keys at the top, or of keys in a table."""
    return merged(tomllib.loads((EXAMPLES / f"{name}.toml").read_text()), changes)


def merged(flow: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`flow` with the keys of `changes`; a table keeps its other keys."""
    tables = {key: {**flow.get(key, {}), **value} for key, value in changes.items() if isinstance(value, dict)}
    return {**flow, **changes, **tables}


def run(flow: dict[str, Any], folder: Path) -> Path:
    """The run `folder`/NAME of `flow`, whose file is `folder`/NAME.toml; what is unchanged does not run again."""
    toml, out = folder / f"{flow['name']}.toml", folder / flow["name"]
    toml.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in flow.items()))
    # The code beside this file, wherever the benchmark was called.
    places = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-P", "-m", "fpgaprune", "run", str(toml), "--out", str(out)]
    ended = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": places}, check=False
    )
    # Too large a loss and a network that does not fit have their own status; the point is measured all the same.
    if ended.returncode not in (0, 1, 3, 4):
        raise SystemExit(f"the run failed: {' '.join(command)}\n{ended.stderr}")
    return out


def results(run: Path, stage: str) -> dict[str, Any]:
    """What `stage` of the run wrote into its manifest."""
    return dict(json.loads((run / "manifest.json").read_text())["stages"][stage]["results"])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(inner) for inner in value) + "]"
    return json.dumps(value)
