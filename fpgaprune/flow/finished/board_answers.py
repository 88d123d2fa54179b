"""`ask_board`: a network on a board answers the samples of a file, and its bits are compared with the emulation's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import DataError, RunError
from fpgaprune.fabric import Answers, ask, digest_of_verilog
from fpgaprune.files import read_npz, write_npz
from fpgaprune.flow.run import RunDirectory, known_verilog
from fpgaprune.values import Array

# The names under which a file may hold samples, and their labels, the first that is there.
_NAMES = (("x", "y"), ("x_test", "y_test"))


@dataclass(frozen=True)
class BoardAnswers:
    """What a board answered the samples of a file.

    Attributes:
        answers: its answers.
        classes: (N,) the largest output of each sample; None if a sample has one output.
        right: share of the classes that are the file's labels, 0..1; None without labels.
        unlike_emulation: output values with other bits than the emulation's; None without a run.
    """

    answers: Answers
    classes: NDArray[np.int64] | None
    right: float | None
    unlike_emulation: int | None

    def to_json(self) -> dict[str, object]:
        """Return the figures and the classes as JSON data."""
        return {
            "samples": len(self.answers.raw),
            "samples_per_second": round(self.answers.samples_per_second, 1),
            "digest": self.answers.digest,
            "classes": None if self.classes is None else self.classes.tolist(),
            "right": self.right,
            "outputs_unlike_emulation": self.unlike_emulation,
        }


def ask_board(
    board_or_port: str,
    source: Path,
    *,
    run: Path | None = None,
    out: Path | None = None,
    baud: int | None = None,
    timeout_s: float = 2.0,
) -> BoardAnswers:
    """Ask the network on a board for its outputs for samples `x` or `x_test` of the file `source`, kept in `out`.

    With a run, the board must hold a bitstream of that run's design, and every bit is compared with the emulation.

    Raises:
        DataError: the file holds no samples, or they do not fit the design.
        RunError: there is no such run, or nothing was made of it for a board.
        ToolError, BoardError: as for `ask`.
    """
    x, y = _samples(source)
    project = design = digest = None
    if run is not None:
        found = RunDirectory.existing(run)
        written = known_verilog(found)
        if not written:
            raise RunError(
                f"{run} has no Verilog, so no bitstream is of it; make one: fpgaprune export {run} --for BOARD"
            )
        project, design = written[0], Design.load(found.file("design.json"))
        made = (found.read_json("measure.json") or {}).get("bitstream") or {}
        # The layouts of one design differ in their digests, and in no bit of their outputs.
        digest = [made.get("digest") or digest_of_verilog(project), *map(digest_of_verilog, written[1:])]
        baud = baud or made.get("baud")
    options: dict[str, Any] = {"project": project, "digest": digest, "baud": baud, "timeout_s": timeout_s}
    answers = ask(board_or_port, x, **options)
    flat = answers.output.reshape(len(answers.output), -1)
    classes = None if flat.shape[1] == 1 else flat.argmax(axis=1)
    known = classes is not None and y is not None and y.shape == classes.shape
    right = float(np.mean(classes == y)) if known else None
    unlike = None if design is None else int((emulate(design, x).reshape(flat.shape) != flat).sum())
    if out is not None:
        write_npz(out, {"output": answers.output})
    return BoardAnswers(answers, classes, right, unlike)


def _samples(source: Path) -> tuple[Array, Array | None]:
    try:
        arrays = read_npz(source)
    except FileNotFoundError:
        raise DataError(f"samples {source} do not exist; wanted an .npz with an array x or x_test") from None
    except ValueError as error:
        raise DataError(f"samples {source}: {error}; wanted an .npz with an array x or x_test") from None
    for x, y in _NAMES:
        if x in arrays:
            return arrays[x], arrays.get(y)
    raise DataError(f"samples {source} hold {', '.join(arrays) or 'nothing'}; wanted an array x or x_test")
