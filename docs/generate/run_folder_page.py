"""The page reference/run_folder.md: what each stage of a flow reads and writes."""

from __future__ import annotations

from collections.abc import Iterable

from fpgaprune.flow import MEANINGS, STAGES

PLACE = "reference/run_folder.md"
_HEAD = """# The run folder

`fpgaprune run` writes a folder: `runs/NAME`, or the folder that you name with `--out`. A stage is one step of the
run. If its inputs and settings are unchanged, it is skipped, so the same command continues after a stop.
A folder with a run of another network is refused, unless you give `--replace`. A model that was trained again in its
place, or a copy of it, is the same network; where the flow trains the network, its name and its samples decide.
The README.md of the folder says what each file is, and which commands come next. `flow.toml` is the whole flow as it
ran: edit it, or let `fpgaprune apply RUN 3` make change 3 of the report in a folder beside the run.

## What each file is

| file | what it is |
|---|---|
{meanings}
## Which stage writes it

| stage | reads | writes |
|---|---|---|
"""


def page() -> str:
    """The page as Markdown."""
    meanings = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in MEANINGS.items())
    return _HEAD.replace("{meanings}", meanings) + "".join(
        f"| `{stage.name}` | {_list(stage.inputs)} | {_list(stage.outputs)} |\n" for stage in STAGES
    )


def _list(files: Iterable[str]) -> str:
    return ", ".join(file if " " in file else f"`{file}`" for file in files)
