"""`ask`: what a network on a board answers over its serial line."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import BoardError
from fpgaprune.fabric.beats import beat_bytes, pack_beats, raw_samples, unpack_beats
from fpgaprune.fabric.identity import QUESTION, SIZE, Identity, digest_of_verilog, is_identity
from fpgaprune.fabric.serial_line import SerialLine, open_line
from fpgaprune.rtl import VerilogProject
from fpgaprune.values import real_array

# How often the board is asked who it is. If a sender was cut off, the first question completes or ends its sample.
_TRIES = 3
# Bytes of results that may come before the answer to a question.
_MOST = 1 << 16


@dataclass(frozen=True)
class Answers:
    """What a board answered.

    Attributes:
        output: real values (N, ...), one row for each sample.
        raw: the same values as raw integers.
        seconds: from the first byte sent to the last byte received.
        digest: digest of the design on the board.
    """

    output: NDArray[np.float64]
    raw: NDArray[np.int64]
    seconds: float
    digest: str

    @property
    def samples_per_second(self) -> float:
        """Samples a second, the serial line and this machine included."""
        return len(self.raw) / self.seconds


def ask(
    board_or_port: str,
    x: object,
    *,
    project: VerilogProject | None = None,
    digest: str | Collection[str] | None = None,
    baud: int | None = None,
    timeout_s: float = 2.0,
    on_step: Callable[[int, int, str], None] | None = None,
) -> Answers:
    """Ask the network on a board for its outputs for `x`; it is first asked for the digest of its design.

    The board tells the form of its samples too, so that no project is needed to ask it. One sample is sent after the
    answer to the one before it.

    Args:
        board_or_port: `ulx3s` or another board of `hw/boards`, a board's TOML file, or a port such as `/dev/ttyUSB0`.
        x: samples (N, ...), real, as for `emulate`.
        project: the Verilog that the bitstream was made from: another design is refused, and shapes are its shapes.
        digest: the digest that the board must have, in place of that of `project`; or several, of which it has one.
        baud: bits a second; the board's own, or 1,000,000 at a port, unless given.
        timeout_s: most seconds of silence.
        on_step: is told the samples done, the samples in all, and nothing more.

    Raises:
        ToolError: pyserial is missing.
        BoardError: the board is absent, does not answer, or holds another design.
        DataError: the samples do not fit the design.
    """
    with closing(open_line(board_or_port, baud, timeout_s)) as line, _connected(board_or_port):
        identity = _identity(line, board_or_port)
        wanted = digest or (() if project is None else digest_of_verilog(project))
        wanted = (wanted,) if isinstance(wanted, str) else wanted
        if wanted and identity.digest not in wanted:
            raise BoardError(
                f"the board at {board_or_port} holds another design ({identity.digest}, wanted {' or '.join(wanted)}); "
                "load the bitstream of this one, or name the run that its bitstream was made from"
            )
        source, sink = identity.source, identity.sink
        if project is not None:
            source = replace(source, shape=project.inputs[0].shape)
            sink = replace(sink, shape=project.outputs[0].shape)
        else:
            x = real_array(x, "samples")
            x = x.reshape(len(x), math.prod(x.shape[1:]))
        sent = pack_beats(source, raw_samples(source, x), beat_bytes(source))
        size, back = beat_bytes(source) * source.beats, beat_bytes(sink) * sink.beats
        total = len(sent) // size
        received = bytearray()
        started = time.monotonic()
        for number in range(total):
            line.write(sent[number * size : (number + 1) * size])
            answer = line.read(back)
            if len(answer) < back:
                raise BoardError(
                    f"sample {number + 1} of {total}: {len(answer)} of {back} bytes came back from {board_or_port} "
                    f"within {timeout_s:g} s; see the cable, or allow more time"
                )
            received += answer
            if on_step is not None:
                on_step(number + 1, total, "samples")
        seconds = time.monotonic() - started
    raw = unpack_beats(sink, bytes(received), beat_bytes(sink))
    return Answers(sink.type.to_float(raw), raw, seconds, identity.digest)


@contextmanager
def _connected(place: str) -> Iterator[None]:
    """Turn an error of the port within the block into one line."""
    try:
        yield
    except OSError as error:
        text = str(error).split(":")[0]
        raise BoardError(f"the board at {place} was disconnected ({text}); plug it in, and ask again") from None


def _answer(line: SerialLine) -> bytes:
    """Read up to the end of an identity, or until nothing more comes.

    The question is a beat of a sample too: a network that needs no more for its first results sends them before.
    """
    answer = line.read(SIZE)
    while len(answer) < _MOST and not is_identity(answer[-SIZE:]) and (more := line.read(1)):
        answer += more
    return answer


def _identity(line: SerialLine, place: str) -> Identity:
    heard = 0
    for _ in range(_TRIES):
        line.reset_input_buffer()
        line.write(QUESTION)
        answer = _answer(line)
        heard += len(answer)
        if (found := Identity.from_bytes(answer)) is not None:
            return found
    came = f"{heard} bytes that are no answer came" if heard else "nothing came"
    raise BoardError(
        f"the board at {place} does not say which design it holds ({came}); load a bitstream of this fpgaprune "
        "into it, and see port and baud rate"
    )
