"""What is said of the time of a bitstream before its tools start."""

import csv

import pytest

from fpgaprune.fabric import bitstream_seconds, slowness
from fpgaprune.target import hardware_path

LUTS = 8640
ROWS = list(csv.DictReader(hardware_path("synth", "place_shares.csv").read_text().splitlines()))


@pytest.mark.parametrize("row", [row for row in ROWS if row["ended"] == "done"], ids=lambda row: row["network"])
def test_the_law_is_within_a_factor_of_one_and_a_half_of_each_run_that_ended(row):
    said = bitstream_seconds("gowin", float(row["lut"]) * LUTS, LUTS)
    assert 1 / 1.5 < said / float(row["cpu_seconds"]) < 1.5


def test_a_larger_device_takes_longer_and_a_family_without_runs_is_not_known():
    # Measured: 5,588 LUT on a Tang Nano 20K took 167 s.
    assert bitstream_seconds("gowin", 5588, 20736) == pytest.approx(167, rel=0.1)
    assert bitstream_seconds("ecp5", 1000, 24288) == pytest.approx(7, rel=0.1)
    assert bitstream_seconds("nexus", 1000, 24288) is None


def test_the_speed_of_this_machine_is_a_number_above_0():
    assert 0.05 < slowness() < 200
