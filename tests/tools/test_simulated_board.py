"""`ask` against the Verilog of a bitstream, simulated bit by bit behind a pseudo-terminal."""

import os
import time
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from fpgaprune.emulate import emulate
from fpgaprune.errors import BoardError
from fpgaprune.estimate import verilog_price
from fpgaprune.fabric import ask, digest_of_verilog, find_board
from fpgaprune.layout import board_design
from fpgaprune.rtl import to_verilog

from ..unit.estimate.designs import mlp
from ..unit.fabric.tiny import tiny_project
from ..unit.rtl.networks import Net
from .simulated_board import missing, simulated_board

pytestmark = [pytest.mark.slow, pytest.mark.skipif(missing() is not None, reason=str(missing()))]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return tiny_project(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def port(project, tmp_path_factory):
    with simulated_board(project, find_board("ulx3s"), tmp_path_factory.mktemp("board")) as name:
        yield name


def test_the_client_gets_the_bits_of_the_verilog(project, port):
    x = np.random.default_rng(3).integers(-128, 128, (200, 2))
    # Question marks are samples like any others, and so are the bytes of a question within one.
    x[:3] = [[63, 63], [63, 0], [0, 63]]
    found = ask(port, x, project=project, timeout_s=20)
    np.testing.assert_array_equal(found.raw[:, 0], np.maximum(3 * x[:, 0] - x[:, 1], 0))
    assert found.digest == digest_of_verilog(project)
    assert found.samples_per_second > 0


def test_a_sample_that_was_cut_off_is_given_up(project, port):
    terminal = os.open(port, os.O_RDWR | os.O_NOCTTY)
    os.write(terminal, b"x")
    time.sleep(0.1)
    os.close(terminal)
    assert ask(port, [[100, 1]], project=project, timeout_s=5).output.tolist() == [[299]]


def test_another_design_is_refused_by_its_digest(project, port, tmp_path):
    other = tiny_project(tmp_path)
    path = other.path / other.files[0]
    path.write_text(path.read_text().replace("a <<< 1", "a <<< 2"))
    with pytest.raises(BoardError, match="holds another design"):
        ask(port, [[1, 2]], project=other, timeout_s=20)


@pytest.mark.parametrize("baud", [115_200, 3_000_000])
def test_another_clock_and_baud_rate(project, tmp_path, baud):
    board = msgspec.structs.replace(find_board("ulx3s"), clock_mhz=27.0, baud=baud)
    with simulated_board(project, board, tmp_path) as port:
        assert ask(port, [[7, -10], [100, 1]], baud=baud, timeout_s=20).output.tolist() == [[31], [299]]


def test_a_vector_that_comes_value_by_value_gives_the_networks_bits(tmp_path):
    design = replace(mlp(), layers=mlp().layers[:3], outputs=("relu",))
    project = to_verilog(board_design(design), tmp_path / "rtl")
    x = np.random.default_rng(5).uniform(-1, 1, (20, 16))
    with simulated_board(project, find_board("ulx3s"), tmp_path) as port:
        found = ask(port, x, project=project, timeout_s=60)
    np.testing.assert_array_equal(found.output, emulate(design, x).reshape(found.output.shape))


def test_no_beat_is_lost_by_a_network_that_is_slower_than_the_line(tmp_path):
    """A byte comes every 40 cycles, and each step has one; its first results come before the answer to a question."""
    net = Net(np.random.default_rng(1))
    design = net.design(net.recurrent(net.input(12, 1), "GRU", 6))
    assert verilog_price(design, "ecp5", interval=2400).interval_cycles > 2 * 12 * 40
    project = to_verilog(design, tmp_path / "rtl", interval=2400)
    board = msgspec.structs.replace(find_board("ulx3s"), clock_mhz=12.0, baud=3_000_000)
    x = np.random.default_rng(5).uniform(-1, 1, (4, 12, 1))
    with simulated_board(project, board, tmp_path) as port:
        found = ask(port, x, project=project, baud=3_000_000, timeout_s=5)
    np.testing.assert_array_equal(found.output, emulate(design, x).reshape(found.output.shape))
