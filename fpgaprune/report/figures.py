"""Drawings as inline SVG in the colours of the page; they load no other file."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from fpgaprune.report.contents import LayerReport
from fpgaprune.report.numbers import count_text

Colour = tuple[int, int, int, int]


def encode_png(states: NDArray[np.uint8], palette: Sequence[Colour]) -> bytes:
    """Return a PNG of `states` (H, W), each an index into `palette` (red, green, blue, alpha; at most 4 colours).

    Two bits a pixel; PNG specification (W3C, 3rd edition), sections 11.2 and 11.3.
    """
    height, width = states.shape
    padded = np.zeros((height, -(-width // 4) * 4), np.uint8)
    padded[:, :width] = states
    quads = padded.reshape(height, -1, 4)
    packed = (quads << np.array([6, 4, 2, 0], np.uint8)).sum(axis=2, dtype=np.uint8)
    # Each row starts with its filter; 0 leaves it as it is.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), packed], axis=1).tobytes()
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 2, 3, 0, 0, 0)),
            _chunk(b"PLTE", bytes(part for colour in palette for part in colour[:3])),
            _chunk(b"tRNS", bytes(colour[3] for colour in palette)),
            _chunk(b"IDAT", zlib.compress(rows, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


LOCKED: Final = 0
KEPT: Final = 1
REMOVED: Final = 2
STATES = ((KEPT, "kept"), (LOCKED, "locked"), (REMOVED, "removed"))
# These colours are visible on white and on near-black, and differ in grey; the page's legend uses them too.
PALETTE: tuple[Colour, ...] = ((125, 138, 150, 51), (47, 116, 168, 255), (214, 150, 62, 115))

_LARGEST_SIDE = 512.0
_CELL_SIDES = (1.0, 13.0)
_MOST_CELLS_DRAWN = 64 * 64


@dataclass(frozen=True)
class Bar:
    """The length of a bar and its expected range; None is unknown."""

    value: float | None
    low: float | None = None
    high: float | None = None


def kernel_states(layer: LayerReport) -> NDArray[np.uint8] | None:
    """Return (C_in, C_out) of LOCKED, KEPT and REMOVED (its channel left the network); None without a mask."""
    if layer.mask is None:
        return None
    states = np.where(layer.mask, KEPT, LOCKED).astype(np.uint8)
    states[list(layer.removed_inputs), :] = REMOVED
    states[:, list(layer.removed_outputs)] = REMOVED
    return states


def kernels_text(layer: LayerReport) -> str:
    """Return how many kernels are kept, locked and removed, as the table of all layers counts them."""
    counts = {"kept": layer.kernels_kept, "locked": layer.kernels_locked, "removed": layer.kernels_removed}
    inputs, outputs = layer.channels_before
    return f"{inputs} × {outputs} kernels: " + ", ".join(f"{count_text(n)} {word}" for word, n in counts.items())


def mask_figure(states: NDArray[np.uint8], label: str) -> Markup:
    """Return the kernels of one convolution as cells of the `states`, input channels down and output channels across.

    Up to 64 x 64 cells, each state is one path. More cells are one picture with a pixel for each cell, so that the page
    stays small.
    """
    rows, columns = states.shape
    across, down = (float(np.clip(_LARGEST_SIDE / count, *_CELL_SIDES)) for count in (columns, rows))
    width, height = columns * across, rows * down
    if states.size <= _MOST_CELLS_DRAWN:
        # There is a gap between cells if they are large enough.
        gap = 1.0 if min(across, down) >= 5 else 0.0
        body = Markup("").join(_path(states, state, word, across, down, gap) for state, word in STATES)
    else:
        data = base64.b64encode(encode_png(states, PALETTE)).decode()
        body = Markup(
            '<image width="{:.6g}" height="{:.6g}" preserveAspectRatio="none" class="pixels" '
            'href="data:image/png;base64,{}"/>'
        ).format(width, height, data)
    return Markup(
        '<svg class="mask" role="img" aria-label="{0}" width="{1:.6g}" height="{2:.6g}" viewBox="0 0 {1:.6g} {2:.6g}">'
        "<title>{0}</title>{3}</svg>"
    ).format(label, width, height, body)


def axis_end(bars: Sequence[Bar], least: float = 1.0) -> float:
    """Return the end of an axis that holds all `bars` and `least`, 2 % beyond the longest."""
    ends = [end for bar in bars for end in (bar.value, bar.high) if end is not None]
    return max([least, *ends]) * 1.02


def bars_figure(before: Bar, after: Bar, end: float, text: str, capacity: float | None = None) -> Markup:
    """Draw the bar `before` above the bar `after`, on an axis from 0 to `end`, with a line at any `capacity`."""
    bars = Markup("").join(
        _bar(bar, word, top, end, capacity) for bar, word, top in ((before, "before", 3), (after, "after", 15))
    )
    limit = Markup("")
    if capacity is not None:
        limit = Markup('<line class="capacity" x1="{0}" x2="{0}" y1="0" y2="27"/>').format(_percent(capacity / end))
    return Markup(
        '<svg class="bar" role="img" aria-label="{0}" width="100%" height="27"><title>{0}</title>'
        '<rect class="track" x="0" y="0" width="{1}" height="27"/>{2}{3}</svg>'
    ).format(text, _percent(1 if capacity is None else capacity / end), bars, limit)


def shares_figure(parts: Sequence[tuple[str, float]], whole: float, label: str) -> Markup:
    """Return one bar of `parts` (class, amount) side by side; `whole` fills the width."""
    start = 0.0
    pieces = []
    for name, amount in parts:
        pieces.append(
            Markup('<rect class="{}" x="{}" y="0" width="{}" height="10"/>').format(
                name, _percent(start / whole), _percent(amount / whole)
            )
        )
        start += amount
    return Markup(
        '<svg class="shares" role="img" aria-label="{0}" width="100%" height="10"><title>{0}</title>{1}</svg>'
    ).format(label, Markup("").join(pieces))


def text_at(x: float, y: float, text: str, anchor: str) -> Markup:
    """Put `text` at a place of a drawing; `anchor` is `start`, `middle` or `end`."""
    return Markup('<text x="{:.5g}" y="{:.5g}" text-anchor="{}">{}</text>').format(x, y, anchor, text)


def _path(states: NDArray[np.uint8], state: int, word: str, across: float, down: float, gap: float) -> Markup:
    """Return all cells of one state; without a gap, neighbours in a row form one rectangle."""
    steps = []
    for row, line in enumerate(states == state):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]])))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            cells = range(start, stop) if gap else (start,)
            wide = (1 if gap else stop - start) * across - gap
            high = down - gap
            steps += [f"M{cell * across:.5g},{row * down:.5g}h{wide:.5g}v{high:.5g}h{-wide:.5g}z" for cell in cells]
    return Markup('<path class="{}" d="{}"/>').format(word, "".join(steps)) if steps else Markup("")


def _bar(bar: Bar, word: str, top: int, end: float, capacity: float | None) -> Markup:
    if bar.value is None:
        return Markup("")
    over = " over" if capacity is not None and bar.value > capacity else ""
    drawn = Markup('<rect class="{}{}" x="0" y="{}" width="{}" height="9"/>').format(
        word, over, top, _percent(bar.value / end)
    )
    if bar.low is None or bar.high is None or bar.low == bar.high:
        return drawn
    return drawn + Markup('<line class="range" x1="{}" x2="{}" y1="{y}" y2="{y}"/>').format(
        _percent(bar.low / end), _percent(bar.high / end), y=top + 4.5
    )


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.4g}%"


# Sides of the curve of a training, and the room around it.
_CURVE_WIDTH, _CURVE_HEIGHT, _LEFT, _BOTTOM, _EDGE = 520.0, 220.0, 56.0, 40.0, 12.0


def ticks_within(least: float, most: float, wanted: int = 4) -> list[float]:
    """Round numbers from `least` to `most`, some `wanted` of them: steps of 1, 2, 2.5 or 5 times a power of ten."""
    span = most - least
    if not (math.isfinite(span) and span > 0):
        return [least] if math.isfinite(least) else []
    rough = span / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * size for size in (1, 2, 2.5, 5, 10) if power * size >= rough * (1 - 1e-9))
    return [number * step for number in range(math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9) + 1)]


def curve_figure(losses: Sequence[float]) -> Markup | None:
    """Return the loss of each epoch as a line; None if fewer than two are known. An epoch without a number is a gap."""
    known = [loss for loss in losses if math.isfinite(loss)]
    if len(known) < 2:
        return None
    label = f"Loss of {count_text(len(losses))} epochs, from {known[0]:.4g} to {known[-1]:.4g}"
    low, high = min(0.0, *known), max(known) or 1.0
    right, floor = _CURVE_WIDTH - _EDGE, _CURVE_HEIGHT - _BOTTOM

    def across(epoch: float) -> float:
        return _LEFT + (right - _LEFT) * (epoch - 1) / max(len(losses) - 1, 1)

    def down(loss: float) -> float:
        return floor - (floor - _EDGE) * (loss - low) / (high - low)

    parts = [Markup('<path class="axis" d="M{0:.5g},{1:.5g}V{2:.5g}H{3:.5g}"/>').format(_LEFT, _EDGE, floor, right)]
    parts += [text_at(_LEFT - 6, down(tick) + 4, f"{tick:.6g}", "end") for tick in ticks_within(low, high)]
    epochs = [tick for tick in ticks_within(1, len(losses), 5) if tick == round(tick) and tick >= 1]
    parts += [text_at(across(tick), floor + 16, count_text(tick), "middle") for tick in epochs]
    parts.append(text_at(right, floor + 34, "epoch", "end"))
    steps, drawn = [], False
    for epoch, loss in enumerate(losses, 1):
        if math.isfinite(loss):
            steps.append(f"{'L' if drawn else 'M'}{across(epoch):.5g},{down(loss):.5g}")
        drawn = math.isfinite(loss)
    parts.append(Markup('<path class="curve" d="{}"/>').format("".join(steps)))
    return Markup(
        '<svg class="points" role="img" aria-label="{0}" viewBox="0 0 {1:g} {2:g}" width="{1:g}" height="{2:g}">'
        "<title>{0}</title>{3}</svg>"
    ).format(label, _CURVE_WIDTH, _CURVE_HEIGHT, Markup("").join(parts))
