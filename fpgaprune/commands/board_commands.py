"""`fpgaprune load` and `fpgaprune ask`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fpgaprune.commands.common_options import SERIAL_BOARDS, AsJson, Quiet, one_of
from fpgaprune.commands.next_step import print_next
from fpgaprune.commands.terminal import print_json, print_line, print_problem

# So many classes are printed.
_SHOWN = 20


def load(
    source: Annotated[
        Path,
        typer.Argument(metavar="RUN|FOLDER", help="A folder that 'fpgaprune export' made for a board, or its run."),
    ],
    flash: Annotated[bool, typer.Option("--flash", help="Into the flash: it stays when the board is off.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Load the bitstream of a run into its board, by openFPGALoader; the board is connected by USB.

    Without --flash the board forgets it when it is switched off.
    """
    from fpgaprune.flow import load_board

    done = load_board(source, flash=flash)
    if as_json:
        print_json({"board": done.board, "bitstream": str(done.bitstream), "flash": done.flash})
    elif not quiet:
        print_line(f"loaded      {done.bitstream} into {'the flash of ' if flash else ''}{done.board}", "green")
        print_next("ask", done.board, "DATA.npz", "--run", "RUN_DIR")


def ask(
    board: Annotated[
        str,
        typer.Argument(
            metavar="BOARD|PORT",
            help=f"{one_of((*SERIAL_BOARDS, 'the TOML file of a board'))}; or a port, as /dev/ttyUSB0.",
        ),
    ],
    samples: Annotated[Path, typer.Argument(help="An .npz with samples x or x_test, and perhaps labels y or y_test.")],
    run: Annotated[
        Path | None, typer.Option(help="The run that the bitstream was made from; every bit is compared.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the outputs to this .npz.")] = None,
    baud: Annotated[int | None, typer.Option(help="Bits a second; the board's own if left out.")] = None,
    timeout: Annotated[float, typer.Option(help="Most seconds of silence.")] = 2.0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Ask a network on a board over its serial line: classes, samples a second, and its bits against the emulation.

    The board is first asked for the digest of its design. With --run, the bitstream of another design is refused, and
    the exit status is 1 if a bit differs from the emulation.
    """
    from fpgaprune.flow import ask_board

    found = ask_board(board, samples, run=run, out=out, baud=baud, timeout_s=timeout)
    if as_json:
        print_json(found.to_json())
    elif not quiet:
        answers = found.answers
        print_line(f"design      {answers.digest}")
        print_line(f"samples     {len(answers.raw)}, {answers.samples_per_second:.1f} a second")
        if found.classes is not None:
            more = " ..." if len(found.classes) > _SHOWN else ""
            print_line(f"classes     {' '.join(map(str, found.classes[:_SHOWN]))}{more}")
        if found.right is not None:
            print_line(f"right       {found.right:.2%}")
        if found.unlike_emulation == 0:
            print_line("every bit is the emulation's", "green")
        elif run is None:
            print_next("ask", board, samples, "--run", "RUN_DIR")
    if found.unlike_emulation:
        print_problem("check", f"{found.unlike_emulation} outputs have other bits than the emulation")
        raise typer.Exit(1)


def print_bitstream(run: Path, made: Mapping[str, Any]) -> None:
    """Print where the bitstream of a run is, how it is loaded, and what was never tried."""
    path = run / made["path"]
    print_line(f"bitstream   {path}: {made['board']}, {made['clock_mhz']:g} MHz of {made['fmax_mhz']:g}")
    print_line(f"load        fpgaprune load {run}   or: {made['load'].replace('{file}', str(path))}")
    if made["note"]:
        print_line(f"note        {made['note']}")
    print_line(f"tried       {made['loaded']}", "yellow" if made["loaded"].startswith("no ") else "")
