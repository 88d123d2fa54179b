"""360 digits through the client and the simulated harness of every board: every bit is the emulation's."""

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.fabric import ask, find_board, list_serial_boards

from .digits_network import INTERVAL, digits_design, load_digits, train_digits
from .simulated_board import missing, simulated_board

pytestmark = [pytest.mark.slow, pytest.mark.skipif(missing() is not None, reason=str(missing()))]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """The Verilog of a network for digits, 360 samples, and what the emulation makes of them."""
    folder = tmp_path_factory.mktemp("digits")
    train_digits(folder / "digits.keras", epochs=3)
    design = digits_design(folder / "digits.keras")
    x = load_digits()[1][0]
    return fp.to_verilog(design, folder / "rtl", interval=INTERVAL), x, fp.emulate(design, x), folder


@pytest.mark.parametrize("name", list_serial_boards())
def test_every_bit_of_360_digits_is_the_emulations(network, name):
    project, x, wanted, folder = network
    board = find_board(name)
    with simulated_board(project, board, folder) as port:
        found = ask(port, x, project=project, baud=board.baud, timeout_s=60)
    np.testing.assert_array_equal(found.output.reshape(360, -1), wanted.reshape(360, -1))
