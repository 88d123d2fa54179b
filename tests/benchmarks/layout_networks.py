"""Networks whose layouts are hard to time: strided, branched, depthwise, pooled, 1-D, with layers at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fpgaprune.design import Convolution, Dense, Design, VerilogLayout
from fpgaprune.rtl import is_schedulable, may_be_paired
from tests.benchmarks.verilog_networks import Network

_SAME, _SAME_ROW = (1, 1, 1, 1), (0, 0, 1, 1)


def _network(seed: int, zeros: float = 0.0, weight_bits: int = 5) -> Network:
    net = Network(seed)
    net.bits, net.weight_bits, net.zeros, net.powers, net.kernels = 8, weight_bits, zeros, False, True
    return net


def _conv(net: Network, filters: int, side: int = 3, stride: int = 1, pad: Any = _SAME) -> str:
    """A convolution with its activation, behind a border of zeros."""
    if any(pad):
        net.pad(pad)
    net.conv(filters, side=side, stride=stride)
    return net.relu()


def _depthwise(net: Network, stride: int = 1) -> str:
    net.pad(_SAME)
    net.conv(0, stride=stride, depthwise=True)
    return net.relu()


def _end(net: Network, classes: int = 5, whole: bool = True) -> None:
    if whole:
        net.pool(False, whole=True)
    net.dense(classes)


def plain(net: Network) -> None:
    net.input(12, 12, 3)
    for filters in (8, 12):
        _conv(net, filters)
    _end(net)


def strided(net: Network) -> None:
    net.input(16, 16, 3)
    _conv(net, 8, stride=2)
    _conv(net, 12, stride=2)
    _end(net, whole=False)


def stride_of_four(net: Network) -> None:
    """A large stride over many channels: the values that complete no window take most of the cycles."""
    net.input(16, 16, 3)
    _conv(net, 16)
    _conv(net, 12, side=4, stride=4, pad=(0, 0, 0, 0))
    _end(net)


def stride_without_overlap(net: Network) -> None:
    net.input(14, 15, 4)
    _conv(net, 8, side=1, stride=3, pad=(0, 0, 0, 0))
    _conv(net, 8)
    _end(net)


def add(net: Network) -> None:
    net.input(8, 8, 6)
    begin = _conv(net, 6)
    _conv(net, 6)
    net.pad(_SAME)
    net.conv(6)
    net.merge(begin, "add")
    net.relu()
    _end(net)


def strided_add(net: Network) -> None:
    """A block of a residual network whose shortcut has a convolution with a stride."""
    net.input(12, 12, 4)
    begin = _conv(net, 6)
    _conv(net, 8, stride=2)
    other = _conv(net, 8)
    net.back(begin)
    net.conv(8, side=1, stride=2)
    net.merge(other, "add")
    net.relu()
    _end(net)


def concatenate(net: Network) -> None:
    """Branches of one, two and no convolutions."""
    net.input(8, 8, 4)
    begin = _conv(net, 6)
    _conv(net, 4)
    deep = _conv(net, 4)
    net.back(begin)
    _conv(net, 6)
    net.merge(deep, "concatenate")
    net.relu()
    net.merge(begin, "concatenate")
    net.relu()
    _end(net)


def unequal_branches(net: Network) -> None:
    """One branch is three convolutions deep, the other is wires."""
    net.input(9, 7, 4)
    begin = net.last().name
    for _ in range(3):
        _conv(net, 4)
    net.merge(begin, "concatenate")
    net.relu()
    _conv(net, 6, stride=2)
    _end(net, whole=False)


def depthwise(net: Network) -> None:
    net.input(10, 10, 8)
    _depthwise(net)
    _conv(net, 12, side=1, pad=(0, 0, 0, 0))
    _depthwise(net, stride=2)
    _conv(net, 16, side=1, pad=(0, 0, 0, 0))
    _end(net)


def pooled(net: Network) -> None:
    net.input(12, 14, 3)
    _conv(net, 8)
    net.pool(True)
    _conv(net, 12)
    net.pool(False)
    _end(net, whole=False)


def row(net: Network) -> None:
    net.input(40, 4)
    _conv(net, 8, side=5, pad=(0, 0, 2, 2))
    net.pool(True)
    _conv(net, 12, pad=_SAME_ROW)
    _end(net, whole=False)


def strided_row(net: Network) -> None:
    net.input(64, 3)
    _conv(net, 8, side=7, stride=3, pad=(0, 0, 3, 3))
    _conv(net, 8, side=4, stride=2, pad=(0, 0, 1, 2))
    _end(net, whole=False)


def dense(net: Network) -> None:
    net.input(64)
    for outputs in (48, 32):
        net.dense(outputs)
        net.relu()
    net.dense(10)


def dense_shortcut(net: Network) -> None:
    net.input(32)
    net.dense(32)
    begin = net.relu()
    net.dense(32)
    net.relu()
    net.merge(begin, "add")
    net.normalise()
    net.dense(6)


def wide_border(net: Network) -> None:
    """More border than image."""
    net.input(5, 6, 6)
    _conv(net, 8, side=4, pad=(1, 2, 1, 2))
    _conv(net, 8, side=4, pad=(1, 2, 1, 2))
    _end(net)


def many_filters(net: Network) -> None:
    net.input(6, 6, 16)
    _conv(net, 32)
    _conv(net, 16, side=1, pad=(0, 0, 0, 0))
    _end(net)


def pruned(net: Network) -> None:
    net.zeros = 0.7
    net.input(12, 12, 6)
    for filters in (12, 16):
        _conv(net, filters)
    net.pool(True)
    _conv(net, 16)
    _end(net)


def normalised(net: Network) -> None:
    net.input(8, 10, 4)
    net.pad(_SAME)
    net.conv(8)
    net.normalise()
    begin = net.relu()
    net.pad(_SAME)
    net.conv(8)
    net.normalise()
    net.merge(begin, "maximum")
    _conv(net, 8, stride=2)
    _end(net)


def rn07(net: Network) -> None:
    """The shape of hls4ml's image network for MLPerf Tiny v0.7 (RN07)."""
    border = (1, 2, 1, 2)
    net.zeros = 0.5
    net.input(32, 32, 3)
    _conv(net, 32, side=1, pad=(0, 0, 0, 0))
    _conv(net, 4, side=4, pad=border)
    _conv(net, 32, side=4, pad=border)
    _conv(net, 32, side=4, stride=4, pad=(0, 0, 0, 0))
    _conv(net, 32, side=4, pad=border)
    _end(net, 10, whole=False)


def resnet8(net: Network) -> None:
    """The shape of MLPerf Tiny's image network."""
    net.input(32, 32, 3)
    begin = _conv(net, 16)
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        _conv(net, filters, stride=stride, pad=_SAME if stride == 1 else (0, 1, 0, 1))
        net.pad(_SAME)
        other = net.conv(filters)
        net.back(begin)
        if stride == 1:
            net.read = other
            net.merge(begin, "add")
        else:
            net.conv(filters, side=1, stride=stride)
            net.merge(other, "add")
        begin = net.relu()
    _end(net, 10)


_SMALL, _LARGE = "xc7s6", "xc7z020clg400-1"
# Each with the part that it is laid out for, and the share of it.
TWENTY: dict[Callable[[Network], None], tuple[str, float]] = {
    plain: (_SMALL, 0.6),
    strided: (_SMALL, 0.8),
    stride_of_four: (_SMALL, 0.8),
    stride_without_overlap: (_SMALL, 0.6),
    add: (_SMALL, 0.7),
    strided_add: (_SMALL, 0.8),
    concatenate: (_SMALL, 0.8),
    unequal_branches: (_SMALL, 0.85),
    depthwise: (_SMALL, 0.6),
    pooled: (_SMALL, 0.8),
    row: (_SMALL, 0.6),
    strided_row: (_SMALL, 0.5),
    dense: (_SMALL, 0.7),
    dense_shortcut: (_SMALL, 0.6),
    wide_border: (_SMALL, 0.8),
    many_filters: (_LARGE, 0.4),
    pruned: (_SMALL, 0.8),
    normalised: (_SMALL, 0.8),
    rn07: (_LARGE, 0.8),
    resnet8: (_LARGE, 0.8),
}


def network_of(build: Callable[[Network], None]) -> Design:
    """The network of a function of this file, with random weights."""
    net = _network(7)
    build(net)
    return net.design(build.__name__)


def random_laid(seed: int) -> tuple[Design, VerilogLayout]:
    """A small random network, and a random layout of it."""
    net = _network(seed)
    rng = net.rng
    net.weight_bits, net.zeros = int(rng.integers(3, 7)), float(rng.choice([0, 0.3, 0.7]))
    if rng.random() < 0.2:
        net.input(int(rng.integers(8, 20)), int(rng.integers(1, 6)))
    else:
        net.input(*rng.integers(5, 11, 2).tolist(), int(rng.integers(1, 6)))
    for _ in range(int(rng.integers(1, 4))):
        _random_layer(net)
    end = rng.integers(3)
    if end < 2:
        _end(net, int(rng.integers(2, 6)), whole=end == 0)
    design = net.design(f"random{seed}")
    multipliers, paired = {}, []
    for layer in design.layers:
        if isinstance(layer.operation, Convolution | Dense) and is_schedulable(design, layer) and rng.random() < 0.6:
            taps = int(np.prod(layer.weights["weight"].shape[:-2]))
            multipliers[layer.name] = int(rng.integers(1, 4 * taps + 1))
            if may_be_paired(design, layer) and rng.random() < 0.35:
                paired.append(layer.name)
    interval = int(rng.choice([0, 0, 300, 1500]))
    return design, VerilogLayout(multipliers=multipliers, paired=tuple(paired), interval=interval)


def _random_layer(net: Network) -> None:
    rng = net.rng
    *sides, channels = net.last().output_shape
    filters, least = int(rng.integers(2, 7)), min(sides)
    same = _SAME if len(sides) > 1 else _SAME_ROW
    kind = int(rng.integers(8)) if least > 2 else 0
    begin = net.last().name
    if kind < 2:
        side, stride = int(rng.integers(1, min(least, 4) + 1)), int(rng.integers(1, 4))
        _conv(net, filters, side, stride, ((0, 0, 0, 0), same, (*same[:3], 2))[int(rng.integers(3))])
    elif kind == 2:
        net.pool(bool(rng.random() < 0.5))
    elif kind == 3:
        net.pad(same)
        net.conv(0, stride=int(rng.integers(1, 3)), depthwise=True)
        net.relu()
    elif kind < 6:
        for _ in range(int(rng.integers(1, 3))):
            _conv(net, channels, pad=same)
        net.merge(begin, "add" if kind == 4 else "concatenate")
        net.relu()
    elif kind == 6:
        stride = int(rng.integers(1, 3))
        other = _conv(net, filters, stride=stride, pad=same)
        if rng.random() < 0.5:
            other = _conv(net, filters, pad=same)
        net.back(begin)
        _conv(net, filters, 1, stride, (0, 0, 0, 0))
        net.merge(other, "concatenate" if rng.random() < 0.5 else "add")
        net.relu()
    else:
        _conv(net, filters, 1, 1, (0, 0, 0, 0))
