"""Samples that the search judges by: training samples that it holds back, so that held-out samples choose nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import DataError
from fpgaprune.flow import Dataset, Samples, arrays_of, at, count_of
from fpgaprune.npz_file import write_npz

# A tenth of the training samples judges, 5,000 at most. Of few samples it is 500, a quarter at most: fewer would tell
# half a point of accuracy from nothing only by luck.
_SHARE, _WANTED, _LARGEST_SHARE, _MOST = 10, 500, 4, 5000
# A quarter of fewer samples judges nothing.
_FEWEST = 128
# A trial trains on this many samples at most.
_TRAINED = 20_000


def write_held_back(path: Path, data: Dataset, seed: int, most: int = _TRAINED) -> None:
    """The `.npz` at `path` holds the samples of a search: `x_train` to train on, `x_test` to judge by.

    Validation samples judge if there are some, else a tenth of the training samples (a quarter of few), at random.

    Args:
        path: the file.
        data: the data of the flow.
        seed: of the choice.
        most: samples to train on; it is 20,000 at most in any case.

    Raises:
        DataError: there are too few training samples.
    """
    order = np.random.default_rng(seed).permutation(count_of(data.x_train))
    if data.x_valid is not None and data.y_valid is not None:
        source, held = "valid", np.arange(min(count_of(data.x_valid), _MOST))
    else:
        if len(order) < _FEWEST:
            raise DataError(
                f"data {data.name!r} have {len(order)} training samples; wanted {_FEWEST} or more, because the "
                "search judges by samples that it does not train on; or add x_valid and y_valid"
            )
        count = min(max(len(order) // _SHARE, min(_WANTED, len(order) // _LARGEST_SHARE)), _MOST)
        held, order = order[:count], order[count:]
        source = "train"
    trained = np.sort(order[: min(most, _TRAINED)])
    arrays: dict[str, NDArray[Any]] = {}
    for axis, names in (("x", data.inputs), ("y", data.outputs), ("sample_weight", data.outputs)):
        for part, origin, rows in (("train", "train", trained), ("test", source, held)):
            samples: Samples | None = getattr(data, f"{axis}_{origin}")
            for number, array in enumerate(() if samples is None else arrays_of(at(samples, rows))):
                arrays[f"{axis}_{part}.{names[number]}" if names else f"{axis}_{part}"] = array
    write_npz(path, arrays)
