"""`FlowConfig`: the content of a flow file, checked before anything is written."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import ValidationError, create_model

from fpgaprune.errors import SHOWN, ConfigError, fraction_meant, shown
from fpgaprune.files import does_not_exist, read_toml
from fpgaprune.flow.file import (
    WHOLE,
    DataConfig,
    Flow,
    Section,
    TargetConfig,
    TrainConfig,
    VerdictConfig,
    all_problems,
    kind_of,
    sections_in,
)
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.stages import NETWORK, STAGES, artefacts_at

# What pydantic says of a value that is wanted, and our words for it.
_WORDS = {
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "more than",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    "a valid string": "text",
    "a valid tuple": "a list",
    "a valid dictionary": "a table",
}
# The tables that belong to no stage, with the values of the built-in flow.
_DATA, _TARGET = (
    DataConfig(source="digits"),
    TargetConfig(part="xc7z020clg400-1", clock_ns=5.0, io_type="io_stream", strategy="latency", reuse_factor=1),
)
# Every table of a flow file in order, with the values of the built-in flow, which trains on scikit-learn's digits.
_DEMO: dict[str, Section] = {
    "data": _DATA,
    **{name: section for stage in STAGES for name, section in stage.sections.items()},
    "target": _TARGET,
    "verdict": VerdictConfig(max_loss="2 %"),
}
FlowConfig: type[Flow] = create_model(
    "FlowConfig",
    __base__=Flow,
    __doc__="A whole flow.",
    **{name: (type(section), type(section)()) for name, section in _DEMO.items()},  # type: ignore[call-overload]
)


def read_config(path: Path | None) -> Flow:
    """Read the flow file at `path`, whose relative paths count from its folder; without one, the built-in flow.

    Raises:
        ConfigError: the file cannot be read, or a value is not allowed; the message says where.
        RunError: `train.model` is the folder of a damaged run.
    """
    if path is None:
        return FlowConfig(name="digits", seed=7, **_DEMO)
    try:
        document = read_toml(path, ConfigError, "flow file")
    except FileNotFoundError as error:
        raise ConfigError(does_not_exist(path, "flow file or model")) from error
    if not document:
        raise ConfigError(
            f"flow file {path} holds no key; 'fpgaprune config' prints one with every key, and 'fpgaprune run' without "
            "a file runs the built-in flow"
        )
    config = parse_config(document, str(path), path.parent)
    return _after_a_run(config.beside(path.parent))


def _after_a_run(config: Flow) -> Flow:
    """Replace a run folder in `train.model` by the last network of that run."""
    train = config[TrainConfig]
    if train.model is None or kind_of(train.model) != "run":
        return config
    files = artefacts_at(STAGES, RunDirectory.existing(train.model))
    if files.network is None:
        raise ConfigError(f"train.model: the run {train.model} has no finished network; let it run to its end first")
    return config.model_copy(update={"train": train.model_copy(update={"model": files.file(NETWORK)})})


def parse_config(document: Mapping[str, object], where: str, folder: Path | None = None) -> Flow:
    """Return the configuration that `document` describes; the TOML file of a part is looked for in `folder`.

    Raises:
        ConfigError: a value is not allowed; `where` begins the message.
    """
    try:
        return FlowConfig.model_validate(dict(document), context={"folder": folder or Path()})
    except ValidationError as error:
        raise ConfigError(all_problems(where, _problems(error))) from error


def _problems(error: ValidationError) -> list[str]:
    """Return a line for each value that is not allowed, in the order of the sections."""
    found: dict[Any, Any] = {}
    for problem in error.errors():
        place = tuple(part for part in problem["loc"] if not _is_form(part))
        # A value may have several forms. The message is about the form that passed most checks.
        key = place if len(place) < 3 or _many_tables(place) else place[:2]
        if key not in found or len(problem["loc"]) > len(found[key]["loc"]):
            found[key] = problem
    return [_problem_text(problem) for problem in found.values()]


def _problem_text(problem: Any) -> str:
    # If several forms are allowed, pydantic puts the name of the form into the place.
    where = ".".join(_key(part) for part in problem["loc"] if not _is_form(part))
    got = shown(problem["input"])
    if problem["type"] == "extra_forbidden":
        known = _keys_at(problem["loc"][:-1])
        near = difflib.get_close_matches(str(problem["loc"][-1])[:SHOWN], known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return f"{where} is not a known key; {hint}allowed here: {', '.join(known)}"
    if problem["type"] == "missing":
        return f"{where} is missing"
    if problem["type"] == WHOLE:
        return f"{where}: {problem['msg']}"
    said = problem["msg"].removeprefix("Value error, ")
    found, parsed, _ = said.partition("; wanted")
    # A parser's message names the value first, and then says what it wanted.
    if parsed and got in found:
        return f"{where}: {said}"
    meant = fraction_meant(problem["input"]) if problem.get("ctx", {}).get("le") == 1 else ""
    return f"{where} is {got}; {_wanted(said)}{meant}"


def _wanted(said: str) -> str:
    """Return what pydantic or a section says of a value, in the words of our messages."""
    text = said.removeprefix("Input should be ")
    if text == said:
        return f"{said[:1].lower()}{said[1:]}"
    # Why the value could not be read follows after a comma.
    text = text.split(", unable ")[0].split(", got ")[0].split(" or instance of ")[0]
    for theirs, ours in _WORDS.items():
        text = text.replace(theirs, ours)
    return f"wanted {text}"


def _key(part: int | str) -> str:
    """Write `part` as TOML does, cut if it is too long."""
    plain = str(part)
    return plain if len(plain) <= SHOWN and plain.isprintable() else shown(plain)


def _many_tables(place: tuple[int | str, ...]) -> bool:
    """Return whether a key at `place` is in one of many named tables, as [hls.layers.conv1]."""
    section = FlowConfig.model_fields[str(place[0])].annotation
    return sections_in(section.model_fields[str(place[1])].annotation)[1]  # type: ignore[union-attr]


def _is_form(part: int | str) -> bool:
    return part in _forms(FlowConfig) or str(part).startswith(("constrained-", "dict[", "tuple[", "bool"))


def _keys_at(location: tuple[int | str, ...]) -> list[str]:
    model: Any = FlowConfig
    for part in location:
        if get_origin(model) is dict:  # of tables, as [hls.layers.conv1]
            model = get_args(model)[1]
        else:
            model = _forms(FlowConfig).get(str(part)) or model.model_fields[part].annotation
    return list(model.model_fields)


@cache
def _forms(model: type[Section]) -> dict[str, type[Section]]:
    """Map the `kind` of a table, as `rounds` in [finetune.schedule], to the class of its section."""
    found: dict[str, type[Section]] = {}
    for field in model.model_fields.values():
        for section in sections_in(field.annotation)[0]:
            if field.discriminator is not None:
                found[get_args(section.model_fields[str(field.discriminator)].annotation)[0]] = section
            found |= _forms(section)
    return found
