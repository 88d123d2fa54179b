"""How hls4ml is called: its messages are hidden, its errors become one line, its backends' options are checked."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fpgaprune.errors import FpgaPruneError, HlsError
from fpgaprune.files import is_storage_error, storage_error
from fpgaprune.target import Target


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide output and warnings of hls4ml within the block."""
    # hls4ml and its helpers print what they do, which a library must not.
    level = logging.getLogger().level
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.getLogger().setLevel(level)


@contextlib.contextmanager
def as_problem(what: str, folder: Path | None = None) -> Iterator[None]:
    """Turn an error of hls4ml within the block into an `HlsError` of one line that begins with `what`.

    An error of the disk stays one; where `folder` is given, the message names that and not hls4ml's file.
    """
    try:
        yield
    except FpgaPruneError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and is_storage_error(error):
            raise (storage_error(error) if folder is None else storage_error(_plain(error), folder)) from error
        # hls4ml raises bare Exception or AssertionError for everything that it cannot convert.
        raise HlsError(f"{what}: {in_words(error)}") from error


def _plain(error: OSError) -> OSError:
    return OSError(error.errno, error.strerror)


def in_words(error: BaseException) -> str:
    """Return the message of `error` on one line, with the error's class if that says more."""
    said, kind = " ".join(str(error).split()), type(error)
    if not said:
        return f"{kind.__name__}, with no message"
    return said if kind in (Exception, AssertionError, ValueError, RuntimeError) else f"{kind.__name__}: {said}"


def backend_options_of(target: Target, given: Mapping[str, object]) -> dict[str, Any]:
    """Return all options of the target's backend: those in `given`, and those without which it makes no project.

    Raises:
        HlsError: the backend does not have an option in `given`.
    """
    problems = option_problems(target, given)
    if problems:
        raise HlsError(problems[0])
    # Without this option hls4ml looks for SmartHLS on PATH, and writes no project if it is missing.
    needed = {"smarthls_path": "${SHLS_ROOT_DIR}"} if target.backend == "Libero" else {}
    return {**needed, **given}


def option_problems(target: Target, given: Mapping[str, object]) -> list[str]:
    """Return one line for each setting in `given` that hls4ml's backend does not have."""
    if not given:
        return []
    import hls4ml

    known = inspect.signature(hls4ml.backends.get_backend(target.backend).create_initial_config).parameters
    settled = {"part", "clock_period", "io_type", "write_weights_txt", "write_tar"}
    allowed = [key for key in known if key not in settled and known[key].kind is not inspect.Parameter.VAR_KEYWORD]
    return [
        f"backend {target.backend} has no option {key!r}; wanted one of {', '.join(allowed)}"
        for key in given
        if key not in allowed
    ]
