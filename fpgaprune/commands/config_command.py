"""`fpgaprune config`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fpgaprune.errors import ConfigError


def config(
    run_dir: Annotated[
        Path | None, typer.Argument(help="Print the flow file of this run, without keys that have their default.")
    ] = None,
    change: Annotated[
        int | None, typer.Option(help="With RUN_DIR: make this change of those that its report suggests.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page docs/flow_file.md.")] = False,
) -> None:
    """Print a flow file: every key with its default and its meaning, or that of a run: 'fpgaprune config > flow.toml'.

    A comment above each key says what it means and which values are allowed. Keys without a default are comments.
    Optional tables are comments too, for example other schedules of fine-tuning and settings of single layers.
    """
    from fpgaprune.flow import changed_flow, to_markdown, to_toml

    if run_dir is None and change is not None:
        raise ConfigError("--change belongs to a run: give its folder too")
    text = to_markdown() if markdown else to_toml() if run_dir is None else changed_flow(run_dir, change)
    sys.stdout.write(text)
