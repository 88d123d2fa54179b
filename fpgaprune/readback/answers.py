"""`check_bitstream`: what a board with a bitstream would answer, compared bit for bit with what it has to."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ReadbackError
from fpgaprune.fabric import cells_file, find_board
from fpgaprune.files import digest_file
from fpgaprune.measure import ALL_INPUTS, BitstreamLink, Claim, on_samples
from fpgaprune.readback.cells_file import SynthesisedCells, read_cells
from fpgaprune.readback.comparison import CellComparison
from fpgaprune.readback.families import find_decoder
from fpgaprune.readback.netlist import Netlist
from fpgaprune.readback.play import SilentDesignError, play
from fpgaprune.rtl import RtlPort

_BITS = "bitstream computes the emulator's bits"
_CELLS = (
    "its memories with their contents, constants, registers and the tables between them are those of the synthesised "
    "Verilog"
)
# Cycles without a byte after which a design counts as silent, unless said.
PATIENCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Results:
    """How results stand in the bytes of the serial line.

    Attributes:
        lanes: values of a beat; value 0 stands in the lowest bits.
        width: bits of a value.
        fraction: how many of them stand behind the binary point.
        beat_bytes: whole bytes of a beat, lowest first.
    """

    lanes: int
    width: int
    fraction: int
    beat_bytes: int

    @classmethod
    def of(cls, port: RtlPort) -> Results:
        """Return the results of a stream."""
        kind = port.type
        return cls(port.lanes, kind.width, kind.width - kind.integer, (port.width_bits + 7) // 8)

    def to_bytes(self, values: NDArray[np.float64]) -> bytes:
        """Return the bytes of real results (N, outputs), each exactly of the type."""
        mask = (1 << self.width) - 1
        rows = np.rint(np.ldexp(values, self.fraction)).astype(np.int64).reshape(-1, self.lanes)
        beats = (sum((int(value) & mask) << (self.width * lane) for lane, value in enumerate(row)) for row in rows)
        return b"".join(beat.to_bytes(self.beat_bytes, "little") for beat in beats)

    def named(self, byte: int, bits: int) -> str:
        """Return the outputs that the `bits` of a result's byte belong to, with the bits within each."""
        found: dict[int, list[int]] = {}
        for bit in range(8):
            at = 8 * (byte % self.beat_bytes) + bit
            if bits >> bit & 1 and at < self.lanes * self.width:
                output = byte // self.beat_bytes * self.lanes + at // self.width
                found.setdefault(output, []).append(at % self.width)
        return "; ".join(f"output {output}, bit {', '.join(map(str, at))}" for output, at in found.items())


@dataclass(frozen=True)
class BitstreamCheck:
    """Network read back from a bitstream, and the outputs that it computes.

    Attributes:
        samples: how many were sent.
        bits: bits of results that were compared.
        differ: how many of them are not as wanted.
        first: the first of those, as text; or why the board would not answer. None if nothing differs.
        decoded: kind of cell -> how many the results depend on; every one of them was decoded.
        seconds: time of decoding and simulation together.
        cells: what comparing each cell with that of synthesis gave; None if that was not done.
        left_out: why it was not done; None if it was.
        sha256: of the file; empty if it was no file.
        cells_sha256: of the file with the cells of synthesis.
    """

    samples: int
    bits: int
    differ: int
    first: str | None
    decoded: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    cells: CellComparison | None = None
    left_out: str | None = None
    sha256: str = ""
    cells_sha256: str = ""

    @property
    def holds(self) -> bool:
        """Whether the board would give every bit as wanted, and no cell is other than synthesis made it."""
        return self.first is None and (self.cells is None or self.cells.holds)

    def claims(self) -> tuple[Claim, ...]:
        """Return claims about the bitstream, each proven or tried."""
        differ = f"{self.differ:,} differ"
        found = differ if self.first is None else f"{differ}; {self.first}"
        tried = Claim(_BITS, on_samples(self.samples), found, self.first is None)
        if self.cells is None:
            return (tried,)
        compared = self.cells.first or f"{self.cells.cells:,} compared, 0 differ"
        return tried, Claim(_CELLS, ALL_INPUTS, compared, self.cells.holds)

    def sentence(self) -> str:
        """Return the claims about the bitstream, one line each."""
        return "\n".join(claim.sentence() for claim in self.claims())

    def read_back(self) -> str:
        """Return which cells were decoded, and how long it took, in one line."""
        cells = ", ".join(f"{count:,} {kind}" for kind, count in self.decoded.items())
        return f"decoded from the fuses: {cells}, in {self.seconds:.0f} s"

    def link(self, name: str, board: str) -> BitstreamLink:
        """Return the last link of a certificate: the file `name`, as it was read back."""
        return BitstreamLink(name, board, self.sha256, self.claims(), self.left_out, self.cells_sha256)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON data, with the sentence."""
        return {"holds": self.holds, "sentence": self.sentence(), **msgspec.to_builtins(self)}


def read_chip(path: str | os.PathLike[str], board: str | os.PathLike[str]) -> Any:
    """Return the FPGA of `board`, as the bitstream at `path` configures it.

    Raises:
        TargetError: the board is unknown.
        ReadbackError: fpgaprune reads no bitstreams of that family, or the file is none for that FPGA.
        ToolError: the package that knows the family's bits is missing.
    """
    fpga, decoder = find_decoder(board)
    return decoder.read(path, fpga)


def check_bitstream(
    path: str | os.PathLike[str],
    board: str | os.PathLike[str],
    sent: bytes,
    wanted: bytes,
    samples: int,
    results: Results,
    *,
    cells: str | os.PathLike[str] | None = None,
    patience: int = PATIENCE,
    timeout_s: float = 3600.0,
) -> BitstreamCheck:
    """Read back the bitstream at `path`, and compare what it answers with `wanted`.

    The netlist is made of the fuses that the result depends on; each sample goes to a freshly configured board of its
    own, over its serial line. Timing is not looked at. Then every cell is compared with that which synthesis made of
    the Verilog, so that what was proven of the Verilog's weights holds for the bitstream.

    Args:
        path: the bitstream.
        board: name in `hw/boards`, or a TOML file like those there.
        sent: the bytes of all samples, as `golden_bytes` gives them.
        wanted: the bytes that must come back.
        samples: how many.
        results: how results stand in their bytes.
        cells: the file that `make_bitstream` wrote beside the bitstream (`cells_file`); that beside `path` unless
            given.
        patience: cycles without a byte after which the design counts as silent.
        timeout_s: most seconds of one simulation.

    Raises:
        TargetError: the board is unknown.
        ReadbackError: the file is damaged or for another FPGA, or holds a cell that fpgaprune does not decode; the
            message names the cell.
        ToolError: the package that knows the family's bits, or a C++ compiler, is missing.
    """
    begun = time.monotonic()
    chip = read_chip(path, board)
    synthesised = Path(cells_file(Path(path)) if cells is None else cells)
    found = check_chip(
        chip,
        board,
        sent,
        wanted,
        samples,
        results,
        synthesised=read_cells(synthesised) if synthesised.is_file() else None,
        patience=patience,
        timeout_s=timeout_s,
        begun=begun,
    )
    found = replace(found, sha256=digest_file(Path(path)))
    if not synthesised.is_file():
        return replace(found, left_out=f"{synthesised.name} is not there, so no cell was compared with synthesis")
    return replace(found, cells_sha256=digest_file(synthesised))


def netlist_of(chip: Any, board: str | os.PathLike[str]) -> Netlist:
    """Return the cells that the board's serial output depends on, decoded from the fuses.

    Raises:
        TargetError: the board is unknown.
        ReadbackError: one of the cells is set in a way that fpgaprune does not decode; the message names it.
    """
    fpga, decoder = find_decoder(board)
    return decoder.netlist(chip, fpga)


def compare_cells(cells: SynthesisedCells, netlist: Netlist, board: str | os.PathLike[str]) -> CellComparison:
    """Compare each cell of a netlist, decoded from a bitstream for `board`, with that of synthesis.

    Raises:
        TargetError: the board is unknown.
        ReadbackError: a cell of synthesis is of a type that is not compared.
    """
    return find_decoder(board)[1].compare(cells, netlist)


def check_chip(
    chip: Any,
    board: str | os.PathLike[str],
    sent: bytes,
    wanted: bytes,
    samples: int,
    results: Results,
    *,
    synthesised: SynthesisedCells | None = None,
    patience: int = PATIENCE,
    timeout_s: float = 3600.0,
    begun: float | None = None,
) -> BitstreamCheck:
    """Compare what a configured FPGA answers with `wanted`; arguments and errors are those of `check_bitstream`.

    Its cells are compared with `synthesised`, if that is given: those of synthesis.
    """
    started = time.monotonic() if begun is None else begun
    place, netlist = find_board(board), netlist_of(chip, board)
    hears, clock = place.pins["serial_in"], place.pins["clk"]
    came, first = b"", None
    with tempfile.TemporaryDirectory() as folder:
        try:
            if netlist.clock != clock:
                raise SilentDesignError(f"the clock comes from pin {netlist.clock or 'nowhere'}; wanted {clock}")
            # A wire that is connected to nothing may give anything: the results must not depend on it.
            for opened in (0, 1) if netlist.reads_open else (0,):
                came = play(
                    netlist,
                    hears,
                    sent,
                    samples,
                    len(wanted) // samples,
                    cycles_per_bit=place.clock_mhz * float(netlist.factor) * 1e6 / place.baud,
                    patience=patience,
                    opened=opened,
                    folder=Path(folder),
                    timeout_s=timeout_s,
                )
                if came != wanted:
                    break
        except SilentDesignError as silence:
            first = str(silence)
    size = len(wanted) // samples
    values = results.lanes * results.width * (size // results.beat_bytes)
    differ = values * samples
    if first is None:
        wrong = np.frombuffer(came, np.uint8) ^ np.frombuffer(wanted, np.uint8)
        differ = int(np.unpackbits(wrong).sum())
        if differ:
            at = int(np.flatnonzero(wrong)[0])
            first = f"the first at sample {at // size}, {results.named(at % size, int(wrong[at]))}"
    same, left_out = None, None
    if synthesised is not None:
        try:
            same = compare_cells(synthesised, netlist, board)
        except ReadbackError as error:
            left_out = str(error)
    seconds = time.monotonic() - started
    return BitstreamCheck(samples, values * samples, differ, first, netlist.counts(), seconds, same, left_out)
