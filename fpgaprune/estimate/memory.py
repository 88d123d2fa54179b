"""The block RAMs that a memory or a FIFO takes, from the shapes in which an 18 Kb block can be used.

Source: AMD, *7 Series FPGAs Memory Resources* (UG473), "Block RAM Data Width and Depth"; the same shapes hold for
UltraScale (UG573) and Versal.
"""

from __future__ import annotations

import math

# Depth and width of one 18 Kb block.
_SHAPES = ((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18))
# A FIFO of up to so many bits stays in shift registers (so did every FIFO in the calibration rows, after csynth).
FIFO_REGISTER_BITS = 512
# Vitis HLS: `config_storage fifo -auto_srl_max_bits`, default 1024 (UG1399).
VITIS_FIFO_REGISTER_BITS = 1024


def rom_blocks(width_bits: int, depth: int) -> int:
    """Count 18 Kb blocks of a read-only memory: slices 2048 or 1024 deep, the rest in the widest shape that fits."""
    full, rest = divmod(depth, 2048)
    blocks = full * width_bits / 9
    if rest >= 512:
        tall, rest = divmod(rest, 1024)
        blocks += tall * width_bits / 18
        if rest >= 512:
            blocks += width_bits / 18
            rest = 0
    if rest:
        blocks += width_bits / 36
    return math.ceil(blocks)


def fifo_blocks(width_bits: int, depth: int, register_bits: int = FIFO_REGISTER_BITS) -> int:
    """Count the 18 Kb blocks that high-level synthesis reports for one FIFO; 0 if it stays in shift registers."""
    if width_bits * depth <= register_bits:
        return 0
    rounded = 1 << max(depth - 1, 1).bit_length()
    return min(math.ceil(rounded / deep) * math.ceil(width_bits / wide) for deep, wide in _SHAPES)


def fifo_blocks_placed(width_bits: int, depth: int) -> int:
    """Count the 18 Kb blocks that logic synthesis leaves of one FIFO: a block holds up to 512 entries of 36 bits."""
    if width_bits * depth <= 1024:
        return 0
    if depth <= 512:
        return math.ceil(width_bits / 36)
    return fifo_blocks(width_bits, depth)


def table_blocks(entries: int, entry_bits: int) -> int:
    """Count the 18 Kb blocks of one look-up table of so many `entries`."""
    if entries * entry_bits <= 1024:
        return 0
    return min(math.ceil(entries / deep) * math.ceil(entry_bits / wide) for deep, wide in (*_SHAPES, (512, 36)))
