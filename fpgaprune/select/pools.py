"""The weights that a selection chooses from, and which of them are counted together."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from fpgaprune.errors import MaskError
from fpgaprune.network import FlatStep, Network, Role, Weight, network_of, weights_of
from fpgaprune.values import match_paths, named_weights

if TYPE_CHECKING:
    import keras

# A default selection leaves Dense and recurrent weights alone if they do less than this share of multiplications.
DENSE_SHARE = 0.25


def pool_of(weight: Weight) -> str:
    """Return the pool of a weight, `convolution` or `dense`. Units of one pool are counted and sorted together.

    A kernel of a convolution has several weights, a kernel of a Dense layer has one: in a common count, Dense kernels
    would outnumber the others. All other weights (recurrent and attention weights, biases) are `dense` too.
    """
    return "convolution" if weight.kind in ("convolution", "depthwise") else "dense"


def chosen_paths(model: keras.Model, patterns: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the weight paths among `known` that match `patterns`; without patterns those of `default_paths`.

    Raises:
        MaskError: a pattern matches no path, or there is no default.
    """
    found = [path for pattern in patterns for path in match_paths(pattern, known)]
    return list(dict.fromkeys(found)) or default_paths(model)


def default_paths(model: keras.Model) -> list[str]:
    """Return the weights that a selection chooses from if the user names none, in the model's order.

    These are the kernels of convolutions, and those of Dense and recurrent layers if these do at least a quarter of the
    multiplications (elements of a weight times the positions at which they are used) or if there is no convolution.
    If there is one and a size of the input is unknown, Dense and recurrent weights are left alone. Depthwise kernels
    follow their channels instead (`fpgaprune.select.closure`).

    Raises:
        MaskError: there is no such weight; the message names the kernels that there are.
    """
    weights = weights_of(model)
    kinds = {path: weight.kind for path, weight in weights.items()}
    convolutions = [path for path, kind in kinds.items() if kind == "convolution"]
    dense = [path for path, kind in kinds.items() if kind in ("dense", "recurrent")]
    if convolutions and not _carry(model, dense, convolutions, weights):
        dense = []
    chosen = {*convolutions, *dense}
    if not chosen:
        others = [f"{path} ({kind})" for path, kind in kinds.items() if kind in ("depthwise", "attention")]
        there = f"; it has {', '.join(others[:6])}" if others else ""
        raise MaskError(
            f"the model has no kernel of a convolution, a Dense or a recurrent layer to select from{there}: name "
            "weights with 'paths'"
        )
    return [path for path in weights if path in chosen]


def _carry(model: keras.Model, dense: list[str], convolutions: list[str], weights: Mapping[str, Weight]) -> bool:
    """Return whether the weights `dense` do at least `DENSE_SHARE` of the multiplications of both; False if unknown."""
    network = network_of(model) if dense else None
    if network is None:
        return False
    variables = named_weights(model)
    counts: dict[str, int] = {}
    for path in (*dense, *convolutions):
        weight = weights[path]
        positions = [_positions(weight, step, network) for step in network.by_layer.get(id(weight.layer), [])]
        known = [count for count in positions if count is not None]
        if not known or len(known) < len(positions):
            return False
        counts[path] = math.prod(variables[path].shape) * sum(known)
    done = sum(counts[path] for path in dense)
    return done >= DENSE_SHARE * sum(counts.values())


def _positions(weight: Weight, step: FlatStep, network: Network) -> int | None:
    """Return the number of positions, or steps in time, at which a call uses its weights; None if a size is unknown."""
    # A transposed convolution uses each weight at each position of its input, a recurrent layer at each step.
    of_input = step.role is Role.TRANSPOSED or weight.kind == "recurrent"
    sizes = network.shape(step.inputs[0] if of_input else step.outputs[0])[1:-1]
    return None if None in sizes else math.prod(size for size in sizes if size is not None)
