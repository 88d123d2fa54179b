"""Writes the tables of a Quartus project's softmax for the layer's types.

hls4ml 1.3.0 looks for a layer with exactly the name `softmax`. Without one it makes the tables for its own defaults, so
the project computes something else. Its entries always have eight bits right of the point; here they have the layer's
types. All softmax layers of a project share one file.
"""

from __future__ import annotations

import re
from pathlib import Path

from fpgaprune.design import Design
from fpgaprune.emulate import exponential_entries, inverse_entries
from fpgaprune.lowering import softmax_layers, table_keys

_FOLDER = Path("firmware", "nnet_utils", "activation_tables")


def write_tables(folder: Path, design: Design) -> None:
    """Writes the tables for the softmax of `design` into the project at `folder`."""
    for layer in softmax_layers(design)[:1]:
        source, exp_type, size = table_keys(design, layer)
        for name, kind, entries in (
            ("exp_table", "exp_table_t", exponential_entries(source, size)),
            ("invert_table", "inv_table_t", inverse_entries(exp_type, size)),
        ):
            path = folder / _FOLDER / f"{name}.tb"
            text = re.sub(r"\[\d+\] = \{[^}]*\}", f"[{size}] = {{{', '.join(map(str, entries))}}}", path.read_text())
            path.write_text(text.replace("CONFIG_T::table_t", f"CONFIG_T::{kind}"))
