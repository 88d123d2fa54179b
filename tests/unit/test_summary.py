"""Results show themselves in a notebook and in one screen of a terminal, whatever their names are."""

import io
import re
from base64 import b64decode
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpgaprune as fp
from fpgaprune.fit import Fit, Knobs
from fpgaprune.measure import Estimate, Figure, LayerEstimate, LinkCheck, LockCertificate, Resources, WeightCheck
from fpgaprune.values import LINES, Summary
from tests.unit.fit.made_up import LIMITS, made_point
from tests.unit.report.samples import run_report

EVIL = '<script>alert("&")</script>\n\x1b[31m'
_TAGS = {"div", "b", "table", "tr", "th", "td", "img"}


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.open = set(), []

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        assert not any(name.startswith("on") for name, _ in attributes)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def holds(shown, names=()):
    """`shown` is at most a screen of text, and whole HTML of our tags only, in which `names` are text."""
    text, html = repr(shown), shown._repr_html_()
    assert len(text.splitlines()) <= LINES
    assert max(map(len, text.splitlines())) <= 120
    assert "\x1b" not in text + html
    tags = Tags()
    tags.feed(html)
    assert tags.seen <= _TAGS
    assert not tags.open
    for name in names:
        assert name in text
        assert name in html
    return text, html


def masks(count, shape=(3, 3, 4, 5), name="conv{}/kernel"):
    rng = np.random.default_rng(1)
    return fp.MaskSet({name.format(number): rng.random(shape) < 0.5 for number in range(count)})


def estimate(count, name="conv{}"):
    used = Resources(**{key: Figure(5, 4, 6) for key in ("lut", "ff", "dsp", "bram18")})
    layers = tuple(LayerEstimate(name.format(n), "Conv2D", None, used, used, 7, 7) for n in range(count))
    target = fp.Target.of("pynq-z2")
    return Estimate(name, target, {"csynth": used, "synth": used}, layers, 70, 7, (name,) * count)


def certificate(count, name="link {}"):
    wrong = WeightCheck(name, 9, 4, 1, "[0] = 1", "0")
    return LockCertificate(tuple(LinkCheck(name.format(n), (wrong,), {}) for n in range(count)))


def found(count, name="fit"):
    points = tuple(made_point(Knobs("kernel", number / 100), lost=number / 100) for number in range(count + 1))
    limits = {field: getattr(LIMITS, field) for field in LIMITS.__dataclass_fields__}
    return Fit(name, "xc7z020", 5.0, "hls", "analytic synth", limits, points[0], points, (name,) * count)


def report(count, name="demo"):
    return run_report(name=name, warnings=(name,) * count)


@pytest.mark.parametrize("make", [masks, estimate, certificate, found, report])
@pytest.mark.parametrize("count", [0, 1, 60])
def test_each_result_fits_a_screen(make, count):
    text, html = holds(make(count))
    assert len(html) < 400_000
    assert text.splitlines()[0].split(":")[0].split()[0] in {"MaskSet", "Estimate", "Certificate", "Fit", "RunReport"}


@pytest.mark.parametrize(
    "shown",
    [masks(2, name=EVIL + "{}"), estimate(2, EVIL), certificate(2, EVIL), found(2, EVIL), report(2, EVIL)],
    ids=["masks", "estimate", "certificate", "fit", "report"],
)
def test_names_are_text_and_never_elements(shown):
    _, html = holds(shown)
    assert "&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt; ?[31m" in html


def test_each_says_its_figures():
    holds(masks(1), ["conv0/kernel", "3 × 3 × 4 × 5", "180"])
    holds(estimate(1), ["LUT", "53,200", "70 cycles", "fits xc7z020"])
    holds(certificate(1), ["does not hold", "1 violations", "[0] = 1"])
    holds(found(1), ["fit on xc7z020:", "100 cycles", "Pareto front"])
    holds(report(1), ["accuracy hardware", "kernels locked", "estimate after", "LUT"])


def test_a_certificate_without_links_does_not_hold():
    assert repr(LockCertificate(())).startswith("Certificate: does not hold, nothing was compared")


def pixels(html):
    from matplotlib.image import imread

    (data,) = re.findall(r"base64,([^\"]+)", html)
    return imread(io.BytesIO(b64decode(data)), format="png")[..., :3]


def test_the_heat_map_has_a_pixel_for_each_kernel_with_its_share_of_free_weights():
    mask = np.ones((3, 3, 4, 5), bool)
    mask[:, :, 1, 2] = False
    mask[0, :, 3, 4] = False
    image = pixels(fp.MaskSet({"c/kernel": mask})._repr_html_())
    assert image.shape[:2] == (4, 5)
    locked, free = np.array([0xDD] * 3) / 255, np.array([0x00, 0x6B, 0x5E]) / 255
    for row, column in np.ndindex(4, 5):
        share = mask[:, :, row, column].mean()
        assert np.allclose(image[row, column], locked + share * (free - locked), atol=2 / 255)


@pytest.mark.parametrize("shape", [(), (7,), (300, 5), (2, 1000), (0, 3)])
def test_masks_of_any_shape_have_a_picture(shape):
    holds(fp.MaskSet({"w": np.zeros(shape, bool)}))


def test_large_masks_have_small_pictures_whose_mean_is_theirs():
    mask = np.random.default_rng(2).random((1024, 512)) < 0.3
    html = fp.MaskSet({"d/kernel": mask})._repr_html_()
    assert len(html) < 40_000
    image = pixels(html)
    assert image.shape[:2] == (128, 128)
    assert abs((0xDD / 255 - image[..., 0].mean()) / (0xDD / 255) - 0.3) < 0.01


@given(st.lists(st.tuples(st.text(max_size=90), st.text(max_size=90)), max_size=50), st.lists(st.text(), max_size=30))
def test_any_text_fits(rows, notes):
    summary = Summary("title", ("a", "b"), rows, notes)
    assert len(summary.text().splitlines()) <= LINES
    tags = Tags()
    tags.feed(summary.html())
    assert tags.seen <= _TAGS
    assert not tags.open
    if len(rows) > LINES:
        assert "more" in summary.text()
