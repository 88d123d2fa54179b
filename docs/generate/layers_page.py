"""The page reference/layers.md: which layer goes how far, found by trying a small network of each.

It takes minutes: some fifty networks through every back end, the emulator, Verilog and ONNX.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

import fpgaprune as fp
from fpgaprune.hls import check_model
from fpgaprune.network import network_of
from fpgaprune.network.rules import rule_of

PLACE = "reference/layers.md"
_HEAD = """# Layers, back ends, stages

We tried a small network with each of these layers: with every back end, the emulator, our own Verilog and ONNX, with
6-bit weights and 8-bit activations. `both` means `io_parallel` and `io_stream`; `parallel` or `stream` means only that
one. A dash means that you get an error, which names the layer and says what to use instead.

- **select, remove**: [selection](selection.md) and [removal](removal.md) follow channels through this layer.
- **ONNX**: the layer is [written](onnx.md) with the bits of its weights.
- **Vitis** to **Libero**: you can make an [hls4ml project](hls4ml.md). Vivado includes VivadoAccelerator.
- **emulator**: its design for Vitis or our Verilog is [emulated](emulator.md) bit for bit.
- **Verilog**: its design becomes [Verilog](verilog.md).

The table does not show all settings of a layer. A dilated or grouped convolution, or one with a depth multiplier,
becomes a plain one with zeros in its kernel: a 3 × 3 kernel dilated by 2 is one of 5 × 5 with nine taps. Our Verilog
has no product for a zero, so this costs nothing but a longer window; an hls4ml project with strategy `resource`
multiplies by zeros. A transposed convolution becomes a plain one with the filters of each phase: of stride 2, the
even outputs are sums of the even taps, and the odd ones of the odd taps; a `Permute` between two `Reshape` puts the
phases side by side. Training that rounds locks the zeros of such kernels, too. A softmax or a normalisation along
another axis, and a layer with the channels first, become ones along the last axis between layers that move it.
"""
_FAMILIES: dict[str, tuple[str, ...]] = {
    "Vitis": ("latency", "resource"),
    "Vivado": ("latency", "resource"),
    "Catapult": ("latency", "resource"),
    "oneAPI": ("resource",),
    "Libero": ("latency", "resource"),
}
_TARGET = {"part": "xc7z020clg400-1"}
L = keras.layers


def page() -> str:
    """The page as Markdown."""
    columns = ["select, remove", "ONNX", *_FAMILIES, "emulator", "Verilog"]
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, make in networks():
        keras.utils.set_random_seed(0)
        alike.setdefault(tuple(_row(make())), []).append(f"`{name}`")
    everywhere = [number for number in range(len(columns)) if all(cells[number] == "yes" for cells in alike)]
    shown = [number for number in range(len(columns)) if number not in everywhere]
    names_of_columns = "; ".join(columns[number] for number in everywhere)
    said = f"\nPossible with every layer of the table: {names_of_columns}.\n" if everywhere else ""
    head = f"| layers | {' | '.join(columns[number] for number in shown)} |\n|---|{'---|' * len(shown)}\n"
    rows = (
        f"| {', '.join(names)} | {' | '.join(cells[number] for number in shown)} |\n" for cells, names in alike.items()
    )
    return f"{_HEAD}{said}\n{head}{''.join(rows)}"


def networks() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name of each layer, and what makes a small network with it."""
    for name, shape, between in [*_ONE_INPUT, *_FUNCTIONS]:
        yield name, lambda shape=shape, between=between: _chain(shape, between)
    for kind in (L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum, L.Concatenate):
        yield kind.__name__, lambda kind=kind: _joined(kind)
    yield "two inputs, two outputs", _two


_IMAGE, _SIGNAL, _VECTOR = (6, 6, 2), (8, 2), (6,)
_ONE_INPUT: list[tuple[str, tuple[int, ...], Callable[[], Sequence[Any]]]] = [
    ("Dense", _VECTOR, lambda: [L.Dense(4, name="it")]),
    ("Conv1D", _SIGNAL, lambda: [L.Conv1D(3, 3, name="it")]),
    ("Conv2D", _IMAGE, lambda: [L.Conv2D(3, 3, name="it")]),
    ("Conv2D, padding same", _IMAGE, lambda: [L.Conv2D(3, 3, padding="same", name="it")]),
    ("Conv3D", (4, 4, 4, 1), lambda: [L.Conv3D(2, 3, name="it")]),
    ("Conv2DTranspose", _IMAGE, lambda: [L.Conv2DTranspose(3, 3, name="it")]),
    ("Conv2DTranspose, strides 2", _IMAGE, lambda: [L.Conv2DTranspose(3, 3, strides=2, padding="same", name="it")]),
    ("DepthwiseConv1D", _SIGNAL, lambda: [L.DepthwiseConv1D(3, name="it")]),
    ("DepthwiseConv2D", _IMAGE, lambda: [L.DepthwiseConv2D(3, name="it")]),
    ("SeparableConv1D", _SIGNAL, lambda: [L.SeparableConv1D(3, 3, name="it")]),
    ("SeparableConv2D", _IMAGE, lambda: [L.SeparableConv2D(3, 3, name="it")]),
    ("BatchNormalization", _IMAGE, lambda: [L.Conv2D(3, 3, name="conv"), L.BatchNormalization(name="it")]),
    ("LayerNormalization", _VECTOR, lambda: [L.Dense(4, name="fc"), L.LayerNormalization(name="it")]),
    ("MaxPooling1D", _SIGNAL, lambda: [L.MaxPooling1D(2, name="it")]),
    ("MaxPooling2D", _IMAGE, lambda: [L.MaxPooling2D(2, name="it")]),
    ("AveragePooling1D", _SIGNAL, lambda: [L.AveragePooling1D(2, name="it")]),
    ("AveragePooling2D", _IMAGE, lambda: [L.AveragePooling2D(2, name="it")]),
    ("GlobalMaxPooling2D", _IMAGE, lambda: [L.GlobalMaxPooling2D(name="it")]),
    ("GlobalAveragePooling2D", _IMAGE, lambda: [L.GlobalAveragePooling2D(name="it")]),
    ("ZeroPadding2D", _IMAGE, lambda: [L.ZeroPadding2D(name="it")]),
    ("Cropping2D", _IMAGE, lambda: [L.Cropping2D(name="it")]),
    ("UpSampling2D", _IMAGE, lambda: [L.UpSampling2D(name="it")]),
    ("Flatten", _IMAGE, lambda: [L.Flatten(name="it")]),
    ("Reshape", _IMAGE, lambda: [L.Reshape((36, 2), name="it")]),
    ("Permute", _IMAGE, lambda: [L.Permute((2, 1, 3), name="it")]),
    ("Dropout", _VECTOR, lambda: [L.Dense(4, name="fc"), L.Dropout(0.5, name="it")]),
    ("Rescaling", _IMAGE, lambda: [L.Rescaling(0.5, name="it")]),
    ("Normalization", _IMAGE, lambda: [L.Normalization(mean=[0.1, 0.2], variance=[0.5, 0.6], name="it")]),
    ("RandomFlip and other augmentations", _IMAGE, lambda: [L.RandomFlip(name="it")]),
    ("a model inside the model", _IMAGE, lambda: [keras.Sequential([L.Conv2D(3, 3, name="it")], name="inside")]),
    ("RepeatVector", _VECTOR, lambda: [L.RepeatVector(3, name="it")]),
    ("TimeDistributed(Dense)", _SIGNAL, lambda: [L.TimeDistributed(L.Dense(3), name="it")]),
    ("GRU", _SIGNAL, lambda: [L.GRU(3, name="it")]),
    ("LSTM", _SIGNAL, lambda: [L.LSTM(3, name="it")]),
    ("SimpleRNN", _SIGNAL, lambda: [L.SimpleRNN(3, name="it")]),
    ("Bidirectional", _SIGNAL, lambda: [L.Bidirectional(L.GRU(3), name="it")]),
    ("EinsumDense", _VECTOR, lambda: [L.EinsumDense("ab,bc->ac", 4, name="it")]),
    ("LeakyReLU", _VECTOR, lambda: [L.Dense(4, name="fc"), L.LeakyReLU(name="it")]),
    ("PReLU", _VECTOR, lambda: [L.Dense(4, name="fc"), L.PReLU(name="it")]),
    ("Softmax", _VECTOR, lambda: [L.Dense(4, name="fc"), L.Softmax(name="it")]),
]
_NAMES = (
    "relu",
    "relu6",
    "sigmoid",
    "tanh",
    "softplus",
    "softsign",
    "selu",
    "elu",
    "gelu",
    "silu",
    "exponential",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
)
_FUNCTIONS = [
    (name, _VECTOR, lambda name=name: [L.Dense(4, name="fc"), L.Activation(name, name="it")]) for name in _NAMES
]


def _chain(shape: tuple[int, ...], between: Callable[[], Sequence[Any]]) -> Any:
    value = inputs = keras.Input(shape, name="x")
    for layer in between():
        value = layer(value)
    if len(value.shape) > 2:
        value = L.Flatten(name="flat")(value)
    if not isinstance(layer, L.Softmax):
        value = L.Dense(2, name="out")(value)
    return keras.Model(inputs, value)


def _joined(kind: type) -> Any:
    inputs = keras.Input(_IMAGE, name="x")
    first, second = (L.Conv2D(3, 3, name=name)(inputs) for name in ("a", "b"))
    return keras.Model(inputs, L.Dense(2, name="out")(L.Flatten(name="flat")(kind(name="it")([first, second]))))


def _two() -> Any:
    left, right = keras.Input(_VECTOR, name="left"), keras.Input(_VECTOR, name="right")
    both = L.Concatenate(name="both")([left, right])
    return keras.Model([left, right], [L.Dense(2, name="out1")(both), L.Dense(3, name="out2")(both)])


def _row(model: Any) -> Iterator[str]:
    known = all(rule_of(type(step.layer)) for step in network_of(model).steps)
    yield "yes" if known else "–"
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "yes" if _works(lambda: fp.export_onnx(model, Path(folder) / "model.onnx")) else "–"
        for backend, strategies in _FAMILIES.items():
            yield _io_types(model, backend, strategies)
        ways = ({"io_type": "io_parallel"}, {"io_type": "io_stream"}, {"backend": "Verilog"})
        designs = [design for way in ways if (design := _design(model, **way)) is not None]
        x = [np.zeros((2, *tensor.shape[1:]), dtype=np.float32) for tensor in model.inputs]
        yield "yes" if any(_works(lambda made=made: fp.emulate(made, x)) for made in designs) else "–"
        yield (
            "yes" if any(_works(lambda made=made: fp.to_verilog(made, Path(folder) / "v")) for made in designs) else "–"
        )


def _io_types(model: Any, backend: str, strategies: Sequence[str]) -> str:
    possible = [
        io.removeprefix("io_")
        for io in ("io_parallel", "io_stream")
        if any(
            not check_model(model, fp.Target.of(**_TARGET, io_type=io, strategy=strategy, backend=backend)).problems
            for strategy in strategies
        )
    ]
    return "both" if len(possible) == 2 else "".join(possible) or "–"


def _design(model: Any, **options: str) -> Any:
    samples = [
        np.random.default_rng(0).uniform(-1, 1, (32, *part.shape[1:])).astype("float32") for part in model.inputs
    ]
    target = fp.Target.of(**_TARGET, **options)
    try:
        data = samples if len(samples) > 1 else samples[0]
        return fp.make_design(model, target, data, fp.Precision(weight_bits=6, activation_bits=8))
    except fp.FpgaPruneError:
        return None


def _works(act: Callable[[], Any]) -> bool:
    try:
        act()
    except fp.FpgaPruneError:
        return False
    return True
