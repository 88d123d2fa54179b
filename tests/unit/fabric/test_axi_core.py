"""The AXI core's text and form, and its driver: bits as the emulation has them, against a mock of PYNQ."""

import importlib.util
import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpgaprune.emulate import raw_of_real
from fpgaprune.errors import TargetError
from fpgaprune.fabric import WORDS, axi_core_of, axi_form, digest_of_verilog, slot_bits
from fpgaprune.files import hardware_path
from fpgaprune.rtl import RtlPort
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType

_SPEC = importlib.util.spec_from_file_location("network", hardware_path("handover", "network.py"))
driver = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(driver)


def form_of(port, word_bits):
    kind = asdict(port.type)
    return {
        "shape": list(port.shape),
        "beats": port.beats,
        "lanes": port.lanes,
        "slot_bits": slot_bits(port, word_bits),
        **{name: kind[name] for name in ("width", "integer", "signed", "rounding", "overflow")},
    }


@pytest.mark.parametrize(
    ("bits", "word", "slot"),
    [(3, 32, 8), (16, 32, 16), (17, 32, 32), (33, 32, 64), (65, 32, 96), (65, 128, 128), (24, 512, 32)],
)
def test_a_beat_takes_a_power_of_two_bytes_or_whole_words(bits, word, slot):
    lanes = RtlPort("", "s_axis", (bits,), 1, bits, FixedType(1, 1, signed=False))
    assert slot_bits(lanes, word) == slot


def test_the_core_has_the_designs_widths_and_digest(tiny):
    files = axi_core_of(tiny, 128)
    assert set(files) == {"fp_axis_unpack.v", "fp_axis_pack.v", "fp_axi_core.v", "tiny_axi.v"}
    assert f".WORD_BITS(128), .DIGEST(64'h{digest_of_verilog(tiny)})" in files["tiny_axi.v"]
    assert ".IN_BITS(16), .IN_SLOT(16), .IN_BEATS(1)" in files["tiny_axi.v"]
    assert ".OUT_BITS(15), .OUT_SLOT(16), .OUT_BEATS(1)" in files["tiny_axi.v"]
    assert "input  wire [127:0] s_axis_tdata" in files["tiny_axi.v"]


@pytest.mark.parametrize("word_bits", [0, 48, 1024])
def test_a_width_that_no_dma_has_is_refused(tiny, word_bits):
    with pytest.raises(TargetError, match=f"streams of {word_bits} bits: wanted 32, 64, 128, 256, 512"):
        axi_core_of(tiny, word_bits)


def test_several_inputs_are_refused(tiny):
    with pytest.raises(TargetError, match="tiny has 2 inputs and 1 outputs"):
        axi_core_of(replace(tiny, inputs=tiny.inputs * 2))


TYPES = st.builds(
    FixedType,
    st.integers(1, 40),
    st.integers(0, 30),
    st.booleans(),
    st.sampled_from(ROUNDING_MODES),
    st.sampled_from(OVERFLOW_MODES),
)


@given(TYPES, st.lists(st.floats(-(2.0**20), 2.0**20, width=32), min_size=4, max_size=4))
def test_the_driver_rounds_as_the_emulation(kind, values):
    port = RtlPort("", "s_axis", (2,), 2, 1, kind)
    x = np.array(values, np.float32).reshape(2, 2)
    wanted = raw_of_real(x.astype(np.float64), kind)
    np.testing.assert_array_equal(driver.quantised(x, form_of(port, 64)).reshape(2, 2), wanted)


@given(
    st.sampled_from(WORDS), st.integers(1, 64), st.booleans(), st.integers(1, 5), st.integers(1, 9), st.integers(0, 99)
)
def test_what_is_packed_comes_back(word_bits, width, signed, lanes, beats, seed):
    port = RtlPort("", "s_axis", (beats, lanes), beats, lanes, FixedType(width, width, signed))
    form, word = form_of(port, word_bits), word_bits // 8
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, min((1 << width) - 1, 2**63 - 1))
    raw = np.random.default_rng(seed).integers(low, high, (3, beats, lanes), np.int64, endpoint=True)
    words = driver.pack(raw, form, word)
    assert words.shape == (3 * driver.words_of(form, word), word)
    np.testing.assert_array_equal(driver.unpack(words.reshape(-1), form, word), raw)


class Buffer(np.ndarray):
    """What pynq.allocate gives, as far as the driver asks."""

    def flush(self):
        self.flushed = True

    def invalidate(self):
        pass

    def freebuffer(self):
        FREED.append(self)


FREED: list[Buffer] = []


def allocate(shape, dtype):
    return np.zeros(shape, dtype).view(Buffer)


class Channel:
    def __init__(self, board, way):
        self.board, self.way = board, way

    def transfer(self, buffer):
        self.board.buffers[self.way] = buffer

    def wait(self):
        if self.way == "send":
            assert self.board.buffers["send"].flushed, "the processor's cache was not flushed"
            self.board.run()


class Board:
    """An overlay whose core computes the design of `tiny.py` on the bytes of its buffers."""

    def __init__(self, form, digest):
        self.form, self.buffers, self.written = form["axi"], {}, []
        self.registers = {
            0: driver.MAGIC,
            4: 1,
            8: int(digest[8:], 16),
            12: int(digest[:8], 16),
            0x28: 64,
            0x14: 3,
            0x20: 1,
        }
        self.dma, self.network = self, self
        self.sendchannel, self.recvchannel = Channel(self, "send"), Channel(self, "receive")

    def read(self, address):
        return self.registers.get(address, 0)

    def write(self, address, value):
        self.written.append((address, value))

    def run(self):
        raw = driver.unpack(np.array(self.buffers["send"]), self.form["in"], 8)
        results = np.maximum(3 * raw[:, :1] - raw[:, 1:], 0).reshape(-1, 1, 1)
        self.buffers["receive"][:] = driver.pack(results, self.form["out"], 8).reshape(-1)


@pytest.fixture
def about(tiny):
    return json.loads(json.dumps({"digest": digest_of_verilog(tiny), "axi": axi_form(tiny, 64)}))


def test_the_driver_predicts_on_a_mock_of_pynq(tiny, about):
    board = Board(about, about["digest"])
    FREED.clear()
    network = driver.Network("network.bit", about, board, allocate)
    x = np.random.default_rng(5).integers(-128, 128, (50, 2))
    np.testing.assert_array_equal(network.predict(x)[:, 0], np.maximum(3 * x[:, 0] - x[:, 1], 0))
    assert len(FREED) == 2
    assert network.digest == digest_of_verilog(tiny)
    assert network.counters() == {"samples": 3, "results": 0, "clocks": 1 << 32, "misplaced": 0}
    network.reset()
    assert board.written == [(0x10, 1)]


def test_the_driver_loads_beat_by_beat(about):
    board = Board(about, about["digest"])
    board.registers[0x30] = 1
    waits = iter([1, 1, 0])
    board.read = lambda address: next(waits) if address == 0x2C else board.registers.get(address, 0)
    driver.Network("network.bit", about, board, allocate).load(np.array([3, -2, 5]))
    assert board.written == [(0x2C, 3), (0x2C, 0xFFFFFFFE), (0x30, 5)]
    assert next(waits, None) is None, "the first beat waits for the samples"


@pytest.mark.parametrize(("takes", "beats"), [(0, [1]), (1, [])])
def test_what_cannot_be_loaded_is_refused(about, takes, beats):
    board = Board(about, about["digest"])
    board.registers[0x30] = takes
    with pytest.raises(RuntimeError, match="there is nothing to load, or the design in this bitstream takes no loads"):
        driver.Network("network.bit", about, board, allocate).load(beats)
    assert board.written == []


def test_the_bitstream_of_another_design_is_refused(about):
    with pytest.raises(RuntimeError, match="the bitstream holds design 0123456789abcdef; wanted"):
        driver.Network("network.bit", about, Board(about, "0123456789abcdef"), allocate)


def test_another_core_is_refused(about):
    board = Board(about, about["digest"])
    board.registers[0x28] = 32
    with pytest.raises(RuntimeError, match="this is not the core of this folder"):
        driver.Network("network.bit", about, board, allocate)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[1, 2, 3]], r"samples have shape \(1, 3\); wanted \(N, 2\)"),
        ([[float("nan"), 0]], "samples hold NaN"),
        ([], "wanted"),
    ],
)
def test_samples_that_do_not_fit_are_refused(about, x, message):
    network = driver.Network("network.bit", about, Board(about, about["digest"]), allocate)
    with pytest.raises(ValueError, match=message):
        network.predict(x)
