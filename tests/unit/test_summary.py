"""Results show themselves in a notebook and in one screen of a terminal, whatever their names are."""

import io
import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpgaprune as fp
from fpgaprune.design import Dense, Input, LayerSpec
from fpgaprune.fit import Fit, Knobs
from fpgaprune.measure import (
    ChosenLayout,
    Equivalence,
    Estimate,
    Figure,
    LaidLayer,
    LayerEstimate,
    LinkCheck,
    LockCertificate,
    Resources,
    VerilogPrice,
    WeightCheck,
)
from fpgaprune.remove import LayerChannels, RemovalPlan
from fpgaprune.rtl import RtlLayer, RtlPort, VerilogProject
from fpgaprune.values import LINES, FixedType, Summary
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


def design(count, name="conv{}"):
    """Dense layers, each with one weight that is zero."""
    kind = FixedType(8, 4, True)
    types = dict.fromkeys(("result", "accum", "weight", "bias"), kind)
    layers = [LayerSpec("in", (), (2,), {"result": kind}, operation=Input())]
    for number in range(count):
        weights = {"weight": np.array([[0, 3], [2, 1]]), "bias": np.array([0, 0])}
        source = layers[-1].name
        layers.append(LayerSpec(name.format(number), (source,), (2,), types, weights, operation=Dense()))
    return fp.Design("net", tuple(layers), (layers[-1].name,))


def plan(count, name="conv{}"):
    channels = tuple(
        LayerChannels(name.format(n), "Conv2D", ("dead", "read"), (0.0, None), ("", "out")) for n in range(count)
    )
    return RemovalPlan("net", "", {}, {}, {}, {}, {}, (), {}, channels, {name.format(9): "Own"}, (900, 700))


def project(count, name="conv{}"):
    port = RtlPort(name.format(0), "s_axis", (2,), 1, 2, FixedType(8, 4, True))
    layers = tuple(RtlLayer(name.format(n), "conv", (), "2 -> 2", {}) for n in range(count))
    return VerilogProject(Path("rtl"), "net", "net", 5.0, (), layers, (port,), ())


def chosen(count, name="conv{}"):
    rows = tuple(LaidLayer(name.format(n), "scheduled", 3, False, 90 + n) for n in range(count))
    used = Resources(lut=Figure(500, 400, 600), ff=Figure(7, 7, 7), dsp=Figure(0, 0, 0), bram18=Figure(0, 0, 0))
    price = VerilogPrice(name.format(0), "xc7", used, (), 123, 45)
    return ChosenLayout("xc7z020", 0.8, 45, 45, rows, {"lut": 0.5}, price, None, None)


def price(count, name="conv{}"):
    return chosen(count, name).price


def equivalence(count, name="net{}"):
    names = (name.format(0), "net")
    return Equivalence(*names, count, "float64", 2e-9, 1e-9, 3.0, 2.5, 1e-6, 0, 0, (np.ones((count, 9, 9)),))


MAKERS = [masks, estimate, certificate, found, report, design, plan, project, chosen, price, equivalence]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("count", [0, 1, 60])
def test_each_result_fits_a_screen(make, count):
    text, html = holds(make(count))
    assert len(html) < 400_000
    assert text.splitlines()[0].split(":")[0].split()[0] in {"Certificate", type(make(count)).__name__}


@pytest.mark.parametrize("make", MAKERS)
def test_names_are_text_and_never_elements(make):
    _, html = holds(make(2, name=EVIL + "{}"))
    assert "&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt; ?[31m" in html


def test_each_says_its_figures():
    holds(masks(1), ["conv0/kernel", "3 × 3 × 4 × 5", "180"])
    holds(estimate(1), ["LUT", "53,200", "70 cycles", "fits xc7z020"])
    holds(certificate(1), ["does not hold", "1 violations", "[0] = 1"])
    holds(found(1), ["fit on xc7z020:", "100 cycles", "Pareto front"])
    holds(report(1), ["accuracy hardware", "kernels locked", "estimate after", "LUT"])
    holds(design(2), ["net, 3 layers", "conv1", "Dense"])
    assert repr(design(2)).splitlines()[-1].split() == ["conv1", "Dense", "2", "fixed<8,4>", "4", "1"]
    holds(plan(2), ["2 of 4 channels of net leave", "900 multiplications for a sample become 700", "conv9"])
    holds(project(2), ["top module net and 2 layers in rtl", "s_axis (conv0)"])
    holds(chosen(2), ["xc7z020: LUT 50%", "scheduled", "conv1 is the slowest with 91 cycles and 3 multipliers"])
    holds(price(1), ["conv0 as our Verilog on xc7", "400", "500", "600", "a sample every 45 cycles"])


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
