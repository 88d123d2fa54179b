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

_INCHES_PER_CELL = 0.17
_PLOT_INCHES = (0.34, 8.7)
_MARGINS = (0.8, 1.0, 0.75, 0.6)  # left, right, top, bottom, in inches
_LEAST_WIDTH, _LEAST_HEIGHT = 2.8, 1.1  # room for the title and for the scale
# The scale starts at a visible colour: white means a kernel that is exactly zero.
_COLOURS = ("#cfe0ee", "#6ba3cc", "#2f74a8", "#0b2c47")


def kernel_norm_png(norms: ArrayLike, title: str, path: str | os.PathLike[str]) -> Path:
    """Write a heat map of `norms` (C_in, C_out) to `path`, input channels down and output channels across.

    A kernel that is exactly zero is drawn white, unlike one that is merely small. Equal input gives equal bytes.

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
    # Matplotlib is imported here, because it takes a second and most commands draw nothing. pyplot has global state.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    rows, columns = values.shape
    width, height = (float(np.clip(count * _INCHES_PER_CELL, *_PLOT_INCHES)) for count in (columns, rows))
    left, right, top, bottom = _MARGINS
    whole = (max(width, _LEAST_WIDTH) + left + right, max(height + bottom, _LEAST_HEIGHT + 0.15) + top)
    figure = Figure(figsize=whole, dpi=150)
    canvas = FigureCanvasAgg(figure)

    def box(x: float, below_top: float, wide: float, high: float) -> tuple[float, float, float, float]:
        return x / whole[0], 1 - (below_top + high) / whole[1], wide / whole[0], high / whole[1]

    axes = figure.add_axes(box(left, top, width, height))
    # The scale ends below the largest norms, because one large kernel would make all others pale.
    strongest, largest = float(values.max()) or 1.0, float(np.quantile(values, 0.995)) or 1.0
    largest = strongest if strongest <= 1.5 * largest else largest
    # Nothing is smoothed: a pixel shows one kernel.
    picture = axes.imshow(
        np.ma.masked_equal(values, 0.0),
        cmap=LinearSegmentedColormap.from_list("norms", _COLOURS),
        vmin=0.0,
        vmax=largest,
        aspect="auto",
        interpolation="nearest",
    )
    if min(width / columns, height / rows) >= 0.05:
        axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="#e3e7ea", linewidth=0.5)
    axes.tick_params(which="both", length=0, labelsize=8)
    for axis, size in ((axes.xaxis, width), (axes.yaxis, height)):
        axis.set_major_locator(MaxNLocator(nbins=max(1, min(8, int(size / 0.3))), integer=True, min_n_ticks=1))
    for spine in axes.spines.values():
        spine.set_color("#b4bfc8")
    axes.set_xlabel("output channel" if width >= 0.9 else "out", fontsize=8)
    axes.set_ylabel("input channel" if height >= 0.9 else "in", fontsize=8)
    zeros = int((values == 0).sum())
    figure.text(left / whole[0], 1 - 0.3 / whole[1], title, fontsize=11, fontweight="bold", parse_math=False)
    legend = f"l1 norm of {rows} × {columns} kernels; {zeros:,} exactly zero (white)"
    figure.text(left / whole[0], 1 - 0.55 / whole[1], legend, fontsize=8, color="#5b6670")
    scale = figure.add_axes(box(left + width + 0.2, top, 0.13, min(max(height, _LEAST_HEIGHT), 3.0)))
    scale = figure.colorbar(picture, cax=scale, extend="max" if strongest > largest else "neither").ax
    scale.tick_params(labelsize=8, length=2)
    buffer = io.BytesIO()
    # Matplotlib would write its version into the file.
    canvas.print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()
