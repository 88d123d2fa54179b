"""Adders of constant matrices."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fpgaprune.errors import RtlError, ToolError, ToolTimeoutError
from fpgaprune.rtl import AdderGraph, adders, da4ml_solver, share, solve

matrices = st.tuples(st.integers(1, 7), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-300, 300))
)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(matrices, st.booleans())
def test_adders_multiply_by_their_matrix(matrix, search):
    assert (share(matrix, search).matrix() == matrix).all()


def test_sharing_saves_adders():
    rng = np.random.default_rng(0)
    matrix = rng.integers(-31, 32, (60, 10))
    plain, shared = share(matrix, search=False), share(matrix)
    # da4ml 0.5.2 finds 669 for a matrix of this size and kind.
    assert len(shared.sums) < 0.63 * len(plain.sums)
    assert len(shared.sums) < 680


def test_a_sparse_matrix_is_shared_as_well():
    rng = np.random.default_rng(0)
    assert len(share(rng.integers(-31, 32, (144, 16)) * (rng.random((144, 16)) < 0.1)).sums) < 370


def levels(graph):
    """The most adders behind one another."""
    depth = [0] * graph.inputs
    for item in graph.sums:
        depth.append(1 + max(depth[item.a], depth[item.b]))
    return max(depth)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(matrices)
def test_sharing_adds_no_level(matrix):
    assert levels(share(matrix)) <= levels(share(matrix, search=False))


def test_what_is_shifted_is_taken_off_what_is_not():
    """So that the lowest bits of a difference are wires; only an output's last difference is turned, to be positive."""
    graph = share(np.random.default_rng(3).integers(-31, 32, (12, 4)))
    last = {leaving.node - graph.inputs for leaving in graph.exits}
    differences = [item for place, item in enumerate(graph.sums) if item.subtract and place not in last]
    assert len(differences) > 10
    assert all(item.p == 0 for item in differences)
    assert not any(leaving.negate for leaving in graph.exits)


def test_a_zero_takes_part_in_nothing():
    rng = np.random.default_rng(1)
    matrix = rng.integers(-31, 32, (12, 5))
    matrix[3:6] = 0
    used = {place for item in share(matrix).sums for place in (item.a, item.b)}
    assert not used & {3, 4, 5}
    assert share(np.zeros((4, 3), np.int64)).sums == ()


def test_a_large_matrix_is_searched_in_blocks(monkeypatch):
    matrix = np.random.default_rng(2).integers(-127, 128, (160, 3))
    whole = share(matrix)
    monkeypatch.setattr(adders, "MOST_PAIRS", 5_000)
    blocks = share(matrix)
    assert (blocks.matrix() == matrix).all()
    assert len(whole.sums) < len(blocks.sums)
    assert levels(blocks) <= levels(share(matrix, search=False))


def test_pairs_are_found_across_a_large_matrix():
    """A search in blocks of 128 digits for each output took 2,573 adders."""
    assert len(share(np.random.default_rng(0).integers(-31, 32, (100, 24))).sums) < 2_500


def test_an_answer_of_da4ml_is_read_as_adders():
    # y0 = 6 a - b and y1 = -(a + b / 2) * 2: a shift of inputs, one to the right, and signs between the two matrices.
    first = {
        "ops": [[0, -1, -1, 0], [1, -1, -1, 0], [0, 1, 0, -1]],
        "inp_shifts": [0, 0],
        "out_idxs": [0, 1, 2],
        "out_shifts": [1, 0, 1],
        "out_negs": [False, True, True],
    }
    second = {
        "ops": [[0, -1, -1, 0], [1, -1, -1, 0], [2, -1, -1, 0], [0, 0, 0, 1], [3, 1, 0, 0]],
        "inp_shifts": [0, 0, 0],
        "out_idxs": [4, 2, -1],
        "out_shifts": [0, 0, 0],
        "out_negs": [False, False, False],
    }
    graph = da4ml_solver._graph([first, second], 2)
    assert graph.matrix().tolist() == [[6, -2, 0], [-1, -1, 0]]


def test_solved_adders_are_kept_and_checked_when_read(tmp_path, monkeypatch):
    matrix, solver = np.array([[3, 5], [7, -9]]), solve.Solver(cache=tmp_path)
    first = solve.solve(matrix, 0, 15, solver)
    (kept,) = tmp_path.iterdir()
    with monkeypatch.context() as patched:
        patched.setattr(solve, "share", lambda *args, **kwargs: pytest.fail("solved again"))
        assert solve.solve(matrix, 0, 15, solver) == first
    # A file that holds something else is not believed.
    kept.write_text(json.dumps({**share(matrix + 1).to_json(), "note": ""}))
    assert solve.solve(matrix, 0, 15, solver) == first
    kept.write_text("{")
    assert solve.solve(matrix, 0, 15, solver) == first


def test_a_solver_that_gives_another_matrix_is_refused(monkeypatch):
    monkeypatch.setattr(solve, "share", lambda matrix, search=True: AdderGraph(2, (), share(matrix * 0).exits))
    with pytest.raises(RtlError, match="solver 'shared' gave adders of another matrix"):
        solve.solve(np.array([[3, 5], [7, -13]]), 0, 15, solve.Solver())


def test_da4ml_that_is_missing_is_named_with_its_installation(monkeypatch):
    def missing(name):
        raise da4ml_solver.importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(da4ml_solver.importlib.metadata, "version", missing)
    with pytest.raises(ToolError, match=r"da4ml was not found: pip install 'fpgaprune\[rtl\]'"):
        solve.solve(np.array([[3]]), 0, 1, solve.Solver(adders="da4ml"))


def test_da4ml_that_takes_too_long_is_replaced_and_said_each_time(monkeypatch, tmp_path):
    def slow(*args):
        raise ToolTimeoutError("stopped")

    monkeypatch.setattr(da4ml_solver, "version", lambda: "0.5")
    monkeypatch.setattr(da4ml_solver, "solve", slow)
    solver = solve.Solver(adders="da4ml", seconds=1, cache=tmp_path)
    first = solve.solve(np.array([[3, 5]]), 0, 1, solver)
    assert (first.graph.matrix() == [[3, 5]]).all()
    assert first.note == "da4ml did not end within 1 s: shared adders stand in, exact as well"
    # The second time they come from the cache, and the note with them.
    monkeypatch.setattr(da4ml_solver, "solve", lambda *args: pytest.fail("solved again"))
    assert solve.solve(np.array([[3, 5]]), 0, 1, solver) == first


def test_da4ml_that_fails_is_not_replaced(monkeypatch):
    def fails(*args):
        raise ToolError("python ran longer than 1 s, says its last line")

    monkeypatch.setattr(da4ml_solver, "version", lambda: "0.5")
    monkeypatch.setattr(da4ml_solver, "solve", fails)
    with pytest.raises(ToolError, match="says its last line"):
        solve.solve(np.array([[3, 5]]), 0, 1, solve.Solver(adders="da4ml"))


@pytest.mark.slow
def test_da4ml_solves_the_same_matrix():
    pytest.importorskip("da4ml")
    matrix = np.random.default_rng(0).integers(-31, 32, (9, 4))
    solved = solve.solve(matrix, 0, 255, solve.Solver(adders="da4ml", seconds=1500))
    assert (solved.graph.matrix() == matrix).all()
