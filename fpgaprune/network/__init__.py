"""Analyses what a Keras network does to its channels, with one rule for each class of layers.

`graph` reads the graph. `rules` says what each class of layers does to channels. Two analyses use them. One uses the
values of the weights: `walk` fills a `trace`, and `liveness` finds which channels are needed. The other uses masks
alone, whose locked elements are zero: `flat` lists the network's steps, `coupling` finds the channels that leave
together, `zeros` those that are zero or unread, `alive` those that connect the input with the output.

Other packages import from here, not from the modules inside. Keras is loaded only when a model is given.
"""

from fpgaprune.network.activations import is_elementwise
from fpgaprune.network.alive import Alive, alive_channels
from fpgaprune.network.batch_norm import find_folds, folded_weights, scale_and_shift
from fpgaprune.network.channels import Channels, Line
from fpgaprune.network.cloning import cloned
from fpgaprune.network.coupling import Groups, coupled_outputs, groups_of
from fpgaprune.network.flat import Flags, Network, Step, network_of, role_of
from fpgaprune.network.graph import (
    Call,
    calls_of,
    count_uses,
    graph_of,
    is_model,
    producer,
    readers_of,
    structures,
    unconnected,
    value_of,
)
from fpgaprune.network.linear import Linear, Taps
from fpgaprune.network.liveness import Liveness, pick_carrier
from fpgaprune.network.role import CHANNELWISE, KERNEL, MAKERS, Role
from fpgaprune.network.site import LayerRule, Site
from fpgaprune.network.slots import Ids, Slots
from fpgaprune.network.trace import Affine, Count, Listed, Trace
from fpgaprune.network.walk import trace_channels
from fpgaprune.network.weight_axes import PLAIN, ChannelAxes, Weight, per_output, weights_of
from fpgaprune.network.windows import channel_axis, positions, spatial
from fpgaprune.network.zeros import Zeros, none_of

__all__ = [
    "Alive",
    "Groups",
    "alive_channels",
    "cloned",
    "find_folds",
    "folded_weights",
    "is_elementwise",
    "scale_and_shift",
]
__all__ += ["Call", "Flags", "Network", "Step", "calls_of", "coupled_outputs", "groups_of", "network_of", "role_of"]
__all__ += ["count_uses", "graph_of", "is_model", "producer", "readers_of", "structures", "unconnected", "value_of"]
__all__ += ["CHANNELWISE", "KERNEL", "MAKERS", "Ids", "Linear", "Liveness", "Role", "Slots", "Taps", "pick_carrier"]
__all__ += ["PLAIN", "Affine", "ChannelAxes", "Count", "Listed", "Trace", "Weight", "trace_channels"]
__all__ += ["Channels", "LayerRule", "Line", "Site"]
__all__ += ["Zeros", "channel_axis", "none_of", "per_output", "positions", "spatial", "weights_of"]
