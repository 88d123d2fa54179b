"""SVG and PNG figures."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from fpgaprune.errors import ReportError
from fpgaprune.report import (
    KEPT,
    LOCKED,
    PALETTE,
    REMOVED,
    Bar,
    axis_end,
    bars_figure,
    encode_png,
    kernel_norm_png,
    kernel_states,
    mask_figure,
    shares_figure,
)

from .samples import conv

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))


@settings(derandomize=True, deadline=None, max_examples=40)
@given(SHAPES, st.integers(0, 2**31))
def test_png_holds_the_states(shape, seed):
    states = np.random.default_rng(seed).integers(0, 3, shape, dtype=np.uint8)
    picture = Image.open(io.BytesIO(encode_png(states, PALETTE)))
    assert np.array_equal(np.asarray(picture.convert("RGBA")), np.array(PALETTE, np.uint8)[states])


def test_png_is_the_same_every_time():
    states = np.eye(70, dtype=np.uint8)
    assert encode_png(states, PALETTE) == encode_png(states, PALETTE)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.sampled_from([(1, 16), (3, 5), (64, 64), (1, 512), (512, 1), (40, 100)]), st.integers(0, 2**31))
def test_paths_cover_each_cell_once_in_its_state(shape, seed):
    states = np.random.default_rng(seed).integers(0, 3, shape, dtype=np.uint8)
    svg = ElementTree.fromstring(mask_figure(states, "c"))  # noqa: S314
    across, down = float(svg.get("width")) / shape[1], float(svg.get("height")) / shape[0]
    drawn = np.full(shape, 255, np.uint8)
    for path in svg.findall("path"):
        state = {"kept": KEPT, "locked": LOCKED, "removed": REMOVED}[path.get("class")]
        for x, y, width, height in re.findall(r"M([\d.]+),([\d.]+)h([\d.]+)v([\d.]+)", path.get("d")):
            # A gap between the cells is as wide as it is high.
            gap = max(0.0, across - float(width))
            assert float(height) == pytest.approx(down - gap, abs=0.01)
            row, start = round(float(y) / down), round(float(x) / across)
            cells = slice(start, start + max(1, round(float(width) / across)))
            assert (drawn[row, cells] == 255).all()
            drawn[row, cells] = state
    assert np.array_equal(drawn, states)


@pytest.mark.parametrize(("shape", "most"), [((1, 16), 1_000), ((64, 64), 120_000), ((512, 512), 120_000)])
def test_masks_stay_small(shape, most):
    assert len(mask_figure(kernel_states(conv("c", shape)), "c")) < most


def test_a_removed_channel_hides_what_its_kernels_were():
    states = kernel_states(conv("c", (4, 6), kept=1.0, removed=(2,)))
    assert (states[:, 2] == REMOVED).all()
    assert (np.delete(states, 2, axis=1) == KEPT).all()


def test_the_axis_always_shows_the_capacity():
    assert axis_end([Bar(0.01), Bar(None)]) == pytest.approx(1.02)
    assert axis_end([Bar(2.0, 1.0, 3.0)]) == pytest.approx(3.06)


def test_shares_stand_side_by_side_and_fill_the_whole():
    svg = ElementTree.fromstring(shares_figure([("kept", 3), ("locked", 1), ("removed", 4)], 8, "c"))  # noqa: S314
    drawn = [(part.get("class"), part.get("x"), part.get("width")) for part in svg.findall("rect")]
    assert drawn == [("kept", "0%", "37.5%"), ("locked", "37.5%", "12.5%"), ("removed", "50%", "50%")]


def test_an_unknown_share_draws_no_bar():
    svg = bars_figure(Bar(None), Bar(0.5, 0.4, 0.6), 1.02, "LUT", 1.0)
    assert 'class="before' not in svg
    assert 'class="after"' in svg
    assert 'class="after over"' in bars_figure(Bar(None), Bar(1.2), 1.3, "LUT", 1.0)


@pytest.mark.parametrize("shape", [(1, 32), (1, 1), (512, 512)])
def test_norms_are_drawn_the_same_every_time(tmp_path, shape):
    norms = np.random.default_rng(3).random(shape)
    norms[0, 0] = 0
    first = kernel_norm_png(norms, "conv $x_1$ <b>", tmp_path / "a.png").read_bytes()
    width, height = Image.open(io.BytesIO(first)).size
    assert 300 < width < 2000
    assert 250 < height < 1800
    if shape == (1, 32):
        assert first == kernel_norm_png(norms, "conv $x_1$ <b>", tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("norms", [[], [1.0], [[-1.0]], [[float("nan")]]])
def test_bad_norms_are_refused(tmp_path, norms):
    with pytest.raises(ReportError, match="kernel norms of 'conv1'"):
        kernel_norm_png(norms, "conv1", tmp_path / "x.png")
    assert not list(tmp_path.iterdir())
