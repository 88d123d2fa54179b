"""Finds everything that would stop a model at hls4ml, before anything is trained or converted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fpgaprune.backends import BACKENDS, VERILOG, backend_named, faults_of
from fpgaprune.errors import DesignError, FpgaPruneError, HlsError, RemovalError
from fpgaprune.hls.accelerator_boards import board_problems
from fpgaprune.hls.call_hls4ml import option_problems
from fpgaprune.lowering import (
    PROJECT_NAMES,
    depthwise_names,
    find_layouts,
    flattened,
    fold,
    gather_options,
    is_project_name,
    layer_problems,
    operation_problems,
    outline,
    size_problems,
)
from fpgaprune.network import activation_in, graph_of
from fpgaprune.target import Target
from fpgaprune.values import FixedType


@dataclass(frozen=True)
class ModelCheck:
    """The problems that `to_hls` would have with a model.

    Attributes:
        problems: one line for each problem that would stop it, with what to do.
        notes: one line for each difference from what was asked for, such as a moved reuse factor.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]

    def require(self) -> ModelCheck:
        """Return the check if there are no problems.

        Raises:
            HlsError: there are problems; the message holds all of them.
        """
        if self.problems:
            raise HlsError("; ".join(self.problems))
        return self


def check_model(
    model: object,
    target: Target,
    precision: object = None,
    *,
    name: str = "network",
    layers: Mapping[str, Mapping[str, Any]] | None = None,
    backend_options: Mapping[str, Any] | None = None,
) -> ModelCheck:
    """Find the problems that `to_hls` would have with `model`, from the model and the settings alone.

    Nothing is converted, so a network of 80 layers takes a second or two. Problems that depend on trained weights or
    on data (accumulators, types that overflow) are not found.

    Args:
        model: a Keras model with inputs of known shape, trained or not.
        target: part, clock, backend, io type, strategy, reuse.
        precision: as for `to_hls`.
        name: name of the project.
        layers: settings of single layers, by name or glob, as for `to_hls`.
        backend_options: as for `to_hls`.
    """
    problems: list[str] = []
    if isinstance(precision, str) and precision != "auto":
        try:
            FixedType.parse(precision)
        except DesignError as error:
            problems.append(f"precision {precision!r} is neither 'auto' nor a type: {error}")
    if not is_project_name(name):
        problems.append(f"project name {name!r} is not a free C identifier; {PROJECT_NAMES}")
    try:
        graph_of(model)
    except RemovalError as error:
        return ModelCheck((*problems, str(error)), ())
    functional = flattened(model)
    unsupported = [*_open_shapes(functional), *operation_problems(functional), *layer_problems(functional)]
    problems += unsupported
    network: Any = functional
    if not unsupported:
        try:
            network = fold(model)
        except FpgaPruneError as error:
            problems.append(str(error))
    names = [layer.name for layer in network.layers]
    if network is functional:
        names += _added_names(functional)
    options, wrong = gather_options(names, layers or {})
    problems += map(str, wrong)
    problems += [] if network is functional else size_problems(network, options, layers or {}, target.backend)
    try:
        backend_named(target.backend).require(target.strategy, target.io_type)
    except HlsError as error:
        problems.append(str(error))
    layouts: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()
    if target.backend in (*BACKENDS, VERILOG):
        backend = backend_named(target.backend)
        problems += option_problems(target, backend_options or {}) if target.backend in BACKENDS else []
        problems += board_problems(target, backend_options or {})
        if target.strategy in backend.strategies:
            found = find_layouts(network.layers, target, options)
            problems += found.problems
            layouts, notes = found.layers, found.notes
        problems += [] if network is functional else faults_of(outline(network, layouts, target))
    return ModelCheck(tuple(dict.fromkeys(problems)), notes)


def _open_shapes(functional: Any) -> list[str]:
    return [
        f"input {tensor.name!r} of model {functional.name!r} has shape {tuple(tensor.shape)}; hardware needs a size "
        "for every axis but the first: give keras.Input a whole shape"
        for tensor in functional.inputs
        if None in tensor.shape[1:]
    ] + [
        f"input {tensor.name!r} of model {functional.name!r} is one number a sample, of shape (); hardware needs an "
        "axis: give keras.Input the shape (1,)"
        for tensor in functional.inputs
        if len(tensor.shape) < 2
    ]


def _added_names(functional: Any) -> list[str]:
    """Return the names that `fold` would give the layers that it adds, for a model that it cannot fold."""
    activations = [
        f"{layer.name}_{known.name}"
        for layer in functional.layers
        if hasattr(layer, "activation") and (known := activation_in(layer)) is not None
    ]
    return [*activations, *depthwise_names(functional).values()]
