"""`ask` against a board that is played on a pseudo-terminal."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpgaprune.errors import BoardError, DataError, TargetError, ToolError
from fpgaprune.fabric import (
    Identity,
    ask,
    beat_bytes,
    board_top,
    digest_of_verilog,
    find_board,
    identity_of,
    pack_beats,
    unpack_beats,
)
from fpgaprune.fabric.identity import SIZE
from fpgaprune.rtl import RtlPort
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType

from .played_board import played_board

WEIGHTS = np.array([3, -1])


def relu(raw):
    """What the project of `tiny.py` computes."""
    return np.maximum(raw @ WEIGHTS[:, None], 0)


@pytest.fixture
def serial_ports(monkeypatch):
    """The list of ports that pyserial finds; each has a name, a USB chip and a place."""
    list_ports = pytest.importorskip("serial.tools.list_ports", reason="pyserial is not here: pip install pyserial")
    ports = []
    monkeypatch.setattr(list_ports, "comports", lambda: ports)
    return ports


class Port:
    def __init__(self, device, vid=None, pid=None, location=None):
        self.device, self.vid, self.pid, self.location = device, vid, pid, location


def test_a_board_answers_every_sample_and_its_speed_is_measured(tiny, serial_ports):
    x = np.random.default_rng(1).integers(-128, 128, (50, 2))
    steps = []
    with played_board(identity_of(tiny), relu) as port:
        found = ask(port, x, project=tiny, on_step=lambda *step: steps.append(step))
    np.testing.assert_array_equal(found.raw, relu(x))
    np.testing.assert_array_equal(found.output, relu(x))
    assert found.samples_per_second == 50 / found.seconds
    assert found.digest == digest_of_verilog(tiny)
    assert steps[-1] == (50, 50, "samples")


def test_without_a_project_the_board_tells_the_form_of_its_samples(tiny, serial_ports):
    with played_board(identity_of(tiny), relu) as port:
        found = ask(port, [[[100], [1]], [[-128], [5]]])
    assert found.output.tolist() == [[299], [0]]


@pytest.mark.parametrize("already", [b"a", b"?"], ids=["a byte", "a question"])
def test_a_sample_that_another_sender_left_unfinished_does_no_harm(tiny, serial_ports, already):
    with played_board(identity_of(tiny), relu, already=already) as port:
        assert ask(port, [[7, -10]], project=tiny, timeout_s=0.3).output.tolist() == [[31]]


@pytest.mark.parametrize("early", [b"1", b"results", bytes(range(100))])
def test_results_that_a_question_is_enough_for_come_before_the_answer(tiny, serial_ports, early):
    """A GRU that gives every step its result gives one for the question, which is a step."""
    with played_board(identity_of(tiny), relu, early=early) as port:
        assert ask(port, [[7, -10]], project=tiny, timeout_s=0.3).output.tolist() == [[31]]


def test_the_bitstream_of_another_design_is_refused_in_one_line(tiny, serial_ports):
    other = replace(identity_of(tiny), digest="0123456789abcdef")
    with (
        played_board(other, relu) as port,
        pytest.raises(
            BoardError, match=rf"holds another design \(0123456789abcdef, wanted {digest_of_verilog(tiny)}\)"
        ),
    ):
        ask(port, [[1, 2]], project=tiny)


def test_the_digest_is_of_every_file(tiny):
    before = digest_of_verilog(tiny)
    path = tiny.path / tiny.files[0]
    path.write_text(path.read_text().replace("a <<< 1", "a <<< 2"))
    assert digest_of_verilog(tiny) != before


def test_a_board_with_something_else_in_it_is_named(tiny, serial_ports):
    with (
        played_board(None, relu) as port,
        pytest.raises(BoardError, match=r"does not say which design it holds \(nothing came\); load a bitstream"),
    ):
        ask(port, [[1, 2]], timeout_s=0.1)


def test_a_result_that_does_not_come_is_counted(tiny, serial_ports):
    with (
        played_board(identity_of(tiny), relu, lost=1) as port,
        pytest.raises(BoardError, match=r"sample 2 of 3: 1 of 2 bytes came back from /dev/.* within 0.2 s; see"),
    ):
        ask(port, [[1, 2], [3, 4], [5, 6]], timeout_s=0.2)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((3, 3)), r"samples for s_axis have shape \(3,\); wanted \(2,\)"),
        (np.zeros((0, 2)), "there are no samples for s_axis"),
        ([["a", "b"]], "samples"),
    ],
)
def test_samples_that_do_not_fit_are_refused(tiny, serial_ports, x, message):
    with played_board(identity_of(tiny), relu) as port, pytest.raises(DataError, match=message):
        ask(port, x)


def test_an_absent_port_is_named_with_those_that_are_here(serial_ports):
    serial_ports.append(Port("/dev/ttyUSB3"))
    with pytest.raises(BoardError, match=r"port /dev/ttyUSB9 cannot be opened .*; ports here: /dev/ttyUSB3"):
        ask("/dev/ttyUSB9", [[1, 2]])


def test_a_board_is_found_by_its_serial_chip(tiny, serial_ports):
    with played_board(identity_of(tiny), relu) as port:
        serial_ports += [Port("/dev/ttyS0"), Port("/dev/ttyUSB0", 1, 2), Port(port, 0x0403, 0x6015)]
        assert ask("ulx3s", [[100, 1]]).output.tolist() == [[299]]


@pytest.mark.parametrize(
    ("board", "ports", "message"),
    [
        ("ulx3s", [], r"no ULX3S is connected \(USB 0403:6015\); plug it in, or name a port; no port is here"),
        (
            "ulx3s",
            [Port("/dev/a", 0x0403, 0x6015), Port("/dev/b", 0x0403, 0x6015)],
            "the ULX3S: /dev/a, /dev/b;",
        ),
        (
            "arty",
            [Port("/dev/a")],
            "'arty' is neither a port nor a board; wanted a .*; ports here: /dev/a",
        ),
        ("gone.toml", [], "board 'gone.toml' is unknown; wanted a TOML file or one of"),
    ],
)
def test_a_board_that_is_not_here_is_named_with_the_ports_that_are(serial_ports, board, ports, message):
    serial_ports += ports
    with pytest.raises(BoardError, match=message):
        ask(board, [[1, 2]])


def test_without_pyserial_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(ToolError, match=r"pip install 'fpgaprune\[boards\]'"):
        ask("/dev/ttyUSB0", [[1, 2]])


TYPES = st.builds(
    FixedType,
    st.integers(1, 64),
    st.integers(-512, 512),
    st.booleans(),
    st.sampled_from(ROUNDING_MODES),
    st.sampled_from(OVERFLOW_MODES),
)


@given(TYPES, TYPES, st.integers(1, 100_000), st.integers(1, 65_535), st.binary(min_size=8, max_size=8))
def test_an_identity_survives_the_line(kind, other, beats, lanes, digest):
    source = RtlPort("", "s_axis", (beats * lanes,), beats, lanes, kind)
    sink = RtlPort("", "m_axis", (3,), 1, 3, other)
    identity = Identity(digest.hex(), source, sink)
    assert len(identity.to_bytes()) == SIZE
    assert Identity.from_bytes(b"left over" + identity.to_bytes()) == identity


@given(st.integers(1, 64), st.booleans(), st.integers(1, 5), st.integers(1, 4), st.data())
def test_beats_come_back_as_they_went(width, signed, lanes, beats, data):
    port = RtlPort("", "s_axis", (beats, lanes), beats, lanes, FixedType(width, width, signed))
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, min((1 << width) - 1, 2**63 - 1))
    values = data.draw(st.lists(st.integers(low, high), min_size=beats * lanes, max_size=beats * lanes))
    raw = np.array(values, np.int64).reshape(1, beats, lanes)
    size = beat_bytes(port)
    np.testing.assert_array_equal(unpack_beats(port, pack_beats(port, raw, size), size), raw)


@pytest.mark.parametrize(("at", "value"), [(-1, 9), (-2, 9), (-6, 0)], ids=["overflow", "rounding", "width"])
def test_a_damaged_answer_is_refused(tiny, at, value):
    answer = bytearray(identity_of(tiny).to_bytes())
    answer[at] = value
    with pytest.raises(BoardError, match=r"the board's answer is damaged \(.*\); see cable and baud rate"):
        Identity.from_bytes(bytes(answer))


def test_several_inputs_do_not_fit_a_serial_line(tiny):
    with pytest.raises(TargetError, match="tiny has 2 inputs and 1 outputs; a serial line carries one of each"):
        board_top(replace(tiny, inputs=tiny.inputs * 2), find_board("ulx3s"), "")
