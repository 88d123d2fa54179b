"""`HeldValues`: which elements of which weights are held at a value, and at which, as data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fpgaprune.errors import MaskError
from fpgaprune.files import does_not_exist, read_npz, write_npz
from fpgaprune.values.masks import MaskSet
from fpgaprune.values.real_arrays import Array

_FREE, _VALUE = "free/", "value/"


@dataclass(frozen=True)
class HeldValues:
    """Elements of weights that stay at a value while the others train.

    `fp.lock(model, held.masks, held.values)` sets them, and `fp.certify(model, held.masks, held.values)` compares them.

    Attributes:
        masks: True = free, False = held.
        values: weight path to an array of the weight's shape; only held elements mean anything, the others are 0.
    """

    masks: MaskSet = field(default_factory=lambda: MaskSet({}))
    values: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> HeldValues:
        """Read the file that `save` wrote.

        Raises:
            MaskError: the file is missing, or it holds something else.
        """
        try:
            return cls.from_arrays(read_npz(path))
        except FileNotFoundError as error:
            raise MaskError(does_not_exist(path, "file of held values")) from error
        except ValueError as error:
            raise MaskError(f"{os.fspath(path)!r} is no file of held values: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the held values to `path` (.npz); the same values give the same bytes."""
        write_npz(path, self.arrays)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> HeldValues:
        """Return what `arrays` holds, in the form of the property of this name.

        Raises:
            ValueError: a weight has a mask and no values of the same shape, or the other way round.
        """
        masks = {key.removeprefix(_FREE): array for key, array in arrays.items() if key.startswith(_FREE)}
        values = {key.removeprefix(_VALUE): array for key, array in arrays.items() if key.startswith(_VALUE)}
        if len(masks) + len(values) != len(arrays) or {k: m.shape for k, m in masks.items()} != {
            k: v.shape for k, v in values.items()
        }:
            raise ValueError(f"wanted a mask and values for each weight, got {', '.join(sorted(arrays)) or 'nothing'}")
        return cls(MaskSet(masks), values)

    @property
    def arrays(self) -> dict[str, Array]:
        """All masks and values, as plain arrays by name."""
        masks = {_FREE + path: mask for path, mask in self.masks.items()}
        return {**masks, **{_VALUE + path: np.asarray(array) for path, array in self.values.items()}}

    @property
    def count(self) -> int:
        """How many elements are held."""
        return self.masks.locked_count
