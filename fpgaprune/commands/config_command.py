"""`fpgaprune config`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def config(
    markdown: Annotated[bool, typer.Option("--markdown", help="As the page docs/flow_file.md.")] = False,
) -> None:
    """Print every key of a flow file with its default and its meaning: 'fpgaprune config > flow.toml' is a start.

    The output is a flow file itself: each key stands below a comment that says what it means and what is allowed. A
    key without a default is a comment, and so are tables that are written only where they are wanted, such as the
    schedules of fine-tuning other than the default and what a single layer has instead.
    """
    from fpgaprune.flow.reference import to_markdown, to_toml

    sys.stdout.write(to_markdown() if markdown else to_toml())
