"""An hls4ml accelerator on a Zynq board: `Accelerator("network.bit").predict(x)`. It needs pynq and NumPy.

Beside this file stand network.py, handover.json, which says what the accelerator's streams carry, and the bitstream
with its .hwh. hls4ml's accelerators have no registers, so a board cannot say which design it holds.
"""

import json
import os

import numpy as np
from network import quantised

_HERE = os.path.dirname(os.path.abspath(__file__))
_FLOATS = {"float": np.float32, "double": np.float64}


class Accelerator:
    """A network behind the DMA of hls4ml's block design."""

    def __init__(self, bitstream, about=os.path.join(_HERE, "handover.json"), overlay=None, allocate=None):
        """The bitstream is loaded.

        Args:
            bitstream: the .bit file, whose .hwh stands beside it.
            about: what handover.json says, or its path.
            overlay: a loaded pynq.Overlay with `hier_0.axi_dma_0`; made from `bitstream` unless given.
            allocate: as pynq.allocate.
        """
        if not isinstance(about, dict):
            with open(about) as file:
                about = json.load(file)
        if overlay is None or allocate is None:
            import pynq

            overlay = pynq.Overlay(str(bitstream)) if overlay is None else overlay
            allocate = allocate or pynq.allocate
        self._allocate, self._dma = allocate, overlay.hier_0.axi_dma_0
        self._into, self._out = about["accelerator"]["in"], about["accelerator"]["out"]

    def predict(self, x):
        """Real outputs (N, ...) for the real samples `x` (N, ...)."""
        sent = encoded(x, self._into)
        shape = (len(sent), int(np.prod(self._out["shape"])))
        source = self._allocate(shape=sent.shape, dtype=sent.dtype)
        sink = self._allocate(shape=shape, dtype=dtype_of(self._out))
        try:
            source[:] = sent
            source.flush()
            self._dma.recvchannel.transfer(sink)
            self._dma.sendchannel.transfer(source)
            self._dma.sendchannel.wait()
            self._dma.recvchannel.wait()
            sink.invalidate()
            back = np.array(sink)
        finally:
            source.freebuffer()
            sink.freebuffer()
        return decoded(back, self._out).reshape(-1, *self._out["shape"])


def dtype_of(port):
    """What NumPy calls a value of the stream."""
    if port["type"] in _FLOATS:
        return np.dtype(_FLOATS[port["type"]])
    return np.dtype("%sint%d" % ("" if port["signed"] else "u", port["width"]))


def encoded(x, port):
    """Real samples (N, ...) as the values (N, size) that the stream carries."""
    size = int(np.prod(port["shape"]))
    values = np.asarray(x)
    if values.ndim < 1 or not len(values) or values[0].size != size:
        raise ValueError("samples have shape %s; wanted (N, %s)" % (values.shape, ", ".join(map(str, port["shape"]))))
    if port["type"] not in _FLOATS:
        values = quantised(values, dict(port, beats=1, lanes=size))
    return values.reshape(len(values), size).astype(dtype_of(port))


def decoded(values, port):
    """The real values of what the stream carried."""
    real = values.astype(np.float64)
    return real if port["type"] in _FLOATS else np.ldexp(real, port["integer"] - port["width"])
