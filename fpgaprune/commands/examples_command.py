"""`fpgaprune examples`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from fpgaprune.commands.common_options import Quiet
from fpgaprune.commands.terminal import print_line
from fpgaprune.errors import RunError
from fpgaprune.files import shipped_folder, write_bytes


def examples(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to write to; it may exist.")] = Path(
        "examples"
    ),
    quiet: Quiet = False,
) -> None:
    """Copy the examples to a folder: scripts, notebooks and flow files. Each runs as it is.

    If the folder has another file with the name of an example, nothing is written.
    """
    source = shipped_folder("examples")
    if source is None:
        raise RunError("the folder 'examples' is missing from this installation; install fpgaprune again")
    contents = {path.name: path.read_bytes() for path in sorted(source.iterdir()) if path.is_file()}
    taken = [name for name, data in contents.items() if (out / name).exists() and not _holds(out / name, data)]
    if taken:
        raise RunError(f"folder {str(out)!r} has other files called {', '.join(taken)}; name another folder")
    for name, data in contents.items():
        path = write_bytes(out / name, data)
        if not quiet:
            print_line(str(path))
    if not quiet:
        print_line(f"next        python {shlex.quote(str(out / 'lock_one_kernel.py'))}", whole=True)


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data
