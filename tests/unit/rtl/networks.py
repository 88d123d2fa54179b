"""Random designs made by hand: layers in a row and beside each other, random types, no deep-learning framework."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from fpgaprune.backends import as_built
from fpgaprune.design import NOTHING, Design, LayerSpec, Operation, Recurrent, Reverse
from fpgaprune.hls import layer_of
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType


class Net:
    """A design as it grows; every method returns the name of the layer that it adds."""

    def __init__(self, rng: np.random.Generator, io_type: str = "io_stream") -> None:
        self.rng = rng
        # Types of single channels are drawn aside, so that the designs of a seed stay what they are without them.
        self.aside = np.random.default_rng(7)
        self.io_type = io_type
        self.layers: list[LayerSpec] = []

    def kind(self, width: tuple[int, int] = (4, 12), integer: tuple[int, int] = (0, 5), **fixed: Any) -> FixedType:
        rng = self.rng
        options = {
            "signed": bool(rng.random() < 0.7),
            "rounding": str(rng.choice(ROUNDING_MODES)),
            "overflow": str(rng.choice(OVERFLOW_MODES)),
        }
        bits, whole = (int(rng.integers(low, high + 1)) for low, high in (width, integer))
        return FixedType(bits, whole, **{**options, **fixed})

    def accum(self) -> FixedType:
        return self.kind((8, 18), (3, 9), signed=True) if self.rng.random() < 0.5 else FixedType(40, 20)

    def shape(self, name: str) -> tuple[int, ...]:
        return next(layer.output_shape for layer in self.layers if layer.name == name)

    def add(
        self, kind: str, sources: tuple[str, ...], shape: tuple[int, ...], types: dict[str, FixedType], **fields: Any
    ) -> str:
        name = f"{kind.lower()}{len(self.layers)}"
        types = {"result": self.kind(), **types}
        self.layers.append(layer_of(name, kind, sources, shape, types, **fields))
        return name

    def input(self, *shape: int) -> str:
        return self.add("Input", (), shape, {"result": self.kind((3, 10), (-1, 4))})

    def weights(self, *shape: int) -> tuple[np.ndarray, FixedType]:
        kind = self.kind((3, 8), (0, 3), signed=True)
        raw = self.rng.integers(kind.raw_min, kind.raw_max + 1, shape)
        return raw * (self.rng.random(shape) < 0.6), kind

    def _weighted(self, matrix: tuple[int, ...], outputs: int) -> dict[str, Any]:
        weight, weight_kind = self.weights(*matrix)
        bias, bias_kind = self.weights(outputs)
        return {
            "types": {"weight": weight_kind, "bias": bias_kind, "accum": self.accum()},
            "weights": {"weight": weight, "bias": bias},
            "strategy": "latency",
        }

    def _padded(self, source: str, pads: tuple[int, int, int, int]) -> tuple[str, tuple[int, int, int, int]]:
        """hls4ml pads in a layer of its own in io_stream, and in the layer itself in io_parallel."""
        if self.io_type == "io_parallel" or not any(pads):
            return source, pads
        kind = self._kind_of(source)
        return self.pad(source, pads, kind), (0, 0, 0, 0)

    def pad(self, source: str, pads: tuple[int, int, int, int], kind: FixedType | None = None) -> str:
        h, w, c = self.shape(source)
        top, bottom, left, right = pads
        names = dict(zip(("pad_top", "pad_bottom", "pad_left", "pad_right"), pads, strict=True))
        types = {"result": kind} if kind else {}
        return self.add("ZeroPadding2D", (source,), (h + top + bottom, w + left + right, c), types, attributes=names)

    def _places(self, source: str, size: tuple[int, int], stride: tuple[int, int], pads: Any) -> tuple[int, int]:
        h, w, _ = self.shape(source)
        high = (h + pads[0] + pads[1] - size[0]) // stride[0] + 1
        return high, (w + pads[2] + pads[3] - size[1]) // stride[1] + 1

    @staticmethod
    def _window(prefix: str, size: tuple[int, int], stride: tuple[int, int], pads: Any) -> dict[str, Any]:
        return {
            f"{prefix}_height": size[0],
            f"{prefix}_width": size[1],
            "stride_height": stride[0],
            "stride_width": stride[1],
            **dict(zip(("pad_top", "pad_bottom", "pad_left", "pad_right"), pads, strict=True)),
        }

    def conv(
        self, source: str, filters: int, size: Any = (3, 3), stride: Any = (1, 1), pads: Any = (0, 0, 0, 0)
    ) -> str:
        source, pads = self._padded(source, pads)
        high, wide = self._places(source, size, stride, pads)
        channels = self.shape(source)[-1]
        fields = self._weighted((*size, channels, filters), filters)
        attributes = {**self._window("filt", size, stride, pads), "n_filt": filters}
        return self.add("Conv2D", (source,), (high, wide, filters), attributes=attributes, **fields)

    def depthwise(self, source: str, size: Any = (3, 3), stride: Any = (1, 1), pads: Any = (0, 0, 0, 0)) -> str:
        source, pads = self._padded(source, pads)
        high, wide = self._places(source, size, stride, pads)
        channels = self.shape(source)[-1]
        fields = self._weighted((*size, channels, 1), channels)
        attributes = {**self._window("filt", size, stride, pads), "n_filt": channels}
        return self.add("DepthwiseConv2D", (source,), (high, wide, channels), attributes=attributes, **fields)

    def pool(self, source: str, operation: str, size: Any = (2, 2), pads: Any = (0, 0, 0, 0)) -> str:
        if self.io_type == "io_stream":
            pads = (0, 0, 0, 0)
        high, wide = self._places(source, size, size, pads)
        attributes = {**self._window("pool", size, size, pads), "pool_op": operation}
        shape = (high, wide, self.shape(source)[-1])
        return self.add("Pooling2D", (source,), shape, {"accum": self.accum()}, attributes=attributes)

    def global_pool(self, source: str, operation: str) -> str:
        return self.add(
            "GlobalPooling2D",
            (source,),
            self.shape(source)[-1:],
            {"accum": self.accum()},
            attributes={"pool_op": operation},
        )

    def activation(self, source: str, name: str) -> str:
        types = {"table": self.kind((6, 14), (1, 4))}
        attributes = {"activation": name, "table_size": 256}
        return self.add("Activation", (source,), self.shape(source), types, attributes=attributes)

    def quantise(self, source: str, each_value: bool = False) -> str:
        """A type for each channel, or for each value of a sample; some have no bits."""
        rng, shape = self.aside, self.shape(source)
        kinds = [NOTHING]
        for _ in range(4):
            width, integer, signed = int(rng.integers(1, 6)), int(rng.integers(-1, 4)), bool(rng.random() < 0.5)
            modes = str(rng.choice(ROUNDING_MODES)), str(rng.choice(OVERFLOW_MODES))
            kinds.append(str(FixedType(width, integer, signed, *modes)))
        places = rng.integers(0, len(kinds), math.prod(shape) if each_value else shape[-1]).tolist()
        widest = FixedType(4 + 1 + 6, 5)
        attributes = {"kinds": kinds, "places": places}
        return self.add("FixedPointQuantizer", (source,), shape, {"result": widest}, attributes=attributes)

    def flatten(self, source: str) -> str:
        kind = self._kind_of(source)
        return self.add("Reshape", (source,), (math.prod(self.shape(source)),), {"result": kind})

    def dense(self, source: str, outputs: int) -> str:
        return self.add("Dense", (source,), (outputs,), **self._weighted((self.shape(source)[0], outputs), outputs))

    def recurrent(self, source: str, cell: str, units: int, sequences: bool = True, **functions: str) -> str:
        """A `GRU`, `LSTM` or `RNN`; `functions` are its `activation` and `recurrent_activation`."""
        steps, features = self.shape(source)
        gates = units * {"GRU": 3, "LSTM": 4, "RNN": 1}[cell]
        shapes = {"weight": (features, gates), "recurrent_weight": (units, gates), "bias": (gates,)}
        found = {role: self.weights(*shape) for role, shape in (shapes | {"recurrent_bias": (gates,)}).items()}
        kinds = {role: kind for role, (_, kind) in found.items()}
        named = {"activation": "tanh", "recurrent_activation": "sigmoid"} | functions
        name = self.add(
            "GRU" if cell == "RNN" else cell,
            (source,),
            (steps, units) if sequences else (units,),
            {**kinds, "accum": self.accum(), "table": self.kind((6, 14), (1, 4))},
            weights={role: raw for role, (raw, _) in found.items()},
            attributes={"n_out": units, "return_sequences": sequences, "table_size": 256, **named},
            strategy="latency",
        )
        if cell == "RNN":
            # hls4ml has no name for it.
            self._operation(Recurrent("rnn", units, named["activation"], named["activation"], sequences, 256))
        return name

    def reverse(self, source: str) -> str:
        name = self.add("Reshape", (source,), self.shape(source), {"result": self._kind_of(source)})
        self._operation(Reverse())
        return name

    def _operation(self, operation: Operation) -> None:
        """Let the last layer compute `operation`."""
        self.layers[-1] = replace(self.layers[-1], operation=operation)

    def _kind_of(self, name: str) -> FixedType:
        return next(layer.types["result"] for layer in self.layers if layer.name == name)

    def batch_norm(self, source: str) -> str:
        channels = self.shape(source)[-1]
        (scale, scale_kind), (bias, bias_kind) = self.weights(channels), self.weights(channels)
        return self.add(
            "BatchNormalization",
            (source,),
            self.shape(source),
            {"scale": scale_kind, "bias": bias_kind},
            weights={"scale": scale, "bias": bias},
        )

    def merge(self, one: str, two: str, operation: str) -> str:
        return self.add("Merge", (one, two), self.shape(one), {}, attributes={"op": operation})

    def concatenate(self, one: str, two: str, axis: int | None = None) -> str:
        a, b = list(self.shape(one)), self.shape(two)
        place = len(a) - 1 if axis is None else axis - 1
        a[place] += b[place]
        return self.add("Concatenate", (one, two), tuple(a), {}, attributes={"axis": place + 1})

    def upsample(self, source: str, factor: int) -> str:
        h, w, c = self.shape(source)
        kind = self._kind_of(source)
        return self.add("Resize", (source,), (h * factor, w * factor, c), {"result": kind})

    def softmax(self, source: str) -> str:
        table = FixedType(18, 8, rounding="RND", overflow="SAT")
        types = {"accum": table, "exp_table": table, "inv_table": table, "inv_inp": table}
        attributes = {"implementation": "stable", "table_size": 256, "axis": -1}
        # The address of the table is wider than the table's.
        return self.add("Softmax", (source,), self.shape(source), types, attributes=attributes)

    def design(self, *outputs: str) -> Design:
        return as_built(Design("net", tuple(self.layers), outputs, io_type=self.io_type, backend="Verilog"))


def random_branch(net: Net) -> str:
    """A few layers behind an image, some of them beside each other, down to values or a smaller image."""
    rng = net.rng
    x = net.input(int(rng.integers(4, 8)), int(rng.integers(4, 8)), int(rng.integers(1, 4)))
    for _ in range(int(rng.integers(1, 4))):
        x = _random_layer(net, x)
        if net.aside.random() < 0.4:
            x = net.quantise(x, each_value=bool(net.aside.random() < 0.2))
    h, w, _ = net.shape(x)
    end = rng.integers(4)
    if end == 0 and h > 1 and w > 1:
        return net.global_pool(x, str(rng.choice(["Max", "Average"])))
    # A longer row of saturating additions tests nothing more, and compiles for a quarter of an hour.
    if end == 1 and math.prod(net.shape(x)) <= 400:
        return net.dense(net.flatten(x), int(rng.integers(1, 5)))
    return x


def _random_layer(net: Net, x: str) -> str:
    rng = net.rng
    h, w, _ = net.shape(x)
    filters = int(rng.integers(1, 5))
    match int(rng.integers(10)):
        case 0 | 1 if h > 2 and w > 2:
            stride = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
            return net.conv(x, filters, (3, 3), stride, tuple(int(p) for p in rng.integers(0, 2, 4)))
        case 2:
            # A residual block: the shortcut waits for two convolutions.
            y = net.conv(x, filters, (3, 3), (1, 1), (1, 1, 1, 1))
            z = net.activation(net.conv(y, filters, (3, 3), (1, 1), (1, 1, 1, 1)), "relu")
            return net.merge(y, z, str(rng.choice(["add", "subtract", "average", "maximum", "minimum", "multiply"])))
        case 3:
            return net.concatenate(x, net.conv(x, filters, (3, 3), (1, 1), (1, 1, 1, 1)))
        case 9:
            # One image below or beside another: one of them waits for all of the other, or for a row.
            y = net.conv(x, net.shape(x)[-1], (3, 3), (1, 1), (1, 1, 1, 1))
            one, two = (x, y) if rng.random() < 0.5 else (y, x)
            return net.concatenate(one, two, int(rng.integers(1, 3)))
        case 4 if h > 2 and w > 2:
            return net.depthwise(x, (3, 2), (1, 1))
        case 5 if h > 1 and w > 1:
            return net.pool(
                x, str(rng.choice(["Max", "Average"])), (2, 2), tuple(int(p) for p in rng.integers(0, 2, 4))
            )
        case 6:
            return net.upsample(x, 2)
        case 7:
            return net.batch_norm(x)
        case _:
            names = ["relu", "linear", "relu6", "sigmoid", "tanh", "softplus", "softsign", "selu"]
            return net.activation(x, str(rng.choice(names)))


def random_design(seed: int, branches: int, io_type: str = "io_stream") -> Design:
    """A design of independent random networks, each with an input and an output of its own."""
    net = Net(np.random.default_rng(seed), io_type)
    return net.design(*[random_branch(net) for _ in range(branches)])


def parallel_design(seed: int, layers: int, io_type: str = "io_stream") -> Design:
    """A design that takes a sample in every cycle, its layers behind each other and beside each other."""
    net = Net(np.random.default_rng(seed), io_type)
    rng = net.rng
    rows = [net.input(int(rng.integers(2, 7))) for _ in range(2)]
    for _ in range(layers):
        place = int(rng.integers(len(rows)))
        x = rows[place]
        same = [y for y in rows if net.shape(y) == net.shape(x) and y != x]
        match int(rng.integers(5)):
            case 0:
                x = net.activation(x, str(rng.choice(["relu", "tanh", "relu6"])))
            case 1:
                x = net.batch_norm(x)
            case 2 if same:
                x = net.merge(x, same[0], str(rng.choice(["add", "subtract", "maximum"])))
                rows.remove(same[0])
                place = min(place, len(rows) - 1)
            case 3:
                # A shortcut around two layers, or around nothing.
                y = net.activation(net.dense(x, net.shape(x)[0]), "relu") if rng.random() < 0.7 else x
                x = net.merge(x, y, "add") if rng.random() < 0.5 else net.concatenate(x, y)
            case _:
                x = net.dense(x, int(rng.integers(1, 5)))
        rows[place] = x
    return net.design(*rows)


def samples(design: Design, count: int, seed: int) -> Any:
    """Values over the range of each input's type, a little beyond it, and at ties."""
    rng = np.random.default_rng(seed)
    found = []
    for layer in design.layers:
        if layer.kind == "Input":
            kind = layer.types["result"]
            spread = max(abs(kind.raw_min), kind.raw_max) * kind.lsb
            values = rng.uniform(-1.3 * spread, 1.3 * spread, (count, *layer.output_shape))
            ties = np.round(values / kind.lsb * 2) * kind.lsb / 2
            found.append(np.where(rng.random(values.shape) < 0.3, ties, values).astype(np.float32))
    return found if len(found) > 1 else found[0]


def without_type_modes(design: Design) -> Design:
    """The design with types that round and overflow in the plainest way."""
    plain = tuple(
        replace(layer, types={role: replace(k, rounding="TRN", overflow="WRAP") for role, k in layer.types.items()})
        for layer in design.layers
    )
    return replace(design, layers=plain)
