"""`fpgaprune config`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def config(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page docs/flow_file.md.")] = False,
) -> None:
    """Print a flow file with every key, its default and its meaning: 'fpgaprune config > flow.toml'.

    A comment above each key says what it means and which values are allowed. Keys without a default are comments.
    Optional tables are comments too, for example other schedules of fine-tuning and settings of single layers.
    """
    from fpgaprune.flow import to_markdown, to_toml

    sys.stdout.write(to_markdown() if markdown else to_toml())
