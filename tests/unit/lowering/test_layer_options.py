"""Settings of single layers, and what a target may ask of a backend."""

import pytest

from fpgaprune.errors import DesignError, HlsError
from fpgaprune.lowering import LayerOptions, read_options
from fpgaprune.values import FixedType

NAMES = ["conv1", "conv2", "dense"]


def test_a_glob_fits_several_and_a_later_key_overrides():
    found = read_options(NAMES, {"conv*": {"weight_bits": 6, "reuse_factor": 2}, "conv2": {"weight": "fixed<5,1>"}})
    assert found == {
        "conv1": LayerOptions(weight_bits=6, reuse_factor=2, types={}),
        "conv2": LayerOptions(weight_bits=6, reuse_factor=2, types={"weight": FixedType(5, 1)}),
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"conv9": {}},
            "options for layer 'conv9' fit no layer; did you mean 'conv2'? The network has conv1, conv2, dense",
        ),
        ({"x*": {}}, "options for layer 'x*' fit no layer; the network has conv1, conv2, dense"),
        ({"conv1": {"wieght": "fixed<5,1>"}}, "layer 'conv1' has no option 'wieght'; wanted strategy, reuse_factor"),
        ({"conv1": {"strategy": "fast"}}, "layer 'conv1' has strategy 'fast'; wanted one of latency, resource"),
        ({"conv1": {"reuse_factor": 0}}, "layer 'conv1' has reuse_factor 0; wanted a whole number, 1 or more"),
        ({"conv1": {"weight_bits": True}}, "weight_bits True; wanted a whole number, 2 or more"),
    ],
)
def test_what_has_no_meaning_is_refused(options, message):
    with pytest.raises(HlsError) as caught:
        read_options(NAMES, options)
    assert message in str(caught.value)


def test_a_type_that_cannot_be_read_is_refused():
    with pytest.raises(DesignError, match=r"layer 'conv1', weight: .*'fixd<6,1>' cannot be read"):
        read_options(NAMES, {"conv1": {"weight": "fixd<6,1>"}})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ac_fixed<8,0,true,AC_RND,AC_SAT>", FixedType(8, 0, True, "RND", "SAT")),
        ("ac_fixed<8,2,false>", FixedType(8, 2, False)),
        ("ac_int<4,false>", FixedType(4, 4, False)),
        ("ac_int<4,0>", FixedType(4, 4, False)),
        ("ac_int<4,1>", FixedType(4, 4, True)),
        ("ac_fixed<8,2,0,AC_RND>", FixedType(8, 2, False, "RND")),
        ("hls::ap_fixpt<8,1,hls::AP_RND,hls::AP_SAT>", FixedType(8, 1, True, "RND", "SAT")),
        ("hls::ap_ufixpt<8,1>", FixedType(8, 1, False)),
        ("ap_ufixed<8,2,AP_RND,AP_SAT,0>", FixedType(8, 2, False, "RND", "SAT")),
    ],
)
def test_types_are_read_in_the_words_of_every_backend(text, kind):
    assert FixedType.parse(text) == kind


@pytest.mark.parametrize("text", ["int<8,RND>", "ap_int<8,1>", f"fixed<{'9' * 5000},2>", "x" * 100_000])
def test_what_a_type_cannot_say_is_refused_in_a_short_line(text):
    with pytest.raises(DesignError, match="cannot be read; wanted a form") as error:
        FixedType.parse(text)
    assert len(str(error.value)) < 200
