"""Models that are only layers with named arrays: selection needs no more, and no TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np


@dataclass
class FakeVariable:
    path: str
    array: np.ndarray
    trainable: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def numpy(self) -> np.ndarray:
        return self.array.copy()

    def assign(self, value: Any) -> None:
        self.array = np.asarray(value, dtype=self.array.dtype).reshape(self.array.shape)


@dataclass
class FakeLayer:
    name: str
    variables: list[FakeVariable]
    trainable: bool = True

    @property
    def weights(self) -> list[FakeVariable]:
        return self.variables


@dataclass
class FakeModel:
    layers: list[FakeLayer]
    name: str = "fake"
    variables: list[FakeVariable] = field(default_factory=list)

    @property
    def weights(self) -> list[FakeVariable]:
        return self.variables


def fake_model(arrays: dict[str, np.ndarray]) -> FakeModel:
    """A model with one layer for each first part of a path, as `{"conv1/kernel": array}`."""
    layers: dict[str, FakeLayer] = {}
    for path, array in arrays.items():
        layer = layers.setdefault(path.split("/")[0], FakeLayer(path.split("/")[0], []))
        layer.variables.append(FakeVariable(path, np.asarray(array)))
    return FakeModel(list(layers.values()))


def random_arrays(seed: int, channels: tuple[int, ...] = (2, 5, 4), size: int = 3) -> dict[str, np.ndarray]:
    """Kernels and biases of convolutions in a row, float32, without equal magnitudes."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray] = {}
    for at, (inputs, outputs) in enumerate(pairwise(channels), start=1):
        arrays[f"conv{at}/kernel"] = rng.normal(size=(size, size, inputs, outputs)).astype(np.float32)
        arrays[f"conv{at}/bias"] = rng.normal(size=outputs).astype(np.float32)
    return arrays
