"""The stage `train`: trains or reads the network from which all later stages start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fpgaprune.errors import CertificateError, ConfigError, ModelImportError
from fpgaprune.files import write_npz
from fpgaprune.flow.file import (
    DataConfig,
    FinetuneConfig,
    Flow,
    Section,
    TrainConfig,
    is_function_name,
    judging,
    named_function,
    section_json,
)
from fpgaprune.flow.run import epochs_shown
from fpgaprune.flow.stages.requirements import Row, package
from fpgaprune.flow.stages.stage import FlowStage, Known, OutcomeLine, ReportPart, StageContext, StageResult
from fpgaprune.flow.task import Dataset, Reading, Samples, arrays_of, in_layout_of, predict, small_cnn, small_cnn_shapes
from fpgaprune.frontends import OnnxNetwork, is_onnx, is_tf_keras, plan_onnx
from fpgaprune.lowering import class_problem
from fpgaprune.network import read_keras_ends, read_keras_layers, read_keras_weights, save_keras
from fpgaprune.values import NamedWeights, weight_arrays

if TYPE_CHECKING:
    import keras

    from fpgaprune.flow.task import Judge


def doubts(judge: Judge, outputs: Samples) -> list[str]:
    """Return a line if the network knows nothing of the held-out samples, as when they are scaled in another way."""
    own, constant = judge.value(outputs), judge.constant()
    if constant is None or (own > constant if judge.higher_is_better else own < constant):
        return []
    shown = (lambda value: f"{100 * value:.2f} %") if judge.is_fraction else "{:.4g}".format
    return [
        f"before, {judge.name} {shown(own)} is no better than one answer for all samples, {shown(constant)}: check "
        "that the samples are scaled, and the classes numbered, as in the training of this network"
    ]


def _after_epoch(number: int | None, act: Callable[[], None]) -> Any:
    """Return a Keras callback that calls `act` after epoch `number`; never if that is None."""
    import keras

    return keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, _: act() if epoch + 1 == number else None)


def _save_early(context: StageContext, model: keras.Model) -> None:
    write_npz(context.run.file("early.npz"), weight_arrays(model))


def _read_shapes(known: Known) -> None:
    """Fill in the shapes of the weights of a named model, unless tf_keras saved it."""
    model = known.config[TrainConfig].model
    if model is None or (model.exists() and is_tf_keras(model)):
        return
    if is_onnx(model):
        known.shapes = NamedWeights(_onnx(model).shapes, {})
        return
    try:
        known.shapes = read_keras_weights(model).map(lambda array: array.shape)
    except CertificateError as error:
        raise ConfigError(f"train.model: {error}") from error


def _onnx(path: Path) -> OnnxNetwork:
    """Read the ONNX file at `path` as a plan of layers."""
    try:
        return plan_onnx(path)
    except ModelImportError as error:
        raise ConfigError(f"train.model: {error}") from error


def _fit_data(known: Known, data: Dataset) -> None:
    """Put inputs and outputs of the data into the network's order; fill in the shapes of the built-in network."""
    known.data = fitting_data(known.config, data)
    if known.config[TrainConfig].model is None:
        known.shapes = small_cnn_shapes(arrays_of(data.x_train)[0].shape[1:], data.classes or 0)


def _refuse(problem: str) -> None:
    raise ConfigError(f"train.model: {problem}")


def _class_problems(settings: TrainConfig) -> list[str]:
    """Return a line for each layer of the saved model that no back end supports with any settings."""
    if settings.model is None or is_onnx(settings.model):  # its layers are Keras's own
        return []
    layers = read_keras_layers(settings.model)
    # A user's own layers, and operations of Keras (`keras.ops.relu(x)`), are known only when the model is loaded.
    known = [layer for layer in layers if layer.module.split(".")[0] == "keras" and ".ops." not in layer.module]
    # A model of Keras's own inside the model stands for its layers.
    problems = (class_problem(layer.name, layer.kind, layer.module) for layer in known if not layer.nested)
    return [problem for problem in problems if problem is not None]


def fitting_data(config: Flow, data: Dataset) -> Dataset:
    """Return `data` with named inputs and outputs in the network's order; check the shapes that the network takes."""
    model = config[TrainConfig].model
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
        ends = _onnx(model) if is_onnx(model) else read_keras_ends(model)
    except (CertificateError, ConfigError):
        # The check of the weights reports this.
        return data
    if not ends.outputs:
        # Loading the model reports this.
        return data
    where = f"train.model {model}"
    ordered = data.in_order(tuple(ends.inputs), ends.outputs)
    of_file: dict[str, tuple[int, ...]] = {}
    if isinstance(ends, OnnxNetwork):
        of_file = {value.layer: value.sizes for value in ends.plan.inputs}
        ordered = in_layout_of(ordered, ends, model, config[DataConfig].layout)
    for (name, wanted), array in zip(ends.inputs.items(), arrays_of(ordered.x_train), strict=True):
        if wanted is not None and not _fits(array.shape[1:], wanted):
            which = "" if len(ends.inputs) == 1 else f" for its input {name!r}"
            either = f"{of_file[name]} as in the file, or " if of_file.get(name, wanted) != wanted else ""
            raise ConfigError(
                f"{where} takes samples of shape {either}{wanted}{which}; data {data.name!r} has {array.shape[1:]}"
            )
    if ends.classes is not None and ends.classes > 1 and data.classes is not None and data.classes > ends.classes:
        labels = np.concatenate([arrays_of(y)[0].ravel() for y in (data.y_train, data.y_test)])
        raise ConfigError(
            f"data {data.name!r}: labels {labels.min():g} to {labels.max():g}; wanted 0 to {ends.classes - 1}, because "
            f"{where} has {ends.classes} outputs"
        )
    return ordered


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(w in (None, size) for size, w in zip(shape, wanted, strict=True))


class TrainResult(StageResult, frozen=True, kw_only=True, omit_defaults=True):
    """The trained network.

    Attributes:
        metric: its metric.
        warnings: what is doubtful about it.
        imported: what is known of the file of another library from which it was read; None if it was trained here.
    """

    metric: Reading
    warnings: tuple[str, ...]
    imported: Mapping[str, object] | None = None


class TrainStage(FlowStage[TrainResult]):
    """Trains or reads the network from which all later stages start."""

    name = "train"
    inputs = ()
    outputs = ("trained.keras", "trained_outputs.npz", "early.npz")
    sections: ClassVar[Mapping[str, Section]] = {"train": TrainConfig(epochs=24, batch_size=32, learning_rate=0.002)}
    packages = ("tensorflow", "keras", "numpy")
    result = TrainResult

    def run(self, context: StageContext) -> TrainResult:
        """Write `trained.keras`, the trained network; return its metric on held-out samples.

        `early.npz` holds its weights after the epoch that a schedule goes back to, if there is one.
        """
        from fpgaprune.flow.task import (
            TRAIN_RATE,
            Resume,
            read_model,
            shuffled_batches,
            steps_in_epoch,
            unlike_columns,
        )

        settings, data = context.config[TrainConfig], context.data
        imported, checkpoint = None, context.checkpoint("train")
        if settings.model is not None:
            context.run.file("early.npz").unlink(missing_ok=True)
            model, imported = read_model(settings.model)
        else:
            model = small_cnn(arrays_of(data.x_train)[0].shape[1:], data.classes or 0)
            steps = steps_in_epoch(data.x_train, settings.batch_size)
            task = context.task(model)
            task.compile(model, settings.learning_rate, TRAIN_RATE, settings.epochs * steps)
            task.prepare(model, data.y_train)
            # A saved state can be restored only once the optimizer has variables.
            model.optimizer.build(model.trainable_variables)
            start = checkpoint.load()
            done = 0 if start is None else start.epoch
            early = context.config[FinetuneConfig].rewind_epoch
            if start is None:
                context.run.file("early.npz").unlink(missing_ok=True)
                if early == 0:
                    _save_early(context, model)
            model.fit(
                shuffled_batches(
                    data.x_train, data.y_train, settings.batch_size, context.config.seed, done, task.weights
                ),
                epochs=settings.epochs,
                initial_epoch=done,
                steps_per_epoch=steps,
                callbacks=[
                    epochs_shown(context.progress, settings.epochs),
                    _after_epoch(early, lambda: _save_early(context, model)),
                    Resume(checkpoint, start),
                ],
                shuffle=False,
                verbose=0,
            )
        save_keras(model, context.run.file("trained.keras"))
        checkpoint.remove()
        outputs = predict(model, data.x_test)
        # Later networks are compared with these outputs.
        write_npz(context.run.file("trained_outputs.npz"), {f"{n:03}": a for n, a in enumerate(arrays_of(outputs))})
        judge = context.judge(model)
        notes = None if imported is None else tuple(imported.pop("notes", ()))
        warnings = (*doubts(judge, outputs), *unlike_columns(model, data.x_train))
        return TrainResult(metric=judge.reading(outputs), warnings=warnings, notes=notes, imported=imported)

    def settings(self, config: Flow) -> object:
        return [section_json(config[TrainConfig]), judging(config), config[FinetuneConfig].rewind_epoch]

    def checks(self, known: Known) -> Iterator[Callable[[], Any]]:
        settings = known.config[TrainConfig]
        yield partial(_read_shapes, known)
        for key, name in (("train.loss", settings.loss), ("train.metric", settings.metric)):
            if name is not None and is_function_name(name):
                yield partial(named_function, name, key, ConfigError)
        if known.data is not None:
            yield partial(_fit_data, known, known.data)
        if known.shapes is not None and settings.model is not None:
            yield from (partial(_refuse, problem) for problem in _class_problems(settings))

    def readings(self, result: TrainResult) -> dict[str, Reading]:
        return {"before": result.metric}

    def part(self, context: StageContext, result: TrainResult) -> ReportPart:
        return ReportPart({"warnings": result.warnings})

    def outcome(self, result: TrainResult) -> Iterator[OutcomeLine]:
        return (OutcomeLine(f"warning: {warning}", warning=True) for warning in result.warnings)

    def needs(self) -> list[Row]:
        return [
            package("train to remove", "tensorflow", "every stage with a Keras model"),
            package("train to remove", "keras", "every stage with a Keras model"),
            package("train", "hgq2", "networks that HGQ2 trained", "hgq"),
        ]


STAGE = TrainStage()
