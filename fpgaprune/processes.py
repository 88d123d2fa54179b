"""Runs external tools in a folder, ends them with all processes they started, and bounds the memory of this one."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import shlex
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fpgaprune.errors import ToolError, ToolExitError, ToolTimeoutError
from fpgaprune.files import storage

# Every process that a run starts inherits this variable, even if it leaves the process group.
_MARK = "FPGAPRUNE_RUN"
_POLL_S = 0.02
GRACE_S = 2.0
# What a tool that starts after its deadline gets.
_MOMENT_S = 0.01
# However little of the processor it got, work ends after so many times its seconds by the clock.
_PATIENCE = 3.0
# What takes long calls it with the finished steps, all steps (0 if that is unknown) and a note.
OnStep = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class ToolRun:
    """A finished run of a tool.

    Attributes:
        command: the command as given.
        folder: the folder in which it ran.
        log: file with all its output.
        seconds: wall-clock time.
        returncode: always 0; any other code is a `ToolExitError`.
    """

    command: tuple[str, ...]
    folder: Path
    log: Path
    seconds: float
    returncode: int


def tool_variable(name: str) -> str:
    """Return the environment variable that points to the tool `name`, for example `FPGAPRUNE_VITIS_HLS`."""
    plain = name.replace("++", "pp")
    return "FPGAPRUNE_" + "".join(sign if sign.isalnum() else "_" for sign in plain).upper()


def find_tool(name: str) -> Path | None:
    """Return the executable of the tool `name`, from its variable or from PATH; None if there is none.

    Raises:
        ToolError: the variable is set, but not to an executable file.
    """
    variable = tool_variable(name)
    pointed = os.environ.get(variable)
    if pointed:
        found = shutil.which(pointed)
        if found is None:
            raise ToolError(f"{variable} is {pointed!r}, which is not an executable file; set it to {name} or unset it")
        return Path(found)
    on_path = shutil.which(name)
    return None if on_path is None else Path(on_path)


def countdown(seconds: float) -> Callable[[], float]:
    """Return a function that says how many of the `seconds` from now are left: a moment at least, for `run_tool`.

    Where other work takes the cores, seconds are those of the processor, in this process and in tools that ended.
    """
    begun, used = time.monotonic(), used_seconds()
    return lambda: max(seconds - _counted(time.monotonic() - begun, used_seconds() - used), _MOMENT_S)


def _counted(by_clock: float, of_processor: float) -> float:
    """Return the seconds that work took which would have had a core for itself on a machine without other work."""
    return max(min(by_clock, of_processor), by_clock / _PATIENCE)


def used_seconds() -> float:
    """Return the processor seconds of this process and of its children that ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def run_tool(
    command: Sequence[str],
    folder: str | os.PathLike[str],
    timeout_s: float,
    on_line: Callable[[str], None] | None = None,
    *,
    product: str = "an external tool",
    advice: str = "add its folder to PATH",
    name: str | None = None,
    log_name: str | None = None,
    environment: Mapping[str, str] | None = None,
    stop: Callable[[], bool] | None = None,
    computes: bool = False,
) -> ToolRun:
    """Run `command` in `folder` until it ends with code 0; no process that it started is left.

    Its output goes to `fpgaprune_<tool>.log` in `folder`, or to `log_name`. It has no standard input, and no shell is
    used. After an error, a timeout, an exception from `on_line` or an interrupt, all processes that it started are
    terminated, and killed after two seconds. On Linux, where `/proc` shows the environment of processes, this includes
    processes that left the tool's process group.

    Args:
        command: the tool's name, or its path, and its arguments.
        folder: the folder, which must exist.
        timeout_s: most wall-clock seconds; see `computes`.
        on_line: gets each line of output soon after it was written.
        product: the product that the tool belongs to, for the message about a missing tool.
        advice: how to install the tool or to make it visible, for the same message.
        name: the tool's name in messages, if it is not that of the program.
        log_name: name of the log in `folder`; needed if one tool runs several times at once there.
        environment: variables for the tool beside those of this process.
        stop: called many times a second; once it returns True, the tool is stopped.
        computes: whether the tool waits for nothing. Where other work takes the cores, it gets `timeout_s` of processor
            time, and three times as many seconds by the clock at most.

    Raises:
        ToolTimeoutError: the tool ran too long.
        ToolExitError: the tool ended with another code.
        ToolError: the tool is missing, or was stopped.
        ValueError: the command is empty, or the time is not above 0.
    """
    if not command or not timeout_s > 0:
        raise ValueError(f"command {list(command)!r} with timeout_s {timeout_s}; wanted a tool and more than 0 seconds")
    place = Path(folder)
    if not place.is_dir():
        raise ToolError(f"{place} is not a folder; write the project before running {command[0]} in it")
    program = find_tool(command[0])
    if program is None:
        raise ToolError(_missing(command, place, product, advice))
    name = name or Path(command[0]).name
    log = place / (log_name or f"fpgaprune_{name}.log")
    mark = uuid.uuid4().hex
    started = time.monotonic()
    with storage(log):
        output, tail = log.open("wb"), log.open("rb")
    with output, tail:
        try:
            process = subprocess.Popen(
                [os.path.abspath(program), *command[1:]],
                cwd=place,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {}), _MARK: mark},
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"{program} cannot be started: {error.strerror}; is it an executable?") from None
        try:
            rest = b""
            left = timeout_s
            while not _ended(process):
                rest = _pass_lines(tail, rest, on_line)
                by_clock = time.monotonic() - started
                if by_clock > left and computes:
                    # No second of the clock counts for more than one.
                    left = by_clock + timeout_s - _counted(by_clock, group_seconds(process.pid))
                if by_clock > left:
                    shared = f" of processor time ({by_clock:.0f} s by the clock)" if by_clock > timeout_s + 1 else ""
                    raise ToolTimeoutError(
                        f"{name} ran longer than {timeout_s:g} s{shared} in {place} and was stopped; its output is in "
                        f"{log}; allow more time, or make the design smaller"
                    )
                if stop is not None and stop():
                    raise ToolError(f"{name} was stopped in {place}; its output is in {log}; run it again to go on")
                time.sleep(_POLL_S)
            rest = _pass_lines(tail, rest, on_line)
            if rest and on_line is not None:
                on_line(rest.decode(errors="replace"))
        finally:
            _end_all(process, mark)
    if process.returncode != 0:
        raise ToolExitError(
            f"{name} ended with code {process.returncode} in {place}; it said: {error_line(log)!r}; "
            f"all of its output is in {log}",
            process.returncode,
        )
    return ToolRun(tuple(command), place, log, time.monotonic() - started, process.returncode)


def _missing(command: Sequence[str], folder: Path, product: str, advice: str) -> str:
    name = Path(command[0]).name
    return (
        f"{command[0]} ({product}) was not found: {advice}, or set {tool_variable(name)} to its path; "
        f"or run elsewhere, in a copy of {folder}: {shlex.join(command)}"
    )


def _pass_lines(tail: IO[bytes], rest: bytes, on_line: Callable[[str], None] | None) -> bytes:
    """Pass the whole lines since the last call to `on_line`, and return the unfinished last line."""
    *lines, rest = (rest + tail.read()).split(b"\n")
    if on_line is not None:
        for line in lines:
            on_line(line.decode(errors="replace").rstrip("\r"))
    return rest


def _end_all(process: subprocess.Popen[bytes], mark: str) -> None:
    """End all processes of the run: those in the tool's group and those with its mark."""
    _signal_all(process, mark, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while _alive(process, mark) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    deadline = time.monotonic() + GRACE_S
    while True:
        # Repeated, because a process may have been started between the search and the signal.
        _signal_all(process, mark, signal.SIGKILL)
        if not _alive(process, mark) or time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    process.wait()


def _signal_all(process: subprocess.Popen[bytes], mark: str, signum: signal.Signals) -> None:
    for pid in _marked(mark):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signum)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the tool has ended; it is not reaped yet, so no other process can get the number of its group."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _alive(process: subprocess.Popen[bytes], mark: str) -> bool:
    return not _ended(process) or bool(_marked(mark))


def group_seconds(group: int) -> float:
    """Return a process group's processor seconds, with its ended children; endless where `/proc` does not say."""
    found = [row for entry in Path("/proc").glob("[0-9]*") if (row := _times(entry)) and row[2] == str(group)]
    ticks = sum(int(number) for row in found for number in row[11:15])
    return ticks / os.sysconf("SC_CLK_TCK") if found else math.inf


def _times(entry: Path) -> list[str]:
    """Return what Linux states of a process behind its name, which may hold anything; empty if it has ended."""
    try:
        return (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _marked(mark: str) -> list[int]:
    """Return the processes whose environment has the mark; zombies have no environment."""
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def last_line(log: Path) -> str:
    """Return the last line of the file `log` that is not empty; "" if there is none."""
    return next(_last_lines(log), "")


def error_line(log: Path) -> str:
    """Return the last line of `log` with an error, as some tools only count their errors at the end; or the last."""
    return next((line for line in _last_lines(log) if "error:" in line.lower()), last_line(log))


def _last_lines(log: Path) -> Iterator[str]:
    lines = log.read_bytes()[-4096:].decode(errors="replace").splitlines()
    return (line.strip() for line in reversed(lines) if line.strip())


_USED, _AVAILABLE = "VmData:", "MemAvailable:"
# Free memory where no file says it.
_ASSUMED = 4 << 30


@contextlib.contextmanager
def bounded_memory(allowed: int) -> Iterator[None]:
    """Bound what the process can take within the block to `allowed` more bytes; then it gets a `MemoryError`.

    TensorFlow raises a `ResourceExhaustedError` instead. Only Linux tells how much memory is used; on other systems
    nothing is bounded.
    """
    used = _stated_bytes(Path("/proc/self/status"), _USED)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    if used is None:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (min(used + allowed, *known), hard) if known else (used + allowed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def available_bytes() -> int:
    """Return the memory that this machine can still give; 4 GiB where it does not say."""
    found = _stated_bytes(Path("/proc/meminfo"), _AVAILABLE)
    return _ASSUMED if found is None else found


def _stated_bytes(path: Path, name: str) -> int | None:
    """Return the number that Linux states after `name`, in bytes; None if there is none."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)
