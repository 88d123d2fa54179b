"""Checks the boards of the backend VivadoAccelerator: their parts, and what hls4ml can build for them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fpgaprune.errors import HlsError
from fpgaprune.target import Target

BACKEND = "VivadoAccelerator"
# hls4ml takes this board if none is named.
_USUAL = "pynq-z2"


def board_problems(target: Target, options: Mapping[str, Any]) -> list[str]:
    """One line for each reason why hls4ml cannot build for the board in `options` and the part of `target`.

    Each line says what to do. Other backends have no boards, so no problems.

    Args:
        target: backend and part.
        options: settings of the backend, for example `{"board": "pynq-z2", "interface": "axi_stream"}`.
    """
    if target.backend != BACKEND:
        return []
    boards = known_boards()
    named = options.get("board")
    board = _USUAL if named is None else named
    if board not in boards:
        known = ", ".join(f"{name} ({entry['part']})" for name, entry in sorted(boards.items()))
        return [
            f"board {board!r} is unknown to hls4ml's backend {BACKEND}; it builds for {known}: name one of these, or "
            "choose backend 'Vitis', which builds for a part without a board"
        ]
    part = str(boards[board]["part"])
    problems = []
    asked, whole = target.order_number.lower(), part.lower()
    # A device's name says nothing about package and speed, so the board's are taken.
    if asked != whole and not (asked == target.part.name.lower() and target.part.is_meant_by(part)):
        others = [name for name, entry in sorted(boards.items()) if entry["part"].lower() == asked]
        other = f", name board {' or '.join(map(repr, others))}" if others else ""
        chosen = "" if named is not None else f", which backend {BACKEND} takes where no board is named,"
        problems.append(
            f"board {board!r}{chosen} has part {part}, not {target.order_number}: ask for part {part!r}{other}, or "
            "choose backend 'Vitis', which builds for a part without a board"
        )
    interface, driver = options.get("interface", "axi_stream"), options.get("driver", "python")
    for what, value, able in (
        ("interface", interface, sorted(boards[board]["tcl_scripts"])),
        ("driver", driver, [key for key in ("python", "c") if interface in boards[board].get(f"{key}_drivers", {})]),
    ):
        if value not in able and (what == "interface" or interface in boards[board]["tcl_scripts"]):
            instead = f"it has {', '.join(able)}" if able else f"it has none for interface {interface!r}"
            problems.append(f"board {board!r} has no {what} {value!r} in hls4ml's backend {BACKEND}; {instead}")
    return problems


def require_board(target: Target, options: Mapping[str, Any]) -> None:
    """hls4ml can build for the board and for the part of `target`.

    Raises:
        HlsError: it cannot, or would build for another part; the message says what to do.
    """
    problems = board_problems(target, options)
    if problems:
        raise HlsError(problems[0])


@cache
def known_boards() -> Mapping[str, Any]:
    """Name to entry of every board that the installed hls4ml lists; hls4ml is not imported.

    Raises:
        HlsError: it has no such list.
    """
    found = importlib.util.find_spec("hls4ml")
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    for folder in folders:
        path = Path(folder) / "backends" / "vivado_accelerator" / "supported_boards.json"
        if path.exists():
            boards: Mapping[str, Any] = json.loads(path.read_text())
            return boards
    raise HlsError("the installed hls4ml lists no boards; install hls4ml 1.3")
