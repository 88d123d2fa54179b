"""`LayerFeatures` and `DesignFeatures`: what the hardware models know of a `Design`, or of a row of counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from fpgaprune.estimate.digits import Products, joined
from fpgaprune.estimate.families import UNPRICED

# Tool -> the clock uncertainty that hls4ml asks for, as a fraction of the period.
UNCERTAINTY = {"vivado": 0.125, "vitis": 0.27}


@dataclass(frozen=True, slots=True)
class Port:
    """The number format of a layer's input, output or accumulator.

    Attributes:
        bits: width.
        rounds: whether a value is rounded when it is written.
        saturates: whether a value is saturated when it is written.
        integer: bits left of the binary point; None if unknown.
    """

    bits: int
    rounds: bool = False
    saturates: bool = False
    integer: int | None = None


def cut_bits(inp: Port, weight: Port, accum: Port) -> int | None:
    """Count the low bits that a product loses when it is cast to `accum`; None if a point is unknown."""
    if inp.integer is None or weight.integer is None or accum.integer is None:
        return None
    return max(inp.bits - inp.integer + weight.bits - weight.integer - accum.bits + accum.integer, 0)


@dataclass(frozen=True, slots=True)
class LayerFeatures:
    """One layer, as the hardware sees it.

    Attributes:
        name: its name.
        kind: its class, as the source names it; no price depends on it.
        family: the hardware model that prices it.
        operation: its activation, pooling or merge function in lower case; empty if it has none.
        positions_in: transfers of the input stream for each sample (pixels); 1 for a vector.
        positions_out: transfers of the output stream for each sample (pixels); 1 for a vector.
        channels_in: numbers in one transfer of the input.
        channels_out: numbers in one transfer of the output.
        kernel: window (height, width).
        width_in: pixels of a row, padding included.
        n_in: products for each output.
        n_out: outputs for each position.
        reuse: how often one multiplier is used for each position.
        strategy: how multiplications are laid out; None if the layer has none.
        inp: number format of the input.
        out: number format of the output.
        accum: number format of the sums.
        weight_bits: declared width of a weight.
        constant_bits: the bits of a weight that a constant below 2 in magnitude can use.
        products: multiplications by kind of constant; None if the layer has none.
        table_size: entries of a look-up table.
        table_bits: width of an entry.
        copies: number of streams that it writes.
        copies_in_parallel: positions that a parallel convolution computes at once; in Vivado HLS, a pointwise
            convolution computes all of them.
        live_blocks: multipliers with a weight other than zero, of strategy `resource_unrolled`; else None.
        encoded: whether the 'encoded' scheme keeps the window in place of a line buffer.
        fifo_depth: depth of the FIFO behind it; None means its number of positions.
        state: the product of a recurrent layer's state; `products` then counts only the product of its inputs.
        cut_bits: low bits of a product that its cast to the type of the sum drops; None if a point is unknown.
        live: share of its products, or of the numbers that it computes one by one, that are neither constant nor
            unread; the tool builds no others.
        live_out: share of its results that are neither constant nor unread.
    """

    name: str
    kind: str
    family: str
    operation: str = ""
    positions_in: int = 1
    positions_out: int = 1
    channels_in: int = 1
    channels_out: int = 1
    kernel: tuple[int, int] = (1, 1)
    width_in: int = 1
    n_in: int = 0
    n_out: int = 0
    reuse: int = 1
    strategy: str | None = None
    inp: Port = field(default_factory=lambda: Port(16))
    out: Port = field(default_factory=lambda: Port(16))
    accum: Port = field(default_factory=lambda: Port(16))
    weight_bits: int = 16
    constant_bits: int = 16
    products: Products | None = None
    table_size: int = 1024
    table_bits: int = 18
    copies: int = 1
    copies_in_parallel: int = 1
    live_blocks: int | None = None
    encoded: bool = False
    fifo_depth: int | None = None
    state: LayerFeatures | None = None
    cut_bits: int | None = None
    live: float = 1.0
    live_out: float = 1.0

    @property
    def all_products(self) -> Products | None:
        """Every multiplication of one position, or of one step; None if the layer has none."""
        if self.products is None or self.state is None or self.state.products is None:
            return self.products
        return joined(self.products, self.state.products)


@dataclass(frozen=True, slots=True)
class DesignFeatures:
    """A whole design and the settings of the tool.

    Attributes:
        name: its name.
        streams: whether layers hand on one pixel after another (`io_stream`), and not all at once (`io_parallel`).
        tool: `vivado` (Vivado HLS) or `vitis` (Vitis HLS).
        clock_ns: period asked for.
        uncertainty_ns: the part of the period that the scheduler leaves unused.
        part: order number, lower case; empty if unknown.
        pipelined: whether the whole design is one pipeline; if not, its layers are processes of a dataflow region.
        multiplier: `dsp` or `fabric` if the project forces every multiplication there, else None.
        left_out: sentences on what the figures leave out, or count in another way than stated.
        overlaps: whether, without a pipeline, a layer starts the next sample while later layers compute the previous
            one.
    """

    name: str
    layers: tuple[LayerFeatures, ...]
    streams: bool
    tool: str
    clock_ns: float
    uncertainty_ns: float
    part: str
    pipelined: bool
    multiplier: str | None = None
    left_out: tuple[str, ...] = ()
    overlaps: bool = True


# Layers that compute each number by itself, or only pass it on.
_ONE_BY_ONE = ("activation", "scale", "reshape", "input", UNPRICED)


def with_live_shares(layers: Sequence[LayerFeatures]) -> list[LayerFeatures]:
    """Return the layers of a chain in one pipeline, with the shares of their products and results that take hardware.

    An output of a Dense layer whose weights are all zero is a constant, and so is every number that follows from it
    alone. A number whose weights in the next Dense layer are all zero is read by nobody.
    """
    varying = _shares(layers, outputs=True)
    read = _shares(reversed(layers), outputs=False)[::-1]
    found = []
    for layer, (comes, leaves), (is_read, _) in zip(layers, varying, read, strict=True):
        one = layer.family in ("dense", *_ONE_BY_ONE)
        found.append(replace(layer, live=comes * is_read, live_out=leaves * is_read) if one else layer)
    return found


def _shares(layers: Iterable[LayerFeatures], *, outputs: bool) -> list[tuple[float, float]]:
    """Return the live shares of the inputs and outputs of each layer, in the given direction."""
    share = 1.0
    found = []
    for layer in layers:
        came = share
        if layer.family == "dense" and layer.products is not None and layer.n_in and layer.n_out:
            products = layer.products
            share = products.live_outputs / layer.n_out if outputs else products.live_inputs / layer.n_in
        elif layer.family not in _ONE_BY_ONE:
            share = 1.0
        found.append((came, share))
    return found
