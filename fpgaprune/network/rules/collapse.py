"""Replaces a merge with constant branches by a scale and an offset for each channel.

Nothing reads the constant branches then, so they leave the model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fpgaprune.network.channels import AxisChannels, Channels
from fpgaprune.network.site import Site
from fpgaprune.network.trace import Affine


def collapsed(site: Site, sources: Sequence[Channels], kind: str) -> Channels | None:
    """The output of a merge of one live tensor with constants; None if the call is no such merge.

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
