"""The curve of a training, and the numbers of an axis."""

import math
import re

import pytest

from fpgaprune.report import curve_figure, render_page, ticks_within

from .samples import run_report


@pytest.mark.parametrize(
    ("least", "most", "ticks"),
    [(0, 1, [0, 0.25, 0.5, 0.75, 1]), (1, 40, [10, 20, 30, 40]), (-0.004, 0.021, [0, 0.01, 0.02]), (3, 3, [3])],
)
def test_numbers_of_an_axis_are_round(least, most, ticks):
    assert ticks_within(least, most) == pytest.approx(ticks)
    assert ticks_within(math.nan, 1) == []


def test_each_epoch_is_a_place_and_a_diverged_one_a_gap():
    figure = str(curve_figure([2.0, 1.0, math.nan, 0.5, 0.25]))
    steps = re.findall(r"([ML])([\d.]+),([\d.]+)", re.search('class="curve" d="([^"]*)"', figure)[1])
    assert [step for step, _, _ in steps] == ["M", "L", "M", "L"]
    downs = [float(y) for _, _, y in steps]
    assert downs == sorted(downs)  # a lower loss stands lower
    assert "Loss of 5 epochs, from 2 to 0.25" in figure
    assert curve_figure([1.0]) is curve_figure([math.nan, math.nan]) is None


def test_the_page_has_the_curve_and_its_contents_only_if_there_are_losses():
    assert 'class="curve"' not in render_page(run_report())
    page = render_page(run_report(losses=[1.0, 0.5]))
    assert 'class="curve"' in page
    anchors = re.findall('<a href="#([a-z]+)">', page)
    assert "training" in anchors
    assert all(page.count(f'id="{anchor}"') == 1 for anchor in anchors)
