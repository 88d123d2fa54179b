"""`Vectors`: samples and the results that they must give, as words on a project's streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fpgaprune.design import Design
from fpgaprune.emulate import Exact, trace
from fpgaprune.errors import DataError
from fpgaprune.rtl import RtlPort, VerilogProject
from fpgaprune.values import Array, real_array


@dataclass(frozen=True, slots=True)
class Vectors:
    """Words on the streams of a project, in order, sample by sample.

    Attributes:
        samples: number of samples.
        words: prefix of a stream -> its words, each the bits of one beat as an unsigned integer.
    """

    samples: int
    words: Mapping[str, tuple[int, ...]]

    def hexadecimal(self, port: RtlPort) -> str:
        """Return the words of `port` as `$readmemh` reads them, one a line."""
        digits = -(-port.width_bits // 4)
        return "".join(f"{word:0{digits}x}\n" for word in self.words[port.prefix])


def golden_vectors(project: VerilogProject, design: Design, x: Array | Sequence[Array]) -> Vectors:
    """Make the words that go into `project` for the samples `x`, and those that must come out: the bits of `emulate`.

    Args:
        project: the Verilog of `design`.
        design: the network.
        x: samples (N, ...), or one such array for each input, in the order of the project's inputs.

    Raises:
        DataError: there is no sample, or the samples have another shape.
        DesignError, UnsupportedLayerError: as for `emulate`.
    """
    given = x if isinstance(x, list | tuple) else [x]
    arrays = [real_array(array, "samples").astype(np.float32, copy=False) for array in given]
    if len(arrays) != len(project.inputs) or not len(arrays[0]):
        raise DataError(
            f"{project.name} has {len(project.inputs)} inputs; got {len(arrays)} arrays of "
            f"{[len(array) for array in arrays]} samples: give one array of one sample or more for each"
        )
    results = trace(design, x, [port.layer for port in project.outputs])
    words = {}
    for port, array in zip(project.inputs, arrays, strict=True):
        words[port.prefix] = pack(port, Exact.from_real(array, port.type).raw)
    for port in project.outputs:
        words[port.prefix] = pack(port, port.type.to_raw(results[port.layer]))
    return Vectors(len(arrays[0]), words)


def pack(port: RtlPort, raw: Array) -> tuple[int, ...]:
    """Pack raw integers (N, ...) into beats of `port`, in two's complement; value 0 of a beat is in its lowest bits."""
    width, mask = port.type.width, (1 << port.type.width) - 1
    rows = np.asarray(raw).reshape(-1, port.lanes).tolist()
    return tuple(sum((int(value) & mask) << (width * lane) for lane, value in enumerate(row)) for row in rows)
