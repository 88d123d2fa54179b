"""The table of the field: fronts, equal metric, and what is in bold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks.field_table import (
    Row,
    beside_rivals,
    every_network,
    front,
    price_at,
    read_rows,
    store_rows,
    write_row,
)

ROW = Row("t", "hgq2", 0, "1e-5", 0.9, 100, 1_000, 10, 0, 0, 1, 9, 1.0)


def rows(*points: tuple[float, int], way: str = "hgq2", seed: int = 0) -> list[Row]:
    return [
        replace(ROW, way=way, seed=seed, point=f"{at}", metric=metric, lut=lut)
        for at, (metric, lut) in enumerate(points)
    ]


def test_a_network_that_another_beats_in_both_is_not_on_the_front() -> None:
    assert front(rows((0.9, 1_000), (0.95, 900), (0.97, 2_000), (0.97, 2_500))) == [(0.95, 900), (0.97, 2_000)]


def test_price_at_equal_metric_lies_on_the_line_between_two_points() -> None:
    assert price_at(0.92, rows((0.9, 1_000), (0.94, 2_000))) == pytest.approx(1_500)


def test_a_rival_below_its_smallest_network_takes_what_that_takes() -> None:
    assert price_at(0.5, rows((0.9, 1_000), (0.94, 2_000))) == 1_000


def test_a_seed_that_does_not_come_so_far_takes_more_than_any() -> None:
    seeds = rows((0.9, 1_000)) + rows((0.95, 1_200), seed=1) + rows((0.95, 1_400), seed=2)
    assert price_at(0.95, seeds) == 1_400


def test_dsp_memory_and_interval_count() -> None:
    assert replace(ROW, lut=100, dsp=2, bram18=1, interval_cycles=10).price == 10 * (100 + 2 * 242 + 190)


def test_a_loss_is_bold_and_a_win_is_not() -> None:
    rivals = rows((0.9, 1_000), (0.94, 2_000))
    assert "**1.20**" in beside_rivals(rivals + rows((0.9, 1_200), way="recipe"), {})
    table = beside_rivals(rivals + rows((0.9, 800), way="recipe"), {})
    assert "0.80" in table
    assert "**" not in table


def test_a_rival_that_is_never_so_good_has_no_ratio() -> None:
    assert "not reached" in beside_rivals(rows((0.9, 1_000)) + rows((0.95, 800), way="fit"), {})


def test_below_the_smallest_network_of_a_rival_a_ratio_is_a_lower_end() -> None:
    rivals = rows((0.9, 1_000), (0.94, 2_000))
    assert "≥ 0.40" in beside_rivals(rivals + rows((0.89, 400), way="recipe"), {})
    assert "≥" not in beside_rivals(rivals + rows((0.9, 400), way="recipe"), {})
    # A network that another beats in both is no point of the rival's front.
    assert "≥ 0.40" in beside_rivals(rivals + rows((0.8, 9_000)) + rows((0.89, 400), way="recipe"), {})


def test_a_row_of_a_folder_is_the_row(tmp_path: Path) -> None:
    write_row(tmp_path / "t" / "hgq2_0_1" / "row.json", ROW)
    assert read_rows(tmp_path, None) == [ROW]


def test_stored_rows_come_back_and_a_folder_replaces_them(tmp_path: Path) -> None:
    stored = tmp_path / "rows.csv"
    other = replace(ROW, seed=1)
    store_rows([ROW, other], stored)
    assert read_rows(None, stored) == [ROW, other]
    again = replace(ROW, lut=7)
    write_row(tmp_path / "t" / "hgq2_0_1" / "row.json", again)
    assert read_rows(tmp_path, stored) == [again, other]


def test_the_page_has_every_stored_row() -> None:
    page = (Path(__file__).parents[2] / "docs" / "measurements" / "field.md").read_text(encoding="utf-8")
    # Names of tasks stand between the rows, and only the benchmark knows them.
    lines = [line for line in every_network(read_rows(None), {}).splitlines() if not line.startswith("| **")]
    assert [line for line in lines if line not in page] == []
    assert len(lines) > 2
