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
        measured = _figure(check, "measured")
        wanted = f"{'at least' if check['at_least'] else 'at most'} {_figure(check, 'limit')}"
        what = f"; {check['advice']}" if check.get("advice") else ""
        print_problem("check fails", f"{check['name']}: {check['quantity']} {measured}, wanted {wanted}{what}")
    if failed:
        raise typer.Exit(1)


def _figure(check: Mapping[str, Any], key: str) -> str:
    """What a check measured, or its limit, in the check's unit; a figure that is no number is text in JSON."""
    if check[key] is None:
        return "any number"
    value, unit = float(check[key]), check.get("unit")
    return f"{100 * value:.4g} {unit}" if unit else f"{value:.4g}"
