"""The tables that `fpgaprune compare` shows."""

from fpgaprune.flow.finished import compare_folders, comparison_tables
from fpgaprune.measure import STAGES
from fpgaprune.vendor import CompareRow, Comparison
from tests.unit.estimate.designs import cnn
from tests.unit.vendor.texts import csynth, timing


def row(design, layer, figure, ratio=None, **values):
    stated = dict.fromkeys(STAGES) | {name.replace("open", "synth(open)"): value for name, value in values.items()}
    return CompareRow(design, layer, None, None, figure, stated, {"csynth": ratio, "synth": None})


def test_designs_stand_beside_one_another_and_each_has_its_layers():
    rows = (
        row("a", None, "lut", analytic_csynth=90, csynth=100, ratio=0.9),
        row("a", None, "uram", analytic_csynth=0, csynth=0),
        row("a", "conv", "lut", analytic_csynth=80, open=70),
        row("a", "conv", "ff", analytic_csynth=8),
        row("b", None, "latency_max_cycles", analytic_csynth=5),
    )
    whole, layers = comparison_tables(Comparison(STAGES, rows, ()))
    assert whole == (
        "whole designs",
        ("design", "figure", "analytic\ncsynth", "csynth", "ratio\ncsynth"),
        [("a", "lut", 90, 100, "0.90"), ("b", "latency", 5, None, None)],
    )
    # A stage that says nothing of a table's rows has no column in it; a name stands once.
    assert layers == (
        "layers of a",
        ("layer", "figure", "analytic\ncsynth", "synth\n(open)"),
        [("conv", "lut", 80, 70), ("", "ff", 8, None)],
    )


def test_a_report_that_cannot_be_read_is_named_beside_what_the_others_say(tmp_path):
    folder = tmp_path / "run"
    (folder / "hls").mkdir(parents=True)
    cnn(seed=0).save(folder / "design.json")
    (folder / "hls" / "net_csynth.rpt").write_text(csynth(design="net", instances={}))
    assert compare_folders([folder]).notes == ()
    (folder / "hls" / "placed.rpt").write_text(timing(state="Fully Placed"))
    found = compare_folders([folder])
    (note,) = found.notes
    assert note.startswith(f"run: not read: {folder / 'hls' / 'placed.rpt'}: design state 'Fully Placed'")
    (lut,) = [one for one in found.rows if (one.layer, one.figure) == (None, "lut")]
    assert lut.values["csynth"] == 4567
