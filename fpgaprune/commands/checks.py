"""What a command says and returns for the two answers and the checks of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from fpgaprune.commands.terminal import print_line, print_problem

if TYPE_CHECKING:
    from fpgaprune.report import Verdict

# Exit statuses of a command that made a report.
CHECK_FAILS, DOES_NOT_FIT, BOTH = 1, 3, 4
_COLOURS = {"good": "green", "bad": "bold red", "open": "yellow"}


def print_verdicts(report: Mapping[str, Any], about: str = "fit") -> None:
    """Print whether the metric is kept and whether the network fits, from the JSON data of a report.

    `about` is `fit`, or `measured`: whether our Verilog fits what it was measured for.
    """
    for one in (report["verdicts"][each] for each in ("metric", about)):
        print_line(one["text"], _COLOURS[one["tone"]])


def print_answers(answers: Iterable[Verdict]) -> None:
    """Print each of `answers` in the colour of its tone."""
    for one in answers:
        print_line(one.text, _COLOURS[one.tone])


def end_by_verdict(report: Mapping[str, Any], by_options: bool = False, about: str = "fit") -> None:
    """Print each failed check of `report` (JSON data), and end the command with the exit status that says both answers.

    The status is 1 if a check fails, 3 if the network does not fit (`about` as for `print_verdicts`), 4 if both. If the
    user gave options and no flow file (`by_options`), the advice names options.
    """
    from fpgaprune.flow import as_options

    failed = [check for check in report["checks"] if check["holds"] is False]
    for check in failed:
        measured = _figure(check, "measured")
        wanted = f"{'at least' if check['at_least'] else 'at most'} {_figure(check, 'limit')}"
        advice = check.get("advice") or ""
        what = f"; {as_options(advice) if by_options else advice}" if advice else ""
        print_problem("check fails", f"{check['name']}: {check['quantity']} {measured}, wanted {wanted}{what}")
    end_by(not failed, fits=report["verdicts"][about]["reply"] != "no")


def end_by(holds: bool, *, fits: bool) -> None:
    """End the command with an exit status of its own where a check fails, where the network does not fit, or both."""
    if not holds or not fits:
        raise typer.Exit(CHECK_FAILS if fits else DOES_NOT_FIT if holds else BOTH)


def _figure(check: Mapping[str, Any], key: str) -> str:
    """Return what a check measured, or its limit, in the check's unit; a figure that is no number is text in JSON."""
    if check[key] is None:
        return "any number"
    value, unit = float(check[key]), check.get("unit")
    return f"{100 * value:.4g} {unit}" if unit else f"{value:.4g}"
