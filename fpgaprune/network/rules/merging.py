"""Rules of layers that merge tensors: element-wise ones couple channels, concatenation puts them side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from keras import layers
from numpy.typing import NDArray

from fpgaprune.network.channels import AxisChannels, Channels, Role
from fpgaprune.network.site import LayerRule, Site, Values
from fpgaprune.network.trace import Affine

Join = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


def coupled(site: Site, sources: Sequence[Channels], join: Join, absorbing_zero: bool = False) -> Channels:
    """Return the channels of an element-wise function of several tensors; channels of the same index leave together.

    Args:
        site: the call.
        sources: its tensors, which broadcast to the output's shape.
        join: the function of two constants.
        absorbing_zero: whether 0 with anything is 0, as in a product.
    """
    shape = site.shape
    if any(len(channels.shape) != len(shape) for channels in sources):
        for channels in sources:
            site.hold(channels.ids, "layout")
        return site.trace.opaque(shape)
    axes = {axis for channels in sources for axis in channels.varying}
    for channels in sources:
        spread = [axis for axis in axes if channels.shape[axis] == 1 and shape[axis] != 1]
        if spread or len(axes) > 1:  # one element meets many channels, or the tensors' channels are on different axes
            site.hold(channels.ids, "layout")
    if len(axes) > 1:
        return site.trace.opaque(shape)
    result = sources[0]
    for other in sources[1:]:
        aligned = all(
            channels.shape[axis] == shape[axis] or shape[axis] == 1 for channels in (result, other) for axis in axes
        )
        if aligned or not axes:
            site.unite(result.ids, other.ids)
        known = result.known & other.known
        value = join(result.value, other.value)
        if absorbing_zero:
            zero = (result.known & (result.value == 0)) | (other.known & (other.value == 0))
            known, value = known | zero, np.where(zero, 0.0, value)
        covers = all(result.shape[axis] == shape[axis] for axis in axes)
        ids = np.broadcast_arrays(result.ids, other.ids)[0 if covers else 1]
        result = Channels(shape, ids, known, value)
    for channels in sources:
        for slot in np.unique(np.broadcast_to(channels.ids, channels.known.shape)[channels.known]):
            site.trace.partners.setdefault(int(slot), site.path)
    return result


def merge(join: Join, kind: str = "", absorbing_zero: bool = False) -> Values:
    """Make the rule of an element-wise layer of any number of tensors; one linear in each of them has a `kind`."""

    def rule(site: Site) -> Channels:
        found = collapsed(site, site.inputs, kind) if kind else None
        return found or coupled(site, site.inputs, join, absorbing_zero)

    return rule


def average(site: Site) -> Channels:
    """Return the rule of the mean of any number of tensors."""
    found = collapsed(site, site.inputs, "average")
    if found is not None:
        return found
    total = coupled(site, site.inputs, np.add)
    return replace(total, value=total.value / len(site.inputs))


def concatenate(site: Site) -> Channels:
    """Return the rule of concatenation; if it is not along the channels, channels of the same index leave together."""
    shape, sources = site.shape, site.inputs
    axis = site.layer.axis % (len(shape) + 1) - 1
    varying = {k for channels in sources for k in channels.varying}
    if axis < 0 or len(varying | {axis}) > 2 or any(channels.shape[axis] is None for channels in sources):
        return _opaque(site)
    if varying <= {axis}:
        lines = [channels.line(axis) for channels in sources]
        ids, known, value = (
            np.concatenate(parts) for parts in zip(*((x.ids, x.known, x.value) for x in lines), strict=True)
        )
        return AxisChannels(ids, known, value).over(shape, axis)
    if axis in varying:
        return _opaque(site)
    (across,) = varying
    line = sources[0].line(across)
    for other in sources[1:]:
        site.unite(line.ids, other.line(across).ids)
        line = line.meet(other.line(across))
    return line.over(shape, across)


def _opaque(site: Site) -> Channels:
    for channels in site.inputs:
        site.hold(channels.ids, "layout")
    return site.trace.opaque(site.shape)


RULES: dict[type, LayerRule] = {
    layers.Add: LayerRule(merge(np.add, "add"), Role.MERGE),
    layers.Average: LayerRule(average, Role.MERGE),
    layers.Concatenate: LayerRule(concatenate, Role.JOIN),
    layers.Maximum: LayerRule(merge(np.maximum), Role.MERGE),
    layers.Minimum: LayerRule(merge(np.minimum), Role.MERGE),
    layers.Multiply: LayerRule(merge(np.multiply, "multiply", absorbing_zero=True)),
    layers.Subtract: LayerRule(merge(np.subtract, "subtract"), Role.MERGE),
}


def collapsed(site: Site, sources: Sequence[Channels], kind: str) -> Channels | None:
    """Return the output of a merge of one live tensor with constants; None if the call is no such merge.

    Args:
        site: the call. Calls inside nested models are left alone, because a nested model may be called twice.
        sources: its tensors.
        kind: `add`, `subtract`, `multiply` or `average`.
    """
    axes = {axis for source in sources for axis in source.varying}
    if "/" in site.call.key or len(axes) > 1 or any(len(x.shape) != len(site.shape) for x in sources):
        return None
    axis = axes.pop() if axes else len(site.shape) - 1
    if site.shape[axis] is None or any(source.shape[axis] != site.shape[axis] for source in sources):
        return None
    lines = [source.line(axis) for source in sources]
    # Channels that leave by an earlier pass need not be constants.
    leaving = site.trace.leaving.get(site.call.key, np.zeros(lines[0].ids.shape, bool))
    live = [k for k, line in enumerate(lines) if not (line.known | leaving).all()]
    if len(live) != 1 or (kind == "subtract" and live != [0]) or sources[live[0]].shape != site.shape:
        site.trace.merges[site.call.key] = [(line.ids, line.known) for line in lines]
        return None
    line = lines[live[0]]
    constants = [other for k, other in enumerate(lines) if k != live[0]]
    values = [other.value for other in constants]
    settled = np.logical_and.reduce([other.known for other in constants])
    one, zero = np.ones(line.ids.size), np.zeros(line.ids.size)
    scale, offset = {
        "add": (one, sum(values, zero)),
        "subtract": (one, zero - sum(values, zero)),
        "multiply": (np.prod(values, axis=0) * one, zero),
        "average": (one / len(sources), sum(values, zero) / len(sources)),
    }[kind]
    affine = Affine(site.path, live[0], line.ids, scale, offset, axis, site.shape, ~settled)
    trivial = (scale[settled] == 1).all() and (offset[settled] == 0).all()
    if not trivial and (len(site.shape) not in (2, 3) or axis != len(site.shape) - 1):
        return None  # no 1x1 depthwise convolution that every backend runs can replace it
    site.trace.affine[site.call.key] = affine
    known = (line.known | (scale == 0)) & settled
    value = np.where(line.known, scale * line.value, 0.0) + offset
    return AxisChannels(line.ids, known, value).over(site.shape, axis)
