"""`run_side_by_side`: runs of tools at the same time; all of them end if one fails or the user interrupts."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from fpgaprune.processes import OnStep

Result = TypeVar("Result")
Stop = Callable[[], bool]


def run_side_by_side(
    jobs: Sequence[Callable[[Stop], Result]], workers: int | None, on_step: OnStep | None, tell: Callable[[Result], str]
) -> list[Result]:
    """Return the results of `jobs`, in the order of the jobs, which is also the order in which they start.

    Args:
        jobs: each gets a function that returns True once the job has to end early.
        workers: jobs at a time; one for each processor unless given.
        on_step: is told the jobs done, the jobs in all, and what `tell` says of the job that just ended.
        tell: a few words on a result.
    """
    stop = threading.Event()
    done: dict[int, Result] = {}
    with ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1) as pool:
        futures = {pool.submit(job, stop.is_set): place for place, job in enumerate(jobs)}
        try:
            for future in as_completed(futures):
                found = done[futures[future]] = future.result()
                if on_step is not None:
                    on_step(len(done), len(jobs), tell(found))
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [done[place] for place in range(len(jobs))]
