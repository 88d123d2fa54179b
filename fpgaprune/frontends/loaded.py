"""`LoadedNetwork`: a network of somebody else as a Keras model, with everything that its file says about it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError
from fpgaprune.files import write_npz
from fpgaprune.values import (
    Array,
    FixedType,
    MaskSet,
    expand_indices,
    near_misses,
    parse_slice,
    weight_arrays,
    weight_shapes,
)

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Source:
    """Where a weight came from.

    Attributes:
        name: its name in the file.
        shape: its shape in the file.
        origin: for each element of the weight in Keras its flat position in the file; None if it was computed.
        is_copy: whether the weight has exactly the elements of the file.
        stacked: the names of several arrays that lie one behind another in `shape`; empty if it is one.
    """

    name: str
    shape: tuple[int, ...]
    origin: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)
    is_copy: bool = False
    stacked: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its arrays in the file."""
        return self.stacked or (self.name,)


@dataclass(frozen=True)
class ImportDifference:
    """How far an imported network is from the interpreter of its own format.

    Attributes:
        interpreter: its name.
        relative: largest difference of an output, relative to the largest number of that output; None if not known.
        absolute: largest difference of an output.
        samples: number of samples.
    """

    interpreter: str
    relative: float | None
    absolute: float
    samples: int


@dataclass(frozen=True)
class LoadedNetwork:
    """A network that came in.

    Attributes:
        model: the Keras model, not compiled.
        masks: what is locked: elements that are zero in a kernel, or that a mask in the file locks.
        types: weight path to the fixed-point type that the file says.
        sources: weight path to the weight's origin in the file.
        difference: the largest difference to the interpreter of the format; None for a file that Keras itself saved.
        format: the format of the file.
        facts: what else the import found, as JSON data.
    """

    model: keras.Model
    masks: MaskSet
    types: Mapping[str, FixedType]
    sources: Mapping[str, Source]
    difference: ImportDifference | None
    format: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def locks(self, slices: Iterable[str]) -> MaskSet:
        """Return masks that lock `slices`, in which a weight has its name in the file, or its path in Keras.

        `features.0.weight[13, 29]` is filter 13, input channel 29 of a convolution of PyTorch, so
        `features.0/kernel[:, :, 29, 13]` of Keras.

        Raises:
            MaskError: a slice cannot be read, names no weight or is out of range.
        """
        shapes = weight_shapes(self.model)
        return MaskSet.from_slices(
            self.model, [one for text in slices for one in keras_slices(text, self.sources, shapes)]
        )

    def weight_path(self, name: str) -> str:
        """Return the path in Keras of the weight `name` of the file.

        Raises:
            MaskError: there is no such weight.
        """
        found = next((path for path, source in self.sources.items() if name in source.names), None)
        if found is None:
            known = [one for source in self.sources.values() for one in source.names]
            raise MaskError(f"the file has no weight {name!r}; {near_misses(name, known)}")
        return found

    def state(self, model: keras.Model = None) -> dict[str, Array]:
        """Return the weights by name and in the layout of the file, as `load_state_dict` of PyTorch takes them.

        Args:
            model: a model with the layers of `self.model`, such as a trained copy; `self.model` if left out.

        Raises:
            MaskError: a weight is missing or has another shape, as after a removal, or no weight of the file alone
                says it.
        """
        arrays = weight_arrays(self.model if model is None else model)
        found: dict[str, Array] = {}
        for path, source in self.sources.items():
            if not source.is_copy or source.origin is None:
                raise MaskError(
                    f"{source.name!r} was joined with another layer, or scaled, when it was exported: export the "
                    "network with training=torch.onnx.TrainingMode.PRESERVE and dynamo=False"
                )
            if path not in arrays or arrays[path].shape != source.origin.shape:
                got = arrays[path].shape if path in arrays else "no such weight"
                raise MaskError(f"{path!r} has shape {source.origin.shape} in the file's network; the model has {got}")
            # The two biases of an LSTM are one in Keras: PyTorch gets it as its first, and zeros as its second.
            flat = np.zeros(prod(source.shape), arrays[path].dtype)
            flat[source.origin.ravel()] = arrays[path].ravel()
            whole = flat.reshape(source.shape)
            for name, array in zip(source.names, whole if source.stacked else [whole], strict=True):
                if not np.array_equal(found.setdefault(name, array), array):
                    raise MaskError(f"{name!r} is one weight in the file and several in Keras, which now differ")
        return found

    def save_state(self, path: str | os.PathLike[str], model: keras.Model = None) -> None:
        """Write `state` to `path` (.npz).

        Raises:
            MaskError: as `state`.
        """
        write_npz(path, self.state(model))

    def to_json(self) -> dict[str, Any]:
        """Return all but the model, the masks and the origin of each element, as JSON data."""
        told = self.difference
        return {
            "format": self.format,
            "difference": None if told is None else dict(vars(told)),
            "masks": self.masks.digest(),
            "types": {path: str(kind) for path, kind in self.types.items()},
            "sources": {path: {"name": s.name, "shape": list(s.shape)} for path, s in self.sources.items()},
            **self.facts,
        }


def keras_slices(text: str, sources: Mapping[str, Source], shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Return the Keras slices that the slice `text` of a weight in the file means; itself if it names no such.

    `features.0.weight[13, 29]` becomes `features.0/kernel[:, :, 29, 13]`.

    Raises:
        MaskError: it cannot be read, is out of range, names no weight, or the weight was computed with others when it
            came in.
    """
    name, indices = parse_slice(text)
    path = next((path for path, source in sources.items() if name in source.names), None)
    if path is None:
        if sources and not set(name) & set("/*?"):
            # No path of Keras, and no glob: a name of the file with a mistake in it.
            known = [one for source in sources.values() for one in source.names]
            raise MaskError(f"{name!r} matches no weight of the file; {near_misses(name, known)}")
        return [text]
    source = sources[path]
    if source.stacked:
        indices = (source.stacked.index(name), *(indices or ()))
    if source.origin is None:
        raise MaskError(f"{name!r} was computed with others when it came in; name its weight in Keras: {path!r}")
    named = np.zeros(source.shape, dtype=bool)
    chosen = expand_indices(indices, source.shape, text)
    ranges = [np.atleast_1d(np.arange(size)[index]) for index, size in zip(chosen, source.shape, strict=True)]
    named[np.ix_(*ranges)] = True
    return _block_slices(path, named.ravel()[source.origin].reshape(shapes[path]))


def _block_slices(path: str, chosen: NDArray[np.bool_]) -> list[str]:
    """Return slices that name exactly the elements that are `chosen`."""
    if not chosen.any():
        return []
    sets = [
        np.flatnonzero(chosen.any(axis=tuple(a for a in range(chosen.ndim) if a != axis)))
        for axis in range(chosen.ndim)
    ]
    if np.prod([len(one) for one in sets]) == np.count_nonzero(chosen):
        places = (_index_text(one.tolist(), size) for one, size in zip(sets, chosen.shape, strict=True))
        return [f"{path}[{', '.join(places)}]"]
    # The entries of the last axis one by one.
    found = []
    for last in sets[-1].tolist():
        part = np.zeros_like(chosen)
        part[..., last] = chosen[..., last]
        found += _block_slices(path, part) if len(sets[-1]) > 1 else _elements(path, part)
    return found


def _elements(path: str, chosen: NDArray[np.bool_]) -> list[str]:
    return [f"{path}[{', '.join(map(str, place))}]" for place in np.argwhere(chosen).tolist()]


def _index_text(entries: list[int], size: int) -> str:
    if len(entries) == size and size > 1:
        return ":"
    return str(entries[0]) if len(entries) == 1 else str(entries)


def zero_masks(model: keras.Model) -> MaskSet:
    """Return masks that lock the elements of kernels that are zero."""
    arrays = weight_arrays(model)
    masks = {path: array != 0 for path, array in arrays.items() if path.endswith("kernel") and (array == 0).any()}
    return MaskSet(masks).fitted(weight_shapes(model))
