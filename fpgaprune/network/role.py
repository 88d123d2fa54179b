"""`Role` says what a layer does to channels, as far as that is known without the values of its weights."""

from __future__ import annotations

from enum import Enum, auto


class Role(Enum):
    """What a layer does to channels. Each class of layers names its role in `fpgaprune.network.rules`."""

    CONVOLUTION = auto()  # its kernel makes channels: `W[..., i, o]` is from input channel i to output channel o
    DENSE = auto()  # the same at a single position
    TRANSPOSED = auto()  # its kernel makes channels: `W[..., o, i]`
    DEPTHWISE = auto()  # its kernel filters each channel alone: `W[..., c, m]` makes channel `c * M + m`
    SEPARABLE = auto()  # a depthwise kernel without a bias, then a kernel that makes channels of what it filtered
    RECURRENT = auto()  # its kernels make channels, from the input and from the time step before
    NORM = auto()  # one scale and one shift for each channel
    IDENTITY = auto()  # its output is its input at inference
    POINTWISE = auto()  # an activation, which treats each position alone
    POSITIONS = auto()  # channels keep their places; positions are moved, pooled, dropped or filled with zero
    MERGE = auto()  # channel c is made of channel c of each of its tensors; zeros make zero
    JOIN = auto()  # puts tensors side by side
    FLAT = auto()  # positions and channels may become one axis


KERNEL = frozenset({Role.CONVOLUTION, Role.DENSE})
# Layers that hold a kernel and make channels.
MAKERS = KERNEL | {Role.TRANSPOSED, Role.DEPTHWISE, Role.RECURRENT}
# These treat each position alone, so a constant channel stays constant.
PLACEWISE = frozenset({Role.IDENTITY, Role.POINTWISE})
# In these, output channel c depends on input channel c alone, and zeros make zeros if the activation keeps zero.
CHANNELWISE = PLACEWISE | {Role.POSITIONS}
