"""The network on a PYNQ board: `Network("network.bit").predict(x)`. It needs pynq and NumPy, and nothing of fpgaprune.

Beside this file stand handover.json, which says how values become bits, and the bitstream with its .hwh.
"""

import json
import os

import numpy as np

MAGIC, VERSION = 0x31727066, 1
_HERE = os.path.dirname(os.path.abspath(__file__))


class Network:
    """A network behind a DMA.

    Attributes:
        digest: the digest of the design, as its registers say.
    """

    def __init__(self, bitstream, about=os.path.join(_HERE, "handover.json"), overlay=None, allocate=None):
        """The bitstream is loaded, and its design is the one of `about`.

        Args:
            bitstream: the .bit file, whose .hwh stands beside it.
            about: what handover.json says, or its path.
            overlay: a loaded pynq.Overlay with `dma` and `network`; made from `bitstream` unless given.
            allocate: as pynq.allocate.
        """
        if not isinstance(about, dict):
            with open(about) as file:
                about = json.load(file)
        if overlay is None or allocate is None:
            import pynq

            overlay = pynq.Overlay(str(bitstream)) if overlay is None else overlay
            allocate = allocate or pynq.allocate
        self._allocate, self._dma, self._core = allocate, overlay.dma, overlay.network
        self._word = about["axi"]["word_bits"] // 8
        self._into, self._out = about["axi"]["in"], about["axi"]["out"]
        found = self._core.read(0x00), self._core.read(0x04), self._core.read(0x28)
        if found != (MAGIC, VERSION, 8 * self._word):
            raise RuntimeError("this is not the core of this folder: its registers hold %s" % (found,))
        self.digest = "%08x%08x" % (self._core.read(0x0C), self._core.read(0x08))
        if self.digest != about["digest"]:
            raise RuntimeError("the bitstream holds design %s; wanted %s" % (self.digest, about["digest"]))

    def predict(self, x):
        """Real outputs (N, ...) for the real samples `x` (N, ...)."""
        words = pack(quantised(x, self._into), self._into, self._word)
        samples = len(words) // words_of(self._into, self._word)
        back = samples * words_of(self._out, self._word) * self._word
        source = self._allocate(shape=(words.nbytes,), dtype=np.uint8)
        sink = self._allocate(shape=(back,), dtype=np.uint8)
        try:
            source[:] = words.reshape(-1)
            source.flush()
            self._dma.recvchannel.transfer(sink)
            self._dma.sendchannel.transfer(source)
            self._dma.sendchannel.wait()
            self._dma.recvchannel.wait()
            sink.invalidate()
            raw = unpack(np.array(sink), self._out, self._word)
        finally:
            source.freebuffer()
            sink.freebuffer()
        return np.ldexp(raw.astype(np.float64), self._out["integer"] - self._out["width"])

    def load(self, beats):
        """The samples after this call meet new weights: `beats` (N,) from `weights_stream` of `fpgaprune.rtl`."""
        beats = np.asarray(beats, np.int64).reshape(-1)
        if not len(beats) or not self._core.read(0x30):
            raise RuntimeError("there is nothing to load, or the design in this bitstream takes no loads of weights")
        for number, beat in enumerate(beats):
            self._core.write(0x30 if number == len(beats) - 1 else 0x2C, int(beat) & 0xFFFFFFFF)
            # The first beat waits until every sample has left, and no other one waits.
            while number == 0 and self._core.read(0x2C):
                pass

    def counters(self):
        """Samples taken, results sent, clocks with a sample in flight, TLASTs out of place, since the last reset."""
        read = self._core.read
        return {
            "samples": read(0x14),
            "results": read(0x18),
            "clocks": read(0x1C) + (read(0x20) << 32),
            "misplaced": read(0x24),
        }

    def reset(self):
        """Streams, counters and the design are as after power-up; a DMA that waits must be reset too."""
        self._core.write(0x10, 1)


def words_of(port, word):
    """Words of `word` bytes that a sample takes."""
    slot = port["slot_bits"] // 8
    return port["beats"] * slot // word if slot > word else -(-port["beats"] // (word // slot))


def quantised(x, port):
    """Real samples (N, ...) as raw integers (N, beats, lanes), by rounding and overflow of the port's type."""
    size = port["beats"] * port["lanes"]
    values = np.asarray(x, np.float32).astype(np.float64)
    if values.ndim < 1 or not len(values) or values[0].size != size:
        raise ValueError("samples have shape %s; wanted (N, %s)" % (values.shape, ", ".join(map(str, port["shape"]))))
    scaled = np.ldexp(values.reshape(-1, port["beats"], port["lanes"]), port["width"] - port["integer"])
    if not np.all((scaled >= -(2.0**63)) & (scaled < 2.0**63)):
        raise ValueError("samples hold NaN, infinity or values beyond any fixed-point number")
    whole = np.trunc(scaled)
    part, odd = scaled - whole, np.fmod(whole, 2.0) != 0
    more, most = np.abs(part) > 0.5, np.abs(part) >= 0.5
    away = np.where(scaled < 0, -1.0, 1.0)
    step = {
        "TRN": -1.0 * (part < 0),
        "TRN_ZERO": 0.0 * part,
        "RND": np.where(scaled < 0, -1.0 * more, 1.0 * most),
        "RND_ZERO": more * away,
        "RND_INF": most * away,
        "RND_MIN_INF": np.where(scaled < 0, -1.0 * most, 1.0 * more),
        "RND_CONV": np.where(odd, most, more) * away,
    }[port["rounding"]]
    raw = (whole + step).astype(np.int64)
    high = (1 << (port["width"] - port["signed"])) - 1
    low = (-high if port["overflow"] == "SAT_SYM" else -high - 1) if port["signed"] else 0
    if port["overflow"] == "SAT_ZERO":
        return np.where((raw < low) | (raw > high), 0, raw)
    if port["overflow"] != "WRAP":
        return np.clip(raw, low, high)
    if port["width"] == 64:
        return raw
    raw = raw & ((1 << port["width"]) - 1)
    return np.where(raw > high, raw - (1 << port["width"]), raw)


def pack(raw, port, word):
    """Raw integers (N, beats, lanes) as the bytes (words, word) that a DMA sends."""
    width, slot = port["width"], port["slot_bits"]
    bits = (raw.reshape(-1, port["lanes"], 1).view(np.uint64) >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
    beats = np.zeros((bits.shape[0], slot), np.uint8)
    beats[:, : port["lanes"] * width] = bits.reshape(len(bits), -1)
    data = np.packbits(beats, axis=1, bitorder="little").reshape(-1, port["beats"] * slot // 8)
    whole = np.zeros((len(data), words_of(port, word) * word), np.uint8)
    whole[:, : data.shape[1]] = data
    return whole.reshape(-1, word)


def unpack(data, port, word):
    """The raw integers (N, ...) in the bytes that a DMA received."""
    width, slot = port["width"], port["slot_bits"] // 8
    rows = data.reshape(-1, words_of(port, word) * word)[:, : port["beats"] * slot].reshape(-1, slot)
    bits = np.unpackbits(rows, axis=1, bitorder="little")[:, : port["lanes"] * width].reshape(-1, width)
    raw = (bits.astype(np.uint64) << np.arange(width, dtype=np.uint64)).sum(axis=1, dtype=np.uint64).view(np.int64)
    if port["signed"] and width < 64:
        raw = (raw << (64 - width)) >> (64 - width)
    return raw.reshape(-1, *port["shape"])
