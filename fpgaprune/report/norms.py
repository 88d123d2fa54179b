"""Heat maps of kernel norms as PNG files."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fpgaprune.errors import ReportError
from fpgaprune.files import write_bytes

_INCHES_PER_CELL = 0.16
_PLOT_INCHES = (1.2, 9.0)


def kernel_norm_png(norms: ArrayLike, title: str, path: str | os.PathLike[str]) -> Path:
    """`path` is a heat map of `norms` (C_in, C_out), input channels down and output channels across.

    A kernel that is exactly zero is drawn hollow, unlike one that is merely small. Equal input gives equal bytes.

    Raises:
        ReportError: `norms` is empty, not two-dimensional, negative or not finite.
    """
    values = np.asarray(norms, dtype=np.float64)
    if values.ndim != 2 or not values.size:
        raise ReportError(f"kernel norms of {title!r} have shape {values.shape}; wanted (C_in, C_out), not empty")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ReportError(f"kernel norms of {title!r} are negative or not finite; wanted l1 norms, 0 or more")
    return write_bytes(path, _draw(values, title))


def _draw(values: np.ndarray[Any, np.dtype[np.float64]], title: str) -> bytes:
    # Loaded here: it takes a second, and most commands draw nothing. No pyplot: no global state, no display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    rows, columns = values.shape
    width, height = (float(np.clip(count * _INCHES_PER_CELL, *_PLOT_INCHES)) for count in (columns, rows))
    left, right, top, bottom = 0.75, 1.25, 0.75, 0.6
    figure = Figure(figsize=(max(width, 2.6) + left + right, height + top + bottom), dpi=150)
    canvas = FigureCanvasAgg(figure)
    whole = figure.get_size_inches()
    axes = figure.add_axes((left / whole[0], bottom / whole[1], width / whole[0], height / whole[1]))
    drawn = np.ma.masked_equal(values, 0.0)
    largest = float(values.max()) or 1.0
    # Without smoothing: a pixel is a kernel, or the nearest one where there are more kernels than pixels.
    picture = axes.imshow(drawn, cmap="viridis_r", vmin=0.0, vmax=largest, aspect="auto", interpolation="nearest")
    axes.set_facecolor("white")
    if min(width / columns, height / rows) >= 0.05:
        axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="#d9dee2", linewidth=0.5)
    axes.tick_params(which="both", length=0, labelsize=8)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axes.set_xlabel("output channel", fontsize=9)
    axes.set_ylabel("input channel", fontsize=9)
    zeros = int((values == 0).sum())
    figure.text(left / whole[0], 1 - 0.3 / whole[1], title, fontsize=11, fontweight="bold", parse_math=False)
    figure.text(
        left / whole[0],
        1 - 0.55 / whole[1],
        f"l1 norm of {rows} × {columns} kernels; {zeros:,} exactly zero (hollow)",
        fontsize=8,
        color="#5b6670",
    )
    bar_height = max(height, 1.0)
    bar = figure.add_axes(
        (
            (left + width + 0.2) / whole[0],
            (bottom + height - bar_height) / whole[1],
            0.14 / whole[0],
            bar_height / whole[1],
        )
    )
    figure.colorbar(picture, cax=bar).ax.tick_params(labelsize=8, length=2)
    buffer = io.BytesIO()
    # Matplotlib would write its version into the file.
    canvas.print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()
