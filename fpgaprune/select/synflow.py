"""`synflow`: the criterion that scores a weight by the paths from the model's input to its output through it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError
from fpgaprune.network import ChannelAxes, Ids, groups_of, network_of, weights_of
from fpgaprune.select.data_criteria import Question, Scores
from fpgaprune.values import named_weights

Flow = NDArray[np.float64]


def synflow(question: Question) -> Scores:
    """Return the share of the paths through a layer that lead through each element; a path is the product of its sizes.

    A weight that reads a channel which is hardly made, or makes one that is hardly read, scores little however large it
    is. So the weights that are left at a high sparsity are connected, where `l1` scatters them over many channels. In a
    weight whose channels the graph does not name, or a depthwise one, each element scores its absolute value.

    Source: Tanaka, Kunin, Yamins, Ganguli, "Pruning neural networks without any data by iteratively conserving synaptic
    flow", 2020, section 4.
    """
    network = network_of(question.model)
    if network is None:
        raise MaskError("criterion 'synflow' needs a functional or Sequential model, whose graph can be read")
    channels, known = groups_of(network), weights_of(question.model)
    weights = {**{path: weight.numpy() for path, weight in named_weights(question.model).items()}, **question.weights}
    paths = {id(known[path].layer): path for path in known if path.endswith("/kernel")}
    forth: dict[str, tuple[Flow, Ids, Ids]] = {}
    for step in network.steps:
        path = paths.get(id(step.layer))
        if path is None or known[path].axes != ChannelAxes() or step.path not in channels.made:
            continue
        sizes = np.abs(weights[path].astype(np.float64))
        sizes = sizes.reshape(-1, *sizes.shape[-2:]).sum(axis=0)
        reads, makes = channels.tensors[step.inputs[0]], channels.made[step.path]
        if sizes.shape == (len(reads), len(makes)):
            forth.setdefault(path, (sizes, reads, makes))
    fed = _flow(list(forth.values()), channels.count)
    read = _flow([(sizes.T, makes, reads) for sizes, reads, makes in reversed(forth.values())], channels.count)
    found: Scores = {}
    for path, weight in question.weights.items():
        found[path] = np.abs(weight.astype(np.float64))
        if path in forth:
            _, reads, makes = forth[path]
            found[path] *= fed[reads][:, None] * read[makes]
        found[path] /= found[path].sum() or 1.0
    return found


def _flow(layers: list[tuple[Flow, Ids, Ids]], count: int) -> Flow:
    """Return what flows into each of `count` channels through `layers`: sizes, the channels they read and make.

    One flows into each channel that no layer makes.
    """
    flow = np.ones(count)
    for _, _, makes in layers:
        flow[makes] = 0.0
    for sizes, reads, makes in layers:
        np.add.at(flow, makes, flow[reads] @ sizes)
        # Of a deep network it would overflow, and only ratios count.
        flow /= flow.max() or 1.0
    return flow
