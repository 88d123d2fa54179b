"""Block RAM counts against figures of csynth reports (uw-acme/HLS4ML_VS_MANUAL and its siblings, Vivado HLS 2019)."""

import pytest

from fpgaprune.estimate import fifo_blocks, fifo_blocks_placed, rom_blocks, table_blocks


@pytest.mark.parametrize(
    ("width", "depth", "blocks"),
    [
        (200 * 16, 30, 89),  # Dense 120 x 50 at reuse 30
        (1024 * 18, 32, 512),  # Dense 128 x 256 at reuse 32
        (64 * 16, 20, 29),
        (800 * 20, 128, 445),
        (32 * 20, 3200, 125),  # reported 124
    ],
)
def test_weight_memories(width, depth, blocks):
    assert rom_blocks(width, depth) == blocks


@pytest.mark.parametrize(
    ("width", "depth", "blocks"),
    [(8, 2116, 2), (16, 2116, 4), (16, 99, 1), (16, 900, 1), (24, 64, 2), (16, 23, 0), (8, 16, 0), (8, 81, 1)],
)
def test_fifos_of_vivado_hls(width, depth, blocks):
    assert fifo_blocks(width, depth) == blocks


def test_logic_synthesis_packs_short_wide_fifos():
    assert fifo_blocks(24, 64) == 2
    assert fifo_blocks_placed(24, 64) == 1
    assert fifo_blocks_placed(8, 81) == 0


def test_tables():
    assert table_blocks(1024, 18) == 1
    assert table_blocks(2048, 18) == 2
    assert table_blocks(32, 18) == 0
