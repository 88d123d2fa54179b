"""`check_flow`: what a flow says of data, network and weights, held against them before anything is written."""

from __future__ import annotations

from fpgaprune.errors import CertificateError, ConfigError, MaskError
from fpgaprune.flow.config import FlowConfig
from fpgaprune.flow.data import Dataset, load_data
from fpgaprune.flow.finetuning import steps_of
from fpgaprune.flow.named_function import is_function_name, named_function
from fpgaprune.flow.network import small_cnn_shapes
from fpgaprune.flow.schedule_config import check_schedule
from fpgaprune.keras_file import read_keras_shapes, read_keras_weights
from fpgaprune.masks import MaskSet
from fpgaprune.select.tfmot_model import is_tf_keras
from fpgaprune.weights import match_paths


def check_flow(config: FlowConfig) -> Dataset:
    """The flow's data, where configuration, data and weights fit one another; nothing is written.

    Raises:
        ConfigError: a slice or glob matches no weight, an index is out of range, or the model file cannot be read.
        DataError: the data cannot be read or do not fit.
    """
    data = load_data(config.data.source)
    _check_finetune(config, data)
    shapes = _weight_shapes(config, data)
    try:
        if is_function_name(config.select.criterion):
            named_function(config.select.criterion, "criterion", MaskError)
        masks = None if config.select.masks is None else MaskSet.load(config.select.masks)
        if shapes is None:
            return data
        MaskSet.from_slices(shapes, config.select.locks)
        for pattern in config.select.patterns:
            match_paths(pattern, shapes)
        if masks is not None:
            masks.check_fits(shapes)
    except MaskError as error:
        raise ConfigError(f"select: {error}") from error
    return data


def _check_finetune(config: FlowConfig, data: Dataset) -> None:
    settings, model = config.finetune, config.train.model
    check_schedule(settings.schedule, steps_of(config, data), config.select.sparsity, config.select.granularity)
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


def _weight_shapes(config: FlowConfig, data: Dataset) -> dict[str, tuple[int, ...]] | None:
    """Weight path to shape, None where only tf_keras could tell; where data and network fit one another."""
    if config.train.model is None:
        shape = data.x_train.shape[1:]
        if len(shape) != 3 or min(shape[:2]) < 6:
            raise ConfigError(
                f"data {data.name!r} has samples of shape {shape}; the built-in network takes (height, width, "
                "channels) of 6 x 6 or more: name a model with train.model"
            )
        return small_cnn_shapes(shape, data.classes)
    if is_tf_keras(config.train.model):
        return None
    try:
        sample, classes = read_keras_shapes(config.train.model)
        shapes = {path: array.shape for path, array in read_keras_weights(config.train.model).items()}
    except CertificateError as error:
        raise ConfigError(f"train.model: {error}") from error
    where = f"train.model {config.train.model}"
    if sample is not None and not _fits(data.x_train.shape[1:], sample):
        raise ConfigError(f"{where} takes samples of shape {sample}; data {data.name!r} has {data.x_train.shape[1:]}")
    if classes is not None and data.classes > classes:
        raise ConfigError(f"{where} has {classes} outputs; data {data.name!r} has {data.classes} classes")
    return shapes


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(w in (None, size) for size, w in zip(shape, wanted, strict=True))
