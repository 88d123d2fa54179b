"""Compiles the C simulation of a project with g++, and runs it in processes of its own.

It needs neither hls4ml nor TensorFlow, only the project's folder and its `Design`.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.backends import BACKENDS
from fpgaprune.design import Design
from fpgaprune.errors import ToolError, ToolTimeoutError
from fpgaprune.hls.simulator import Simulator, ports, program_of
from fpgaprune.processes import run_tool
from fpgaprune.values import Array, sample_arrays

# A process reads all weights before its first sample, so another process is not worth it for fewer samples.
_SAMPLES_EACH = 4
_POLL_S = 0.1


@dataclass(frozen=True)
class SimulatedOutputs:
    """The outputs of a C simulation for the first of the samples that were asked for.

    Attributes:
        outputs: float32 (samples, ...); a tuple of them if the design has several outputs.
        samples: how many samples ran.
        asked: how many samples were asked for.
        seconds: wall-clock time of the run.
    """

    outputs: Any
    samples: int
    asked: int
    seconds: float


@dataclass(frozen=True)
class CSimulation:
    """A compiled project; `predict` gives the outputs of the hardware, bit for bit.

    Attributes:
        program: the compiled simulation.
        design: what it computes.
    """

    program: Path
    design: Design

    @classmethod
    def build(cls, folder: Path, design: Design, timeout_s: float = 900.0) -> CSimulation:
        """Compile the project in `folder`.

        Raises:
            ToolTimeoutError: g++ takes longer than `timeout_s`.
            ToolError: g++ is missing or fails.
        """
        if not BACKENDS[design.backend].compiles:
            raise ToolError(
                f"the simulation of a project for {design.backend} needs the vendor's compiler, not g++: "
                f"run project.build(steps=['csim']) on a machine that has it"
            )
        if shutil.which("g++") is None:
            raise ToolError("g++ was not found on PATH; the C simulation needs it: install a C++ compiler")
        try:
            run = run_tool(["bash", "build_lib.sh"], folder, timeout_s, log_name="build_lib.log")
        except ToolTimeoutError:
            raise ToolTimeoutError(
                f"g++ did not compile the C simulation of {folder} within {timeout_s:g} s and was stopped; allow more "
                f"seconds, or use the emulation alone"
            ) from None
        except ToolError as error:
            raise ToolError(f"g++ did not compile the C simulation: {error}") from error
        program = program_of(folder)
        if not program.exists():
            raise ToolError(f"g++ did not compile the C simulation of {folder}; its output is in {run.log}")
        return cls(program, design)

    @classmethod
    def open_or_build(cls, folder: Path, design: Design) -> CSimulation:
        """Return the project's C simulation, compiled if it was not compiled before."""
        program = program_of(folder)
        return cls(program, design) if program.exists() else cls.build(folder, design)

    def predict(self, x: Array | Sequence[Array]) -> Any:
        """Return the float32 outputs (N, ...) for the samples `x` (N, ...); a tuple if the design has several outputs.

        Args:
            x: samples, or one array of them for each input of the design.

        Raises:
            DataError: `x` does not fit the design's inputs.
            ToolError: the compiled code crashed, or an assertion in it failed.
        """
        return self.run(x).outputs

    def run(
        self,
        x: Array | Sequence[Array],
        seconds: float | None = None,
        at_least: int = 1,
        on_progress: Callable[[int], None] | None = None,
        sample_timeout_s: float = 900.0,
    ) -> SimulatedOutputs:
        """Run the first samples of `x`, as many as fit into `seconds`, on all cores at once.

        Another sample starts only if one as long as the longest so far would still end in time.

        Args:
            x: as for `predict`.
            seconds: wall-clock time for the run; None for all samples.
            at_least: number of samples that run however long they take.
            on_progress: gets the number of samples done, several times a second.
            sample_timeout_s: most seconds for one sample.

        Raises:
            DataError: `x` does not fit the design's inputs.
            ToolTimeoutError: one sample took longer than `sample_timeout_s`.
            ToolError: the compiled code crashed, or an assertion in it failed.
        """
        samples = self._samples(x)
        asked, started = len(samples[0]), time.monotonic()
        shared = _Queue(asked, min(at_least, asked), None if seconds is None else started + seconds)
        results = [np.zeros((asked, *shape), np.float32) for shape in ports(self.design)[1]]
        count = max(1, min(_cores(), -(-asked // _SAMPLES_EACH))) if asked else 0
        log = self.program.parent.parent
        workers: list[Simulator] = []
        try:
            for number in range(count):
                workers.append(Simulator(self.program, self.design, log / f"simulate_{number}.log"))
            threads = [
                threading.Thread(target=shared.work, args=(worker, samples, results, sample_timeout_s), daemon=True)
                for worker in workers
            ]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                next(thread for thread in threads if thread.is_alive()).join(_POLL_S)
                if on_progress is not None:
                    on_progress(shared.done)
        finally:
            for worker in workers:
                worker.end()
        if shared.error is not None:
            raise shared.error
        done = tuple(array[: shared.done] for array in results)
        outputs = done[0] if len(done) == 1 else done
        return SimulatedOutputs(outputs, shared.done, asked, time.monotonic() - started)

    def _samples(self, x: Array | Sequence[Array]) -> list[NDArray[np.float32]]:
        arrays = sample_arrays(x, ports(self.design)[0], f"design {self.design.name!r}")
        return [np.ascontiguousarray(array, dtype=np.float32) for array in arrays]


class _Queue:
    """Hands out the numbers of the samples to several threads, in order, so that the first samples are run."""

    def __init__(self, count: int, at_least: int, until: float | None) -> None:
        self.done = 0
        self.error: ToolError | None = None
        self._count = count
        self._at_least = at_least
        self._until = until
        self._next = 0
        self._longest = 0.0
        self._lock = threading.Lock()

    def work(
        self,
        simulator: Simulator,
        samples: Sequence[NDArray[np.float32]],
        results: Sequence[NDArray[np.float32]],
        timeout_s: float,
    ) -> None:
        """Let `simulator` write samples' outputs to `results` until no sample or time is left, or an error occurs."""
        while (place := self._take()) is not None:
            started = time.monotonic()
            try:
                found = simulator.give([array[place] for array in samples], timeout_s)
            except (ToolError, OSError) as error:
                failed = (
                    error if isinstance(error, ToolError) else ToolError(f"the C simulation cannot be read: {error}")
                )
                with self._lock:
                    self.error = self.error or failed
                return
            for result, values in zip(results, found, strict=True):
                result[place] = values
            with self._lock:
                self.done += 1
                self._longest = max(self._longest, time.monotonic() - started)

    def _take(self) -> int | None:
        with self._lock:
            late = self._until is not None and time.monotonic() + self._longest > self._until
            if self.error is not None or self._next == self._count or (late and self._next >= self._at_least):
                return None
            self._next += 1
            return self._next - 1


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
