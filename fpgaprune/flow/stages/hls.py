"""The stage `hls`: the network as an hls4ml project, emulated and simulated."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.certify.link_checks import check_firmware
from fpgaprune.emulate import emulate
from fpgaprune.errors import ToolError, UnsupportedLayerError
from fpgaprune.flow.context import Context
from fpgaprune.flow.facts import proven
from fpgaprune.flow.samples import Samples, arrays_of, at, count_of, for_keras, in_shape, predict

if TYPE_CHECKING:
    from fpgaprune.flow.metric import Judge

# Most seconds for g++, and how many samples its program runs however slow it is.
COMPILE_S = 600.0
FEWEST_SIMULATED = 8


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
        **proven(check),
    }


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
