"""`second_opinion` compares a design with the one that hls4ml's ONNX front end makes of the same network."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design, Input
from fpgaprune.emulate import emulate
from fpgaprune.errors import HlsError, UnsupportedLayerError
from fpgaprune.hls.differences import DesignDifference, design_differences
from fpgaprune.hls.hls_project import HlsProject
from fpgaprune.hls.onnx_route import design_from_onnx


@dataclass(frozen=True)
class SecondOpinion:
    """The comparison of the design from an ONNX file with the design from Keras.

    Attributes:
        design: the design from the ONNX route.
        differences: every difference between the two; empty if they are the same hardware.
        samples: number of random samples on which both were emulated; 0 if the backend or a layer is not emulated.
        unlike: number of these samples with different outputs.
    """

    design: Design
    differences: tuple[DesignDifference, ...]
    samples: int
    unlike: int

    @property
    def agrees(self) -> bool:
        """Whether both routes made the same hardware with the same outputs."""
        return not self.differences and not self.unlike

    def require(self) -> SecondOpinion:
        """Returns the opinion if it agrees.

        Raises:
            HlsError: it does not agree; the message names the first differences.
        """
        if not self.agrees:
            told = "; ".join(str(difference) for difference in self.differences[:3]) or "no layer differs"
            raise HlsError(
                f"the ONNX file and design {self.design.name!r} are not the same hardware: {told} "
                f"({len(self.differences)} differences, {self.unlike} of {self.samples} samples with other bits)"
            )
        return self


def second_opinion(
    path: str | os.PathLike[str], project: HlsProject | Design, samples: int = 32, seed: int = 0
) -> SecondOpinion:
    """Compares the design that hls4ml makes of the ONNX file with `project`.

    Both routes use hls4ml's optimiser and fpgaprune's rounding of weights to types; from the Keras model to hls4ml's
    graph they share nothing. Structure, types, every integer and every attribute are compared, and the outputs of both,
    bit for bit, on inputs drawn from all values of the input's type.

    Args:
        path: an ONNX file of `export_onnx`, with a free batch axis or a batch of 1.
        project: a project or a design of the same model.
        samples: number of random samples to emulate.
        seed: seed of these samples.

    Raises:
        UnsupportedLayerError, ToolError, HlsError: the file cannot take this route; as for `design_from_onnx`.
    """
    first = project if isinstance(project, Design) else project.design
    second = design_from_onnx(path, first)
    x = _inputs(first, samples, seed)
    try:
        a, b = (emulate(design, x if len(x) > 1 else x[0]) for design in (first, second))
    except UnsupportedLayerError:
        return SecondOpinion(second, design_differences(first, second), 0, 0)
    pairs = zip(*(given if isinstance(given, list | tuple) else [given] for given in (a, b)), strict=True)
    unlike = np.zeros(samples, dtype=bool)
    for one, other in pairs:
        unlike |= (np.asarray(one) != np.asarray(other)).reshape(samples, -1).any(axis=1)
    return SecondOpinion(second, design_differences(first, second), samples, int(unlike.sum()))


def _inputs(design: Design, samples: int, seed: int) -> list[NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    found = []
    for layer in design.layers:
        if isinstance(layer.operation, Input):
            kind = layer.types["result"]
            raw = rng.integers(kind.raw_min, kind.raw_max, size=(samples, *layer.output_shape), endpoint=True)
            found.append(kind.to_float(raw).astype(np.float32))
    return found
