"""Random networks of many independent branches with random types: one compiled project holds one case a branch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers as kl

from fpgaprune.backends import as_built
from fpgaprune.design import MOVES, Design, LayerSpec, Reshape
from fpgaprune.hls import CSimulation, render, write_sources
from fpgaprune.lowering import quantise_weights, settle_layouts
from fpgaprune.lowering.design_of import design_of
from fpgaprune.target import Target
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType

Branch = tuple[tuple[int, ...], Callable[[Any], Any]]


def random_type(
    rng: np.random.Generator, width: tuple[int, int], signed: bool | None = None, slack: int = 2
) -> FixedType:
    """Any type of `width` bits around the binary point, in any mode."""
    bits = int(rng.integers(width[0], width[1] + 1))
    has_sign = bool(rng.random() < 0.7) if signed is None else signed
    integer = int(rng.integers(-slack + 1, bits + slack))
    return FixedType(bits, integer, has_sign, str(rng.choice(ROUNDING_MODES)), str(rng.choice(OVERFLOW_MODES)))


def centred_type(rng: np.random.Generator, width: tuple[int, int], integer: tuple[int, int], **fixed: Any) -> FixedType:
    """A type with `integer` bits left of the point."""
    bits = int(rng.integers(width[0], width[1] + 1))
    options = {
        "signed": bool(rng.random() < 0.7),
        "rounding": str(rng.choice(ROUNDING_MODES)),
        "overflow": str(rng.choice(OVERFLOW_MODES)),
    }
    return FixedType(bits, int(rng.integers(integer[0], integer[1] + 1)), **{**options, **fixed})


def role_type(rng: np.random.Generator, role: str, kind: str) -> FixedType:
    """A type for `role` of a layer of `kind`: small enough to overflow and round often, not always."""
    if role in ("weight", "scale", "param", "bias", "recurrent_weight", "recurrent_bias"):
        return centred_type(rng, (2, 9), (0, 3), **({"signed": True} if role.endswith("weight") else {}))
    if role == "accum" and kind == "Softmax":
        return centred_type(rng, (10, 18), (3, 8), signed=True)
    if role == "accum":
        return centred_type(rng, (6, 20), (2, 9), signed=True) if rng.random() < 0.7 else FixedType(40, 20)
    if role in ("exp_table", "inv_table"):
        return centred_type(rng, (10, 18), (2, 8))
    if role == "inv_inp":
        return centred_type(rng, (11, 18), (3, 8))
    if role == "table":
        return centred_type(rng, (6, 18), (1, 5))
    return centred_type(rng, (3, 14), (-1, 6))


@dataclass(frozen=True)
class Written:
    """A written project with one case for each of its outputs."""

    design: Design
    folder: Path
    inputs: list[np.ndarray]

    def compiled(self) -> CSimulation:
        """Its C simulation, compiled without optimisation, which is most of the time of a test."""
        script = self.folder / "build_lib.sh"
        # Where rounding drops more bits than there are, ap_fixed asserts over a bit that it then does not use.
        script.write_text(script.read_text().replace("-O1", "-O0 -DNDEBUG"))
        return CSimulation.build(self.folder, self.design)


def written(
    branches: list[Branch], rng: np.random.Generator, target: Target, folder: Path, samples: int = 8
) -> Written:
    """The project of a network of `branches` with random types and weights."""
    entries, ends = [], []
    for place, (shape, build) in enumerate(branches):
        entry = keras.Input(shape, name=f"in{place}")
        entries.append(entry)
        ends.append(build(entry))
    model = keras.Model(entries, ends, name="branches")
    types = _types(model, rng)
    for layer in model.layers:
        layer.set_weights([rng.uniform(-2, 2, w.shape) for w in layer.get_weights()])
        if isinstance(layer, kl.BatchNormalization):
            layer.set_weights(
                [
                    *(rng.uniform(-2, 2, w.shape) for w in layer.get_weights()[:3]),
                    rng.uniform(0.2, 2, layer.gamma.shape),
                ]
            )
    layouts, _ = settle_layouts(model, target, {})
    design = design_of(model, types, quantise_weights(model, types), {}, layouts, {}, target, "branches")
    design = _in_place(as_built(design))
    graph = render(design, target, folder)
    write_sources(folder, graph, design)
    inputs = [
        _samples(rng, design[f"in{place}"].types["result"], (samples, *shape))
        for place, (shape, _) in enumerate(branches)
    ]
    return Written(design, folder, inputs)


def _in_place(design: Design) -> Design:
    """`design` with the type of what it reads for each layer where no value is assigned."""
    layers: dict[str, LayerSpec] = {}
    for layer in design.layers:
        if isinstance(layer.operation, MOVES) and layer.operation != Reshape(repacks=True):
            source = layers[layer.inputs[0]]
            layer = replace(layer, types={"result": source.types["result"]})
        layers[layer.name] = layer
    return replace(design, layers=tuple(layers.values()))


def _types(model: Any, rng: np.random.Generator) -> dict[str, dict[str, FixedType]]:
    roles = ("result", "weight", "bias", "accum", "scale", "param", "table", "exp_table", "inv_table", "inv_inp")
    types: dict[str, dict[str, FixedType]] = {}
    for layer in model.layers:
        kind = type(layer).__name__
        kind = "Softmax" if getattr(layer, "activation", None) is keras.activations.softmax else kind
        recurrent = ("recurrent_weight", "recurrent_bias") if kind in ("GRU", "LSTM") else ()
        types[layer.name] = {role: role_type(rng, role, kind) for role in (*roles, *recurrent)}
        if kind == "InputLayer":
            types[layer.name] = {"result": centred_type(rng, (3, 12), (-1, 5))}
    return types


def _samples(rng: np.random.Generator, kind: FixedType, shape: tuple[int, ...]) -> np.ndarray:
    """Values over the range of `kind`, a little beyond it, at ties, and zero."""
    spread = max(abs(kind.raw_min), kind.raw_max) * kind.lsb
    values = rng.uniform(-1.3 * spread, 1.3 * spread, shape)
    ties = np.round(values / kind.lsb * 2) * kind.lsb / 2
    values = np.where(rng.random(shape) < 0.3, ties, values)
    values[rng.random(shape) < 0.05] = 0.0
    return values.astype(np.float32)
