"""A board on a pseudo-terminal, played byte by byte: it answers questions and computes with a function."""

import os
import pty
import select
import threading
import tty
from contextlib import contextmanager

from fpgaprune.fabric import beat_bytes, pack_beats, unpack_beats
from fpgaprune.fabric.identity import QUESTION


@contextmanager
def played_board(identity, compute, *, pause_s=0.03, deaf=False, already=b"", lost=None, early=b""):
    """The path of a port behind which a board with `identity` computes `compute` (raw integers to raw integers).

    Args:
        identity: what it says of itself; None if it is configured with something else.
        compute: raw integers (1, ...) of a sample to those of its result.
        pause_s: a silence within a sample after which the sample is given up.
        deaf: it never answers anything.
        already: bytes of a sample that another sender left unfinished.
        lost: number of the result that the line loses half of.
        early: results that the first beat of a sample is enough for; a question is one.
    """
    board, terminal = pty.openpty()
    tty.setraw(terminal)
    ended = threading.Event()

    def play():
        held, results = already, 0
        while not ended.is_set():
            if not select.select([board], [], [], pause_s)[0]:
                if held == QUESTION and identity is not None and not deaf:
                    os.write(board, early + identity.to_bytes())
                held = b""
                continue
            held += os.read(board, 4096)
            if identity is None or deaf:
                continue
            size = beat_bytes(identity.source) * identity.source.beats
            while len(held) >= size:
                sample, held = held[:size], held[size:]
                raw = compute(unpack_beats(identity.source, sample, beat_bytes(identity.source)))
                answer = pack_beats(identity.sink, raw, beat_bytes(identity.sink))
                os.write(board, answer[: len(answer) // 2] if results == lost else answer)
                results += 1

    thread = threading.Thread(target=play)
    thread.start()
    try:
        yield os.ttyname(terminal)
    finally:
        ended.set()
        thread.join()
        os.close(board)
        os.close(terminal)
