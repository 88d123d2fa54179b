"""`Workers`: trials in other processes, on this machine or on many, through Dask."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import msgspec

from fpgaprune import __version__
from fpgaprune.errors import ConfigError, FpgaPruneError, RunError, ToolError
from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.job import Doing, Job, Outcome, flow_point, kept_outcome, outcome_of
from fpgaprune.flow import Silent
from fpgaprune.measure import from_plain, to_plain

_INSTALL = "pip install 'fpgaprune[search]'"
_CONNECT_S = 30
# A process on a busy machine loads what it needs for longer.
_START_S = 300
# Seconds between two looks at the workers.
_LOOK_S = 10
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


class Workers:
    """Does trials on workers of Dask: one trial a worker at a time, in a process of its own.

    The workers see the folder of the search. What a worker was doing when it was killed is done again by another.
    """

    def __init__(self, count: int, scheduler: str | None, memory_gib: float | None, do: Doing = flow_point) -> None:
        """Workers are there.

        Args:
            count: processes to start on this machine, if no scheduler is named.
            scheduler: address of a scheduler, as `tcp://host:8786`.
            memory_gib: most memory of a process on this machine in GiB; its part of what there is if None.
            do: does a trial; a function that the workers can import.

        Raises:
            ToolError: Dask is missing, or the scheduler does not answer.
            ConfigError: a script starts workers whenever it is imported.
        """
        self._distributed, self._do, self._scheduler = _distributed(), do, scheduler
        self._jobs: dict[str, tuple[Job, Any]] = {}
        self._read: list[tuple[Job, Outcome]] = []
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

    def room(self) -> int:
        """One trial for each thread of the workers that are there now; the first ones wait for a worker."""
        with self._scheduler_lost():
            threads = int(sum(self._client.nthreads().values()))
        return max(threads, 1) - len(self._jobs)

    def begin(self, job: Job) -> None:
        """The trial is begun, unless it has been or has ended before."""
        if job.key in self._jobs or any(one.key == job.key for one, _ in self._read):
            return
        kept = kept_outcome(job)
        if kept is not None:
            self._read.append((job, kept))
            return
        text = msgspec.json.encode(job)
        with self._scheduler_lost():
            future = self._client.submit(
                do_job, text, os.getcwd(), __version__, self._do, key=f"{job.run.resolve()}", pure=True
            )
        self._jobs[job.key] = job, future

    def ended(self) -> list[tuple[Job, Outcome]]:
        """The trials that have ended; waits for one."""
        if not self._read:
            self._wait()
        found, self._read = self._read, []
        return found

    def outcome(self, job: Job) -> Outcome:
        """What the trial brought; other trials go on in the meantime."""
        self.begin(job)
        while True:
            for number, (one, found) in enumerate(self._read):
                if one.key == job.key:
                    del self._read[number]
                    return found
            self._wait()

    def close(self) -> None:
        """The processes on this machine have ended; those of a scheduler go on without a trial."""
        with suppress(OSError, TimeoutError):
            self._opened.close()

    def _wait(self) -> None:
        """At least one trial that was running has ended, if one was."""
        if not self._jobs:
            return
        futures = [future for _, future in self._jobs.values()]
        while not any(future.done() for future in futures):
            with self._scheduler_lost(), self._client.as_current():
                try:
                    self._distributed.wait(futures, timeout=_LOOK_S, return_when="FIRST_COMPLETED")
                except TimeoutError:
                    self._replace_workers()
        for key, (job, future) in list(self._jobs.items()):
            if future.done():
                del self._jobs[key]
                self._read.append((job, self._found(job, future)))

    def _replace_workers(self) -> None:
        """Dask gives up a worker of this machine that does not start in time; another one then takes its place."""
        if self._cluster is not None:
            self._cluster.scale(self._count)

    def _found(self, job: Job, future: Any) -> Outcome:
        """The outcome of a trial whose future is done, or the error that ended the search there."""
        if future.status == "finished" and (kept := kept_outcome(job)) is not None:
            # The worker may have been killed since, and what it sent with it; the file is whole.
            return kept
        try:
            with self._scheduler_lost():
                found = msgspec.json.decode(future.result(timeout=_START_S))
        except self._distributed.scheduler.KilledWorker:
            return f"{_TRIES} workers ended in the middle of it; does it take more memory than a worker has?"
        return found if isinstance(found, str) else from_plain(found, FitPoint, str(job.kept))

    @contextmanager
    def _scheduler_lost(self) -> Iterator[None]:
        """Within the block, a lost scheduler becomes one line."""
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
        said: Exception | None = None
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
                said = error
        raise ToolError(f"{count} workers cannot be started: {said}; try fewer") from said


def do_job(text: bytes, folder: str, version: str, do: Doing) -> str:
    """The outcome of a job as JSON; its file holds it. A worker runs this in the coordinator's working folder.

    Raises:
        RunError: this worker has another fpgaprune, or does not see the folder of the search.
    """
    job = msgspec.json.decode(text, type=Job)
    if version != __version__:
        raise RunError(f"{platform.node()} has fpgaprune {__version__}, the coordinator {version}; install the same")
    if not Path(folder).is_dir():
        raise RunError(f"{platform.node()} sees no folder {folder}; coordinator and workers need a shared file system")
    os.chdir(folder)
    if not Path(job.folder).parent.is_dir():
        raise RunError(
            f"{platform.node()} does not see {job.folder}; coordinator and workers need a shared file system"
        )
    found = outcome_of(job, Silent(), do)
    return msgspec.json.encode(found if isinstance(found, str) else to_plain(found)).decode()


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
    """Within the block, Dask is silent, and each of `count` workers has its part of the processors."""
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
