"""The figure of a search: each network is a dot at its place, and labels do not cover each other."""

import re

import pytest

from fpgaprune.report import FrontPoint, FrontReport, front_figure, share_text


def point(number, lost, share, *, best=False, kept=True):
    return FrontPoint(number, f"network {number}", lost, 0.001, share, "LUT", 10, best, kept, None)


def drawn(*points):
    """The figure; number of a network to x and y of its dot; numbers that are written."""
    report = FrontReport("mine", "part", (), (), (), "best", points, 0.005, 0.8, "")
    figure = str(front_figure(report))
    dots = re.findall(r'<circle class="dot \w*" cx="([\d.]+)" cy="([\d.]+)" r="5"><title>(\d+)\.', figure)
    places = {int(number): (float(x), float(y)) for x, y, number in dots}
    return figure, places, [int(text) for text in re.findall(r">(\d+)</text>", figure) if int(text)]


def test_each_network_is_a_dot_and_small_shares_stand_apart():
    _, places, _ = drawn(point(1, 0.0, 0.28), point(2, -0.01, 0.045), point(3, 0.02, 0.033))
    assert sorted(places) == [1, 2, 3]
    (x1, y1), (x2, y2), (x3, y3) = places[1], places[2], places[3]
    # On a scale up to the limit of 80 % these two would lie on each other.
    assert x1 > x2 + 60 > x3 + 60 + 10
    # Down is better, also below a loss of 0.
    assert y2 > y1 > y3


def test_a_label_that_would_cover_another_is_left_out_and_the_front_is_labelled():
    _, places, labels = drawn(point(1, 0.001, 0.05), point(2, 0.001, 0.05, best=True), point(3, 0.02, 0.4))
    assert len(places) == 3
    assert labels == [2, 3]


def test_figures_beyond_an_axis_are_triangles_at_its_broken_end():
    figure, places, _ = drawn(point(1, 0.9, 40.0), point(2, -0.5, 0.0), point(3, 0.0, 1e-9), point(4, 0.001, 0.3))
    assert list(places) == [4]
    triangles = re.findall(r'<path class="dot \w*" d="M([\d.]+),([\d.]+)l[^>]*><title>(\d+)\.[^<]*beyond', figure)
    assert sorted(number for _, _, number in triangles) == ["1", "2", "3"]
    assert all(70 <= float(x) <= 640 and 0 <= float(y) <= 330 for x, y, _ in triangles)
    # Both ends of both axes have a figure beyond them.
    assert figure.count('class="limit break"') == 4
    whole, _, _ = drawn(point(1, 0.001, 0.3))
    assert "break" not in whole


def test_no_two_texts_of_the_figure_touch():
    figure, _, _ = drawn(*(point(n, 0.0004 * n, 0.1 + 0.03 * n) for n in range(1, 30)))
    texts = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]+)</text>', figure)
    boxes = []
    for x, y, anchor, text in texts:
        wide = 6.0 * len(text)
        left = float(x) - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        boxes.append((left, left + wide, float(y) - 9, float(y), text))
    for number, one in enumerate(boxes):
        for other in boxes[number + 1 :]:
            apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
            assert apart, (one, other)


@pytest.mark.parametrize(("share", "text"), [(0.0449, "4.5 %"), (0.0994, "9.9 %"), (0.0996, "10 %"), (0.797, "80 %")])
def test_a_small_share_has_a_decimal(share, text):
    assert share_text(share).replace("\u202f", " ").replace("\u00a0", " ") == text
