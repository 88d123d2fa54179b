"""The stage `report`: joins the parts of the other stages to a `RunReport`, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fpgaprune.flow.file import DataConfig, Flow, Section, TargetConfig, VerdictConfig, section_json
from fpgaprune.flow.stages.stage import FlowStage, StageContext, StageResult
from fpgaprune.flow.task import Reading
from fpgaprune.report import ADVICE, Check, LinkSummary, Metric, RunReport, loss_unit, stage_times, write_report
from fpgaprune.values import parse_loss


def _metric(readings: Mapping[str, Reading], settings: VerdictConfig, data: str) -> Metric:
    """Return the metric of a run before, after and in hardware, and the loss of the last of these."""
    before, last = readings["before"], list(readings.values())[-1]
    return Metric(
        name=before.name,
        **{when: reading.value for when, reading in readings.items()},
        errors={when: reading.error for when, reading in readings.items()},
        samples=before.samples,
        data=data,
        higher_is_better=before.higher_is_better,
        is_fraction=before.is_fraction,
        lost=last.lost,
        lost_error=last.lost_error,
        max_loss=None if settings.max_loss is None else parse_loss(settings.max_loss),
    )


def _loss_checks(metric: Metric) -> list[Check]:
    """Return the verdict as a check, so that a run whose network lost too much fails."""
    if metric.lost is None or metric.max_loss is None:
        return []
    where = "removed network" if metric.hardware is None else "hardware"
    # Other samples would give another loss, so that its standard error is taken off.
    least = metric.lost - (metric.lost_error or 0.0)
    verb, unit = "lost" if metric.higher_is_better else "grown", loss_unit(metric)
    name, quantity = f"{where} against the trained network", f"{metric.name} {verb}, less one standard error"
    return [
        Check(name, quantity, least, metric.max_loss, samples=metric.samples, advice=ADVICE, unit=unit, about="metric")
    ]


class ReportStage(FlowStage[StageResult]):
    """Joins the parts of the other stages to a `RunReport`."""

    name = "report"
    inputs = ()
    outputs = ("report.html", "report.json")
    sections: ClassVar[Mapping[str, Section]] = {"verdict": VerdictConfig()}
    needs_keras = False
    reads_results = True
    result = StageResult

    def run(self, context: StageContext) -> None:
        """Write the whole run and the times of its stages to `report.html` and `report.json`."""
        run, config, records = context.run, context.config, context.run.manifest["stages"]
        found = [(stage, result) for stage in context.stages if (result := stage.result_in(run)) is not None]
        parts = {stage.name: stage.part(context, result) for stage, result in found}
        readings = {when: one for stage, result in found for when, one in stage.readings(result).items()}
        metric = _metric(readings, config[VerdictConfig], context.data.name)
        links = [LinkSummary.of(link) for _, result in found for link in result.links or ()]
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
            stages=stage_times([stage.name for stage in context.stages], records, run.ran),
            versions=run.manifest["versions"],
            seed=config.seed,
            **fields,
        )
        write_report(run.path, report)

    def settings(self, config: Flow) -> object:
        target, verdict = section_json(config[TargetConfig]), section_json(config[VerdictConfig])
        return [config.name, target, verdict, config[DataConfig].source]


STAGE = ReportStage()
