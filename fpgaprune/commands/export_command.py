"""`fpgaprune export`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from fpgaprune.commands.board_commands import print_bitstream
from fpgaprune.commands.common_options import SERIAL_BOARDS, AsJson, Quiet, one_of
from fpgaprune.commands.next_step import print_next
from fpgaprune.commands.printed_tables import print_counts
from fpgaprune.commands.terminal import print_json, print_line
from fpgaprune.commands.watcher import Watcher


def export(
    run_dir: Annotated[Path, typer.Argument(help="A run folder.")],
    receiver: Annotated[
        str,
        typer.Option(
            "--for",
            help=f"{one_of(SERIAL_BOARDS)}: bitstream and client. pynq-z2 or another board or order number of AMD or "
            "Intel, vivado or quartus for the run's own part: our Verilog with scripts. vitis or hls4ml: the hls4ml "
            "project.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The folder to make; RUN-for-RECEIVER beside the run if left out.")
    ] = None,
    interval: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="CYCLES", help="Cycles that a sample may take in our Verilog: the more, the smaller it is."
        ),
    ] = None,
    deadline_minutes: Annotated[
        float,
        typer.Option(
            help="Most minutes of processor time for synthesis, place and route; while there is a smaller layout, it "
            "keeps two fifths."
        ),
    ] = 5.0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Put everything that a board, or a machine with a vendor's tool, needs of a run into one new folder.

    Its README is one page in the order of the commands. Its check.py, run first, needs nothing of fpgaprune. The folder
    is written whole or not at all. A network that would nearly fill a board gets a slower and smaller layout. The
    option --interval sets the cycles of a sample instead, and a run that was measured with an interval keeps it
    if the tools find a place for it.
    If place and route of a layout does not end in time, the next smaller one is tried.
    """
    from fpgaprune.flow import hand_over, require_kind

    require_kind(run_dir, "run")
    with Watcher(quiet=quiet or as_json) as watcher:
        made = hand_over(run_dir, receiver, out, interval=interval, deadline_minutes=deadline_minutes, progress=watcher)
    bitstream = None if made.bitstream is None else {**made.bitstream.to_json(), "path": made.bitstream.path.name}
    if as_json:
        print_json({"folder": str(made.path), "bitstream": bitstream, "layout": made.layout, "speed": made.speed})
    elif not quiet:
        print_line(f"folder      {made.path}: begin with its README.md")
        if bitstream is not None:
            print_bitstream(made.path, bitstream)
            print_line(f"speed       {made.speed}")
        if made.counts is not None:
            print_counts(made.counts)
        if bitstream is not None:
            print_next("load", made.path)
        else:
            print_line(f"next        cd {shlex.quote(str(made.path))} && python check.py", whole=True)
