"""What becomes of a damaged file: read, refused in one line, or a fault of ours."""

from __future__ import annotations

import collections
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from fpgaprune.errors import FpgaPruneError

from .mutations import damage

LIMIT_S = 120
LONGEST = 2500


class HangError(BaseException):
    """A door did not open or shut in time."""


@dataclass
class Tally:
    """Counts, and the first faults as text."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    faults: list[str] = field(default_factory=list)

    def fault(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        if len(self.faults) < 60:
            self.faults.append(f"{kind}: {text}")


def drill(
    folder: Path,
    files: Mapping[str, bytes],
    damaged: str,
    doors: Mapping[str, Callable[[Path], Any]],
    count: int,
    seed: int,
    tally: Tally | None = None,
) -> Tally:
    """Each of `doors` was tried on `folder` with `files` in it, the file `damaged` in `count` states.

    Args:
        folder: where the files go.
        files: name to sound content.
        damaged: the one that is damaged.
        doors: name to a function of the folder; a sound file passes all of them.
        count: damaged files.
        seed: of the damage.
        tally: counts to go on with.
    """
    tally = tally or Tally()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    for door in doors.values():
        door(folder)
    path = folder / damaged
    for number in range(count):
        random = Random(f"{damaged} {seed} {number}")
        path.write_bytes(damage(files[damaged], random))
        tally.counts["inputs"] += 1
        for name, door in doors.items():
            _try(tally, f"{damaged} {seed} {number} at {name}", lambda door=door: door(folder))
    path.write_bytes(files[damaged])
    return tally


def _try(tally: Tally, what: str, door: Callable[[], Any]) -> None:
    def stop(*_: Any) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT_S)
    started = time.monotonic()
    try:
        door()
    except HangError:
        tally.fault("hangs", what)
    except FpgaPruneError as error:
        text = str(error)
        lines = text.splitlines()
        several = len(lines) > 1 and lines[0].endswith("mistakes:")
        if not text or len(text) > LONGEST or (len(lines) > 1 and not several):
            tally.fault("not one line", f"{what}: {text[:300]!r}")
        elif "does not exist" in text:
            tally.fault("not found", f"{what}: {text[:300]!r}")
        else:
            tally.counts["refused in one line"] += 1
    except (Exception, SystemExit):  # noqa: BLE001 - whatever escapes is what is looked for
        tally.fault("tracebacks", f"{what}\n{''.join(traceback.format_exc().splitlines(keepends=True)[-9:])}")
    else:
        tally.counts["read"] += 1
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if time.monotonic() - started > LIMIT_S / 2:
        tally.fault("slow", f"{what}: {time.monotonic() - started:.0f} s")
