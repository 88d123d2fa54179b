"""Networks of others at the door: which files come in, how far they are from their own interpreter, how long it takes.

    python tests/benchmarks/bench_frontends.py [FOLDER]

FOLDER holds files of networks in folders, such as clones of public repositories; JSON files of Keras find their weights
beside them, as NAME_weights.h5. Each file is loaded in a process of its own, SavedModels too, so take only folders that
you trust. Without FOLDER the files of PyTorch's exporters that the tests hold are loaded. Prints a table in Markdown.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "tests" / "unit" / "frontends" / "pytorch"
_ENDINGS = {".onnx", ".h5", ".hdf5", ".keras", ".json", ".pb", ".pt", ".pth"}
_LOADED = """
import json, sys, time
import keras
import fpgaprune as fp
start = time.perf_counter()
path, weights, trusted = sys.argv[1], sys.argv[2] or None, sys.argv[3] == "yes"
try:
    found = fp.load(path, weights, trusted=trusted)
    told = found.difference
    said = {"format": found.format, "layers": len(found.model.layers), "locked": found.masks.locked_count}
    if told is not None:
        said |= {"interpreter": told.interpreter, "relative": told.relative, "absolute": told.absolute}
except fp.FpgaPruneError as error:
    said = {"refused": str(error)}
print(json.dumps({**said, "seconds": time.perf_counter() - start}))
"""


def pairs(folder: Path) -> Iterator[tuple[Path, Path | None]]:
    """Each network in `folder`, and its weights if they are apart."""
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _ENDINGS):
        if path.name == "saved_model.pb":
            yield path.parent, None
        elif path.suffix == ".json":
            for weights in sorted(path.parent.glob(f"{path.stem}_*weights.h5")):
                others = [one.stem for one in path.parent.glob("*.json") if len(one.stem) > len(path.stem)]
                if not any(weights.name.startswith(f"{other}_") for other in others):
                    yield path, weights
        elif not path.name.endswith("_weights.h5") and path.suffix != ".pb":
            yield path, None


def row(folder: Path, path: Path, weights: Path | None) -> str:
    """The row of a network in the table."""
    command = [sys.executable, "-c", _LOADED, str(path), str(weights or ""), "yes" if path.is_dir() else "no"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    name = path.relative_to(folder).as_posix()
    if weights is not None:
        name = f"{name}, {weights.name}"
    if done.returncode:
        return f"| {name} | **crashed** | {done.stderr.strip().splitlines()[-1]} | | |"
    found = json.loads(done.stdout.strip().splitlines()[-1])
    seconds = f"{found['seconds']:.1f}"
    if "refused" in found:
        reason = found["refused"]
        for place in (weights, path):
            reason = reason if place is None else reason.replace(f"{place}: ", "").replace(str(place), place.name)
        short = reason.partition(": export")[0].partition(", which fpgaprune")[0]
        return f"| {name} | refused | {short} | | {seconds} |"
    by = ""
    if "interpreter" in found:
        number = found["absolute"] if found["relative"] is None else found["relative"]
        by = f"{number:.1e} ({found['interpreter']})"
    return f"| {name} | {found['format']} | {found['layers']} layers, {found['locked']:,} zeros | {by} | {seconds} |"


def main(folder: Path) -> None:
    print("| file | format | what came in, or why not | largest difference | seconds |")
    print("| --- | --- | --- | ---: | ---: |")
    for path, weights in pairs(folder):
        print(row(folder, path, weights), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else OWN)
