"""What a layer of a `Design` computes: a closed set of operations, each with typed fields.

Whoever computes, prices or writes a layer goes by its operation. Where one backend or io type computes in another way
than the next, a field says how (`fpgaprune.backends.as_built` fills it in); its default is the way of a `Design` as it
is unless told otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fpgaprune.errors import DesignError
from fpgaprune.values import FixedType

# In which order products are added to the bias: one input after another; every n-th input and then those beside them, n
# the layer's reuse factor; in one that is not known here, so that only exact sums are known.
Order = Literal["in_order", "by_reuse", "unknown"]

# In place of a type where a value has no bits.
NOTHING = "0"


@dataclass(frozen=True)
class Window:
    """Where windows lie in an image; a 1-D layer is a 2-D one of height 1.

    Attributes:
        size: (height, width).
        stride: (height, width).
        pad: rows and columns of padding: (top, bottom, left, right).
    """

    size: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def taps(self) -> int:
        """Number of positions in one window."""
        return self.size[0] * self.size[1]


@dataclass(frozen=True)
class Input:
    """A tensor that enters the network."""


@dataclass(frozen=True)
class Dense:
    """Every input times every weight (N_in, N_out), plus a bias.

    Attributes:
        order: in which products are added.
    """

    order: Order = "in_order"


@dataclass(frozen=True)
class Convolution:
    """A Dense layer at every window; or one kernel for each channel.

    Attributes:
        window: where the windows lie.
        depthwise: whether each channel has a kernel of its own.
        pointwise: whether it is built as a product for each place, its window being one place.
        partitions: parts of the image that are computed one after another in io_parallel; None where unknown.
        encoded: whether its stream comes encoded by windows, and not as lines in buffers.
        order: in which products are added.
        phases: strides of the transposed convolution that it computes, whose weights lie in its kernel as
            `fpgaprune.values.spread` says; None for any other.
    """

    window: Window
    depthwise: bool = False
    pointwise: bool = False
    partitions: int | None = None
    encoded: bool = False
    order: Order = "in_order"
    phases: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Pooling:
    """The largest or the average of every window.

    Attributes:
        window: where the windows lie; None where one holds the whole image.
        largest: whether it takes the largest value, and not the average.
        encoded: as for `Convolution`.
        assigns_first: whether every value is assigned to the accumulator's type before it is compared or added, and the
            values of a window are added as a balanced tree; else one after another, and only results are assigned.
    """

    window: Window | None
    largest: bool
    encoded: bool = False
    assigns_first: bool = True


@dataclass(frozen=True)
class Recurrent:
    """A recurrent layer: each step is two products, tables of the gates, and a new state.

    Attributes:
        cell: `gru`, whose reset gate acts after the product, `lstm`, or `rnn`, whose state is what is proposed.
        units: numbers in its state.
        function: the activation of what is proposed; gate: that of the gates, and of an `rnn` again the activation.
        sequences: whether it hands on the state after every step, and not only the last.
        table_size: entries of each table.
        order: in which products are added.
    """

    cell: str
    units: int
    function: str
    gate: str
    sequences: bool
    table_size: int
    order: Order = "in_order"


@dataclass(frozen=True)
class Scale:
    """Each value times its scale, plus its bias; scales are repeated over the positions."""


@dataclass(frozen=True)
class Map:
    """A scalar function of every value that comparisons and products compute.

    Attributes:
        function: its name in the table of functions; the name in the file it was read from where it is not there.
        parameter: the slope or the threshold that all values share.
    """

    function: str
    parameter: float | None = None


@dataclass(frozen=True)
class Quantise:
    """Each value assigned to a type of its own, as channel 3 to `fixed<5,2,RND>`, while the layer's `result` holds all.

    Attributes:
        kinds: the types, as `FixedType` writes them; `0` where a value has no bits and is zero.
        places: for each channel, or for each value of a sample in order, the number of its type in `kinds`.
    """

    kinds: tuple[str, ...]
    places: tuple[int, ...]

    def types(self, shape: tuple[int, ...]) -> tuple[FixedType | None, ...]:
        """Return the type of each value of one sample of `shape`, in order; None where it has no bits.

        Raises:
            DesignError: there is neither a place for each channel nor for each value, or a place has no type.
        """
        size, channels = math.prod(shape), shape[-1]
        if len(self.places) not in (channels, size):
            raise DesignError(f"it has types for {len(self.places)} values; wanted {channels} (channels) or {size}")
        if not all(0 <= place < len(self.kinds) for place in self.places):
            raise DesignError(f"it names a type beyond the {len(self.kinds)} that it has")
        known = [None if text == NOTHING else FixedType.parse(text) for text in self.kinds]
        return tuple(known[place] for place in self.places) * (size // len(self.places))


@dataclass(frozen=True)
class LookUp:
    """A scalar function of every value that is looked up.

    Attributes:
        function: its name in the table of functions.
        table_size: entries of its table.
        parameter: by what an entry of `elu` is multiplied.
        scale_type: the type of the constant by which `selu` multiplies; None where that of its input.
        signed_index: whether an index of `elu` or `selu` that wraps below zero gives the first entry, and not the last.
    """

    function: str
    table_size: int
    parameter: float | None = None
    scale_type: FixedType | None = None
    signed_index: bool = False


@dataclass(frozen=True)
class Softmax:
    """Exponentials along the last axis, divided by their sum.

    Attributes:
        table_size: entries of both tables where they have no size of their own.
        exp_table_size: entries of the table of exponentials.
        inverse_table_size: entries of the table of inverses.
    """

    table_size: int | None = None
    exp_table_size: int | None = None
    inverse_table_size: int | None = None


@dataclass(frozen=True)
class Merge:
    """Two inputs become one, value by value; the smaller is repeated.

    Attributes:
        function: `add`, `subtract`, `multiply`, `average`, `maximum` or `minimum`.
    """

    function: str


@dataclass(frozen=True)
class Concatenate:
    """Two inputs behind one another along `axis`, the batch's being 0."""

    axis: int


@dataclass(frozen=True)
class Reshape:
    """Reshape: the same values in the same order under another shape; no value is rounded.

    Attributes:
        repacks: whether the packets of a stream are made anew, and the values assigned.
    """

    repacks: bool = False


@dataclass(frozen=True)
class Copy:
    """A stream that several layers read."""


@dataclass(frozen=True)
class Transpose:
    """Axes in another order: `axes` of one sample, from 0."""

    axes: tuple[int, ...]


@dataclass(frozen=True)
class Reverse:
    """The steps of a sequence in reverse order, each with its values as they are."""


@dataclass(frozen=True)
class Pad:
    """Zeros around an image: `sides` are (top, bottom, left, right)."""

    sides: tuple[int, int, int, int]


@dataclass(frozen=True)
class Crop:
    """What lies within an image: `sides` that are cut off are (top, bottom, left, right)."""

    sides: tuple[int, int, int, int]


@dataclass(frozen=True)
class Resize:
    """An image of another size: each pixel is repeated."""


@dataclass(frozen=True)
class Unknown:
    """A layer that is known by its name alone: it is computed and priced by nobody here.

    Attributes:
        name: what the file that it was read from calls such a layer.
    """

    name: str = "unknown"


Operation = (
    Input
    | Dense
    | Convolution
    | Pooling
    | Recurrent
    | Scale
    | Map
    | Quantise
    | LookUp
    | Softmax
    | Merge
    | Concatenate
    | Reshape
    | Copy
    | Transpose
    | Reverse
    | Pad
    | Crop
    | Resize
    | Unknown
)
# Operations that only choose among the values that come in, move them, or put zeros beside them.
MOVES = (Reshape, Copy, Transpose, Reverse, Pad, Crop, Resize)


def function_of(operation: Operation) -> str:
    """Return the name of the scalar function that a layer applies to each value; empty where it applies none."""
    return operation.function if isinstance(operation, Map | LookUp) else ""


def kind_of(operation: Operation, axes: int) -> str:
    """Return what people call a layer of `operation` with so many axes in its output, as `Conv2D`."""
    flat = f"{axes - 1}D"
    match operation:
        case Convolution(depthwise=depthwise, pointwise=pointwise):
            return f"{'Depthwise' if depthwise else 'Pointwise' if pointwise else ''}Conv{flat}"
        case Pooling(window=window):
            return "GlobalPooling" if window is None else f"Pooling{flat}"
        case Pad():
            return f"ZeroPadding{flat}"
        case Crop():
            return f"Cropping{flat}"
        case Map() | LookUp():
            return "Activation"
        case Recurrent(cell=cell):
            return cell.upper()
        case Scale():
            return "BatchNormalization"
        case Unknown(name=name):
            return name
        case _:
            return type(operation).__name__


def roles_of(operation: Operation) -> tuple[str, ...]:
    """Return the types that a layer of `operation` reads, beside those of its result and its weights."""
    match operation:
        case Dense() | Convolution() | Pooling():
            return ("accum",)
        case Recurrent():
            return ("accum", "table")
        case LookUp(parameter=parameter):
            return ("table",) if parameter is None else ("table", "param")
        case Map(parameter=parameter):
            return () if parameter is None else ("param",)
        case Softmax():
            return ("accum", "exp_table", "inv_table", "inv_inp", "inp_norm")
    return ()
