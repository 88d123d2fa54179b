"""What the report says of a loss, of layers that stay and go, and in which columns."""

import re

import numpy as np
import pytest

from fpgaprune.report import (
    ADVICE,
    Column,
    LayerReport,
    Metric,
    Table,
    give_answers,
    kernel_path,
    layer_reports,
    write_report,
)
from fpgaprune.report.page import _column_class
from fpgaprune.values import MaskSet

from .samples import run_report


def metric(lost, error, allowed):
    return Metric("accuracy", 0.9, 0.8, 99, "x", lost=lost, lost_error=error, max_loss=allowed)


@pytest.mark.parametrize(
    ("lost", "error", "allowed", "holds"),
    [
        (0.03, 0.01, 0.02, True),  # exactly one standard error above
        (0.04, 0.01, 0.02, False),
        (0.02, None, 0.02, True),
        (0.021, None, 0.02, False),
        (0.021, 0.001, 0.02, True),
        (None, 0.1, 0.02, None),
        (0.01, 0.1, None, None),
    ],
)
def test_a_loss_holds_up_to_one_standard_error_and_only_one_that_does_not_is_advised(lost, error, allowed, holds):
    measured = metric(lost, error, allowed)
    assert measured.holds is holds
    answer = next(a for a in give_answers(run_report(metric=measured)) if a.question == "What was lost?")
    assert (f"What may help, in flow.toml of this folder: {ADVICE}" in answer.lines) is (holds is False)


def test_a_column_of_dashes_is_not_shown_unless_it_names_the_rows():
    dashes = ("–", "–")
    columns = (Column("key", dashes), Column("none", dashes), Column("some", ("1", "–")))
    assert [column.heading for column in Table("t", columns).shown_columns().columns] == ["key", "some"]


def test_what_became_of_layers_that_stay_shrink_and_leave():
    before = {
        "a/kernel": np.ones((3, 3, 2, 4)),
        "a/bias": np.ones(4),
        "b/kernel": np.ones((4, 5)),
        "gone/kernel": np.ones((3, 2, 2)),
    }
    after = {"a/kernel": np.ones((3, 3, 2, 3)), "a/bias": np.ones(3), "b/kernel": np.ones((3, 5))}
    mask = np.ones((3, 3, 2, 4), bool)
    mask[..., 0, 1] = mask[..., 2] = False
    kept = {"a/kernel": [np.arange(n) for n in (3, 3, 2)] + [np.array([0, 1, 3])]}
    kept["b/kernel"] = [np.array([0, 1, 3]), np.arange(5)]
    a, b, gone = layer_reports(before, after, MaskSet({"a/kernel": mask}), kept)
    said = [
        (x.name, x.kind, x.channels_before, x.channels_after, x.parameters_before, x.parameters_after) for x in (a, b)
    ]
    assert said == [("a", "Conv2D", (2, 4), (2, 3), 76, 57), ("b", "Dense", (4, 5), (3, 5), 20, 15)]
    assert (a.kernels_kept, a.kernels_locked, a.removed_inputs, a.removed_outputs) == (5, 3, (), (2,))
    assert (b.kernels_kept, b.kernels_removed, b.mask, b.removed_inputs) == (15, 5, None, (2,))
    assert isinstance(gone, LayerReport)
    assert (gone.kind, gone.channels_after, gone.parameters_after) == ("Conv1D", None, 0)
    assert (gone.removed_inputs, gone.removed_outputs) == ((0, 1), (0, 1))


def test_a_layer_with_several_kernels_has_a_row_for_each_and_all_its_weights_are_counted_once():
    shapes = {"s/depthwise_kernel": (3, 2, 1), "s/pointwise_kernel": (1, 2, 4), "s/bias": (4,), "d/kernel": (4, 5)}
    shapes |= {"g/gru_cell/kernel": (5, 6), "g/gru_cell/recurrent_kernel": (2, 6), "g/gru_cell/bias": (2, 6)}
    arrays = {path: np.ones(shape) for path, shape in shapes.items()}
    found = layer_reports(arrays, arrays, MaskSet({}), {})
    rows = {"s/depthwise": 6, "s/pointwise": 12, "d": 20, "g/gru_cell": 30, "g/gru_cell/recurrent": 24}
    assert {one.name: one.parameters_before for one in found} == rows
    assert [kernel_path(one.name, arrays) for one in found] == [path for path in shapes if path.endswith("kernel")]


def test_the_page_has_the_links_of_the_certificate_or_says_that_nothing_was_checked(tmp_path):
    text = write_report(tmp_path / "a", run_report()).html.read_text()
    assert re.search(r"memory</span></th><td[^>]*>2</td><td[^>]*>300<", text)
    text = write_report(tmp_path / "b", run_report(certificate=[], checks=[])).html.read_text()
    assert "This run checked nothing." in text
    assert "Locked elements compared bit for bit" not in text


def test_a_column_that_starts_a_group_is_marked_and_text_is_to_the_left():
    one, two = ("1",), ("2",)
    table = Table(
        "t",
        (
            Column("layer", one, numeric=False),
            Column("before", one, group="LUT"),
            Column("after", two, group="LUT"),
            Column("before", two, group="FF"),
        ),
    )
    assert [_column_class(table, index) for index in range(4)] == ["text", "starts", "", "starts"]
