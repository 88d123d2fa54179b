"""`fpgaprune config` and `fpgaprune examples`: the files with which one begins."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from fpgaprune.commands.common_options import Quiet
from fpgaprune.commands.terminal import print_line
from fpgaprune.errors import ConfigError, RunError
from fpgaprune.files import shipped_folder, write_bytes


def config(
    run_dir: Annotated[
        Path | None, typer.Argument(help="Print the flow file of this run, without keys that have their default.")
    ] = None,
    change: Annotated[
        int | None, typer.Option(help="With RUN_DIR: make this change of those that its report suggests.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page docs/flow_file.md.")] = False,
) -> None:
    """Print a flow file: every key with its default and its meaning, or that of a run: 'fpgaprune config > flow.toml'.

    A comment above each key says what it means and which values are allowed. Keys without a default are comments.
    Optional tables are comments too, for example other schedules of fine-tuning and settings of single layers.
    """
    from fpgaprune.flow import changed_flow, require_kind, to_markdown, to_toml

    if run_dir is None and change is not None:
        raise ConfigError("--change belongs to a run: give its folder too")
    if run_dir is not None:
        require_kind(run_dir, "run")
    text = to_markdown() if markdown else to_toml() if run_dir is None else changed_flow(run_dir, change)
    sys.stdout.write(text)


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
