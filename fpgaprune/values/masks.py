"""`MaskSet` says which elements of which weights are locked.

Everywhere True means free (kept, trains) and False means locked.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError
from fpgaprune.files import does_not_exist, read_npz, write_npz
from fpgaprune.values.slices import expand_indices, parse_slice
from fpgaprune.values.summary import Summarised, Summary
from fpgaprune.values.weights import by_weight_path, match_paths, near_misses, weight_shapes

if TYPE_CHECKING:
    import keras

Mask = NDArray[np.bool_]


class MaskSet(Summarised, Mapping[str, Mask]):
    """Weight path to a bool array of the weight's shape, True = free, False = locked; immutable.

    A path is the model's (`conv2/kernel`) or Keras's own `variable.path` (`sequential/conv2/kernel`); the set keeps it
    as given, and `fitted` translates it. A weight that is not in the set is free. `a & b` is free where both are free,
    `a | b` where either is free, and `~a` swaps free and locked.

    Examples:
        >>> masks = fp.MaskSet.from_slices(model, ["conv1/kernel[:, :, 0, 2]"])
        >>> masks.locked_count, masks["conv1/kernel"].shape
        (9, (3, 3, 1, 4))
        >>> (masks & fp.select(model, 0.5)).sparsity >= 0.5
        True
    """

    def __init__(self, masks: Mapping[str, object]) -> None:
        """Make a set of copies of the arrays in `masks`.

        Raises:
            MaskError: `masks` is no mapping, or an array is not bool.
        """
        if not isinstance(masks, Mapping):
            raise MaskError(
                f"masks is a {type(masks).__name__}; wanted weight path to bool array (True = free), as fp.select and "
                "fp.MaskSet.from_slices give"
            )
        self._masks: dict[str, Mask] = {}
        for path, value in masks.items():
            array = np.array(value)
            if array.dtype != np.bool_:
                raise MaskError(
                    f"mask for {path!r} has dtype {array.dtype}; wanted bool (True = free, False = locked): "
                    "compare your array with 0 first"
                )
            array.setflags(write=False)
            self._masks[path] = array

    @classmethod
    def from_slices(cls, model: keras.Model | Mapping[str, Any], slices: Iterable[str]) -> MaskSet:
        """Make a set that locks exactly what `slices` name, such as `conv2/kernel[:, :, 29, 13]`; a path may be a glob.

        Args:
            model: a Keras model, or a mapping of weight path to shape.
            slices: slice notation; a path without brackets names the whole weight.

        Raises:
            MaskError: a slice cannot be read, matches no weight or is out of range.
        """
        if isinstance(slices, str):
            raise MaskError(f"slices is the string {slices!r}; wanted a sequence of slices, as [{slices!r}]")
        shapes = weight_shapes(model)
        masks: dict[str, Mask] = {}
        for text in slices:
            pattern, indices = parse_slice(text)
            for path in match_paths(pattern, shapes):
                mask = masks.setdefault(path, np.ones(shapes[path], dtype=bool))
                _lock_block(mask, expand_indices(indices, shapes[path], text))
        return cls(masks)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MaskSet:
        """Return the set that `save` wrote.

        Raises:
            MaskError: the file is missing or is not a mask file.
        """
        try:
            return cls(read_npz(path))
        except FileNotFoundError as error:
            raise MaskError(does_not_exist(path, "mask file")) from error
        except MaskError:
            raise
        except ValueError as error:
            raise MaskError(f"{os.fspath(path)!r} is not a mask file: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the set to `path` (.npz); equal sets give equal bytes."""
        write_npz(path, self._masks)

    def __getitem__(self, path: str) -> Mask:
        return self._masks[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._masks)

    def __len__(self) -> int:
        return len(self._masks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MaskSet):
            return NotImplemented
        return self._masks.keys() == other._masks.keys() and all(
            np.array_equal(mask, other[path]) for path, mask in self.items()
        )

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: MaskSet) -> MaskSet:
        return self._combine(other, np.logical_and, absent=lambda mask: mask)

    def __or__(self, other: MaskSet) -> MaskSet:
        return self._combine(other, np.logical_or, absent=np.ones_like)

    def __invert__(self) -> MaskSet:
        return MaskSet({path: ~mask for path, mask in self.items()})

    def _summary(self) -> Summary:
        rows, pictures = [], []
        for path, mask in self.items():
            locked = mask.size - int(mask.sum())
            rows.append((path, " × ".join(map(str, mask.shape)), f"{locked:,}", f"{mask.size:,}"))
            # One pixel for each kernel; a bias is a row.
            shares = np.atleast_2d(mask).mean(axis=tuple(range(mask.ndim - 2)))
            pictures.append((shares, f"{path}: rows are inputs, columns are outputs; grey is locked, green is free"))
        title = f"MaskSet: {len(self)} weights, {self.locked_count:,} of {self.size:,} elements locked"
        return Summary(title, ("weight", "shape", "locked", "of"), rows, (), pictures)

    @property
    def size(self) -> int:
        """Number of elements of all weights in the set."""
        return sum(mask.size for mask in self.values())

    @property
    def locked_count(self) -> int:
        """Number of locked elements."""
        return sum(mask.size - int(mask.sum()) for mask in self.values())

    @property
    def sparsity(self) -> float:
        """Fraction of locked elements over the weights in the set, 0..1."""
        return self.locked_count / self.size if self.size else 0.0

    def digest(self) -> str:
        """Return the SHA-256 over paths, shapes and bits; independent of the order of the paths."""
        digest = hashlib.sha256()
        for path in sorted(self):
            mask = self[path]
            digest.update(f"{path}\0{mask.shape}\0".encode())
            digest.update(np.packbits(mask).tobytes())
        return digest.hexdigest()

    def fitted(self, model: keras.Model | Mapping[str, Any]) -> MaskSet:
        """Return the set with the weight paths of `model`; every mask has its weight's shape.

        Keras's own paths are translated: `sequential/conv2/kernel` becomes `conv2/kernel` if the model is a Sequential
        called `sequential`. Functions that take a model and masks call this method themselves.

        Args:
            model: a Keras model, or a mapping of weight path to shape.

        Raises:
            MaskError: a path is unknown, two name one weight, or a shape differs.
        """
        shapes = weight_shapes(model)
        fitted = by_weight_path(self._masks, shapes)
        for path, mask in fitted.items():
            if path not in shapes:
                raise MaskError(f"mask for {path!r} fits no weight; {near_misses(path, shapes)}")
            if mask.shape != shapes[path]:
                raise MaskError(f"mask for {path!r} has shape {mask.shape}; the weight has {shapes[path]}")
        return MaskSet(fitted)

    def _combine(self, other: MaskSet, join: Callable[[Mask, Mask], Mask], absent: Callable[[Mask], Mask]) -> MaskSet:
        joined: dict[str, Mask] = {}
        for path in [*self, *(p for p in other if p not in self)]:
            if path in self and path in other:
                if self[path].shape != other[path].shape:
                    raise MaskError(
                        f"masks for {path!r} have shapes {self[path].shape} and {other[path].shape}; wanted equal ones"
                    )
                joined[path] = join(self[path], other[path])
            else:
                joined[path] = absent(self[path] if path in self else other[path])
        return MaskSet(joined)


def _lock_block(mask: Mask, indices: tuple[int | slice | list[int], ...]) -> None:
    # With np.ix_, lists on several axes select their outer product, as slices do.
    ranges = [
        np.atleast_1d(np.arange(size)[index if isinstance(index, slice) else np.asarray(index)])
        for index, size in zip(indices, mask.shape, strict=True)
    ]
    mask[np.ix_(*ranges)] = False
