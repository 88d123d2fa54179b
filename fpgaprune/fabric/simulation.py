"""`simulate`: Verilator runs the Verilog of a project cycle by cycle."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import DataError, RtlError, ToolExitError
from fpgaprune.fabric.beats import pack_beats, raw_samples, unpack_beats
from fpgaprune.fabric.verilator import build
from fpgaprune.files import write_bytes
from fpgaprune.processes import run_tool
from fpgaprune.rtl import VerilogProject
from fpgaprune.values import Array, in_order

# What the simulator's exit codes mean (`hw/sim/harness.cpp`).
_COMPLAINTS = {
    5: "no beat moved for {patience} cycles: the design is stuck",
    6: "an output gave more beats than its samples have",
    7: "an output raised tlast before or after the end of a sample",
}


@dataclass(frozen=True)
class Simulation:
    """What a project's Verilog computed for some samples.

    Attributes:
        outputs: real values (N, ...), one array for each output of the design.
        raw: the same values as raw integers.
        first_in: (N,) cycles in which each sample's first beat went in, one array for each input.
        first_out: (N,) cycles in which each sample's first beat came out, one array for each output.
        last_out: (N,) cycles in which each sample's last beat came out, one array for each output.
    """

    outputs: tuple[NDArray[np.float64], ...]
    raw: tuple[NDArray[np.int64], ...]
    first_in: tuple[NDArray[np.int64], ...]
    first_out: tuple[NDArray[np.int64], ...]
    last_out: tuple[NDArray[np.int64], ...]

    @property
    def output(self) -> NDArray[np.float64]:
        """The output of a design that has only one."""
        if len(self.outputs) != 1:
            raise RtlError(f"the design has {len(self.outputs)} outputs; take one of `outputs`")
        return self.outputs[0]

    @property
    def latency_cycles(self) -> int:
        """Cycles from the first sample's first beat in to its last beat out, over all ports."""
        return int(max(row[0] for row in self.last_out) - min(row[0] for row in self.first_in))

    @property
    def interval_cycles(self) -> int | None:
        """Cycles between the last beats out of two samples in a row, the median; None for one sample."""
        steps = [np.diff(row) for row in self.last_out if len(row) > 1]
        return int(max(np.median(step) for step in steps)) if steps else None


def simulate(
    project: VerilogProject,
    x: Array | Sequence[Array],
    *,
    stalls: float | tuple[float, float] = 0.0,
    seed: int = 0,
    reset_after: int = 0,
    loads: Mapping[int, NDArray[np.int64]] | None = None,
    processes: int = 1,
    timeout_s: float = 600.0,
    folder: str | os.PathLike[str] | None = None,
) -> Simulation:
    """Return what the Verilog of `project` computes for `x`; each sample follows the one before without a pause.

    The simulator is built in `sim` below the project's folder, and built anew only if the files change.

    Args:
        project: as `to_verilog` gave it.
        x: samples (N, ...), real, or one such array for each input; they are converted to the inputs' types.
        stalls: share of the cycles, 0 to below 1, in which the inputs offer nothing and the outputs take nothing; one
            number for both, or a pair.
        seed: seed of the stalls.
        reset_after: the design is reset once after so many input beats, and all samples are sent from the beginning.
        loads: number of a sample -> the beats of `weights_stream` that are loaded before it, right behind the sample
            before; only with one process.
        processes: simulators that share the samples, each from its own reset; each one's cycles are counted from the
            last cycle of the one before.
        timeout_s: most wall-clock seconds for building, and for running.
        folder: the folder in which the simulator is built.

    Raises:
        DataError: `x` does not fit the inputs.
        RtlError: the Verilog is stuck or breaks its protocol.
        ToolError: Verilator or a C++ compiler is missing, failed or ran too long.
    """
    samples = _raw_samples(project, x)
    shares = (stalls, stalls) if isinstance(stalls, float | int) else stalls
    if not all(0 <= share < 1 for share in shares):
        raise DataError(f"stalls are {stalls}; wanted shares of the cycles from 0 to below 1")
    if processes < 1 or (loads and processes > 1):
        raise DataError(f"processes is {processes}; wanted 1 or more, and 1 where weights are loaded")
    loaded = _load_bytes(project, loads or {})
    place = Path(folder) if folder is not None else project.path / "sim"
    program = build(project, place, timeout_s)
    per_mille = [str(round(1024 * share)) for share in shares]

    def run(number: int, part: NDArray[np.int64]) -> Simulation:
        arguments = [*per_mille, str(seed + number), str(reset_after)]
        return _run(project, program, place, [array[part] for array in samples], arguments, loaded, timeout_s)

    parts = np.array_split(np.arange(len(samples[0])), min(processes, len(samples[0])))
    with ThreadPoolExecutor(max_workers=len(parts)) as pool:
        return _joined(list(pool.map(run, range(len(parts)), parts)))


def _run(
    project: VerilogProject,
    program: Path,
    place: Path,
    samples: list[NDArray[np.int64]],
    options: list[str],
    loaded: bytes,
    timeout_s: float,
) -> Simulation:
    """Return what one simulator gives for `samples`, with the loads in `loaded` between them."""
    count = len(samples[0])
    sent = b"".join(
        pack_beats(port, array, 4 * port.words) for port, array in zip(project.inputs, samples, strict=True)
    )
    run = f"run_{hashlib.sha256(sent + loaded + repr(options).encode()).hexdigest()[:16]}"
    write_bytes(place / f"{run}.in", sent)
    # A design that moves at all takes fewer cycles a sample, even if it computes each of its sums bit by bit; one
    # multiplier that has a Dense layer to itself takes a cycle for every product.
    products = sum(layer.kept or 0 for layer in project.layers)
    patience = 10_000 + products + 256 * sum(port.beats for port in project.inputs)
    arguments = [f"{run}.in", f"{run}.out", str(count), *options, str(patience)]
    if loaded:
        write_bytes(place / f"{run}.loads", loaded)
        arguments.append(f"{run}.loads")
    try:
        run_tool([str(program.resolve()), *arguments], place, timeout_s, log_name=f"{run}.log")
        received = (place / f"{run}.out").read_bytes()
    except ToolExitError as error:
        if error.code not in _COMPLAINTS:
            raise
        raise RtlError(f"{project.top}: {_COMPLAINTS[error.code].format(patience=patience)}") from error
    finally:
        for ending in ("in", "out", "log", "loads"):
            (place / f"{run}.{ending}").unlink(missing_ok=True)
    return _unpacked(project, count, received)


def _load_bytes(project: VerilogProject, loads: Mapping[int, NDArray[np.int64]]) -> bytes:
    """Write `loads` as the simulator reads them: each the number of a sample, a count of beats, and these."""
    if not loads:
        return b""
    if project.loads is None:
        raise RtlError(f"the Verilog of {project.name!r} takes no loads; write it with a layout that is loadable")
    port = project.loads.port
    found = b""
    for sample, beats in sorted(loads.items()):
        if sample < 0 or beats.ndim != 1 or not len(beats):
            raise DataError(f"the load before sample {sample} has shape {beats.shape}; wanted beats (N,), and a sample")
        found += np.array([sample, len(beats)], "<u4").tobytes() + pack_beats(port, beats, 4 * port.words)
    return found


def _joined(parts: list[Simulation]) -> Simulation:
    """Return the samples of all `parts`; each part's cycles follow those of the part before."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(max(int(row[-1]) for row in part.last_out) for part in parts[:-1])])

    def cycles(name: str) -> tuple[NDArray[np.int64], ...]:
        shifted = [[row + end for row in getattr(part, name)] for part, end in zip(parts, ends, strict=True)]
        return tuple(np.concatenate(rows) for rows in zip(*shifted, strict=True))

    return Simulation(
        tuple(np.concatenate(rows) for rows in zip(*(part.outputs for part in parts), strict=True)),
        tuple(np.concatenate(rows) for rows in zip(*(part.raw for part in parts), strict=True)),
        cycles("first_in"),
        cycles("first_out"),
        cycles("last_out"),
    )


def _raw_samples(project: VerilogProject, x: Array | Sequence[Array]) -> list[NDArray[np.int64]]:
    x = in_order(x, [port.layer for port in project.inputs], project.top)
    several = isinstance(x, list | tuple) and len(project.inputs) > 1
    arrays = list(x) if several else [x]
    if len(arrays) != len(project.inputs):
        raise DataError(f"{project.top} has {len(project.inputs)} inputs; got {len(arrays)} arrays: give one for each")
    found = [raw_samples(port, array) for port, array in zip(project.inputs, arrays, strict=True)]
    if len({len(array) for array in found}) != 1:
        counts = ", ".join(str(len(array)) for array in found)
        raise DataError(f"the inputs have {counts} samples; wanted the same number for each")
    return found


def _unpacked(project: VerilogProject, count: int, received: bytes) -> Simulation:
    raws, start = [], 0
    for port in project.outputs:
        end = start + 4 * port.words * port.beats * count
        raws.append(unpack_beats(port, received[start:end], 4 * port.words))
        start = end
    reals = [port.type.to_float(raw) for port, raw in zip(project.outputs, raws, strict=True)]
    cycles = np.frombuffer(received, "<i8", offset=start).reshape(-1, count)
    inputs = len(project.inputs)
    return Simulation(
        tuple(reals), tuple(raws), tuple(cycles[:inputs]), tuple(cycles[inputs::2]), tuple(cycles[inputs + 1 :: 2])
    )
