"""Checks the boards of the backend VivadoAccelerator: their parts, and what hls4ml can build for them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fpgaprune.design import Design, Input
from fpgaprune.errors import HlsError
from fpgaprune.files import parse_typedefs
from fpgaprune.target import Target
from fpgaprune.values import FixedType

BACKEND = "VivadoAccelerator"
# hls4ml takes this board if none is named.
_USUAL = "pynq-z2"


def board_problems(target: Target, options: Mapping[str, Any]) -> list[str]:
    """Return one line for each reason why hls4ml cannot build for the board in `options` and the part of `target`.

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


def accelerator_form(design: Design, project: Path, options: Mapping[str, object]) -> dict[str, Any] | None:
    """Return what the streams of an accelerator's project carry, for the driver `hw/handover/accelerator.py`; or None.

    hls4ml's block design for a Zynq board has a DMA; for an Alveo card it has none, and hls4ml's own driver is in the
    project.

    Args:
        design: the network.
        project: the folder of the project.
        options: settings of the backend, for example `{"board": "pynq-z2", "interface": "axi_stream"}`.

    Raises:
        HlsError: a stream carries values of a width that NumPy has no type for.
    """
    board = str(options.get("board") or _USUAL)
    if design.backend != BACKEND or board.startswith("alveo"):
        return None
    header = project / "firmware" / f"{design.name}_axi.h"
    types = parse_typedefs(header.read_text(encoding="utf-8")) if header.is_file() else {}
    if not {"T_in", "T_out"} <= types.keys():
        return None  # Only streams have these types, not the interface 'axi_lite'.
    source = next(layer for layer in design.layers if isinstance(layer.operation, Input))
    sink = design[design.outputs[0]]
    ports = {"in": (source, types["T_in"]), "out": (sink, types["T_out"])}
    return {"board": board, **{way: _stream(layer.output_shape, text) for way, (layer, text) in ports.items()}}


def _stream(shape: tuple[int, ...], text: str) -> dict[str, Any]:
    if text in ("float", "double"):
        return {"shape": list(shape), "type": text}
    kind = FixedType.parse(text)
    if kind.width not in (8, 16, 32, 64):
        raise HlsError(
            f"the accelerator's streams carry {text}, of {kind.width} bits, which no type of NumPy has; set input_type "
            "and output_type of backend_options to float, or to a type of 8, 16, 32 or 64 bits"
        )
    return {
        "shape": list(shape),
        "type": "fixed",
        "width": kind.width,
        "integer": kind.integer,
        "signed": kind.signed,
        "rounding": kind.rounding,
        "overflow": kind.overflow,
    }


def require_board(target: Target, options: Mapping[str, object]) -> None:
    """Check that hls4ml can build for the board and for the part of `target`.

    Raises:
        HlsError: it cannot, or would build for another part; the message says what to do.
    """
    problems = board_problems(target, options)
    if problems:
        raise HlsError(problems[0])


@cache
def known_boards() -> Mapping[str, Any]:
    """Return a dict: name to entry of every board that the installed hls4ml lists; hls4ml is not imported.

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
