"""The last line of a command: what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fpgaprune.commands.common_options import SERIAL_BOARDS
from fpgaprune.commands.terminal import print_line

# What a network needs on the command line.
WITH_A_NETWORK = ("--data", "DATA.npz", "--part", "PART", "--sparsity", "0.6")
# Vendor of a part to the receiver of `export` that stands for its tool.
_TOOLS = {"AMD": "vivado", "Intel": "quartus"}


def print_next(*words: str | Path) -> None:
    """Print the command `fpgaprune WORDS` as the one to type next."""
    print_line(f"next        fpgaprune {shlex.join(map(str, words))}", whole=True)


def print_next_of_run(run: Path, report: Mapping[str, Any]) -> None:
    """Print what to type after the run `run`, by the JSON data of its report.

    A network that lost too much is trained for longer; where no limit says how much it may lose, one that lost more
    than two standard errors. One that may not fit gets the best suggestion; if it does not fit and there is none, `fit`
    looks for a smaller one. One that fits is handed to a board.
    """
    reply, lost = report["verdicts"]["metric"]["reply"], report["metric"]["lost"]
    noise = 2 * (report["metric"].get("lost_error") or 0)
    if lost is not None and reply != "yes" and (reply == "no" or lost > noise):
        print_next("run", run / "flow.toml", "--epochs", "100", "--out", run)
    elif report["verdicts"]["fit"]["reply"] != "yes" and _first_of_flow(report) is not None:
        print_next("apply", run, str(_first_of_flow(report)))
    elif report["verdicts"]["fit"]["reply"] == "no":
        print_next("fit", run / "flow.toml")
    else:
        print_next("export", run, "--for", receiver_of(report["target"]))


def _first_of_flow(report: Mapping[str, Any]) -> int | None:
    """Return the number of the first suggestion that is an edit of the flow; None if there is none."""
    suggestions = (report.get("advice") or {}).get("suggestions") or []
    return next((n for n, one in enumerate(suggestions, start=1) if one["place"] == "flow file"), None)


def receiver_of(target: Mapping[str, Any]) -> str:
    """What `export --for` takes for a run on `target`: a board with its part, else the vendor's tool, else `BOARD`."""
    from fpgaprune.fabric import list_overlays
    from fpgaprune.target import find_part, list_boards

    part, order_number = target["part"], target.get("order_number", "").lower()
    boards = [board for board in list_boards() if find_part(board.part).name == part["name"]]
    # The board that the run names is first, then those with its order number, then those with a driver of ours.
    drivers, named = (*list_overlays(), *SERIAL_BOARDS), target.get("board")
    boards.sort(key=lambda board: (board.name != named, board.part.lower() != order_number, board.name not in drivers))
    return boards[0].name if boards else _TOOLS.get(part["vendor"], "BOARD")
