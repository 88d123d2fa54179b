"""`check_flow` compares a flow with its data, network and weights before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fpgaprune.errors import ConfigError, DataError, FpgaPruneError, MaskError
from fpgaprune.flow.file import DataConfig, Flow, TargetConfig, TrainConfig, all_problems, is_function_name
from fpgaprune.flow.run import Progress, Silent
from fpgaprune.flow.stages import STAGES, Known
from fpgaprune.flow.task import Dataset, count_of, load_data

if TYPE_CHECKING:
    import keras


def check_flow(config: Flow, progress: Progress | None = None) -> Dataset:
    """Load the flow's data and check them against the configuration and the weights; write nothing.

    Args:
        config: the flow.
        progress: learns how far the reading of the data is, if a function gives them.

    Raises:
        ConfigError: a slice or glob matches no weight, an index is out of range, or the model file cannot be read; the
            message has a line for each mistake.
        DataError: the only mistake is that the data cannot be read or do not fit.
    """
    errors: list[FpgaPruneError] = []

    def attempt(where: str, check: Callable[[], Any]) -> Any:
        try:
            return check()
        except MaskError as error:
            errors.append(ConfigError(f"{where}: {error}"))
        except FpgaPruneError as error:
            errors.append(error)
        return None

    source = config[DataConfig].source
    known = Known(config, attempt("data", lambda: read_data(config, progress)))
    for stage in STAGES:
        for check in stage.checks(known):
            attempt(stage.name, check)
    texts = list(dict.fromkeys(map(str, errors)))
    if len(texts) > 1:
        raise ConfigError(all_problems("the flow", texts))
    if errors or known.data is None:
        raise errors[0] if errors else DataError(f"data {source!r} cannot be read")
    return known.data


def read_data(config: Flow, progress: Progress | None = None) -> Dataset:
    """Return the data that `[data]` of `config` names.

    Raises:
        DataError: they cannot be read.
    """
    settings = config[DataConfig]
    if progress is None or not is_function_name(settings.source):
        return load_data(settings.source, settings.samples)
    progress.stage("data", "running")
    found = load_data(settings.source, settings.samples, progress.step)
    progress.stage("data", "done", f"{count_of(found.x_train):,} training samples")
    return found


def check_task(config: Flow, data: Dataset, model: keras.Model) -> None:
    """Check that `model` can be trained on `data` and judged by them: its loss and metric take their labels.

    Raises:
        ConfigError: they do not.
        DataError: the labels are not those that the loss takes.
    """
    from fpgaprune.flow.task import Judge, read_task

    task = read_task(config[TrainConfig], model, data)
    Judge(config[TrainConfig], task, model, data.y_test, data.sample_weight_test)
    task.check_loss(model, data.y_train)


def known_better(config: Flow, model: keras.Model, seen: Dataset, data: Dataset) -> float:
    """Return by how much `model` is better on the test samples of `seen` than on those of `data`, in units of a loss.

    The metric of a network is better on samples that it was trained on.
    """
    from fpgaprune.flow.task import Judge, predict, read_task

    settings = config[TrainConfig]

    def judged(samples: Dataset) -> tuple[float, bool]:
        task = read_task(settings, model, samples)
        judge = Judge(settings, task, model, samples.y_test, samples.sample_weight_test)
        return judge.value(predict(model, samples.x_test)), judge.higher_is_better

    (own, higher), (other, _) = judged(seen), judged(data)
    if higher:
        return own - other
    return (other - own) / abs(own) if own else 0.0


def foresee_flow(config: Flow, data: Dataset, progress: Progress | None = None) -> Flow:
    """Check that the network of the flow `config` can be trained, pruned and turned into the wanted hardware.

    Returns:
        The flow; with the route `auto` and a network that hls4ml has no layers for, the flow with our Verilog.

    Raises:
        ConfigError: it cannot; the message has a line for each problem.
    """
    from fpgaprune.flow.task import start_session

    # TensorFlow reads its settings when it is loaded, so this comes before the next lines, which load it.
    start_session(config.seed)
    from fpgaprune.flow.task import starting_model

    model = starting_model(config[TrainConfig].model, data)
    check_task(config, data, model)

    def foreseen(flow: Flow) -> dict[str, list[str]]:
        found = {stage.name: list(stage.foresee(flow, data, model)) for stage in STAGES}
        return {name: problems for name, problems in found.items() if problems}

    found, target = foreseen(config), config[TargetConfig]
    if not found:
        return config
    if list(found) == ["hls"] and target.route == "auto" and target.makes_project:
        ours = with_route(config, "verilog")
        if not foreseen(ours):
            (progress or Silent()).stage("route", "said", instead_of_project(found["hls"][0]))
            return ours
    problems = [problem for of_stage in found.values() for problem in of_stage]
    raise ConfigError(all_problems("the network cannot become this hardware", problems))


def with_route(config: Flow, route: str) -> Flow:
    """Return `config` with another route to hardware."""
    return config.model_copy(update={"target": config[TargetConfig].model_copy(update={"route": route})})


def instead_of_project(problem: str) -> str:
    """Write the sentence that says why a network becomes our Verilog: the `problem` that hls4ml has with it."""
    return f"our Verilog, for hls4ml does not take this network: {problem.partition(': choose')[0]}"
