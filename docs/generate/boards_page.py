"""The page reference/boards.md: every board with a serial line, from the files in hw/boards."""

from __future__ import annotations

from fpgaprune.fabric import bitstream_ending, find_board, list_serial_boards
from fpgaprune.target import find_part

PLACE = "reference/boards.md"
_HEAD = """# Boards with a serial line

Open tools make a bitstream for each of these boards. `fpgaprune ask` talks to the network on it:
[A board](../howto/board.md).

```console
$ pip install 'fpgaprune[rtl,boards]'
$ fpgaprune export runs/mine --for tang-nano-20k
```

| name | board | FPGA | LUT | clock | baud | bitstream |
|---|---|---|---:|---:|---:|---|
"""
_LOADED = """
The command in this table loads a board; `{file}` is the bitstream. The last column is the day on which a bitstream of
ours was loaded into a real board. Where it says never, the pins are those of the source, and no pin or timing was ever
tried. What the bits of a GW1N, GW2A, iCE40, ECP5 or GateMate compute is
[read back](../measurements/bitstreams.md); for the others only the Verilog was simulated.

| name | command | before the serial line works | source of the pins | loaded |
|---|---|---|---|---|
"""


def page() -> str:
    """The page as Markdown."""
    boards = {name: find_board(name) for name in list_serial_boards()}
    first = second = ""
    for name, board in boards.items():
        part = find_part(board.device)
        ending = f"`{bitstream_ending(name)}`"
        cells = (part.name, f"{part.lut:,}", f"{board.clock_mhz:g} MHz", f"{board.baud:,}", ending)
        first += f"| `{name}` | {board.name} | {' | '.join(cells)} |\n"
        second += f"| `{name}` | `{board.load}` | {board.note or '–'} | {board.source} | {board.loaded or 'never'} |\n"
    return f"{_HEAD}{first}{_LOADED}{second}"
