"""`load_board`: the bitstream of a run, or of the folder that `export` made, goes into its board."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fpgaprune.errors import RunError, TargetError
from fpgaprune.fabric import find_board, list_serial_boards, load_bitstream
from fpgaprune.flow.file import require_kind
from fpgaprune.flow.run import MANIFEST, RunDirectory
from fpgaprune.target import find_part

# What a folder that was handed over says of itself.
ABOUT = "handover.json"


@dataclass(frozen=True)
class Loaded:
    """A bitstream that was loaded.

    Attributes:
        board: the board's name.
        bitstream: the file.
        flash: whether it stays when the board is switched off.
    """

    board: str
    bitstream: Path
    flash: bool


def load_board(source: Path, *, flash: bool = False) -> Loaded:
    """Load the bitstream of `source` into its board, which is connected by USB.

    Args:
        source: a folder that `hand_over` made for a board, or a run: then its bitstream for the board that it was
            measured on, or the one folder `RUN-for-BOARD` beside it.
        flash: write the board's flash, so that the bitstream stays when the board is switched off.

    Raises:
        RunError: there is no bitstream, or there are several.
        ToolError, BoardError: as for `load_bitstream`.
    """
    board, bitstream = find_bitstream(source)
    if not bitstream.is_file():
        raise RunError(f"{bitstream} is missing; export the run again: fpgaprune export RUN --for {board}")
    place = find_board(board)
    load_bitstream(place, bitstream, flash=flash)
    return Loaded(place.name, bitstream, flash)


def find_bitstream(source: Path) -> tuple[str, Path]:
    """Return the board and the file of the bitstream of a run, or of a folder that was handed over for a board.

    Raises:
        RunError: there is none, or there are several.
    """
    if (source / ABOUT).is_file():
        found = _of_folder(source)
        if found is None:
            raise RunError(f"{source} was not made for a board with a serial line, so it holds no bitstream")
        return found
    require_kind(source, "run")
    if not (source / MANIFEST).is_file():
        raise RunError(f"{source} is neither a run nor a folder that 'fpgaprune export' made for a board")
    made = (RunDirectory.existing(source).read_json("measure.json") or {}).get("bitstream")
    if made:
        return str(made["board"]), source / made["path"]
    beside = {folder: _of_folder(folder) for folder in sorted(source.parent.glob(f"{source.name}-for-*"))}
    boards = {folder: found for folder, found in beside.items() if found is not None}
    if len(boards) == 1:
        return next(iter(boards.values()))
    if boards:
        raise RunError(f"{source} has bitstreams in {', '.join(map(str, boards))}; name one of these folders")
    raise RunError(
        f"{source} has no bitstream beside it; name the folder that 'export --out' made, or make one: "
        f"fpgaprune export {source} --for {_boards_of(source)}"
    )


def _boards_of(run: Path) -> str:
    """Return the boards with the run's part, as `colorlight-i5 (or orangecrab)`; BOARD if none has it."""
    with suppress(TargetError, KeyError, TypeError):
        part = find_part(str(RunDirectory.existing(run).manifest["config"]["target"]["part"])).name
        first, *others = [name for name in list_serial_boards() if find_board(name).device == part] or ["BOARD"]
        return first + (f" (or {', '.join(others)})" if others else "")
    return "BOARD"


def _of_folder(folder: Path) -> tuple[str, Path] | None:
    """Return the board and the bitstream of a folder that was handed over; None if it holds none."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(about, dict) or "board" not in about or "bitstream" not in about:
        return None
    return str(about["board"]), folder / str(about["bitstream"])
