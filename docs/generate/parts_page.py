"""The page reference/parts.md: every listed part and board."""

from __future__ import annotations

from collections.abc import Iterable

from fpgaprune.target import Part, list_boards, list_parts

PLACE = "reference/parts.md"
_HEAD = """# Parts and boards

```console
$ fpgaprune parts                                # all of them
$ fpgaprune parts xc7a100tcsg324-1               # one, with the document that states its figures
$ fpgaprune run mine.keras --data mine.npz --part pynq-z2
```

You can name a part by its device, by its order number or by a board. Your own part is a TOML file like those in
[hw/parts](../../hw/parts): `--part mine.toml`, or `--part mine.toml:name` if it holds several. A dash is a figure
that the vendor does not publish, or that has no meaning for the part. BRAM counts blocks of 18 Kb.
"""


def page() -> str:
    """The page as Markdown."""
    boards: dict[str, list[str]] = {}
    for board in list_boards():
        boards.setdefault(board.part, []).append(f"`{board.name}`")
    families: dict[str, list[Part]] = {}
    for part in list_parts():
        families.setdefault(f"{part.vendor} {part.family}", []).append(part)
    return "".join(
        [
            f"{_HEAD}\n## Boards\n\n| part | boards |\n|---|---|\n",
            *(f"| `{part}` | {', '.join(names)} |\n" for part, names in boards.items()),
            "\n## Parts\n\n| part | LUT | FF | DSP | BRAM |\n|---|---:|---:|---:|---:|\n",
            *(f"| **{family}** |\n{_rows(parts)}" for family, parts in families.items()),
        ]
    )


def _rows(parts: Iterable[Part]) -> str:
    return "".join(
        f"| `{part.name}` | {_count(part.lut)} | {_count(part.ff)} | {_count(part.dsp)} | {_blocks(part)} |\n"
        for part in parts
    )


def _blocks(part: Part) -> str:
    """The block memories of a part; those that are no blocks of 18 Kb are named."""
    return _count(part.bram18) if part.bram4 is None else f"{_count(part.bram4)} of 4 Kb"


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
