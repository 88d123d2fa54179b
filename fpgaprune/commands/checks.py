"""What a command says and returns if checks of a report fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from fpgaprune.terminal import print_problem


def require_checks(report: Mapping[str, Any]) -> None:
    """Prints each failed check of `report` (JSON data); the command then ends with status 1."""
    failed = [check for check in report["checks"] if check["holds"] is False]
    for check in failed:
        wanted = f"{'at least' if check['at_least'] else 'at most'} {check['limit']:g}"
        what = f"; {check['advice']}" if check.get("advice") else ""
        print_problem(
            "check fails", f"{check['name']}: {check['quantity']} {check['measured']:.4g}, wanted {wanted}{what}"
        )
    if failed:
        raise typer.Exit(1)
