"""Random networks as `Design`s, as flows make them: few layers, few bits, many zeros; no deep-learning framework."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fpgaprune.design import (
    Concatenate,
    Convolution,
    Dense,
    Design,
    Input,
    LayerSpec,
    Map,
    Merge,
    Operation,
    Pad,
    Pooling,
    Reshape,
    Scale,
    Softmax,
    Window,
)
from fpgaprune.values import FixedType

# Cycles for a sample: as its pixels take, some more, plenty.
INTERVALS = (0, 0, 200, 3000)


class Network:
    """A design as it grows; every method returns the name of the layer that it adds."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.layers: list[LayerSpec] = []
        self.read: str | None = None
        rng = self.rng
        self.bits = int(rng.integers(2, 11))
        self.weight_bits = int(rng.integers(2, 11))
        self.zeros = float(rng.choice([0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]))
        self.powers = bool(rng.random() < 0.25)
        self.kernels = bool(rng.random() < 0.4)

    def last(self) -> LayerSpec:
        """The layer that the next one reads."""
        return self.of(self.read) if self.read else self.layers[-1]

    def back(self, name: str) -> None:
        """The next layer reads the layer `name`: a branch begins."""
        self.read = name

    def of(self, name: str) -> LayerSpec:
        return next(layer for layer in self.layers if layer.name == name)

    def add(self, kind: str, operation: Operation, shape: tuple[int, ...], result: FixedType, **fields: Any) -> str:
        name = f"{kind.lower()}{len(self.layers)}"
        inputs = fields.pop("inputs", (self.last().name,) if self.layers else ())
        self.read = None
        types = {"result": result, **fields.pop("types", {})}
        self.layers.append(LayerSpec(name, inputs, shape, types, operation=operation, **fields))
        return name

    def input(self, *shape: int) -> str:
        return self.add("Input", Input(), shape, FixedType(self.bits, 1, bool(self.rng.random() < 0.5), "RND", "SAT"))

    def weights(self, *shape: int) -> np.ndarray:
        """Raw weights of `weight_bits`; the last two axes number a kernel's slices, where whole slices are zero."""
        rng, most = self.rng, (1 << (self.weight_bits - 1)) - 1
        if self.powers:
            raw = np.sign(rng.normal(size=shape)) * 2.0 ** rng.integers(0, max(self.weight_bits - 1, 1), shape)
        else:
            raw = np.clip(np.round(rng.normal(size=shape) * most / rng.uniform(1.5, 3.5)), -most, most)
        by_kernel = self.kernels and len(shape) > 2
        kept = rng.random(shape[-2:] if by_kernel else shape) >= self.zeros
        return (raw * kept).astype(np.int64)

    def _sums(self, raw: np.ndarray, outputs: int, source: LayerSpec) -> dict[str, Any]:
        rng, read = self.rng, source.types["result"]
        weight = FixedType(self.weight_bits, 2, rounding="RND", overflow="SAT")
        fraction = weight.fraction + read.fraction
        most = np.abs(raw.reshape(-1, outputs)).sum(axis=0).max(initial=1) * max(read.raw_max, -read.raw_min)
        whole = int(most).bit_length() + 2 - fraction
        accum = FixedType(min(whole + fraction, 40), whole)
        bias = rng.integers(-(1 << 6), 1 << 6, outputs) << max(accum.fraction - 6, 0)
        # In half of the networks the result has fewer bits than the sum.
        cut = int(rng.integers(0, 4)) if rng.random() < 0.5 else 0
        result = FixedType(max(accum.width - cut, 4), accum.integer)
        types = {"weight": weight, "bias": FixedType(accum.width, accum.integer), "accum": accum}
        return {"result": result, "types": types, "weights": {"weight": raw, "bias": bias}, "strategy": "latency"}

    def relu(self) -> str:
        source = self.last()
        # The range that most sums reach.
        result = FixedType(
            self.bits, source.types["result"].integer - int(self.rng.integers(2, 4)), False, "RND", "SAT"
        )
        return self.add("Activation", Map("relu"), source.output_shape, result)

    def dense(self, outputs: int) -> str:
        source = self.last()
        if len(source.output_shape) > 1:
            self.add("Reshape", Reshape(), (math.prod(source.output_shape),), source.types["result"])
        source = self.last()
        raw = self.weights(source.output_shape[0], outputs)
        return self.add("Dense", Dense(), (outputs,), **self._sums(raw, outputs, source))

    def pad(self, sides: tuple[int, int, int, int]) -> str:
        source = self.last()
        *positions, channels = source.output_shape
        top, bottom, left, right = sides
        more = [top + bottom, left + right][2 - len(positions) :]
        shape = (*(size + extra for size, extra in zip(positions, more, strict=True)), channels)
        return self.add("ZeroPadding", Pad(sides), shape, source.types["result"])

    def conv(self, filters: int, side: int = 3, stride: int = 1, depthwise: bool = False) -> str:
        source = self.last()
        *positions, channels = source.output_shape
        size = (side, side)[: len(positions)]
        steps = (stride,) * len(positions)
        shape = tuple((a - b) // c + 1 for a, b, c in zip(positions, size, steps, strict=True))
        outputs = channels if depthwise else filters
        raw = self.weights(*size, channels, 1 if depthwise else filters)
        window = Window((1, 1, *size)[-2:], (1, 1, *steps)[-2:])
        operation = Convolution(window, depthwise=depthwise, pointwise=side == 1)
        sums = self._sums(raw, outputs, source)
        return self.add("Conv", operation, (*shape, outputs), **sums)

    def pool(self, largest: bool = True, whole: bool = False) -> str:
        source = self.last()
        *positions, channels = source.output_shape
        kind = source.types["result"]
        accum = FixedType(kind.width + 7, kind.integer + 7)
        if whole:
            return self.add("GlobalPooling", Pooling(None, largest), (channels,), kind, types={"accum": accum})
        size = (2, 2)[: len(positions)]
        window = Window((1, 1, *size)[-2:], (1, 1, *size)[-2:])
        shape = (*(side // 2 for side in positions), channels)
        return self.add("Pooling", Pooling(window, largest), shape, kind, types={"accum": accum})

    def normalise(self) -> str:
        source = self.last()
        read, channels = source.types["result"], source.output_shape[-1]
        scale = FixedType(self.weight_bits, 2)
        raw = self.rng.integers(1, scale.raw_max + 1, channels)
        bias = FixedType(12, 4)
        result = FixedType(read.width + scale.width, read.integer + 2)
        return self.add(
            "BatchNormalization",
            Scale(),
            source.output_shape,
            result,
            types={"scale": scale, "bias": bias},
            weights={"scale": raw, "bias": self.rng.integers(bias.raw_min, bias.raw_max, channels)},
        )

    def merge(self, other: str, function: str) -> str:
        one, two = self.of(other), self.last()
        kinds = one.types["result"], two.types["result"]
        whole = max(kind.integer for kind in kinds) + 2
        result = FixedType(whole + max(kind.fraction for kind in kinds), whole)
        names = (one.name, two.name)
        if function == "concatenate":
            shape = (*one.output_shape[:-1], one.output_shape[-1] + two.output_shape[-1])
            axis = len(one.output_shape)
            return self.add("Concatenate", Concatenate(axis), shape, result, inputs=names)
        return self.add("Merge", Merge(function), one.output_shape, result, inputs=names)

    def softmax(self) -> str:
        table = FixedType(17, 1, False, "RND", "SAT")
        types = {
            "accum": FixedType(20, 4, False),
            "exp_table": table,
            "inv_table": table,
            "inp_norm": FixedType(9, 4, False, "RND", "SAT"),
            "inv_inp": FixedType(9, 4, False, "RND", "SAT"),
        }
        operation = Softmax(table_size=512, exp_table_size=512, inverse_table_size=512)
        result = FixedType(12, 1, False, "RND", "SAT")
        return self.add("Softmax", operation, self.last().output_shape, result, types=types)

    def design(self, name: str) -> Design:
        return Design(name, tuple(self.layers), (self.layers[-1].name,))


def _mlp(net: Network) -> None:
    rng = net.rng
    net.input(int(rng.integers(8, 49)))
    for _ in range(int(rng.integers(1, 3))):
        net.dense(int(rng.integers(6, 29)))
        net.relu()
    net.dense(int(rng.integers(1, 9)))


def _image(net: Network) -> None:
    rng = net.rng
    side = int(rng.integers(6, 11))
    net.input(side, side, int(rng.integers(1, 4)))
    if rng.random() < 0.7:
        net.pad((1, 1, 1, 1))
    net.conv(int(rng.integers(4, 13)), stride=int(rng.integers(1, 3)))
    net.relu()
    net.pool(bool(rng.random() < 0.7))
    if net.last().output_shape[0] > 2:
        net.conv(int(rng.integers(4, 13)), side=int(rng.integers(1, 4)))
        net.relu()
    if rng.random() < 0.3:
        net.pool(bool(rng.random() < 0.5), whole=True)
    net.dense(int(rng.integers(2, 9)))


def _row(net: Network) -> None:
    rng = net.rng
    net.input(int(rng.integers(16, 41)), int(rng.integers(1, 5)))
    net.conv(int(rng.integers(4, 11)), side=int(rng.integers(3, 8)))
    net.relu()
    net.pool(bool(rng.random() < 0.5))
    net.conv(int(rng.integers(4, 11)), side=3)
    net.relu()
    net.dense(int(rng.integers(2, 7)))


def _separable(net: Network) -> None:
    rng = net.rng
    side = int(rng.integers(5, 10))
    net.input(side, side, int(rng.integers(3, 9)))
    net.pad((1, 1, 1, 1))
    net.conv(0, depthwise=True)
    net.relu()
    net.conv(int(rng.integers(4, 13)), side=1)
    net.relu()
    net.pool(False, whole=True)
    net.dense(int(rng.integers(2, 7)))


def _residual(net: Network) -> None:
    rng = net.rng
    side, channels = int(rng.integers(5, 8)), int(rng.integers(3, 9))
    net.input(side, side, channels)
    begin = net.last().name
    net.pad((1, 1, 1, 1))
    net.conv(channels)
    net.relu()
    net.merge(begin, str(rng.choice(["add", "maximum", "multiply", "concatenate"])))
    net.normalise()
    net.relu()
    net.dense(int(rng.integers(2, 6)))


def _normalised(net: Network) -> None:
    rng = net.rng
    net.input(int(rng.integers(6, 25)))
    net.dense(int(rng.integers(4, 17)))
    net.normalise()
    net.relu()
    begin = net.last().name
    net.dense(net.last().output_shape[0])
    net.relu()
    net.merge(begin, str(rng.choice(["add", "subtract", "average"])))
    net.dense(int(rng.integers(2, 7)))
    net.softmax()


_SHAPES = (_mlp, _image, _mlp, _row, _separable, _mlp, _residual, _normalised)


def random_network(seed: int) -> tuple[Design, int]:
    """The network of `seed`, and the interval to lay it out for."""
    net = Network(seed)
    _SHAPES[seed % len(_SHAPES)](net)
    return net.design(f"random{seed}"), INTERVALS[seed // len(_SHAPES) % len(INTERVALS)]
