"""Figures as text."""

import pytest

from fpgaprune.report import (
    DASH,
    change_text,
    count_text,
    error_text,
    percent_text,
    range_text,
    rate_text,
    seconds_text,
    time_text,
)

NO_BREAK = "\u00a0"


@pytest.mark.parametrize(
    ("show", "argument", "text"),
    [
        (count_text, 1234567, "1,234,567"),
        (count_text, 0, "0"),
        (count_text, 0.2, "<1"),
        (percent_text, 0.5, "50.0 %"),
        (percent_text, 0.0, "0.0 %"),
        (percent_text, 0.00001, "<0.1 %"),
        (percent_text, 0.9999, "<100 %"),
        (percent_text, 1.0001, ">100 %"),
        (percent_text, 1.0, "100.0 %"),
        (percent_text, 50.8, "5,080 %"),
        (seconds_text, 1.25, "1.2 s"),
        (seconds_text, 65, "1 min 05 s"),
        (seconds_text, 3725, "1 h 02 min"),
        (time_text, 0.0125, "12.5 ns"),
        (time_text, 3.5, "3.50 µs"),
        (time_text, 0.9999, "1.00 µs"),
        (time_text, 12345, "12.3 ms"),
        (time_text, 2.5e6, "2.50 s"),
        (rate_text, 850, "850 /s"),
        (rate_text, 1.96e6, "1.96 M/s"),
        (rate_text, 3e9, "3.00 G/s"),
        (error_text, 0.0, "0"),
        (error_text, 3.21e-15, "3.2e-15"),
        (error_text, float("nan"), "not a number"),
    ],
)
def test_text_of_a_figure(show, argument, text):
    assert show(argument).replace(NO_BREAK, " ") == text


@pytest.mark.parametrize(
    "show",
    [
        count_text,
        percent_text,
        seconds_text,
        time_text,
        rate_text,
        error_text,
        lambda value: range_text(value, 3),
        lambda value: change_text(value, 3),
        lambda value: change_text(3, value),
    ],
)
def test_the_unknown_is_a_dash(show):
    assert show(None) == DASH


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (100, 36, "\u221264 %"),
        (100, 95.4, "\u22124.6 %"),
        (100, 250, "+150 %"),
        (10000, 1, "\u2212>99.9 %"),
        (10000, 9999, "\u2212<0.1 %"),
        (10, 0, "\u2212100.0 %"),
        (7, 7, "same"),
        (0, 0, "same"),
        (0, 5, DASH),
    ],
)
def test_change(before, after, text):
    assert change_text(before, after).replace(NO_BREAK, " ") == text
