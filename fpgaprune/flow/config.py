"""`FlowConfig`: what a flow's TOML file may say, checked before anything is written."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import Field, ValidationError, field_validator

from fpgaprune.documents import read_toml
from fpgaprune.errors import SHOWN, ConfigError, shown
from fpgaprune.flow.hardware_sections import HlsConfig, MeasureConfig, TargetConfig
from fpgaprune.flow.keras_sections import (
    DataConfig,
    ExportConfig,
    FinetuneConfig,
    SelectConfig,
    TrainConfig,
    VerdictConfig,
)
from fpgaprune.flow.named_function import beside
from fpgaprune.flow.schedule_config import SCHEDULES
from fpgaprune.flow.section import WHOLE, Section
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
    verdict: VerdictConfig = VerdictConfig()
    """What may be lost."""
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
        document = read_toml(path, ConfigError, "flow file")
    except FileNotFoundError as error:
        raise ConfigError(f"flow file {path} does not exist") from error
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
        raise ConfigError(all_problems(where, _problems(error))) from error


def all_problems(where: str, problems: Sequence[str]) -> str:
    """One message with every problem: one line where there is one, else a line for each."""
    if len(problems) == 1:
        return f"{where}: {problems[0]}"
    return "\n  ".join((f"{where} has {len(problems)} mistakes:", *problems))


def _beside(config: FlowConfig, folder: Path) -> FlowConfig:
    """`config` with every file in it taken from `folder`, so that it means the same from any working directory."""

    def found(path: Path | str | None) -> Path | None:
        return None if path is None else (folder / path).resolve()

    def function(text: str | None) -> str | None:
        return None if text is None else beside(text, folder)

    train, select, tune, measure = config.train, config.select, config.finetune, config.measure
    schedule = tune.schedule
    if tune.rewind_file is not None:
        schedule = schedule.model_copy(update={"rewind_to": found(tune.rewind_file)})
    board = measure.board
    if board is not None and board.endswith(".toml"):
        board = str(found(board))
    source = config.data.source
    source = str(found(source)) if source.endswith(".npz") else beside(source, folder)
    updates = {
        "data": config.data.model_copy(update={"source": source}),
        "train": train.model_copy(
            update={"model": found(train.model), "loss": function(train.loss), "metric": function(train.metric)}
        ),
        "select": select.model_copy(
            update={"masks": found(select.masks), "criterion": beside(select.criterion, folder)}
        ),
        "finetune": tune.model_copy(update={"fit": function(tune.fit), "schedule": schedule}),
        "measure": measure.model_copy(update={"board": board}),
    }
    return config.model_copy(update=updates)


def _problems(error: ValidationError) -> list[str]:
    """A line for each value that is not allowed, in the order of the file's sections."""
    found: dict[Any, Any] = {}
    for problem in error.errors():
        place = tuple(part for part in problem["loc"] if not _is_form(part))
        # A value may have several forms. The user meant the one in which the checks came farthest.
        key = place if len(place) < 3 or place[0] == "hls" else place[:2]
        if key not in found or len(problem["loc"]) > len(found[key]["loc"]):
            found[key] = problem
    return [_problem_text(problem) for problem in found.values()]


def _problem_text(problem: Any) -> str:
    # Where two forms are allowed, pydantic puts the form's name into the place.
    where = ".".join(_key(part) for part in problem["loc"] if not _is_form(part))
    got = shown(problem["input"])
    if problem["type"] == "extra_forbidden":
        known = _keys_at(problem["loc"][:-1])
        near = difflib.get_close_matches(str(problem["loc"][-1])[:SHOWN], known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return f"{where} is no known key; {hint}allowed here: {', '.join(known)}"
    if problem["type"] == "missing":
        return f"{where} is missing"
    if problem["type"] == WHOLE:
        return f"{where}: {problem['msg']}"
    said = problem["msg"].removeprefix("Value error, ")
    found, parsed, _ = said.partition("; wanted")
    # What parses a value names it before it says what it wanted.
    return f"{where}: {said}" if parsed and got in found else f"{where} is {got}; {said[:1].lower()}{said[1:]}"


def _key(part: int | str) -> str:
    """`part` as TOML writes it, cut where it is overlong."""
    plain = str(part)
    return plain if len(plain) <= SHOWN and plain.isprintable() else shown(plain)


def _is_form(part: int | str) -> bool:
    return part in SCHEDULES or str(part).startswith(("constrained-", "dict[", "tuple[", "bool"))


def _keys_at(location: tuple[int | str, ...]) -> list[str]:
    model: Any = FlowConfig
    for part in location:
        if get_origin(model) is dict:  # of tables, as [hls.layers.conv1]
            model = get_args(model)[1]
        else:
            model = SCHEDULES.get(str(part)) or model.model_fields[part].annotation
    return list(model.model_fields)
