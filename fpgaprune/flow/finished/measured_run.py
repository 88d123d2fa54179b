"""`measure_run` measures a finished run again, as a command line asks for it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fpgaprune.design import Design
from fpgaprune.errors import ConfigError, DesignError, EstimateError, RtlError, ToolError, UnsupportedLayerError
from fpgaprune.estimate import verilog_price
from fpgaprune.fabric import family_of
from fpgaprune.flow.engine import parse_config, run_again
from fpgaprune.flow.file import TargetConfig
from fpgaprune.flow.run import Progress, RunDirectory, fits_as_usual
from fpgaprune.flow.stages import MeasureConfig, MeasureStage
from fpgaprune.layout import require_family
from fpgaprune.target import find_part


def settings_of(
    run_dir: Path, families: tuple[str, ...], *, interval: int | None = None, **asked: object
) -> MeasureConfig:
    """Return the settings of a command line; if they ask for nothing, the family of the run's part is added.

    Without `families`, `interval` and `part` the layout is that of the run's answer. `asked` are other fields of
    `MeasureConfig`.

    Raises:
        RunError: there is no run.
        ConfigError: a setting is not allowed, or the part belongs to no family of open synthesis.
    """
    if not families and interval is None and asked.get("part") is None:
        asked["part"] = _laid_out_for(RunDirectory.existing(run_dir))
    if not (families or asked.get("seeds") or asked.get("board")):
        part = str(asked.get("part") or RunDirectory.existing(run_dir).manifest["config"]["target"]["part"])
        own = family_of(find_part(part))
        if own is None:
            raise ConfigError(f"part {part!r} is of no family that open synthesis knows; give one with --family")
        families = (own,)
    fields = {"families": families, "interval": interval or 0, **asked}
    return parse_config({"measure": fields}, "measure")[MeasureConfig]


def _laid_out_for(run: RunDirectory) -> str | None:
    """Return the part of `run` if its answer is that of Verilog which is laid out for the part; else None."""
    target = parse_config({"target": run.manifest["config"]["target"]}, str(run.path))[TargetConfig]
    part = find_part(target.part)
    if target.makes_project or not run.file("design.json").is_file():
        return None
    with suppress(EstimateError, RtlError, UnsupportedLayerError, DesignError):
        usual = verilog_price(Design.load(run.file("design.json")), require_family(part))
        if not fits_as_usual(usual, part):
            return target.part
    return None


def measure_run(out: Path, settings: MeasureConfig, progress: Progress | None = None) -> RunDirectory:
    """Measure the finished run `out` as `settings` say; its report and its certificate then show it.

    Raises:
        RunError: there is no run with a hardware project, or it is in use.
        ToolError: nothing could be measured; the message says why, and the report was written without it.
    """
    RunDirectory.existing(out).results("hls")
    run = run_again(out, MeasureStage.name, {"measure": settings}, progress)
    result = MeasureStage().result_in(run)
    left_out = None if result is None else result.left_out
    if left_out is not None:
        raise ToolError(f"{out}: nothing was measured: {left_out}")
    return run
