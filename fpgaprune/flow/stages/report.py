"""The stage `report`: a `RunReport` put together from a run's artefacts, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fpgaprune.certificate import LinkCheck
from fpgaprune.documents import read_json
from fpgaprune.errors import RunError
from fpgaprune.flow.config import FlowConfig
from fpgaprune.flow.context import Context
from fpgaprune.flow.keras_sections import VerdictConfig
from fpgaprune.flow.simulating import OTHER_BITS, verilog_checks
from fpgaprune.flow.stages.opinion import opinion_checks
from fpgaprune.keras_file import read_keras_weights
from fpgaprune.measure import Advice, Estimate, Measured
from fpgaprune.remove.plan import read_plan
from fpgaprune.report import Check, LinkSummary, Metric, RunReport, StageTime, layer_reports, write_report
from fpgaprune.report.verdict import ADVICE
from fpgaprune.rtl import VERILOG_LINK

_EQUIVALENCES = {
    "equivalence": "removal, exact arithmetic in float64",
    "stored": "removal, as stored in float32",
}
_CHECKED = ("certify", "remove", "export", "hls", "measure")


def write_run_report(context: Context, times: Sequence[StageTime] = ()) -> dict[str, Any]:
    """`report.html`, `report.md` and `report.json` show the whole run, and the `times` of its stages."""
    run, config = context.run, context.config
    results = {name: run.results(name) for name in ("train", *_CHECKED)}
    figures, measured = (
        read_json(run.file(name), RunError, "what the flow wrote", "run the flow again")
        for name in ("estimate.json", "measure.json")
    )
    figures, target = figures or {}, config.target.target()
    before, after = (figures.get(side) and Estimate.from_json(figures[side], target) for side in ("before", "after"))
    opened = None if measured is None else Measured.from_json(measured)
    links = [LinkCheck.from_json(link) for name in _CHECKED for link in results[name].get("links", ())]
    summaries = [LinkSummary.of(link) for link in links]
    if "not_read" in results["measure"]:
        summaries.append(LinkSummary(VERILOG_LINK, left_out=results["measure"]["not_read"]))
    metric = metric_of(results, config.verdict, context.data.name)
    report = RunReport(
        name=config.name,
        target=target,
        metric=metric,
        layers=layer_reports(
            read_keras_weights(run.file("trained.keras")),
            read_keras_weights(run.file("removed.keras")),
            context.masks("masks.npz"),
            read_plan(run.file("removal.json")).kept,
        ),
        before=before,
        after=after,
        advice=figures.get("advice") and Advice.from_json(figures["advice"]),
        measured=opened,
        left_out=_left_out(measure=results["measure"] if config.measure.asks else {}, estimate=run.results("estimate")),
        certificate=summaries,
        checks=[
            *_loss_checks(metric),
            *_checks(results, config),
            *opinion_checks(run.results("opinion")),
            *verilog_checks(opened),
        ],
        stages=times,
        warnings=run.results("finetune")["warnings"],
        versions=run.manifest["versions"],
        seed=config.seed,
    )
    write_report(run.path, report)
    return {}


def _left_out(**results: dict[str, Any]) -> dict[str, str]:
    """Stage to why it was left out, for those that were."""
    return {stage: result["left_out"] for stage, result in results.items() if "left_out" in result}


def metric_of(results: Mapping[str, Any], settings: VerdictConfig, data: str) -> Metric:
    """The metric of a run: before, after, in hardware, and what was lost of it."""
    before, after = results["train"]["metric"], results["remove"]["metric"]
    readings = {"before": before, "after": after}
    emulated = results["hls"]["emulation"]
    # Where the hardware cannot be emulated, what compiling it gave on fewer samples stands in the checks.
    lost = after
    if "left_out" not in emulated:
        readings["hardware"], lost = emulated, emulated["of_trained"]
    return Metric(
        name=before["name"],
        **{when: reading["value"] for when, reading in readings.items()},
        errors={when: reading["error"] for when, reading in readings.items()},
        samples=before["samples"],
        data=data,
        higher_is_better=before["higher_is_better"],
        is_fraction=before["is_fraction"],
        lost=lost["lost"],
        lost_error=lost["lost_error"],
        max_loss=settings.max_loss,
    )


def _loss_checks(metric: Metric) -> list[Check]:
    """The verdict as a check: a network that lost too much ends a run with a failure."""
    if metric.lost is None or metric.max_loss is None:
        return []
    where = "removed network" if metric.hardware is None else "hardware"
    # The samples are some of many: the standard error of the loss is allowed on top.
    limit = metric.max_loss + (metric.lost_error or 0.0)
    return [
        Check(
            f"{where} against the trained network",
            f"{metric.name} lost",
            metric.lost,
            limit,
            samples=metric.samples,
            advice=ADVICE,
            about="metric",
        )
    ]


def _checks(results: dict[str, Any], config: FlowConfig) -> list[Check]:
    onnx = results["export"]
    return [
        *(_equivalence(results["remove"][key], what) for key, what in _EQUIVALENCES.items()),
        Check(
            "ONNX against Keras", "largest difference", onnx["max_abs_error"], onnx["allowed"], samples=onnx["samples"]
        ),
        *_hardware("emulation", results["hls"]["emulation"], config, results),
        *_hardware("C simulation", results["hls"]["simulation"], config, results),
    ]


def _hardware(name: str, found: dict[str, Any], config: FlowConfig, results: dict[str, Any]) -> list[Check]:
    against = f"{name} against Keras"
    if "left_out" in found:
        return [Check(against, "outputs", left_out=found["left_out"])]
    samples, searched = found["samples"], results["hls"]["precision"]
    metric = results["train"]["metric"]["name"]
    checks = []
    if "agreement" in found:
        advice = "give more bits (hls.weight_bits, hls.activation_bits), or ask for less (verdict.agreement)"
        limit = config.verdict.agreement
        same = Check(against, "same class", found["agreement"], limit, True, samples, advice=advice, about="metric")
        checks.append(same)
    if searched:
        # These samples took no part in the search: their own standard error is allowed on top.
        checks.append(
            Check(
                against,
                f"{metric} lost, by widths searched on {searched['on']}",
                found["lost"],
                config.hls.max_loss + found["lost_error"],
                samples=samples,
                advice="search with less to lose (hls.max_loss), or on other samples (x_valid, y_valid)",
                about="metric",
            )
        )
    else:
        checks.append(Check(against, f"{metric} lost", found["lost"], samples=samples, about="metric"))
    if "outputs_unlike_emulation" in found:
        different = found["outputs_unlike_emulation"]
        checks.append(Check(f"{name} against emulation", OTHER_BITS, different, 0, samples=samples))
    return checks


def _equivalence(found: dict[str, Any], what: str) -> Check:
    quantity = "largest difference of the logits over their scale"
    return Check(what, quantity, found["max_relative_error"], found["tolerance"], samples=found["samples"])
