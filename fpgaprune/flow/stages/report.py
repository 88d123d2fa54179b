"""The stage `report`: joins the parts of the other stages to a `RunReport`, without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fpgaprune.certificate import LinkCheck
from fpgaprune.flow.file import DataConfig, Flow, TargetConfig, VerdictConfig, section_json
from fpgaprune.flow.stages.stage import FlowStage, StageContext
from fpgaprune.loss_limit import parse_loss
from fpgaprune.report import ADVICE, Check, LinkSummary, Metric, RunReport, loss_unit, stage_times, write_report


def _report(context: StageContext) -> dict[str, Any]:
    """`report.html` and `report.json` show the whole run and the times of its stages."""
    run, config, records = context.run, context.config, context.run.manifest["stages"]
    results = {stage.name: run.results(stage.name) for stage in context.stages}
    parts = {stage.name: stage.part(context, results[stage.name]) for stage in context.stages}
    metric = metric_of(context.stages, results, config[VerdictConfig], context.data.name)
    links = [LinkSummary.of(LinkCheck.from_json(link)) for found in results.values() for link in found.get("links", ())]
    fields: dict[str, Any] = {}
    for name, value in ((name, value) for part in parts.values() for name, value in part.fields.items()):
        # Several stages warn.
        fields[name] = [*fields[name], *value] if name == "warnings" and name in fields else value
    report = RunReport(
        name=config.name,
        target=config[TargetConfig].target(),
        metric=metric,
        left_out={name: part.left_out for name, part in parts.items() if part.left_out is not None},
        certificate=[*links, *(link for part in parts.values() for link in part.links)],
        checks=[*_loss_checks(metric), *(check for part in parts.values() for check in part.checks)],
        stages=stage_times(results, records, run.ran),
        versions=run.manifest["versions"],
        seed=config.seed,
        **fields,
    )
    write_report(run.path, report)
    return {}


def metric_of(
    stages: Iterable[FlowStage], results: Mapping[str, Mapping[str, Any]], settings: VerdictConfig, data: str
) -> Metric:
    """The metric of a run before, after and in hardware, and its loss; `results` maps stage to its results."""
    readings: dict[str, Mapping[str, Any]] = {}
    for stage in (stage for stage in stages if stage.name in results):
        readings.update(stage.readings(results[stage.name]))
    before, last = readings["before"], list(readings.values())[-1]
    return Metric(
        name=before["name"],
        **{when: reading["value"] for when, reading in readings.items()},
        errors={when: reading["error"] for when, reading in readings.items()},
        samples=before["samples"],
        data=data,
        higher_is_better=before["higher_is_better"],
        is_fraction=before["is_fraction"],
        lost=last["lost"],
        lost_error=last["lost_error"],
        max_loss=parse_loss(settings.max_loss),
    )


def _loss_checks(metric: Metric) -> list[Check]:
    """The verdict as a check, so that a run whose network lost too much fails."""
    if metric.lost is None or metric.max_loss is None:
        return []
    where = "removed network" if metric.hardware is None else "hardware"
    # Other samples would give another loss, so its standard error is added to the limit.
    limit = metric.max_loss + (metric.lost_error or 0.0)
    quantity, unit = f"{metric.name} {'lost' if metric.higher_is_better else 'grown'}", loss_unit(metric)
    name, samples = f"{where} against the trained network", metric.samples
    return [Check(name, quantity, metric.lost, limit, samples=samples, advice=ADVICE, unit=unit, about="metric")]


def _settings(config: Flow) -> Any:
    target, verdict = section_json(config[TargetConfig]), section_json(config[VerdictConfig])
    return [config.name, target, verdict, config[DataConfig].source]


STAGE = FlowStage(
    "report",
    _report,
    (),
    ("report.html", "report.json"),
    _settings,
    sections={"verdict": VerdictConfig()},
    needs_keras=False,
    reads_results=True,
)
