"""`Role`: what a layer does to channels, as far as masks tell it, without the values of its weights."""

from __future__ import annotations

from enum import Enum, auto


class Role(Enum):
    """What a layer does to channels. Each class of layers names its role in `fpgaprune.network.rules`."""

    CONVOLUTION = auto()  # its kernel makes channels: `W[..., i, o]` leads from input channel i to output channel o
    DENSE = auto()  # the same at a single position
    TRANSPOSED = auto()  # its kernel makes channels: `W[..., o, i]`
    DEPTHWISE = auto()  # its kernel filters each channel by itself: `W[..., c, m]` makes channel `c * M + m`
    RECURRENT = auto()  # its kernels make channels, from the input and from the step before
    NORM = auto()  # one scale and one shift for each channel
    IDENTITY = auto()  # it hands its input on at inference
    POINTWISE = auto()  # an activation: each position by itself
    POSITIONS = auto()  # channels stay where they are; positions are moved, pooled, dropped or filled with zero
    MERGE = auto()  # channel c is made of channel c of each of its tensors; zeros alone make zero
    JOIN = auto()  # tensors side by side
    FLAT = auto()  # positions and channels may become one axis


KERNEL = frozenset({Role.CONVOLUTION, Role.DENSE})
# Layers that hold a kernel and make channels.
MAKERS = KERNEL | {Role.TRANSPOSED, Role.DEPTHWISE, Role.RECURRENT}
# Each position by itself: a constant channel stays constant.
PLACEWISE = frozenset({Role.IDENTITY, Role.POINTWISE})
# Output channel c depends on input channel c alone, and zeros give zeros where the activation does.
CHANNELWISE = PLACEWISE | {Role.POSITIONS}
