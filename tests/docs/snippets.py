"""Reads the blocks of a page: what is shown as Python, console or TOML, and hidden Python in comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"^(?:<!-- (?P<when>slow|prints|not run: [^\n]+) -->\n)?```(?P<kind>[a-z]*)\n(?P<shown>.*?)^```$"
    r"|^<!-- python\n(?P<hidden>.*?)^-->$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        page: path of the page.
        line: number of lines above its text.
        kind: `python`, `console`, `toml` or another word behind the fence; hidden blocks are `python`.
        text: what it holds.
        when: `slow`, `prints`, `not run: REASON`, or "": what the comment above it says. A block with `prints` holds
            what the one before it prints.
    """

    page: Path
    line: int
    kind: str
    text: str
    when: str


def pages() -> list[Path]:
    """The README, the other pages of the site from outside docs/, and those of docs/."""
    beside = [CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [*beside, *sorted((CHECKOUT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in order."""
    return list(_read(page))


def _read(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        group = "hidden" if found["shown"] is None else "shown"
        kind = "python" if found["shown"] is None else found["kind"]
        yield Block(page, text.count("\n", 0, found.start(group)), kind, found[group], found["when"] or "")


def name_of(page: Path) -> str:
    """A page's path in the repository."""
    return page.relative_to(CHECKOUT).as_posix()
