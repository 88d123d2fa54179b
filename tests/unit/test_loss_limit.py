"""A largest loss has its unit; a number of the old units is refused with what it is now, and never misread."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpgaprune as fp
from fpgaprune.errors import ConfigError, HlsError
from fpgaprune.fit import Limits
from fpgaprune.flow import VerdictConfig, parse_config
from fpgaprune.values import loss_text, parse_loss


@pytest.mark.parametrize(
    ("given_text", "value"), [("0.5 %", 0.005), ("2%", 0.02), (" 1e-1 % ", 0.001), ("150 %", 1.5), ("0", 0.0), (0, 0.0)]
)
def test_a_text_in_per_cent_is_read(given_text, value):
    assert parse_loss(given_text) == value


@given(st.floats(1e-9, 1e3))
def test_the_text_of_a_loss_is_read_as_that_loss(fraction):
    assert parse_loss(loss_text(fraction)) == pytest.approx(fraction, rel=1e-9)


@pytest.mark.parametrize(
    ("number", "new"),
    [
        (0.02, '"0.02 %", or "2 %" if it is a fraction'),
        (1, '"1 %", or "100 %" if it is a fraction'),
        ("0.5", '"0.5 %", or "50 %" if it is a fraction'),
        (1.5, '"1.5 %"'),
    ],
)
def test_a_number_without_its_unit_is_refused_with_what_to_write(number, new):
    with pytest.raises(ValueError, match=f"^{number} has no unit: write {new}$"):
        parse_loss(number)


@pytest.mark.parametrize(
    "wrong", [-0.1, "nan", "-1 %", "inf %", "", "%", "1 % of it", "1e999 %", None, True, [], "½ %"]
)
def test_what_is_no_loss_is_refused(wrong):
    with pytest.raises(ValueError, match="is no loss; wanted a text in per cent"):
        parse_loss(wrong)


@pytest.mark.parametrize("section", ["verdict", "hls"])
def test_a_flow_file_refuses_a_fraction_and_keeps_a_text_through_a_manifest(section):
    with pytest.raises(
        ConfigError, match=rf'{section}\.max_loss: 0\.02 has no unit: write "0\.02 %", or "2 %" if it is a fraction'
    ):
        parse_config({section: {"max_loss": 0.02}}, "flow")
    config = parse_config({section: {"max_loss": "2%"}}, "flow")
    again = parse_config(config.model_dump(mode="json"), "manifest")
    assert again == config
    assert parse_config({}, "flow")[VerdictConfig].max_loss is None  # a limit that nobody named fails no run


def test_python_refuses_a_fraction_everywhere():
    with pytest.raises(ConfigError, match=r'max_loss: 0\.005 has no unit: .*, or "0\.5 %" if it is a fraction'):
        Limits(max_loss=0.005)
    with pytest.raises(HlsError, match=r'max_loss: 0\.02 has no unit: .*, or "2 %" if it is a fraction'):
        fp.AutoPrecision(max_loss=0.02)
    assert Limits(max_loss="2 %").max_loss_fraction == fp.AutoPrecision(max_loss="2 %").max_loss_fraction == 0.02
