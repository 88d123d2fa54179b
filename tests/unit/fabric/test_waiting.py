"""What is said of the time of a bitstream before its tools start."""

import csv
from pathlib import Path

import pytest

from fpgaprune.fabric import (
    bitstream_seconds,
    find_board_router,
    luts_within,
    read_back_seconds,
    simulation_seconds,
    slowness,
    synthesis_seconds,
    waiting,
)
from fpgaprune.files import hardware_path

GW1NR_9 = 8640
_BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MEASURED = list(csv.DictReader((_BENCHMARKS / "measure_time_rows.csv").read_text().splitlines()))
ROWS = list(csv.DictReader(hardware_path("synth", "place_shares.csv").read_text().splitlines()))


def taken_over_said(row):
    luts = float(row["luts"] or float(row["lut"]) * GW1NR_9)
    return float(row["cpu_seconds"]) / bitstream_seconds(find_board_router(row["board"])[1].family, luts)


def ended(machine):
    return [row for row in ROWS if row["ended"] == "done" and row["machine"] == machine]


@pytest.mark.parametrize("row", ended("free"), ids=lambda row: f"{row['board']} {row['network']}")
def test_the_law_is_within_a_factor_of_one_and_a_half_of_each_run_that_ended(row):
    assert 1 / 1.5 < taken_over_said(row) < 1.5


@pytest.mark.parametrize("board", sorted({row["board"] for row in ended("busy")}))
def test_beside_other_work_half_of_the_runs_take_no_longer_than_that_and_none_three_times_as_long(board):
    found = sorted(taken_over_said(row) for row in ended("busy") if row["board"] == board)
    assert 1 / 1.5 < found[len(found) // 2] < 1.5
    assert found[-1] < 3


@pytest.mark.parametrize(
    ("luts", "placements", "seconds"), [(1810, 1, 10), (2213, 1, 17), (2342, 1, 24), (2953, 1.8, 43)]
)
def test_an_export_for_an_icebreaker_takes_as_long_as_the_law_says(luts, placements, seconds):
    """The networks dense 2, conv1d 2, dense 1 and, placed twice for a faster clock, conv2d 5."""
    said = placements * bitstream_seconds("ice40up", luts) + read_back_seconds("ice40up", luts)
    assert 1 / 1.5 < said / seconds < 1.5


def test_what_is_not_read_back_takes_no_time():
    assert read_back_seconds("nexus", 1000) == 0
    # Two networks on a Tang Nano 20K, placed LUTs by the estimate, took 10.6 and 13.3 s.
    assert read_back_seconds("gowin", 4582) == pytest.approx(10.6, rel=0.25)
    assert read_back_seconds("gowin", 6591) == pytest.approx(13.3, rel=0.25)


def test_more_luts_take_longer_and_a_family_without_runs_is_not_known():
    for luts, seconds in ((2232, 47), (4572, 73), (5355, 100), (10_250, 183)):
        assert bitstream_seconds("ecp5", luts) == pytest.approx(seconds, rel=0.1)
        assert luts_within("ecp5", bitstream_seconds("ecp5", luts)) == pytest.approx(luts)
    assert bitstream_seconds("ice40", 1000) is luts_within("ice40", 60) is None
    assert luts_within("ecp5", 10) == 0


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row["seed"])
def test_what_measure_will_take_is_within_a_factor_of_one_and_a_half_of_each_row(row):
    lut, samples = int(row["lut"]), int(row["samples"])
    said = synthesis_seconds(row["family"], lut, int(row["modules"]))
    said += simulation_seconds(lut, int(row["interval"]), samples)
    # The rows were made while a processor did twice the work of the reference.
    took = 2 * (float(row["synthesis_s"]) + float(row["simulation_s"]))
    assert 1 / 1.5 < said / took < 1.5


def test_large_networks_stay_within_it_and_no_samples_take_no_time():
    # Processor seconds of the reference: networks of docs/measurements/verilog.md, their estimated LUTs and layers.
    assert 1 / 1.5 < synthesis_seconds("xc7", 14393, 9) / 153 < 1.5
    assert simulation_seconds(9000, 100, 0) == 0
    assert simulation_seconds(9000, 100, 360) < simulation_seconds(9000, 1000, 360)


def test_the_speed_of_this_machine_is_a_number_above_0():
    assert 0.05 < slowness() < 200


def test_a_machine_on_which_much_else_runs_takes_longer_by_its_share(monkeypatch, tmp_path):
    """The load of the last minute counts only as far as so much still runs."""
    monkeypatch.setattr(waiting, "RUNNING", tmp_path / "loadavg")
    monkeypatch.setattr(waiting, "reference_work", lambda: None)
    monkeypatch.setattr(waiting.time, "process_time", iter([0.0, 0.0165] * 15).__next__)
    monkeypatch.setattr(waiting.os, "cpu_count", lambda: 2)
    for load, now, wanted in ((0.0, "", 1.0), (1.0, "", 1.0), (5.0, "", 3.0), (5.0, "3/90", 1.5), (1.0, "9/90", 1.0)):
        (tmp_path / "loadavg").write_text(f"0.1 0.2 0.3 {now} 77\n" if now else "")
        monkeypatch.setattr(waiting.os, "getloadavg", lambda load=load: (load, 9.0, 9.0))
        assert slowness() == pytest.approx(wanted)
