"""Failed checks of a report: the message and the exit status of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from fpgaprune.terminal import print_problem


def require_checks(report: Mapping[str, Any]) -> None:
    """Every failed check of `report` (JSON data) is a line on the error output, and the command ends with status 1."""
    failed = [check for check in report["checks"] if check["holds"] is False]
    for check in failed:
        wanted = f"{'at least' if check['at_least'] else 'at most'} {check['limit']:g}"
        what = f"; {check['advice']}" if check.get("advice") else ""
        print_problem(
            "check fails", f"{check['name']}: {check['quantity']} {check['measured']:.4g}, wanted {wanted}{what}"
        )
    if failed:
        raise typer.Exit(1)
