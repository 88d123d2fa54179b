"""`fpgaprune config`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def config(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page docs/flow_file.md.")] = False,
) -> None:
    """Print every key of a flow file with its default and its meaning: 'fpgaprune config > flow.toml' is a start.

    The output is a flow file itself: the comment above each key gives its meaning and the allowed values. Keys
    without a default are comments, and so are optional tables, such as other schedules of fine-tuning and settings of
    single layers.
    """
    from fpgaprune.flow import to_markdown, to_toml

    sys.stdout.write(to_markdown() if markdown else to_toml())
