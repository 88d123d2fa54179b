"""`check_flow`: what a flow says of data, network and weights, held against them before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fpgaprune.errors import CertificateError, ConfigError, DataError, FpgaPruneError, MaskError
from fpgaprune.flow.config import FlowConfig, all_problems
from fpgaprune.flow.data import Dataset, load_data
from fpgaprune.flow.epochs import steps_of
from fpgaprune.flow.named_function import is_function_name, named_function
from fpgaprune.flow.network import small_cnn_shapes
from fpgaprune.flow.samples import arrays_of
from fpgaprune.flow.schedule_config import check_schedule
from fpgaprune.hls.classes import class_problem
from fpgaprune.keras_file import read_keras_ends, read_keras_layers, read_keras_weights
from fpgaprune.masks import MaskSet
from fpgaprune.select.tfmot_model import is_tf_keras
from fpgaprune.weights import match_paths

Shapes = Mapping[str, tuple[int, ...]]


def check_flow(config: FlowConfig) -> Dataset:
    """The flow's data, where configuration, data and weights fit one another; nothing is written.

    Raises:
        ConfigError: a slice or glob matches no weight, an index is out of range, or the model file cannot be read; the
            message has a line for each mistake.
        DataError: the data are the only mistake: they cannot be read or do not fit.
    """
    found = _Problems()
    data: Dataset | None = found.of(lambda: load_data(config.data.source))
    shapes = found.of(lambda: _weight_shapes(config))
    found.of(lambda: _check_functions(config))
    if data is not None:
        data = found.of(partial(_fitting, config, data)) or data
        found.of(partial(_check_finetune, config, data))
    if shapes is None and config.train.model is None and data is not None and not found.errors:
        shapes = small_cnn_shapes(arrays_of(data.x_train)[0].shape[1:], data.classes or 0)
    for problem in _class_problems(config) if shapes is not None else ():
        found.errors.append(ConfigError(f"train.model: {problem}"))
    for check in _mask_checks(config, shapes):
        found.of(check)
    found.require()
    if data is None:  # found.require() has raised
        raise DataError(f"data {config.data.source!r} cannot be read")
    return data


class _Problems:
    """What is wrong, one after another."""

    def __init__(self) -> None:
        self.errors: list[FpgaPruneError] = []

    def of(self, check: Callable[[], Any]) -> Any:
        """What `check` gives; None where it finds something wrong."""
        try:
            return check()
        except MaskError as error:
            self.errors.append(ConfigError(f"select: {error}"))
        except FpgaPruneError as error:
            self.errors.append(error)
        return None

    def require(self) -> None:
        """Nothing was wrong.

        Raises:
            FpgaPruneError: the one problem; a ConfigError with a line for each where there are several.
        """
        texts = list(dict.fromkeys(str(error) for error in self.errors))
        if len(texts) == 1:
            raise self.errors[0]
        if texts:
            raise ConfigError(all_problems("the flow", texts))


def _class_problems(config: FlowConfig) -> list[str]:
    """A line for each layer of the saved model that no back end takes, whatever its settings."""
    model = config.train.model
    if model is None:
        return []
    layers = read_keras_layers(model)
    # An operation of Keras (`x * 2`) says only when the model is loaded what it is.
    known = [layer for layer in layers if layer.module.split(".")[0] == "keras" and layer.kind[:1].isupper()]
    problems = (class_problem(layer.name, layer.kind, layer.module, nested=layer.nested) for layer in known)
    return [problem for problem in problems if problem is not None]


def _check_functions(config: FlowConfig) -> None:
    named = {
        "criterion": (config.select.criterion, MaskError),
        "train.loss": (config.train.loss, ConfigError),
        "train.metric": (config.train.metric, ConfigError),
        "finetune.fit": (config.finetune.fit, ConfigError),
    }
    for what, (name, error) in named.items():
        if name is not None and is_function_name(name):
            named_function(name, what, error)


def _mask_checks(config: FlowConfig, shapes: Shapes | None) -> list[Callable[[], Any]]:
    settings = config.select
    checks: list[Callable[[], Any]] = []
    if settings.masks is not None:
        checks.append(lambda: MaskSet.load(settings.masks))  # type: ignore[arg-type]
    if shapes is None:
        return checks
    checks += [partial(MaskSet.from_slices, shapes, (text,)) for text in settings.locks]
    checks += [partial(match_paths, pattern, shapes) for pattern in settings.patterns]
    if settings.masks is not None and settings.masks.exists():
        checks.append(lambda: MaskSet.load(settings.masks).fitted(shapes))  # type: ignore[arg-type]
    return checks


def _check_finetune(config: FlowConfig, data: Dataset) -> None:
    settings, model = config.finetune, config.train.model
    epoch, file = settings.rewind_epoch, settings.rewind_file
    if epoch is not None and model is not None:
        raise ConfigError(
            f"finetune.schedule.rewind_to is epoch {epoch}, but train.model skips the training; name a .keras file "
            "that holds the early weights"
        )
    if epoch is not None and epoch > config.train.epochs:
        raise ConfigError(
            f"finetune.schedule.rewind_to is epoch {epoch}; the training has {config.train.epochs} epochs"
        )
    if file is not None and not file.exists():
        raise ConfigError(f"finetune.schedule.rewind_to: {file} does not exist")
    if settings.fit is not None and settings.schedule.kind != "one_shot":
        raise ConfigError(
            f"finetune.fit is a training loop of your own, and finetune.schedule is {settings.schedule.kind!r}; a "
            "schedule needs ours: leave out one of them"
        )
    check_schedule(settings.schedule, steps_of(config, data), config.select.sparsity, config.select.granularity)


def _weight_shapes(config: FlowConfig) -> Shapes | None:
    """Weight path to shape; None for the built-in network, and where only tf_keras could tell."""
    model = config.train.model
    if model is None or (model.exists() and is_tf_keras(model)):
        return None
    try:
        return read_keras_weights(model).map(lambda array: array.shape)
    except CertificateError as error:
        raise ConfigError(f"train.model: {error}") from error


def _fitting(config: FlowConfig, data: Dataset) -> Dataset:
    """`data` with named inputs and outputs in the order of the network's; the network takes them."""
    model = config.train.model
    if model is None:
        shape = arrays_of(data.x_train)[0].shape[1:]
        if data.classes is None or isinstance(data.x_train, tuple):
            raise ConfigError(
                f"data {data.name!r} have no class numbers of shape (N,), or several inputs; the built-in network "
                "classifies one: name a model with train.model"
            )
        if len(shape) != 3 or min(shape[:2]) < 6:
            raise ConfigError(
                f"data {data.name!r} has samples of shape {shape}; the built-in network takes (height, width, "
                "channels) of 6 x 6 or more: name a model with train.model"
            )
        return data
    if not model.exists() or is_tf_keras(model):
        return data
    try:
        ends = read_keras_ends(model)
    except CertificateError:
        # Said where the weights are read.
        return data
    where = f"train.model {model}"
    ordered = data.in_order(tuple(ends.inputs), ends.outputs)
    for (name, wanted), array in zip(ends.inputs.items(), arrays_of(ordered.x_train), strict=True):
        if wanted is not None and not _fits(array.shape[1:], wanted):
            which = "" if len(ends.inputs) == 1 else f" for its input {name!r}"
            raise ConfigError(
                f"{where} takes samples of shape {wanted}{which}; data {data.name!r} has {array.shape[1:]}"
            )
    if ends.classes is not None and ends.classes > 1 and data.classes is not None and data.classes > ends.classes:
        raise ConfigError(f"{where} has {ends.classes} outputs; data {data.name!r} has {data.classes} classes")
    return ordered


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(w in (None, size) for size, w in zip(shape, wanted, strict=True))
