"""`require_convertible`: that the network can become the hardware asked for, known before anything is trained."""

from __future__ import annotations

from typing import Any

from fpgaprune.errors import ConfigError, MaskError
from fpgaprune.flow.config import FlowConfig, all_problems
from fpgaprune.flow.data import Dataset
from fpgaprune.flow.network import small_cnn
from fpgaprune.flow.samples import arrays_of
from fpgaprune.weights import uncomputed_names


def require_convertible(config: FlowConfig, data: Dataset) -> None:
    """hls4ml takes every layer of the network, with the settings of `[hls]` and `[target]`.

    Raises:
        ConfigError: it does not; the message has a line for each problem.
    """
    from fpgaprune.flow.session import start_session

    # First: TensorFlow reads its settings when it is loaded, which the next lines do.
    start_session(config.seed)
    from fpgaprune.flow.hardware import Hardware
    from fpgaprune.flow.models import read_model
    from fpgaprune.flow.selecting import check_units
    from fpgaprune.hls.check import check_model

    model: Any
    if config.train.model is not None:
        model = read_model(config.train.model)[0]
    else:
        model = small_cnn(arrays_of(data.x_train)[0].shape[1:], data.classes or 0)
    hardware = Hardware.of(config, data)
    precision = None if config.hls.precision == "widths" else config.hls.precision
    check = check_model(
        model,
        hardware.target,
        precision,
        name=config.name,
        layers=hardware.layers,
        backend_options=config.hls.backend_options,
    )
    problems = [*uncomputed_names(model), *check.problems]
    try:
        check_units(model, config.select, config.target.target())
    except MaskError as error:
        problems.append(f"select.granularity: {error}")
    if problems:
        raise ConfigError(all_problems("the network cannot become this hardware", problems))
