"""Executors of trials: in this process, or on workers of Dask, on this machine or on many."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fpgaprune import __version__
from fpgaprune.errors import ConfigError, FpgaPruneError, RunError, ToolError
from fpgaprune.fit.result import FitPoint
from fpgaprune.fit.trial import Executor, Outcome, RunTrial, Trial, outcome_of, run_trial, saved_outcome
from fpgaprune.flow import Progress, Silent
from fpgaprune.measure import from_plain, to_plain

_INSTALL = "pip install 'fpgaprune[search]'"
_CONNECT_S = 30
# A process on a busy machine loads what it needs for longer.
_START_S = 300
# Seconds between two looks at the workers.
_POLL_S = 10
# A trial whose worker ended so often takes more memory than a worker has, or crashes.
_TRIES = 3
_GIB = 1 << 30
_SETTINGS = {
    "distributed.scheduler.allowed-failures": _TRIES - 1,
    # TensorFlow keeps what it took: a worker that waits until its memory is given back would wait for ever.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 0.98,
    "distributed.admin.tick.limit": "1h",
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.comm.timeouts.connect": f"{_CONNECT_S}s",
    "distributed.deploy.lost-worker-timeout": f"{_START_S}s",
    # TensorFlow imports for seconds without a pause.
    "distributed.comm.timeouts.tcp": "120s",
}


@dataclass(frozen=True)
class WorkerOptions:
    """Where trials run: in this process, in several on this machine, or on the workers of a Dask scheduler.

    Attributes:
        workers: processes on this machine that run trials at the same time.
        scheduler: address of a scheduler of Dask, as `tcp://host:8786`, whose workers run the trials.
        memory_gib: most memory of a worker on this machine in GiB; its part of what there is if None.
    """

    workers: int | None = None
    scheduler: str | None = None
    memory_gib: float | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"workers is {self.workers}; wanted 1 or more, or nothing")
        if self.memory_gib is not None and not 0 < self.memory_gib < float("inf"):
            raise ConfigError(f"memory_gib is {self.memory_gib}; wanted a number above 0")
        if self.workers is not None and self.scheduler is not None:
            raise ConfigError(
                f"workers is {self.workers} and scheduler is {self.scheduler}; wanted one of them: "
                "a scheduler has workers of its own"
            )
        if self.memory_gib is not None and self.workers is None:
            raise ConfigError("memory_gib bounds workers on this machine; name their number with workers")

    def executor(self, progress: Progress) -> Executor:
        """Start the workers; without any, trials run in this process, and `progress` learns of their stages.

        Raises:
            ToolError: Dask is missing, or the scheduler does not answer.
        """
        if self.workers is None and self.scheduler is None:
            return InProcess(TrialProgress(progress))
        return Workers(self.workers or 1, self.scheduler, self.memory_gib)


@dataclass
class TrialProgress:
    """Show the stages of one trial as the steps of one long stage."""

    progress: Progress
    _stage: str = ""

    def stage(self, name: str, state: str, note: str = "", seconds: float | None = None) -> None:  # noqa: ARG002
        """Show that the run has begun the stage `name`; its end is not shown."""
        if state == "running":
            self._stage = name
            self.progress.step(0, 0, name)

    def step(self, done: int, total: int, note: str = "") -> None:
        """Show how far the stage is."""
        self.progress.step(done, total, f"{self._stage}: {note}" if note else self._stage)


@dataclass
class InProcess:
    """Run trials in this process, one at a time.

    Attributes:
        progress: learns of the stages of a trial.
        run: runs a trial.
    """

    progress: Progress
    run: RunTrial = run_trial
    concurrent: ClassVar[bool] = False
    _waiting: Trial | None = field(default=None, init=False)

    def free(self) -> int:
        """Return 1, or 0 if a trial waits."""
        return int(self._waiting is None)

    def submit(self, trial: Trial) -> None:
        """Let the trial wait until its outcome is asked for."""
        self._waiting = trial

    def completed(self) -> list[tuple[Trial, Outcome]]:
        """Run the trial that waits, and return it with its outcome."""
        trial = self._waiting
        return [] if trial is None else [(trial, self.result(trial))]

    def result(self, trial: Trial) -> Outcome:
        """Run the trial, and return its outcome."""
        if self._waiting == trial:
            self._waiting = None
        return outcome_of(trial, self.progress, self.run)

    def close(self) -> None:
        """Do nothing: no process was started."""


class Workers:
    """Run trials on workers of Dask: one trial a worker at a time, in a process of its own.

    The workers see the folder of the search. A trial whose worker was killed is run again by another one.
    """

    concurrent: ClassVar[bool] = True

    def __init__(self, count: int, scheduler: str | None, memory_gib: float | None, run: RunTrial = run_trial) -> None:
        """Start or find the workers.

        Args:
            count: processes to start on this machine, if no scheduler is named.
            scheduler: address of a scheduler, as `tcp://host:8786`.
            memory_gib: most memory of a process on this machine in GiB; its part of what there is if None.
            run: runs a trial; a function that the workers can import.

        Raises:
            ToolError: Dask is missing, or the scheduler does not answer.
            ConfigError: a script starts workers whenever it is imported.
        """
        self._distributed, self._run, self._scheduler = _distributed(), run, scheduler
        self._running: dict[str, tuple[Trial, Any]] = {}
        self._ended: list[tuple[Trial, Outcome]] = []
        with ExitStack() as stack:
            stack.enter_context(_settings(count))
            self._count, self._cluster = count, None
            if scheduler is None:
                self._cluster = stack.enter_context(self._local(count, memory_gib))
            try:
                self._client = stack.enter_context(
                    self._distributed.Client(self._cluster or scheduler, set_as_default=False)
                )
            except (OSError, ValueError, TimeoutError) as error:
                raise ToolError(
                    f"no scheduler of Dask answers at {scheduler}: {str(error) or type(error).__name__}; "
                    "start one with 'dask scheduler', and give its address"
                ) from error
            self._opened = stack.pop_all()

    def free(self) -> int:
        """Return the threads of the workers that are there now (one if none is yet), less the running trials."""
        with self._scheduler_lost():
            threads = int(sum(self._client.nthreads().values()))
        return max(threads, 1) - len(self._running)

    def submit(self, trial: Trial) -> None:
        """Begin a trial, unless it is running or has ended before."""
        if trial.key in self._running or any(one.key == trial.key for one, _ in self._ended):
            return
        outcome = saved_outcome(trial)
        if outcome is not None:
            self._ended.append((trial, outcome))
            return
        text = msgspec.json.encode(trial)
        with self._scheduler_lost():
            future = self._client.submit(
                run_encoded, text, os.getcwd(), __version__, self._run, key=str(trial.run_folder.resolve()), pure=True
            )
        self._running[trial.key] = trial, future

    def completed(self) -> list[tuple[Trial, Outcome]]:
        """Return the trials that have ended, with their outcomes; wait for one."""
        if not self._ended:
            self._wait()
        ended, self._ended = self._ended, []
        return ended

    def result(self, trial: Trial) -> Outcome:
        """Return the outcome of a trial; others go on in the meantime."""
        self.submit(trial)
        while True:
            for number, (other, outcome) in enumerate(self._ended):
                if other.key == trial.key:
                    del self._ended[number]
                    return outcome
            self._wait()

    def close(self) -> None:
        """End the processes on this machine; those of a scheduler go on without a trial."""
        with suppress(OSError, TimeoutError):
            self._opened.close()

    def _wait(self) -> None:
        """Wait until at least one running trial has ended, if one is running."""
        if not self._running:
            return
        futures = [future for _, future in self._running.values()]
        while not any(future.done() for future in futures):
            with self._scheduler_lost(), self._client.as_current():
                try:
                    self._distributed.wait(futures, timeout=_POLL_S, return_when="FIRST_COMPLETED")
                except TimeoutError:
                    self._replace_workers()
        for key, (trial, future) in list(self._running.items()):
            if future.done():
                del self._running[key]
                self._ended.append((trial, self._outcome(trial, future)))

    def _replace_workers(self) -> None:
        """Start a worker for each one of this machine that Dask gave up because it did not start in time."""
        if self._cluster is not None:
            self._cluster.scale(self._count)

    def _outcome(self, trial: Trial, future: Any) -> Outcome:
        """Return the outcome of a trial whose future is done."""
        if future.status == "finished" and (saved := saved_outcome(trial)) is not None:
            # The worker may have been killed since, and what it sent with it; the file is whole.
            return saved
        try:
            with self._scheduler_lost():
                decoded = msgspec.json.decode(future.result(timeout=_START_S))
        except self._distributed.scheduler.KilledWorker:
            return f"{_TRIES} workers ended in the middle of it; does it take more memory than a worker has?"
        return decoded if isinstance(decoded, str) else from_plain(decoded, FitPoint, str(trial.outcome_file))

    @contextmanager
    def _scheduler_lost(self) -> Iterator[None]:
        """Turn a lost scheduler into one line within the block."""
        try:
            yield
        except FpgaPruneError:
            raise
        except (
            self._distributed.comm.CommClosedError,
            self._distributed.CancelledError,
            OSError,
            TimeoutError,
        ) as error:
            raise ToolError(
                f"the scheduler at {self._scheduler or 'this machine'} is gone; start it, and run the command again: "
                "no trial that has ended is lost"
            ) from error

    def _local(self, count: int, memory_gib: float | None) -> Any:
        if parent_process() is not None:
            raise ConfigError(
                "a script that starts workers is imported by each of them, and then would start workers again; "
                "write its calls below: if __name__ == '__main__':"
            )
        reason: Exception | None = None
        for _ in range(_TRIES):
            # A worker that is killed while it starts ends the start of all.
            try:
                return self._distributed.LocalCluster(
                    n_workers=count,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit="auto" if memory_gib is None else int(memory_gib * _GIB),
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                )
            except (OSError, RuntimeError, TimeoutError) as error:
                reason = error
        raise ToolError(f"{count} workers cannot be started: {reason}; try fewer") from reason


def run_encoded(text: bytes, folder: str, version: str, run: RunTrial) -> str:
    """Run a trial on a worker, in the coordinator's working folder, and return its outcome as JSON.

    Raises:
        RunError: this worker has another fpgaprune, or does not see the folder of the search.
    """
    trial = msgspec.json.decode(text, type=Trial)
    if version != __version__:
        raise RunError(f"{platform.node()} has fpgaprune {__version__}, the coordinator {version}; install the same")
    if not Path(folder).is_dir():
        raise RunError(f"{platform.node()} sees no folder {folder}; coordinator and workers need a shared file system")
    os.chdir(folder)
    if not Path(trial.folder).parent.is_dir():
        raise RunError(
            f"{platform.node()} does not see {trial.folder}; coordinator and workers need a shared file system"
        )
    outcome = outcome_of(trial, Silent(), run)
    return msgspec.json.encode(outcome if isinstance(outcome, str) else to_plain(outcome)).decode()


def _distributed() -> Any:
    try:
        import distributed
        import distributed.comm
        import distributed.scheduler
    except ImportError:
        raise ToolError(f"distributed, which brings trials to workers, was not found: {_INSTALL}") from None
    return distributed


@contextmanager
def _settings(count: int) -> Iterator[None]:
    """Silence Dask within the block, and give each of `count` workers its part of the processors."""
    import dask

    threads = str(max((os.cpu_count() or 1) // count, 1))
    environment = {
        "OMP_NUM_THREADS": threads,
        "TF_NUM_INTRAOP_THREADS": threads,
        "TF_NUM_INTEROP_THREADS": "1",
        "DASK_LOGGING__DISTRIBUTED": "critical",
    }

    logs = [logging.getLogger(name) for name in ("distributed", "tornado.application")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        with dask.config.set({**_SETTINGS, "distributed.nanny.pre-spawn-environ": environment}):
            yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
