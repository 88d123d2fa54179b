"""The command line: thin. Each command reads its arguments, calls one function, and prints."""

import atexit
import contextlib
import gc
import os
import signal
import sys
from typing import Annotated

import typer

from fpgaprune import __version__, commands
from fpgaprune.commands import print_problem
from fpgaprune.errors import CertificateError, ExportError, FpgaPruneError, HlsError, ToolError
from fpgaprune.files import storage_error


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fpgaprune {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="fpgaprune",
    help="Prune a trained Keras network for an FPGA: lock kernels at zero, prove it, and estimate what it saves.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def _flowing(text: str) -> str:
    """Return `text` with each paragraph in one line, so that a help text fills the window."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


# In the order of use; `--help` keeps it.
for command in (
    *(commands.run, commands.apply, commands.fit, commands.config, commands.verify, commands.inspect, commands.select),
    *(commands.sensitivity, commands.convert, commands.estimate, commands.measure, commands.export, commands.load),
    *(commands.ask, commands.compare, commands.calibrate, commands.parts, commands.doctor, commands.examples),
):
    app.command(help=_flowing(command.__doc__ or ""))(command)
# Exit status 1: a promise was not kept. Any other error is in what the user gave, and has status 2.
_BROKEN_PROMISES = (CertificateError, ExportError, HlsError, ToolError)


def _abandon_output() -> None:
    """Discard what is still to be printed: Python would try to print it again at exit, and fail again."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _collect_less_garbage() -> None:
    """Search for garbage less often: the libraries make 600,000 objects that stay to the end."""
    gc.set_threshold(50_000, 10, 2)
    # Python looks through all of them several times before it ends.
    atexit.register(gc.freeze)


def main() -> None:
    """Run the `fpgaprune` command: errors are one line, exit status 2 for bad input and 1 for a broken promise."""
    _collect_less_garbage()
    # As an exception, a request to end also reaches the tools that were started.
    signal.signal(signal.SIGTERM, lambda signum, _: sys.exit(128 + signum))
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except FpgaPruneError as error:
        print_problem("error", str(error))
        sys.exit(1 if isinstance(error, _BROKEN_PROMISES) else 2)
    except BrokenPipeError:
        # The reader of this output has gone.
        _abandon_output()
        sys.exit(1)
    except OSError as error:
        # A library or Python itself raised this, for example because no folder for temporary files can be written.
        _abandon_output()
        print_problem("error", str(storage_error(error, "standard output, or a file,", "written or read")))
        sys.exit(2)
