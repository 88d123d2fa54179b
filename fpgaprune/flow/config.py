"""`FlowConfig`: what a flow's TOML file may say, checked before anything is written."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from fpgaprune.errors import ConfigError, DesignError, MaskError, TargetError
from fpgaprune.flow.hardware_sections import HlsConfig, MeasureConfig, TargetConfig
from fpgaprune.flow.keras_sections import DataConfig, ExportConfig, FinetuneConfig, SelectConfig, TrainConfig
from fpgaprune.flow.schedule_config import SCHEDULES
from fpgaprune.flow.section import Section
from fpgaprune.hls.reserved import PROJECT_NAMES, is_project_name


class FlowConfig(Section):
    """A whole flow."""

    name: str = "flow"
    """Of the run, the hls4ml project and the report: letters, digits and `_`."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Of everything random: the same seed gives the same bits."""
    data: DataConfig = DataConfig()
    """Where samples come from."""
    train: TrainConfig = TrainConfig()
    """How the network is trained, or which trained model stands in for that."""
    select: SelectConfig = SelectConfig()
    """Which elements are locked."""
    finetune: FinetuneConfig = FinetuneConfig()
    """How the locked network is trained on."""
    export: ExportConfig = ExportConfig()
    """How the ONNX file is written."""
    hls: HlsConfig = HlsConfig()
    """The hls4ml project."""
    measure: MeasureConfig = MeasureConfig()
    """What open tools measure of the network as Verilog."""
    target: TargetConfig = TargetConfig()
    """The part and how the network is put on it."""

    @field_validator("name")
    @classmethod
    def _names_a_function(cls, name: str) -> str:
        if not is_project_name(name):
            raise ValueError(PROJECT_NAMES)
        return name


def read_config(path: Path | None) -> FlowConfig:
    """The configuration in the TOML file at `path`, or the built-in default; paths in it count from its folder.

    Raises:
        ConfigError: the file cannot be read, or says something that is not allowed; one line that says where.
    """
    if path is None:
        text = resources.files("fpgaprune.flow").joinpath("default.toml").read_text()
        return parse_config(tomllib.loads(text), "default.toml")
    try:
        document = tomllib.loads(path.read_text())
    except FileNotFoundError as error:
        raise ConfigError(f"flow file {path} does not exist") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"flow file {path} is no TOML: {error}") from error
    config = parse_config(document, str(path), path.parent)
    return _beside(config, path.parent)


def parse_config(document: Mapping[str, Any], where: str, folder: Path | None = None) -> FlowConfig:
    """The configuration that `document` describes; a part's own file is looked for in `folder`.

    Raises:
        ConfigError: it says something that is not allowed; `where` begins the message.
    """
    try:
        return FlowConfig.model_validate(dict(document), context={"folder": folder or Path()})
    except ValidationError as error:
        raise ConfigError(f"{where}: {_first_problem(error)}") from error
    except (DesignError, MaskError, TargetError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _beside(config: FlowConfig, folder: Path) -> FlowConfig:
    updates: dict[str, Any] = {}
    if config.train.model is not None:
        updates["train"] = config.train.model_copy(update={"model": folder / config.train.model})
    if config.select.masks is not None:
        updates["select"] = config.select.model_copy(update={"masks": folder / config.select.masks})
    if config.measure.board is not None and config.measure.board.endswith(".toml"):
        updates["measure"] = config.measure.model_copy(update={"board": str(folder / config.measure.board)})
    if config.finetune.rewind_file is not None:
        schedule = config.finetune.schedule.model_copy(update={"rewind_to": folder / config.finetune.rewind_file})
        updates["finetune"] = config.finetune.model_copy(update={"schedule": schedule})
    if config.data.source.endswith(".npz"):
        updates["data"] = DataConfig(source=str(folder / config.data.source))
    return config.model_copy(update=updates)


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]["loc"]
    # Of several forms that are allowed, the one that came farthest is the one that was meant.
    problem = max((e for e in error.errors() if e["loc"][:2] == first[:2]), key=lambda e: len(e["loc"]))
    # Where two forms are allowed, pydantic puts the form's name into the place.
    where = ".".join(str(part) for part in problem["loc"] if not _is_form(part))
    got = problem["input"]
    if problem["type"] == "extra_forbidden":
        known = _keys_at(problem["loc"][:-1])
        near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return f"{where} is no known key; {hint}allowed here: {', '.join(known)}"
    if problem["type"] == "missing":
        return f"{where} is missing"
    said = problem["msg"].removeprefix("Value error, ")
    found, parsed, _ = said.partition("; wanted")
    # What parses a value names it before it says what it wanted.
    return f"{where}: {said}" if parsed and repr(got) in found else f"{where} is {got!r}; {said[:1].lower()}{said[1:]}"


def _is_form(part: int | str) -> bool:
    return part in SCHEDULES or str(part).startswith(("constrained-", "dict[", "tuple[", "bool"))


def _keys_at(location: tuple[int | str, ...]) -> list[str]:
    model: Any = FlowConfig
    for part in location:
        model = SCHEDULES.get(str(part)) or model.model_fields[part].annotation
    return list(model.model_fields)
