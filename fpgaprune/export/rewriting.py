"""Rules that turn tf2onnx's graph into the plain one that the model describes; each keeps every number.

A rule changes one place and says whether it found one; the rules run until none finds anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fpgaprune.export.dense_axes import multiply_last_axis
from fpgaprune.export.join_bias import join_bias
from fpgaprune.export.one_dimension import drop_dummy_axis
from fpgaprune.onnx_graph import Graph

RULES: tuple[Callable[[Graph], bool], ...] = (drop_dummy_axis, join_bias, multiply_last_axis)


def rewrite(exported: Any) -> Any:
    """`exported` with every rule applied, and with the shapes of its tensors as far as they can be known."""
    exported = _with_shapes(exported)
    while any(rule(Graph(exported.graph)) for rule in RULES):
        exported = _with_shapes(exported)
    return exported


def _with_shapes(exported: Any) -> Any:
    import onnx

    del exported.graph.value_info[:]
    return onnx.shape_inference.infer_shapes(exported, check_type=True, strict_mode=True, data_prop=True)
