"""`check_flow`: what a flow says of data, network and weights, held against them before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fpgaprune.errors import ConfigError, DataError, FpgaPruneError, MaskError
from fpgaprune.flow.data import Dataset, load_data
from fpgaprune.flow.section import Flow, all_problems
from fpgaprune.flow.sections import DataConfig, TrainConfig
from fpgaprune.flow.stage import Known
from fpgaprune.flow.stages import STAGES


def check_flow(config: Flow) -> Dataset:
    """The flow's data, where configuration, data and weights fit one another; nothing is written.

    Raises:
        ConfigError: a slice or glob matches no weight, an index is out of range, or the model file cannot be read; the
            message has a line for each mistake.
        DataError: the data are the only mistake: they cannot be read or do not fit.
    """
    problems, source = _Problems(), config[DataConfig].source
    known = Known(config, problems.of("data", lambda: load_data(source)))
    for stage in STAGES:
        for check in stage.checks(known):
            problems.of(stage.name, check)
    problems.require()
    if known.data is None:  # problems.require() has raised
        raise DataError(f"data {source!r} cannot be read")
    return known.data


def foresee_flow(config: Flow, data: Dataset) -> None:
    """The network of the flow `config` can be trained, selected from and turned into the hardware that is asked for.

    Raises:
        ConfigError: it cannot; the message has a line for each problem.
    """
    from fpgaprune.flow.session import start_session

    # First: TensorFlow reads its settings when it is loaded, which the next lines do.
    start_session(config.seed)
    from fpgaprune.flow.models import starting_model

    model = starting_model(config[TrainConfig].model, data)
    asked = [stage.foresee for stage in STAGES if stage.foresee is not None]
    problems = [problem for foresee in asked for problem in foresee(config, data, model)]
    if problems:
        raise ConfigError(all_problems("the network cannot become this hardware", problems))


class _Problems:
    """What is wrong, one after another."""

    def __init__(self) -> None:
        self._errors: list[FpgaPruneError] = []

    def of(self, where: str, check: Callable[[], Any]) -> Any:
        """What `check` gives; None where it finds something wrong, in the section `where`."""
        try:
            return check()
        except MaskError as error:
            self._errors.append(ConfigError(f"{where}: {error}"))
        except FpgaPruneError as error:
            self._errors.append(error)
        return None

    def require(self) -> None:
        """Nothing was wrong.

        Raises:
            FpgaPruneError: the one problem; a ConfigError with a line for each where there are several.
        """
        texts = list(dict.fromkeys(str(error) for error in self._errors))
        if len(texts) == 1:
            raise self._errors[0]
        if texts:
            raise ConfigError(all_problems("the flow", texts))
