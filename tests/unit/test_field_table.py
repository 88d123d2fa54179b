"""The table of the field: fronts, equal metric, and what is in bold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks.field_table import (
    PAGE,
    Row,
    beside_rivals,
    every_network,
    front,
    price_at,
    read_rows,
    store_rows,
    what_is_compared,
    with_tables,
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


def test_the_last_column_is_the_rival_that_takes_least() -> None:
    rivals = rows((0.9, 1_000)) + rows((0.9, 500), way="pquant") + rows((0.8, 10), way="tfmot")
    last = beside_rivals(rivals + rows((0.9, 400), way="recipe"), {}).splitlines()[-1]
    assert [cell.strip() for cell in last.split("|")][-5:-1] == ["0.40", "0.80", "not reached", "0.80"]


def test_a_table_takes_the_place_of_the_one_with_its_first_line() -> None:
    page = "# A\n\n| task | x |\n|---|---|\n| `a` | 1 |\n\n| task | y |\n|---|---|\n| `a` | 2 |\n\nEnd.\n"
    after = with_tables(page, ["| task | y |\n|---|---|\n| `a` | 3 |"])
    assert after == page.replace("| `a` | 2 |", "| `a` | 3 |")


@pytest.mark.parametrize("page", ["# A\n\nEnd.\n", "# A\n\n| t |\n|---|\n\n| t |\n|---|\n\nEnd.\n"])
def test_a_table_without_one_place_is_an_error(page: str) -> None:
    with pytest.raises(ValueError, match="wanted one"):
        with_tables(page, ["| t |\n|---|\n| 1 |"])


def test_the_tables_of_the_page_are_those_of_the_stored_rows() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = read_rows(None)
    # Words for tasks are known to the benchmark alone: every other cell is compared.
    for made, first in (
        (every_network(rows, {}), 0),
        (beside_rivals(rows, {}), 2),
        (what_is_compared(rows, {}, {}), 4),
    ):
        lines = made.splitlines()
        start = page.index(lines[0])
        found = page[start:].partition("\n\n")[0].splitlines()
        assert [_cells(line, first) for line in found] == [_cells(line, first) for line in lines]


def _cells(line: str, first: int) -> list[str]:
    return [] if line.startswith("| **") else line.split("|")[first:]
