"""Applies rules that turn tf2onnx's graph into the plain graph of the model; each rule keeps every number.

A rule changes one place and returns whether it found one. The rules run until none finds a place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fpgaprune.export.dense_axes import multiply_last_axis
from fpgaprune.export.join_bias import join_bias
from fpgaprune.export.one_dimension import drop_dummy_axis
from fpgaprune.files import Graph

RULES: tuple[Callable[[Graph], bool], ...] = (drop_dummy_axis, join_bias, multiply_last_axis)


def rewrite(exported: Any) -> Any:
    """`exported` after all rules, with the shapes of its tensors as far as they can be inferred."""
    exported = _with_shapes(exported)
    while any(rule(Graph(exported.graph)) for rule in RULES):
        exported = _with_shapes(exported)
    return exported


def _with_shapes(exported: Any) -> Any:
    import onnx

    del exported.graph.value_info[:]
    return onnx.shape_inference.infer_shapes(exported, check_type=True, strict_mode=True, data_prop=True)
