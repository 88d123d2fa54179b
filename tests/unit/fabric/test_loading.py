"""Loading a board by openFPGALoader: what it is told, and what is said when it is missing or finds no board."""

import os

import msgspec
import pytest

from fpgaprune.errors import BoardError, ToolError
from fpgaprune.fabric import find_board, list_serial_boards, load_bitstream, loader_version

from ..programs import write_program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fake tools are scripts with a first line")
_FAKE = """#!/bin/sh
echo "$@" >> {told}
{ends}
"""


@pytest.fixture
def loader(fakes):
    """A function that puts an openFPGALoader on PATH; what it was told is in the file that it returns."""

    def made(ends="echo done"):
        write_program(fakes / "bin" / "openFPGALoader", _FAKE.format(told=fakes / "told", ends=ends))
        return fakes / "told"

    return made


def last(told):
    return told.read_text().splitlines()[-1]


@pytest.mark.parametrize("name", list_serial_boards())
def test_every_board_is_loaded_by_the_packaged_loader(loader, tmp_path, name):
    told = loader()
    load_bitstream(find_board(name), tmp_path / "x.bit")
    assert last(told).endswith(f" {tmp_path / 'x.bit'}")
    load_bitstream(find_board(name), tmp_path / "x.bit", flash=True)
    assert last(told).split().count("-f") == 1


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        (
            "unable to open ftdi device: -3 (device not found)",
            BoardError,
            r"^Tang Nano 9K was not loaded: none is connected \(USB 0403:6010\); plug it in, and load again$",
        ),
        ("unable to open ftdi device: -4 (usb_open failed)", BoardError, "its USB chip may not be opened .* udev rule"),
        ("CRC error", BoardError, "was not loaded: CRC error; see cable and bitstream"),
        (
            "openFPGALoader: error while loading shared libraries: libftdi1.so.2: cannot open shared object file",
            ToolError,
            r"^openFPGALoader needs libftdi1\.so\.2 of the system; install it with: sudo apt install libftdi1-2",
        ),
    ],
)
def test_what_the_loader_says_becomes_one_line_with_what_to_do(loader, tmp_path, said, error, message):
    loader(f"echo '{said}'; exit 1")
    with pytest.raises(error, match=message):
        load_bitstream(find_board("tang-nano-9k"), tmp_path / "x.fs")


def test_a_missing_loader_is_named_with_the_command_that_installs_it(fakes, no_packages, tmp_path):
    with pytest.raises(ToolError, match=r"install it with: pip install 'fpgaprune\[boards\]'"):
        load_bitstream(find_board("tang-nano-9k"), tmp_path / "x.fs")


def test_a_board_of_another_loader_is_left_to_its_user(loader, tmp_path):
    told = loader()
    board = msgspec.structs.replace(find_board("tang-nano-9k"), load="dfu-util -D {file}")
    with pytest.raises(ToolError, match=r"is loaded by dfu-util, which fpgaprune does not run: dfu-util -D x\.fs"):
        load_bitstream(board, "x.fs")
    assert not told.exists()


def test_the_version_is_what_the_program_prints(loader):
    loader("echo openFPGALoader v1.1.1")
    assert loader_version() == "openFPGALoader v1.1.1"
