"""The stage `report`: a `RunReport` put together from a run's artefacts, without TensorFlow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fpgaprune.certificate import LinkCheck
from fpgaprune.flow.hardware_sections import HlsConfig
from fpgaprune.flow.opinion import opinion_checks
from fpgaprune.flow.simulating import OTHER_BITS, verilog_checks
from fpgaprune.flow.stages import ONNX_TOLERANCE, Context
from fpgaprune.keras_file import read_keras_weights
from fpgaprune.remove.plan import read_plan
from fpgaprune.report import Accuracy, Check, LinkSummary, RunReport, StageTime, layer_reports, write_report
from fpgaprune.rtl.read_back import VERILOG_LINK

# A class that differs on more than one sample in a hundred is more than rounding.
AGREEMENT = 0.99
_EQUIVALENCES = {
    "equivalence": "removal, exact arithmetic in float64",
    "stored": "removal, as stored in float32",
}
_CHECKED = ("certify", "remove", "export", "hls", "measure")


def write_run_report(context: Context, times: Sequence[StageTime] = ()) -> dict[str, Any]:
    """`report.html`, `report.md` and `report.json` show the whole run, and the `times` of its stages."""
    run, config = context.run, context.config
    results = {name: run.results(name) for name in ("train", *_CHECKED)}
    figures = json.loads(run.file("estimate.json").read_text()) or {"before": None, "after": None}
    measured = json.loads(run.file("measure.json").read_text())
    links = [LinkCheck.from_json(link) for name in _CHECKED for link in results[name].get("links", ())]
    summaries = [LinkSummary.of(link) for link in links]
    if "not_read" in results["measure"]:
        summaries.append(LinkSummary(VERILOG_LINK, left_out=results["measure"]["not_read"]))
    report = RunReport(
        name=config.name,
        target=config.target.target(),
        accuracy=Accuracy(
            results["train"]["accuracy"], results["remove"]["accuracy"], len(context.data.x_test), context.data.name
        ),
        layers=layer_reports(
            read_keras_weights(run.file("trained.keras")),
            read_keras_weights(run.file("removed.keras")),
            context.masks("masks.npz"),
            read_plan(run.file("removal.json")).kept,
        ),
        before=figures["before"],
        after=figures["after"],
        measured=measured,
        left_out=_left_out(measure=results["measure"] if config.measure.asks else {}, estimate=run.results("estimate")),
        certificate=summaries,
        checks=[
            *_checks(results, config.hls),
            *opinion_checks(run.results("opinion")),
            *verilog_checks(measured),
        ],
        stages=times,
        versions=run.manifest["versions"],
        seed=config.seed,
    )
    write_report(run.path, report)
    return {}


def _left_out(**results: dict[str, Any]) -> dict[str, str]:
    """Stage to why it was left out, for those that were."""
    return {stage: result["left_out"] for stage, result in results.items() if "left_out" in result}


def _checks(results: dict[str, Any], hls: HlsConfig) -> list[Check]:
    onnx = results["export"]
    return [
        *(_equivalence(results["remove"][key], what) for key, what in _EQUIVALENCES.items()),
        Check(
            "ONNX against Keras", "largest difference", onnx["max_abs_error"], ONNX_TOLERANCE, samples=onnx["samples"]
        ),
        *_hardware("emulation", results["hls"]["emulation"], hls, results["hls"]["precision"]),
        *_hardware("C simulation", results["hls"]["simulation"], hls, results["hls"]["precision"]),
    ]


def _hardware(name: str, found: dict[str, Any], hls: HlsConfig, searched: dict[str, Any] | None) -> list[Check]:
    if "left_out" in found:
        return [Check(f"{name} against Keras", "same class", left_out=found["left_out"])]
    samples = found["samples"]
    # What was searched promises an accuracy, not the same class for every sample.
    same = None if searched else AGREEMENT
    checks = [
        Check(f"{name} against Keras", "same class", found["agreement"], same, at_least=True, samples=samples),
        Check(f"{name} against the labels", "accuracy", found["accuracy"], at_least=True, samples=samples),
    ]
    if searched:
        # These samples took no part in the search: their own standard error is allowed on top.
        limit = hls.max_loss + found["accuracy_lost_error"]
        quantity = f"accuracy lost, by widths searched on {searched['on']}"
        checks.append(Check(f"{name} against Keras", quantity, found["accuracy_lost"], limit, samples=samples))
    if "outputs_unlike_emulation" in found:
        different = found["outputs_unlike_emulation"]
        checks.append(Check(f"{name} against emulation", OTHER_BITS, different, 0, samples=samples))
    return checks


def _equivalence(found: dict[str, Any], what: str) -> Check:
    quantity = "largest difference of the logits over their scale"
    return Check(what, quantity, found["max_relative_error"], found["tolerance"], samples=found["samples"])
