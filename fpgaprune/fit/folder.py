"""The folder of a search: what lies in it, its lock, and the split of the training samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from fpgaprune.errors import DataError, RunError
from fpgaprune.files import locked_file, make_folder, write_npz
from fpgaprune.flow import Dataset, Samples, arrays_of, at, count_of
from fpgaprune.values import Array

FRONT, SPLIT, TRIALS, BEST, TENSORBOARD = "front.json", "split.npz", "trials", "best", "tensorboard"
_OWN = {FRONT, SPLIT, TRIALS, BEST, "model.keras", "data.npz", "report.html", TENSORBOARD}

# A tenth of the training samples judges, 5,000 at most. Of few samples it is 500, a quarter at most: fewer would tell
# half a point of accuracy from nothing only by luck.
_SHARE, _WANTED, _LARGEST_SHARE, _MOST = 10, 500, 4, 5000
# A quarter of fewer samples judges nothing.
_FEWEST = 128


def require_search_folder(folder: Path) -> None:
    """Require that `folder` is new, empty or of an earlier search.

    Raises:
        RunError: it is not.
    """
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; name a folder for the search")
    names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    if others := sorted(name for name in names - _OWN if not name.startswith(".")):
        raise RunError(f"{folder} holds {others[0]!r}, which is of no search; name an empty or new folder")


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Let no other process search in `folder` within the block; the lock ends with the process in any case.

    Raises:
        RunError: another process does.
    """

    def in_use(owner: str) -> RunError:
        return RunError(f"{folder} is in use by {owner}; wait for it, or name another --out")

    with locked_file(make_folder(folder) / ".lock", in_use):
        yield


def require_samples(data: Dataset) -> None:
    """Check that `data` can be split.

    Raises:
        DataError: there are too few training samples.
    """
    count = count_of(data.x_train)
    if data.x_valid is None and count < _FEWEST:
        raise DataError(
            f"data {data.name!r} have {count} training samples; wanted {_FEWEST} or more, because the search judges by "
            "samples that it does not train on; or add x_valid and y_valid"
        )


def write_split(path: Path, data: Dataset, seed: int, most: int) -> None:
    """Write the samples of a search to the `.npz` at `path`: `x_train` to train on, `x_test` to judge by.

    Validation samples judge if there are some, else a tenth of the training samples (a quarter of few), at random.
    So held-out samples choose nothing.

    Args:
        path: the file.
        data: the data of the flow.
        seed: of the choice.
        most: samples to train on.
    """
    order = np.random.default_rng(seed).permutation(count_of(data.x_train))
    if data.x_valid is not None and data.y_valid is not None:
        source, judging = "valid", np.arange(min(count_of(data.x_valid), _MOST))
    else:
        count = min(max(len(order) // _SHARE, min(_WANTED, len(order) // _LARGEST_SHARE)), _MOST)
        judging, order = order[:count], order[count:]
        source = "train"
    trained = np.sort(order[:most])
    arrays: dict[str, Array] = {}
    for axis, names in (("x", data.inputs), ("y", data.outputs), ("sample_weight", data.outputs)):
        for part, origin, rows in (("train", "train", trained), ("test", source, judging)):
            samples: Samples | None = getattr(data, f"{axis}_{origin}")
            for number, array in enumerate(() if samples is None else arrays_of(at(samples, rows))):
                arrays[f"{axis}_{part}.{names[number]}" if names else f"{axis}_{part}"] = array
    write_npz(path, arrays)
