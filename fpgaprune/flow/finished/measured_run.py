"""`measure_run` measures a finished run again, as a command line asks for it."""

from __future__ import annotations

from pathlib import Path

from fpgaprune.errors import ConfigError, ToolError
from fpgaprune.fabric import family_of
from fpgaprune.flow.engine import parse_config, run_again
from fpgaprune.flow.run import Progress, RunDirectory
from fpgaprune.flow.stages import MeasureConfig, MeasureStage
from fpgaprune.target import find_part


def settings_of(run_dir: Path, families: tuple[str, ...], **asked: object) -> MeasureConfig:
    """The settings of a command line; if they ask for nothing, the family of the run's part is added.

    `asked` are other fields of `MeasureConfig`.

    Raises:
        RunError: there is no run.
        ConfigError: a setting is not allowed, or the part belongs to no family of open synthesis.
    """
    if not (families or asked.get("seeds") or asked.get("board")):
        part = str(asked.get("part") or RunDirectory.existing(run_dir).manifest["config"]["target"]["part"])
        own = family_of(find_part(part))
        if own is None:
            raise ConfigError(f"part {part!r} is of no family that open synthesis knows; give one with --family")
        families = (own,)
    return parse_config({"measure": {"families": families, **asked}}, "measure")[MeasureConfig]


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
