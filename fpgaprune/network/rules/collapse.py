"""A branch that is one constant at a merge: the merge becomes a scale and an offset for each channel.

With nothing left that reads it, the whole branch leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fpgaprune.network.channels import AxisChannels, Channels
from fpgaprune.network.site import Site
from fpgaprune.network.trace import Affine


def collapsed(site: Site, sources: Sequence[Channels], kind: str) -> Channels | None:
    """What a merge of one live tensor and constants makes; None where it is no such merge.

    Args:
        site: the call; only at the top level of the model, where a call stands for itself alone.
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
    # Channels that an earlier pass found to leave anyway do not speak against it.
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
        return None  # no 1x1 depthwise convolution for it that every backend runs
    site.trace.affine[site.call.key] = affine
    known = (line.known | (scale == 0)) & settled
    value = np.where(line.known, scale * line.value, 0.0) + offset
    return AxisChannels(line.ids, known, value).over(site.shape, axis)
