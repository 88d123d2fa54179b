"""The files of an hls4ml project for a design, written from its integers as hls4ml writes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fpgaprune.design import Design
from fpgaprune.hls import layer_of
from fpgaprune.values import FixedType

KIND = FixedType(8, 1)
LETTERS = {"weight": "w", "bias": "b", "scale": "s", "recurrent_weight": "wr", "recurrent_bias": "br"}


def layer(name, kind, weights, output_shape=(2,), sources=None, **more):
    """A layer that reads `x`; its weights come from paths such as `fc/weight` unless `sources` says otherwise."""
    types = dict.fromkeys(weights, KIND) | {"result": KIND}
    paths = {role: f"{name}/{role}" for role in weights} if sources is None else sources
    raw = {role: np.asarray(array, np.int64) for role, array in weights.items()}
    if kind in ("GRU", "LSTM"):
        more["attributes"] = {
            "activation": "tanh", "recurrent_activation": "sigmoid", "n_out": output_shape[-1],
            "return_sequences": False,
        }  # fmt: skip
    return layer_of(name, kind, ("x",), output_shape, types, raw, paths, **more)


def design(*layers, io_type="io_parallel"):
    inputs = layer_of("x", "Input", (), (4,), {"result": KIND})
    return Design("net", (inputs, *layers), tuple(each.name for each in layers), io_type=io_type)


def write(
    folder: Path,
    made: Design,
    sizes: Mapping[str, Mapping[str, int]] | None = None,
    by_type: bool = True,
    stored: Mapping[tuple[str, str], np.ndarray] | None = None,
    left_out: tuple[tuple[str, str], ...] = (),
) -> Path:
    """The firmware folder of `made`, whose layers have the numbers 2, 3, ...

    Args:
        folder: the firmware folder.
        made: whose integers are written.
        sizes: what the configuration of a layer states.
        by_type: a type carries its layer's name; otherwise only the arrays' names tell whose they are.
        stored: integers to write in place of the design's, by layer and role.
        left_out: layers and roles that get no file.
    """
    weights = folder / "weights"
    weights.mkdir(parents=True)
    typedefs, calls, configs = [], [], []
    for number, spec in enumerate(made.layers[1:], start=2):
        calls.append(f"    nnet::any<a_t, b_t, config{number}>(x, y); // {spec.name}\n")
        stated = "".join(f"    static const unsigned {k} = {v};\n" for k, v in (sizes or {}).get(spec.name, {}).items())
        configs.append(f"struct config{number} : nnet::any_config {{\n{stated}}};\n")
        for role, raw in spec.weights.items():
            if (spec.name, role) in left_out:
                continue
            values = KIND.to_float((stored or {}).get((spec.name, role), raw)).ravel()
            name = f"{LETTERS.get(role, role)}{number}"
            kind = f"{spec.name}_{role}_t" if by_type else f"kind_{name}_t"
            text = ", ".join(f"{value:.7f}" for value in values)
            (weights / f"{name}.h").write_text(f"#else\n{kind} {name}[{values.size}] = {{{text}}};\n#endif\n")
            typedefs.append(f"typedef ap_{KIND} {kind};\n")
    (folder / "defines.h").write_text("".join(typedefs))
    (folder / "parameters.h").write_text("".join(configs))
    (folder / "net.cpp").write_text("".join(calls))
    return folder
