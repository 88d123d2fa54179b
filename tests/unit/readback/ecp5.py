"""The design of `mixed`, as two bitstreams for a Colorlight i5 that are kept beside this file."""

import lzma
from functools import cache

from fpgaprune.fabric import cells_file
from fpgaprune.readback import read_chip

from .mixed import KEPT

BOARD = "colorlight-i5"


def kept_bitstream(folder, name="mixed"):
    """A kept bitstream as a file in `folder`, with the cells of synthesis beside it."""
    path = folder / f"{name}.bit"
    path.write_bytes(lzma.decompress(KEPT.with_name(f"{name}.bit.xz").read_bytes()))
    cells_file(path).write_bytes(KEPT.with_name(f"{name}.bit.cells.xz").read_bytes())
    return path


@cache
def kept_chip(folder, name="mixed"):
    """The chip that a kept bitstream configures: whoever changes a bit changes it back."""
    return read_chip(kept_bitstream(folder, name), BOARD)
