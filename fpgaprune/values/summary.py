"""`Summary`: what a result shows of itself, as text of at most twenty lines and as HTML for a notebook."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

# A terminal of 24 lines shows it with the line that was typed.
LINES = 20
_WIDTH, _CELL = 116, 60
# A picture has at most this many pixels on a side; more elements than that share pixels.
_PIXELS = 128
# Colours of the shares 0 and 1.
_LOCKED, _FREE = (0xDD, 0xDD, 0xDD), (0x00, 0x6B, 0x5E)
_CELL_STYLE = "padding:2px 8px;text-align:"


@dataclass(frozen=True)
class Summary:
    """A title, one table and some sentences.

    Attributes:
        title: the first line.
        headings: one for each column.
        rows: a text for each column; in a notebook all of them are shown, up to `most_rows`.
        notes: sentences below the table.
        pictures: of a row, by its number: a share 0..1 for each pixel, shape (rows, columns), and what it shows.
        most_rows: rows that a notebook shows.
    """

    title: str
    headings: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    notes: Sequence[str] = ()
    pictures: Sequence[tuple[NDArray[np.float64], str]] = ()
    most_rows: int = 40

    def text(self) -> str:
        """Return at most twenty lines without colours; rows that find no place are counted."""
        notes = list(self.notes)[: LINES // 2]
        room = LINES - 2 - len(notes)
        shown = self.rows if len(self.rows) <= room else self.rows[: room - 1]
        table = [[_short(cell, _CELL) for cell in row] for row in (self.headings, *shown) if row]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(
                (cell.rjust if at else cell.ljust)(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in table
        ]
        more = len(self.rows) - len(shown)
        lines += [f"... and {more:,} more"] if more else []
        cut = [line.rstrip() if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..." for line in lines]
        return "\n".join((_short(self.title, _WIDTH), *cut, *(_short(note, _WIDTH) for note in notes)))

    def html(self) -> str:
        """Return a table for a notebook; every text is escaped."""
        cells = [_row("th", self.headings)] if self.headings else []
        for number, row in enumerate(self.rows[: self.most_rows]):
            drawn = number < len(self.pictures) and self.pictures[number][0].size
            cells.append(_row("td", row, _image(*self.pictures[number]) if drawn else ""))
        more = len(self.rows) - self.most_rows
        notes = [f"... and {more:,} more"] if more > 0 else []
        below = "".join(f"<div>{escape(_short(note, 400))}</div>" for note in (*notes, *self.notes))
        return f"<div><b>{escape(_short(self.title, 400))}</b><table>{''.join(cells)}</table>{below}</div>"


class Summarised:
    """A result that a terminal and a notebook show as its `_summary`; a dataclass needs `repr=False`."""

    __slots__ = ()

    def _summary(self) -> Summary:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        return self._summary().html()


def _short(text: str, most: int) -> str:
    """Return `text` in one line of at most `most` printable characters."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return printable if len(printable) <= most else f"{printable[: most - 3]}..."


def _row(tag: str, cells: Sequence[str], picture: str = "") -> str:
    sides = ("left", *("right",) * (len(cells) - 1))
    texts = "".join(
        f'<{tag} style="{_CELL_STYLE}{side}">{escape(_short(cell, 4 * _CELL))}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{texts}{f'<td>{picture}</td>' if picture else ''}</tr>"


def _image(shares: NDArray[np.float64], shows: str) -> str:
    """Return an image element that needs no file: a PNG whose colours run from locked to free."""
    pixels = np.round(255 * _fewer(_fewer(shares).T).T).astype(np.uint8)
    height, width = pixels.shape
    ramp = np.linspace(_LOCKED, _FREE, 256).round().astype(np.uint8).tobytes()
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", ramp), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    scale = max(1, min(8, 2 * _PIXELS // max(height, width)))
    return (
        f'<img alt="{escape(_short(shows, 400))}" title="{escape(_short(shows, 400))}" width="{width * scale}" '
        f'height="{height * scale}" style="image-rendering:pixelated" '
        f'src="data:image/png;base64,{b64encode(png).decode()}">'
    )


def _fewer(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return at most `_PIXELS` rows: each is the mean of neighbouring ones."""
    if len(shares) <= _PIXELS:
        return shares
    starts = np.arange(_PIXELS) * len(shares) // _PIXELS
    counts = np.diff([*starts, len(shares)])
    means: NDArray[np.float64] = np.add.reduceat(shares, starts, axis=0) / counts[:, None]
    return means
