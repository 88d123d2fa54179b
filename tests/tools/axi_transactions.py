"""Random transactions on an AXI core; cocotb runs this module inside the simulator. Its settings are in AXI_TEST."""

import importlib.util
import json
import os
import random

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.task import bridge, resume
from cocotb.triggers import ClockCycles, RisingEdge, Timer
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiStreamBus, AxiStreamSink, AxiStreamSource

ASKED = json.loads(os.environ["AXI_TEST"])
_SPEC = importlib.util.spec_from_file_location("network", ASKED["driver"])
DRIVER = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(DRIVER)
FORM, WORD = ASKED["form"], ASKED["form"]["word_bits"] // 8


def wanted(raw):
    """What the design of the test computes."""
    if ASKED["design"] == "tiny":
        return np.maximum(3 * raw[..., :1] - raw[..., 1:], 0)
    return ~raw  # 'echo' turns every bit


def pauses(share):
    while True:
        yield random.random() < share


class Bench:
    def __init__(self, dut):
        self.dut = dut
        low = {"reset_active_level": False}
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.aclk, dut.aresetn, **low)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.aclk, dut.aresetn, **low)
        self.lite = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.aclk, dut.aresetn, **low)

    async def start(self):
        cocotb.start_soon(Clock(self.dut.aclk, 10, "ns").start())
        await self.hard_reset()

    async def hard_reset(self):
        self.dut.aresetn.value = 0
        await ClockCycles(self.dut.aclk, random.randint(3, 9))
        self.forget()
        await Timer(1, "ns")
        self.dut.aresetn.value = 1
        await ClockCycles(self.dut.aclk, 2)

    async def soft_reset(self):
        """A write resets the core; the streams' ends are reset as a DMA is."""
        await self.lite.write_dword(0x10, 1)
        self.source.assert_reset(True)
        self.sink.assert_reset(True)
        while await self.read(0x10):
            await RisingEdge(self.dut.aclk)
        self.forget()
        self.source.assert_reset(False)
        self.sink.assert_reset(False)
        await ClockCycles(self.dut.aclk, 2)

    def forget(self):
        self.source.clear()
        self.sink.clear()

    async def read(self, address):
        return await self.lite.read_dword(address)

    async def write(self, address, value):
        await self.lite.write_dword(address, value)

    def stall(self, most):
        self.source.set_pause_generator(pauses(random.uniform(0, most)))
        self.sink.set_pause_generator(pauses(random.uniform(0, most)))

    def packet(self, samples):
        width = FORM["in"]["width"]
        shape = (samples, FORM["in"]["beats"], FORM["in"]["lanes"])
        raw = np.random.randint(-(1 << (width - 1)), 1 << (width - 1), shape, dtype=np.int64)
        return DRIVER.pack(raw, FORM["in"], WORD).tobytes(), DRIVER.pack(wanted(raw), FORM["out"], WORD).tobytes()


@cocotb.test()
async def random_packets(dut):
    """Every byte and every TLAST of packets of random lengths, under random gaps, back-pressure and bursts."""
    random.seed(ASKED["seed"])
    np.random.seed(ASKED["seed"])
    bench = Bench(dut)
    await bench.start()
    assert await bench.read(0x00) == DRIVER.MAGIC
    assert await bench.read(0x04) == DRIVER.VERSION
    assert f"{await bench.read(0x0C):08x}{await bench.read(0x08):08x}" == ASKED["digest"]
    assert await bench.read(0x28) == 8 * WORD
    done = 0
    while done < ASKED["samples"]:
        bench.stall(random.choice((0, 0.3, 0.9)))
        lengths = [random.randint(1, 9) for _ in range(12)]
        packets = [bench.packet(samples) for samples in lengths]
        for sent, _ in packets:
            await bench.source.send(sent)
        if random.random() < 0.3:
            assert await bench.read(random.choice((0x14, 0x18, 0x24, 0xF0))) >= 0  # while streams run
        for _, result in packets:
            frame = await bench.sink.recv()  # ends with TLAST: its length is the place of TLAST
            assert bytes(frame.tdata) == result
        done += sum(lengths)
    assert bench.sink.empty()
    assert await bench.read(0x14) == await bench.read(0x18) == done
    assert await bench.read(0x24) == 0
    assert await bench.read(0x1C) > done


@cocotb.test()
async def reset_at_any_time(dut):
    """After a reset amid packets, from outside or by a write, the next packets are whole and counters begin at zero."""
    random.seed(ASKED["seed"] + 1)
    np.random.seed(ASKED["seed"] + 1)
    bench = Bench(dut)
    await bench.start()
    for turn in range(ASKED["resets"]):
        bench.stall(0.5)
        for _ in range(3):
            await bench.source.send(bench.packet(random.randint(1, 5))[0])
        await ClockCycles(dut.aclk, random.randint(1, 40))
        await (bench.hard_reset() if turn % 2 else bench.soft_reset())
        assert await bench.read(0x14) == await bench.read(0x18) == await bench.read(0x24) == 0
        sent, result = bench.packet(random.randint(1, 4))
        await bench.source.send(sent)
        assert bytes((await bench.sink.recv()).tdata) == result


@cocotb.test()
async def a_tlast_within_a_sample_is_counted(dut):
    bench = Bench(dut)
    await bench.start()
    words = DRIVER.words_of(FORM["in"], WORD)
    if words == 1:
        return
    sent, _ = bench.packet(1)
    await bench.source.send(sent[:WORD])
    await bench.source.send(sent[WORD:])
    await bench.sink.recv()
    assert await bench.read(0x24) == 1


class Buffer(np.ndarray):
    """What pynq.allocate gives: the processor's cache, and the memory that a DMA sees."""

    def flush(self):
        self.memory = self.tobytes()

    def invalidate(self):
        self[:] = np.frombuffer(self.memory, np.uint8)

    def freebuffer(self):
        self.memory = None


def allocate(shape, dtype="u4", target=None):
    buffer = np.zeros(shape, dtype).view(Buffer)
    buffer.memory = None
    return buffer


class Channel:
    """A direction of PYNQ's DMA, 3 and 4 alike: one transfer at a time, and `wait` ends with it."""

    def __init__(self, begin, end):
        self.begin, self.end, self.buffer = begin, end, None

    def transfer(self, array, start=0, nbytes=0):
        assert self.buffer is None, "DMA channel not idle"
        self.buffer = array
        self.begin(array)

    def wait(self):
        assert self.buffer is not None, "DMA channel not started"
        self.end(self.buffer)
        self.buffer = None


class Overlay:
    """The core in the simulator as PYNQ shows it: `network` on AXI4-Lite, `dma` on both streams."""

    def __init__(self, bench):
        send, recv, self._read, self._write = map(resume, (bench.source.send, bench.sink.recv, bench.read, bench.write))
        self.network = self.dma = self

        def received(buffer):
            buffer.memory = bytes(recv().tdata)

        self.sendchannel = Channel(lambda buffer: send(buffer.memory), lambda _: None)
        self.recvchannel = Channel(lambda _: None, received)

    def read(self, offset=0):
        return self._read(offset)

    def write(self, offset, value):
        self._write(offset, value)


@cocotb.test()
async def the_driver_gives_real_outputs(dut):
    """Network.predict, as it runs on a board, on the core itself: every value of random samples."""
    np.random.seed(ASKED["seed"])
    bench = Bench(dut)
    await bench.start()
    about = {"digest": ASKED["digest"], "axi": FORM}
    port, out = FORM["in"], FORM["out"]

    def drive():
        network = DRIVER.Network("network.bit", about, Overlay(bench), allocate)
        for samples in (1, 7):
            shape = (samples, port["beats"], port["lanes"])
            raw = np.random.randint(-(1 << (port["width"] - 1)), 1 << (port["width"] - 1), shape, dtype=np.int64)
            if port["width"] > 24:  # a real sample passes through float32
                raw = raw >> (port["width"] - 24) << (port["width"] - 24)
            x = np.ldexp(raw.astype(np.float64), port["integer"] - port["width"]).reshape(samples, *port["shape"])
            real = np.ldexp(wanted(raw).astype(np.float64), out["integer"] - out["width"])
            np.testing.assert_array_equal(network.predict(x), real.reshape(samples, *out["shape"]))
        assert network.counters()["samples"] == 8
        network.reset()
        assert network.counters()["samples"] == 0

    await bridge(drive)()
