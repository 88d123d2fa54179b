"""`run_side_by_side`: runs of tools at the same time, all of them ended when one fails or the user interrupts."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

Result = TypeVar("Result")
Stop = Callable[[], bool]
Told = Callable[[int, int, str], None]


def run_side_by_side(
    jobs: Sequence[Callable[[Stop], Result]],
    workers: int | None,
    on_step: Told | None,
    tell: Callable[[Result], str],
) -> list[Result]:
    """What each of `jobs` gives, in their order; they begin in it too.

    Args:
        jobs: each is given a function that is true once it has to end early.
        workers: jobs at a time; one a processor unless given.
        on_step: told of jobs done, jobs in all, and what `tell` says of the one that just ended.
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
