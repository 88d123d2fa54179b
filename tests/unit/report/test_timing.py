"""Where the time of a run went."""

from fpgaprune.report import UNCHANGED, StageTime, render_page, stage_times, stages_table

from .samples import run_report

RECORDS = {"select": {"seconds": 1.25, "results": {}}, "train": {"seconds": 61.0, "results": {}}}


def test_stages_stand_in_order_and_say_which_did_not_run_now():
    assert stage_times(("train", "select", "hls"), RECORDS, ["select"]) == [
        StageTime("train", 61.0, UNCHANGED),
        StageTime("select", 1.25),
    ]


def test_the_report_shows_seconds_for_each_stage_and_their_sum():
    report = run_report(stages=stage_times(("train", "select"), RECORDS, ["train", "select"]))
    rows = stages_table(report).rows
    assert [[cell.replace("\u00a0", " ") for cell in row[:2]] for row in rows] == [
        ["reading or training your network", "1 min 01 s"],
        ["choosing what to lock", "1.2 s"],
        ["all together", "1 min 02 s"],
    ]
    assert "Where the time went" in render_page(report)
    assert report.to_json()["stages"][0] == {"name": "train", "seconds": 61.0, "note": ""}
