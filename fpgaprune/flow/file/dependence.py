"""What a result depends on: sections of the flow, the files that it names, the user's functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fpgaprune.flow.file.section_type import Flow, Section
from fpgaprune.flow.file.shared_sections import TrainConfig
from fpgaprune.flow.run import digest_network, digest_tree


def section_json(section: Section) -> Any:
    """`section` as JSON data."""
    return json.loads(section.model_dump_json())


def file_digest(path: Path | None) -> str | None:
    """SHA-256 of the file or folder at `path`; None if there is none."""
    return None if path is None else digest_tree(path)


def code_digest(function: str | None) -> str | None:
    """SHA-256 of the file of a user's function, which may change while its name stays; None without a file."""
    home = "" if function is None else function.rpartition(":")[0]
    return file_digest(Path(home)) if home.endswith(".py") else None


def judging(config: Flow) -> Any:
    """The settings and files that decide how outputs are judged."""
    train = config[TrainConfig]
    names = [name for name in (train.metric, train.loss) if name is not None]
    network = None if train.model is None else digest_network(train.model)
    return [network, train.metric, train.mode, train.loss, [code_digest(name) for name in names]]
