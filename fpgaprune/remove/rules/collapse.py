"""A branch that is one constant at a merge: the merge becomes a scale and an offset for each channel.

With nothing left that reads it, the whole branch leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fpgaprune.remove.channels import Channels, Line
from fpgaprune.remove.site import Site
from fpgaprune.remove.trace import Affine


def collapsed(site: Site, sources: Sequence[Channels], kind: str) -> Channels | None:
    """What a merge of one live tensor and constants makes; None where it is no such merge.

    Args:
        site: the call; only at the top level of the model, where a call stands for itself alone.
        sources: its tensors.
        kind: `add`, `subtract`, `multiply` or `average`.
    """
    live = [k for k, channels in enumerate(sources) if not channels.known.all()]
    if "/" in site.call.key or len(live) != 1 or (kind == "subtract" and live != [0]):
        return None
    channels = sources[live[0]]
    constants = [other for other in sources if other is not channels]
    axes = {axis for source in sources for axis in source.varying}
    if channels.shape != site.shape or len(axes) > 1 or any(len(x.shape) != len(site.shape) for x in sources):
        return None
    axis = axes.pop() if axes else len(site.shape) - 1
    if any(other.shape[axis] != site.shape[axis] for other in constants) or site.shape[axis] is None:
        return None
    values = [other.line(axis).value for other in constants]
    line = channels.line(axis)
    one, zero = np.ones(line.ids.size), np.zeros(line.ids.size)
    scale, offset = {
        "add": (one, sum(values, zero)),
        "subtract": (one, zero - sum(values, zero)),
        "multiply": (np.prod(values, axis=0) * one, zero),
        "average": (one / len(sources), sum(values, zero) / len(sources)),
    }[kind]
    affine = Affine(site.path, live[0], line.ids, scale, offset, axis, site.shape)
    if not affine.trivial and (len(site.shape) not in (2, 3) or axis != len(site.shape) - 1):
        return None  # no 1x1 depthwise convolution for it that every backend runs
    site.trace.affine[site.call.key] = affine
    known = line.known | (scale == 0)
    value = np.where(line.known, scale * line.value, 0.0) + offset
    return Line(line.ids, known, np.where(known, value, 0.0)).over(site.shape, axis)
