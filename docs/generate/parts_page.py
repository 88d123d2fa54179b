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
that the vendor does not publish, or that has no meaning for the part. `BRAM` counts blocks of 18 Kb.
"""


def page() -> str:
    """The page as Markdown."""
    boards = "".join(f"| `{board.name}` | `{board.part}` |\n" for board in list_boards())
    families: dict[str, list[Part]] = {}
    for part in list_parts():
        families.setdefault(f"{part.vendor} {part.family}", []).append(part)
    tables = "".join(f"\n## {family}\n\n{_table(parts)}" for family, parts in families.items())
    return f"{_HEAD}\n## Boards\n\n| board | part |\n|---|---|\n{boards}{tables}"


def _table(parts: Iterable[Part]) -> str:
    rows = (
        f"| `{part.name}` | {_count(part.lut)} | {_count(part.ff)} | {_count(part.dsp)} | {_count(part.bram18)} |\n"
        for part in parts
    )
    return "| part | LUT | FF | DSP | BRAM |\n|---|---:|---:|---:|---:|\n" + "".join(rows)


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
