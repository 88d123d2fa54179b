"""Trials an hour of `fpgaprune fit` on 1, 2 and 4 workers: the same trials; the first of each worker is left out."""

import argparse
import os
import resource
import shutil
import time
from pathlib import Path

from fpgaprune.fit import Knobs, Limits, Trial, Workers, write_split
from fpgaprune.flow import load_data


def trials(folder, model, count, epochs):
    """`count` different trials, as a search would make them."""
    for number in range(count):
        knobs = Knobs("weight", (0.5, 0.75)[number % 2], 8 - number % 5, 8 - number // 5 % 5)
        document = {
            "name": "bench",
            "train": {"model": str(model)},
            "data": {"source": str(folder / "split.npz")},
            "target": {"part": "xc7z020clg400-1"},
            "finetune": {"epochs": epochs, "quantised": True},
            "hls": {**knobs.settings()["hls"], "simulate": 0},
            "select": {**knobs.settings()["select"], "scope": "network"},
        }
        yield Trial(
            "hls", document["target"], 5.0, Limits(), document, knobs, knobs.settings(), "validation",
            str(folder / "trials"), "",
        )  # fmt: skip


def done(executor, some):
    """Seconds for `some` trials, as many at a time as there is room for."""
    began, left, ended = time.monotonic(), list(some), 0
    while ended < len(some):
        while left and executor.free() > 0:
            executor.submit(left.pop(0))
        for trial, outcome in executor.completed():
            if isinstance(outcome, str):
                raise SystemExit(f"{trial.knobs}: {outcome}")
            ended += 1
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("data")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=Path("build/bench_fit_workers"))
    given = parser.parse_args()
    print("| workers | trials | seconds | trials an hour | processor seconds a trial | load before, after |")
    print("|---:|---:|---:|---:|---:|---|")
    for count in given.workers:
        folder = given.folder / str(count)
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "trials").mkdir(parents=True)
        write_split(folder / "split.npz", load_data(given.data), 0, 20_000)
        every = list(trials(folder, given.model.resolve(), given.trials + count, given.epochs))
        executor, load = Workers(count, None, None), os.getloadavg()[0]
        # The first trial of each worker also loads TensorFlow.
        done(executor, every[:count])
        seconds = done(executor, every[count:])
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        executor.close()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / len(every)
        print(
            f"| {count} | {given.trials} | {seconds:.0f} | {3600 * given.trials / seconds:.0f} | {spent:.0f} "
            f"| {load:.1f}, {os.getloadavg()[0]:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
