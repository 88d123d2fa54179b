"""Rules of embeddings, whose columns are channels, and of recurrent layers and wrappers, which keep all their units."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from keras import layers

from fpgaprune.network.channels import AxisChannels, Channels, Role, positions
from fpgaprune.network.functions import IDENTITIES, keras_class
from fpgaprune.network.graph import value_of
from fpgaprune.network.in_use import in_parts
from fpgaprune.network.rules.activations import activate
from fpgaprune.network.site import LayerRule, Site
from fpgaprune.network.trace import Count

if TYPE_CHECKING:
    import keras


def embedding(site: Site) -> Channels:
    """Return the rule of `Embedding`: a column with the same value in all rows is a constant."""
    layer = site.layer
    if in_parts(layer):
        return site.keep_all()[0]
    ids = site.own(layer.output_dim)
    site.weight(layer.embeddings, None, ids)
    site.shrinks(output_dim=Count(ids))
    table = value_of(layer.embeddings, np.float64)
    known = (table == table[:1]).all(axis=0)
    return AxisChannels(ids, known, table[0]).over(site.shape, len(site.shape) - 1)


def recurrent(site: Site) -> list[Channels]:
    """Return the rule of `LSTM`, `GRU`, `SimpleRNN`: a constant input adds the same at every step, as the bias does."""
    for states in site.inputs[1:]:
        site.hold(states.ids, "state")
    steps = site.inputs[0].shape[0] or 1
    _reads(site, site.layer, site.line(-1), steps)
    return _units(site)


def bidirectional(site: Site) -> list[Channels]:
    """Return the rule of `Bidirectional` around one of these layers."""
    inner = (site.layer.forward_layer, site.layer.backward_layer)
    if any(type(layer) not in _RECURRENT for layer in inner) or len(site.inputs) > 1:
        return site.keep_all()
    line, steps = site.line(-1), site.inputs[0].shape[0] or 1
    for layer in inner:
        _reads(site, layer, line, steps)
    return _units(site)


def time_distributed(site: Site) -> list[Channels]:
    """Apply the rule of `TimeDistributed` around a `Dense`, which keeps its units, or a layer that does nothing."""
    inner = site.layer.layer
    known = keras_class(inner)
    if known is not None and known.__name__ in IDENTITIES:
        return [site.inputs[0]]
    if known is not layers.Dense or in_parts(inner) or len(site.inputs) > 1:
        return site.keep_all()
    ids = site.trace.own(inner, "output", inner.units)
    site.owns(ids)
    # The wrapper's config holds that of the layer, so its units and a bias stay as they are.
    site.hold(ids, "layout")
    options = {"uses": positions(site.shape[:-1]), "absorbs": inner.use_bias, "mergeable": False}
    out = site.linear(site.line(-1), inner.kernel, ids, bias=inner.bias, **options)
    return [activate(site, out, -1, inner.activation)]


def _reads(site: Site, layer: keras.Layer, line: AxisChannels, steps: int) -> None:
    cell = layer.cell
    kernel_path = site.trace.paths.get(id(cell.kernel), site.path)
    gates = site.trace.own(layer, "gates", cell.kernel.shape[-1])
    site.hold(gates, "state")
    bias = value_of(cell.bias, np.float64).reshape(-1)[: gates.size] if cell.use_bias else None
    site.linear(
        line,
        cell.kernel,
        gates,
        bias_path=f"{kernel_path.rpartition('/')[0]}/bias",
        bias_shape=(2, gates.size) if getattr(layer, "reset_after", False) else None,
        bias_values=bias,
        uses=steps,
        # A wrapped layer without a bias cannot be given one in the wrapper's config.
        absorbs=cell.use_bias or layer is site.layer,
        mergeable=False,
    )
    site.weight(cell.recurrent_kernel, None, None, uses=steps)


def _units(site: Site) -> list[Channels]:
    results = [site.trace.opaque(shape) for shape in site.shapes]
    for channels in results:
        site.hold(channels.ids, "state")
    width = math.prod(size or 1 for size in site.shape[-1:])
    site.owns(np.broadcast_to(results[0].ids.reshape(-1), (width,)))
    return results


_RECURRENT = (layers.GRU, layers.LSTM, layers.SimpleRNN)

RULES: dict[type, LayerRule] = {
    layers.Bidirectional: LayerRule(bidirectional),
    layers.Embedding: LayerRule(embedding),
    layers.TimeDistributed: LayerRule(time_distributed),
    **dict.fromkeys(_RECURRENT, LayerRule(recurrent, Role.RECURRENT)),
}
