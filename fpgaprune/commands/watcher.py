"""`Watcher` shows long work: as a bar on a terminal, elsewhere as a line now and then."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from types import TracebackType
from typing import Any, TextIO

from rich.console import Console
from rich.markup import escape

# The expected time is computed from this many last steps, because work may become faster or slower.
_REMEMBERED = 30
_MANY = 20
_NARROW = 90


class Watcher:
    """Shows how far the running stage is and how long it may take; prints one line for each stage that ended."""

    def __init__(self, quiet: bool, every_s: float = 15.0) -> None:
        """A watcher that shows nothing if `quiet`.

        Without a terminal it prints a line about the running stage every `every_s` seconds.
        """
        # Loading it takes time that `fpgaprune --help` has no use for.
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self.seconds: dict[str, float] = {}
        """Stage to the seconds that it took, for the stages that ran."""
        self._console = Console(stderr=True, quiet=quiet)
        self._live = self._console.is_terminal and not quiet
        # A narrow window has no room for the bar beside the words.
        self._bar_width = 0 if self._console.width < _NARROW else 24
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<10}"),
            *([BarColumn(bar_width=self._bar_width)] if self._bar_width else []),
            TimeElapsedColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            console=self._console,
            transient=True,
            disable=not self._live,
        )
        self._own: TextIO | None = None
        self._task: Any = None
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._stage = ""
        self._started = 0.0
        self._done, self._total, self._note = 0, 0, ""
        self._marks: deque[tuple[float, int]] = deque(maxlen=_REMEMBERED)

    def __enter__(self) -> Watcher:
        self._own = _own_standard_error()
        if self._own is not None:
            self._console.file = self._own
        self._bars.start()
        if not self._live and not self._console.quiet:
            self._thread = threading.Thread(target=self._tell_often, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._ended.set()
        self._bars.stop()
        if self._thread is not None:
            self._thread.join()
        if kind is not None and self._stage:
            word = "failed" if issubclass(kind, Exception) else "stopped"
            self._print(self._stage, f"[red]{word}[/] after {_duration(time.monotonic() - self._started)}")
        if self._own is not None:
            self._console.file = sys.stderr
            self._own.close()

    def stage(self, name: str, state: str, note: str = "", seconds: float | None = None) -> None:
        """Stage `name` is now `running`, `done`, `unchanged` or `skipped` (then `note` says why).

        With state `warning` or `said` only the line of `note` is printed, and what is running goes on. `seconds` is the
        time that the stage took; without it the watcher uses its own clock.
        """
        if state in ("warning", "said"):
            self._print(name, f"{'[yellow]warning:[/] ' * (state == 'warning')}{escape(note)}")
            return
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None
        now = time.monotonic()
        if state == "running":
            self._started, self._done, self._total, self._note = now, 0, 0, ""
            self._marks.clear()
            self._marks.append((now, 0))
            self._stage = name
            if self._live:
                self._task = self._bars.add_task(name, total=None, text="")
            else:
                self._print(name, "...")
            return
        if seconds is None and self._stage == name:
            seconds = now - self._started
        self._stage = ""
        if seconds is not None:
            self.seconds[name] = seconds
        if state == "skipped":
            self._print(name, f"[dim]skipped:[/] {escape(note)}")
            return
        took = f"  {_duration(seconds)}" if state == "done" and seconds is not None else ""
        said = f"  {escape(note)}" if note else ""
        self._print(name, f"{'[green]done[/]' if state == 'done' else '[dim]unchanged[/]'}{took}{said}")

    def step(self, done: int, total: int, note: str = "") -> None:
        """The running stage has finished `done` of `total` steps."""
        now = time.monotonic()
        if total != self._total or done < self._done:
            # The stage has begun other work. That work started when the previous work ended.
            began = self._marks[-1][0] if self._marks and done else now
            self._marks.clear()
            self._marks.append((began, 0))
        self._done, self._total, self._note = done, total, note
        self._marks.append((now, done))
        if self._task is not None:
            self._bars.update(self._task, completed=done, total=total or None, text=self._fitting(self._how_far()))

    def where_the_time_went(self) -> str:
        """Return a phrase: the seconds of all stages that ran, and the two that took longest."""
        if not self.seconds:
            return "nothing to do, because every stage is unchanged"
        from fpgaprune.report import WORK

        longest = sorted(self.seconds, key=lambda name: -self.seconds[name])[:2]
        named = ", ".join(f"{_duration(self.seconds[name])} {WORK.get(name, name)}" for name in longest)
        return f"{_duration(sum(self.seconds.values()))} in total: {named}"

    def remaining_s(self) -> float | None:
        """Seconds that the current work may still take, at the speed of its last steps; None if unknown."""
        # The first step also compiles what the other steps repeat, so it is left out if there are many.
        marks = list(self._marks)[self._total > _MANY :]
        if len(marks) < 2 or not self._total:
            return None
        (began, first), (ended, last) = marks[0], marks[-1]
        if last <= first or ended <= began:
            return None
        left = (self._total - last) * (ended - began) / (last - first) - (time.monotonic() - ended)
        return max(left, 0.0)

    def _how_far(self) -> str:
        """Return the known parts of `130 of 1,080, about 2 min 03 s left; epoch 3 of 24`."""
        if not self._total:
            return self._note
        left = self.remaining_s()
        expected = f", about {_duration(max(1, round(left))).replace('.0', '')} left" if left and self._done else ""
        return f"{self._done:,} of {self._total:,}{expected}{'; ' if self._note else ''}{self._note}"

    def _fitting(self, text: str) -> str:
        """`text`, cut so that the line of the bar fits the window."""
        taken = len("⠋ ") + max(10, len(self._stage)) + self._bar_width + len("  0:00:00 ")
        room = max(self._console.width - taken, 1)
        return text if len(text) <= room else f"{text[: room - 1]}…"

    def _tell_often(self) -> None:
        while not self._ended.wait(self._every_s):
            name, elapsed = self._stage, time.monotonic() - self._started
            # A stage that has just begun was just announced.
            if name and elapsed >= self._every_s / 2:
                far = self._how_far()
                self._print(name, f"{_duration(elapsed)}{', ' if far else ''}{escape(far)}")

    def _print(self, name: str, text: str) -> None:
        self._console.print(f"{escape(name):<10} {text}", highlight=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    from fpgaprune.report import NO_BREAK, seconds_text

    return seconds_text(seconds).replace(NO_BREAK, " ")


def _own_standard_error() -> TextIO | None:
    """Standard error through a second descriptor; None if standard error has no descriptor, as in a test.

    The usual descriptor points elsewhere while the messages of a framework's import are hidden.
    """
    try:
        return os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace")
    except (OSError, ValueError):
        return None
