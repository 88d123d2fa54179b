"""The stages of the flow: each reads artefacts, calls one stage package, and writes artefacts.

A stage is a function of its artefacts, its section of the configuration and the data; what it returns
is JSON data for the manifest. TensorFlow is loaded only by the stages that need it, when they run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.certificate import LinkCheck, LockCertificate
from fpgaprune.certify.links import check_firmware, check_keras_file, check_model, check_onnx_file
from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import EstimateError, RtlError, TargetError, ToolError, UnsupportedLayerError
from fpgaprune.files import write_bytes
from fpgaprune.flow.config import FlowConfig
from fpgaprune.flow.data import Dataset
from fpgaprune.flow.network import small_cnn
from fpgaprune.flow.progress import Progress, epochs_shown
from fpgaprune.flow.run_directory import RunDirectory
from fpgaprune.flow.samples import Samples, arrays_of, at, count_of, for_keras, in_shape, samples_of
from fpgaprune.keras_file import save_keras
from fpgaprune.masks import MaskSet
from fpgaprune.npz_file import read_npz, write_npz
from fpgaprune.weights import weight_arrays

if TYPE_CHECKING:
    from fpgaprune.flow.checkpoint import Checkpoint
    from fpgaprune.flow.metric import Judge
    from fpgaprune.flow.task import Task

EQUIVALENCE_TOLERANCE = 1e-9
# What is stored rounds each bias that took in a constant to float32, once.
ROUNDING_TOLERANCE = 1e-6
# Most seconds for g++, and how many samples its program runs however slow it is.
COMPILE_S = 600.0
FEWEST_SIMULATED = 8


@dataclass(frozen=True)
class Context:
    """What every stage is given."""

    run: RunDirectory
    config: FlowConfig
    data: Dataset
    progress: Progress
    # Of the packages, this one with a digest of its code.
    versions: Mapping[str, str] = field(default_factory=dict)
    # Of the stage that runs: what its result depends on.
    key: str = ""

    def model(self, name: str) -> Any:
        """The Keras model in artefact `name`, uncompiled."""
        from fpgaprune.flow.models import load_keras

        return load_keras(self.run.file(name))

    def trained_outputs(self) -> Samples:
        """What the trained network gives for the held-out samples."""
        arrays = tuple(array for _, array in sorted(read_npz(self.run.file("trained_outputs.npz")).items()))
        return arrays if len(arrays) > 1 else arrays[0]

    def task(self, model: Any) -> Task:
        """How `model` is trained and judged."""
        from fpgaprune.flow.task import read_task

        return read_task(self.config.train, model, self.data)

    def judge(self, model: Any, some: slice = slice(None)) -> Judge:
        """The metric on held-out samples, or on `some` of them; `model` has the outputs that are judged."""
        return self.judge_of(model, at(self.data.y_test, some))

    def judge_of(self, model: Any, labels: Samples) -> Judge:
        """The metric on samples with these `labels`."""
        from fpgaprune.flow.metric import Judge

        return Judge(self.config.train, self.task(model), model, labels)

    def checkpoint(self, stage: str) -> Checkpoint:
        """Where `stage` keeps the state of its training; of another key it finds none."""
        from fpgaprune.flow.checkpoint import Checkpoint

        return Checkpoint(self.run.file(f"{stage}.checkpoint.npz"), self.key)

    def masks(self, name: str) -> MaskSet:
        """The masks in artefact `name`."""
        return MaskSet.load(self.run.file(name))


def train(context: Context) -> dict[str, Any]:
    """`trained.keras` is the trained network; its metric on held-out samples is known.

    `early.npz` holds its weights after the epoch that a schedule goes back to, where there is one.
    """
    from fpgaprune.flow.checkpoint import Resume
    from fpgaprune.flow.epochs import shuffled_batches, steps_in_epoch
    from fpgaprune.flow.models import read_model
    from fpgaprune.flow.task import TRAIN_RATE

    settings, data = context.config.train, context.data
    imported, checkpoint = None, context.checkpoint("train")
    if settings.model is not None:
        context.run.file("early.npz").unlink(missing_ok=True)
        model, imported = read_model(settings.model)
    else:
        model = small_cnn(arrays_of(data.x_train)[0].shape[1:], data.classes or 0)
        steps = steps_in_epoch(data.x_train, settings.batch_size)
        context.task(model).compile(model, settings.learning_rate, TRAIN_RATE, settings.epochs * steps)
        # Its state can be taken up only once it has one.
        model.optimizer.build(model.trainable_variables)
        start = checkpoint.load()
        done = 0 if start is None else start.epoch
        early = context.config.finetune.rewind_epoch
        if start is None:
            context.run.file("early.npz").unlink(missing_ok=True)
        if early == 0 and start is None:
            _save_early(context, model)
        model.fit(
            shuffled_batches(data.x_train, data.y_train, settings.batch_size, context.config.seed, done),
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
    # What later networks are compared with: predicting again would take longer than reading.
    write_npz(context.run.file("trained_outputs.npz"), {f"{n:03}": a for n, a in enumerate(arrays_of(outputs))})
    found: dict[str, Any] = {"metric": context.judge(model).reading(outputs)}
    return found if imported is None else {**found, "imported": imported}


def select(context: Context) -> dict[str, Any]:
    """`selection.npz` says which elements will be locked from the first step of fine-tuning on."""
    from fpgaprune.flow.selecting import choose_masks, explicit_masks, guard_masks
    from fpgaprune.flow.task import FINETUNE_RATE

    config, data = context.config, context.data
    model = context.model("trained.keras")
    # Criteria that read the data ask for the loss.
    context.task(model).compile(model, None, FINETUNE_RATE, steps=1)
    samples = (data.x_train, data.y_train)
    masks, additions = choose_masks(
        model, config.select, samples, config.seed, context.progress.step, config.target.target()
    )
    if config.finetune.schedule.kind != "one_shot":
        # That the sparsity can be reached is known now; which units go is decided on the way.
        masks, additions = explicit_masks(model, config.select), []
    masks.save(context.run.file("selection.npz"))
    warnings = guard_masks(model, config.select, masks)
    return {**_counts(masks), "additions": additions, "warnings": [warning["text"] for warning in warnings]}


def finetune(context: Context) -> dict[str, Any]:
    """`finetuned.keras` is the network trained on, with every element that `masks.npz` locks at exact zero."""
    from fpgaprune.flow.finetuning import finetune_model
    from fpgaprune.flow.models import read_model
    from fpgaprune.flow.selecting import guard_masks

    config, data = context.config, context.data
    early: Mapping[str, Any] | None = None
    if config.finetune.rewind_epoch is not None:
        early = read_npz(context.run.file("early.npz"))
    elif config.finetune.rewind_file is not None:
        early = weight_arrays(read_model(config.finetune.rewind_file)[0])
    model, checkpoint = context.model("trained.keras"), context.checkpoint("finetune")
    selection, task = context.masks("selection.npz"), context.task(model)
    found = finetune_model(model, config, task, selection, data, early, context.progress, checkpoint)
    save_keras(model, context.run.file("finetuned.keras"))
    found.masks.save(context.run.file("masks.npz"))
    checkpoint.remove()
    return {
        "metric": context.judge(model).reading(predict(model, data.x_test)),
        **_counts(found.masks),
        "additions": list(found.additions),
        "changes": [list(change) for change in found.changes],
        "warnings": [warning["text"] for warning in guard_masks(model, config.select, found.masks)],
    }


def certify(context: Context) -> dict[str, Any]:
    """Every locked element is exactly zero in memory and in `finetuned.keras`."""
    masks = context.masks("masks.npz")
    return _links(
        check_model(context.model("finetuned.keras"), masks),
        check_keras_file(context.run.file("finetuned.keras"), masks),
    )


def remove(context: Context) -> dict[str, Any]:
    """`removed.keras` is the network without dead and unread channels, proven equal in float64."""
    from fpgaprune.remove.apply import apply_removal
    from fpgaprune.remove.planning import plan_removal
    from fpgaprune.remove.proof import Reference

    model = context.model("finetuned.keras")
    plan = plan_removal(model, strict=True)
    reference = Reference(model, for_keras(context.data.x_test))
    exact = apply_removal(model, plan, dtype="float64")
    proof = reference.compare(exact, tolerance=EQUIVALENCE_TOLERANCE).require()
    small = apply_removal(model, plan)
    stored = reference.compare(small, tolerance=ROUNDING_TOLERANCE).require()
    masks = plan.remap(context.masks("masks.npz"))
    save_keras(small, context.run.file("removed.keras"))
    masks.save(context.run.file("removed_masks.npz"))
    write_json(context.run, "removal.json", plan.to_json())
    judge, before, after = context.judge(small), context.trained_outputs(), predict(small, context.data.x_test)
    return {
        "metric": {**judge.reading(after), **judge.lost(before, after)},
        "equivalence": proof.to_json(),
        "stored": stored.to_json(),
        "channels": plan.channel_counts,
        "parameters": plan.parameters,
        **_links(check_keras_file(context.run.file("removed.keras"), masks)),
    }


def export(context: Context) -> dict[str, Any]:
    """`model.onnx` computes in onnxruntime what Keras computes."""
    from fpgaprune.export.onnx_file import export_onnx, run_onnx
    from fpgaprune.flow.onnx_error import onnx_error

    model = context.model("removed.keras")
    masks = context.masks("removed_masks.npz")
    path, settings = context.run.file("model.onnx"), context.config.export
    export_onnx(model, path, {"fpgaprune.masks": masks.digest()}, settings.opset, settings.batch)
    x = context.data.x_test
    error, allowed = onnx_error(model, x, predict(model, x), run_onnx(path, for_keras(x)))
    links = _links(check_onnx_file(path, masks))
    return {"max_abs_error": error, "allowed": allowed, "samples": count_of(x), **links}


def hls(context: Context) -> dict[str, Any]:
    """`hls/` is an hls4ml project whose weights hold the locks; `design.json` says what it computes."""
    from fpgaprune.flow.hardware import Hardware

    hardware = Hardware.of(context.config, context.data)
    model = context.model("removed.keras")
    judge, searched = partial(context.judge_of, model), context.run.file("hls.search.json")
    project = hardware.project(model, context.run.file("hls"), judge, searched, context.progress)
    # What it is compared with has the same bits per number, found or given.
    hardware.design(context.model("trained.keras"), project.search).save(context.run.file("design_trained.json"))
    project.design.save(context.run.file("design.json"))
    wanted = predict(model, context.data.x_test)
    check = check_firmware(project.path, project.design, context.masks("removed_masks.npz"))
    return {
        **hardware.facts(project),
        "emulation": _emulated(context, project, model, wanted),
        "simulation": _simulated(context, project, model, wanted),
        "build": hardware.build(project, context.progress),
        **_links(check),
    }


def measure(context: Context) -> dict[str, Any]:
    """`measure.json` says what open tools made of the network as Verilog, where the flow asks for it.

    The Verilog is the certificate's last link: no product of a locked weight is in it.
    """
    settings = context.config.measure
    if not settings.asks:
        write_json(context.run, "measure.json", None)
        return {"left_out": "the flow names no family, no seeds and no board in [measure]"}
    from fpgaprune.flow.measuring import check_measured, measure_project
    from fpgaprune.flow.simulating import simulate_verilog
    from fpgaprune.rtl.generate import to_verilog

    design, part = Design.load(context.run.file("design.json")), context.config.target.target().part
    links: dict[str, Any] = {}
    try:
        project = to_verilog(design, context.run.file("rtl"), interval=settings.interval)
        link = check_measured(project, design, context.masks("removed_masks.npz"))
        links = {"not_read": link} if isinstance(link, str) else _links(link)
        some = for_keras(at(context.data.x_test, slice(settings.simulate)))
        simulation = simulate_verilog(project, design, some, settings.timeout_s, context.progress.step)
        found = measure_project(project, design, part, settings, context.run.path, context.progress.step, simulation)
    except (ToolError, RtlError, TargetError, UnsupportedLayerError) as error:
        write_json(context.run, "measure.json", None)
        return {"left_out": str(error), **links}
    write_json(context.run, "measure.json", found.to_json())
    return links


def estimate(context: Context) -> dict[str, Any]:
    """`estimate.json` prices the network before and after for the part; it is null where no calibrated model can.

    Its `advice` says what is short for the network after, and what each change would bring.
    """
    from fpgaprune.advice import advise
    from fpgaprune.estimate import estimate as price

    target = context.config.target.target()
    trained, design = (Design.load(context.run.file(name)) for name in ("design_trained.json", "design.json"))
    try:
        figures = {"before": price(trained, target).to_json(), "after": price(design, target).to_json()}
        advice = advise(design, target, trained=trained).to_json()
    except EstimateError as error:
        write_json(context.run, "estimate.json", None)
        return {"left_out": str(error)}
    write_json(context.run, "estimate.json", {**figures, "advice": advice})
    sides = {
        side: {key: figure[key] for key in ("fits", "fits_upper", "latency_cycles")} for side, figure in figures.items()
    }
    return {**sides, "advice": advice}


def write_json(run: RunDirectory, name: str, content: Any) -> None:
    """Artefact `name` holds `content`, keys sorted."""
    write_bytes(run.file(name), (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())


def _emulated(context: Context, project: Any, model: Any, wanted: Samples) -> dict[str, Any]:
    """What the hardware does on every held-out sample, by emulation: no compiler is needed for it."""
    x = context.data.x_test
    try:
        outputs = emulate(project.design, for_keras(x))
    except UnsupportedLayerError as error:
        return {"left_out": str(error)}
    judge = context.judge(model)
    trained = context.trained_outputs()
    found = _agreement(context, judge, outputs, wanted)
    return {**found, "of_trained": judge.lost(trained, in_shape(outputs, trained))}


def _simulated(context: Context, project: Any, model: Any, wanted: Samples) -> dict[str, Any]:
    """What the hardware does on held-out samples, as many as the time allows; the emulation must give the same bits."""
    settings = context.config.hls
    x = at(context.data.x_test, slice(settings.simulate))
    try:
        ran = project.compile(COMPILE_S).run(
            for_keras(x),
            settings.simulate_s,
            FEWEST_SIMULATED,
            lambda done: context.progress.step(done, count_of(x), "C simulation"),
        )
    except ToolError as error:
        return {"left_out": str(error)}
    # The first of them: as many as the time allowed.
    some = slice(ran.samples)
    x = at(context.data.x_test, some)
    found = _agreement(context, context.judge(model, some), ran.outputs, at(wanted, some))
    found |= {"asked": ran.asked, "seconds": ran.seconds}
    try:
        emulated = arrays_of(emulate(project.design, for_keras(x)))
    except UnsupportedLayerError:
        return found
    different = sum(int((a != b).sum()) for a, b in zip(arrays_of(ran.outputs), emulated, strict=True))
    return {**found, "outputs_unlike_emulation": different}


def _agreement(context: Context, judge: Judge, outputs: Samples, wanted: Samples) -> dict[str, Any]:
    """The metric of the hardware's outputs and what it lost; and of a classifier, how often its class is Keras's."""
    outputs = in_shape(outputs, wanted)
    found = {"samples": count_of(outputs), **judge.reading(outputs), **judge.lost(wanted, outputs)}
    if context.data.classes is None or isinstance(outputs, tuple) or outputs.shape[-1] < 2:
        return found
    same = outputs.argmax(axis=-1) == np.asarray(wanted).argmax(axis=-1)
    return {**found, "agreement": float(same.mean())}


def predict(model: Any, x: Samples) -> Samples:
    """What `model` gives for `x`, in one pass over batches."""
    return samples_of(model.predict(for_keras(x), batch_size=256, verbose=0))


def _links(*checks: LinkCheck) -> dict[str, Any]:
    LockCertificate(checks).require()
    return {"links": [check.to_json() for check in checks]}


def _counts(masks: MaskSet) -> dict[str, Any]:
    return {"locked": masks.locked_count, "elements": masks.size, "digest": masks.digest()}


def _after_epoch(number: int | None, act: Callable[[], None]) -> Any:
    """A Keras callback that acts once `number` epochs are done; never where it is None."""
    import keras

    return keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, _: act() if epoch + 1 == number else None)


def _save_early(context: Context, model: Any) -> None:
    write_npz(context.run.file("early.npz"), weight_arrays(model))
