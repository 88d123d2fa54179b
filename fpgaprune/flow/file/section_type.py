"""`Section`: one table of a flow file. `Flow`: the whole file, with each section by its class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from fpgaprune.errors import FpgaPruneError
from fpgaprune.flow.file.user_function import beside
from fpgaprune.lowering import PROJECT_NAMES, is_project_name
from fpgaprune.values import loss_text, parse_loss

# The type of a problem whose message is complete: it names the value.
WHOLE = "whole"
_Value = TypeVar("_Value")
_Kind = TypeVar("_Kind", bound="Section")


class Section(BaseModel):
    """A table of a flow file; it refuses unknown keys and never changes.

    The text below each key says what it means; `fpgaprune config` and docs/flow_file.md show it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    def beside(self, folder: Path) -> Self:
        """Make the paths of the section absolute; relative paths count from `folder`.

        A path, the `file.py` of a function, the `file.toml` of a part, and a text that ends with `.npz` or `.toml`
        name files.
        """
        found = {name: (value, _beside(value, folder)) for name, value in self}
        return self.model_copy(update={name: new for name, (old, new) in found.items() if new != old})


class Flow(Section):
    """A whole flow; `flow[SelectConfig]` is its section of that class."""

    name: str = "flow"
    """Name of the run, the hls4ml project and the report: letters, digits and `_`."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of all random numbers: the same seed gives the same bits."""

    def __getitem__(self, kind: type[_Kind]) -> _Kind:
        """Return the section of class `kind`.

        Raises:
            KeyError: a flow has no such section.
        """
        for name in type(self).model_fields:
            section = getattr(self, name)
            if isinstance(section, kind):
                return section
        raise KeyError(kind.__name__)

    @field_validator("name")
    @classmethod
    def _names_a_function(cls, name: str) -> str:
        if not is_project_name(name):
            raise ValueError(PROJECT_NAMES)
        return name


def require(check: Callable[[_Value], Any], value: _Value) -> Any:
    """Return the result of `check`; an error that it raises becomes one problem among those of the whole file."""
    try:
        return check(value)
    except FpgaPruneError as error:
        raise PydanticCustomError(WHOLE, "{text}", {"text": str(error)}) from error


def read_by(check: Callable[[str], Any], *words: str) -> AfterValidator:
    """Require that `check` can read a text, or each text of a tuple or a table; `words` and None need no check."""

    def checked(value: _Value) -> _Value:
        texts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
        for text in texts:
            if isinstance(text, str) and text not in words:
                require(check, text)
        return value

    return AfterValidator(checked)


def _with_unit(given: object) -> Any:
    """Return a largest loss, if it is a text with its unit; a zero needs none."""
    try:
        return loss_text(parse_loss(given))
    except ValueError as error:
        raise PydanticCustomError(WHOLE, "{text}", {"text": str(error)}) from error


# A largest loss, as `0.5 %`.
LossLimit = Annotated[str, BeforeValidator(_with_unit)]


def one_of(known: Iterable[str]) -> AfterValidator:
    """Require that a text is one of `known`."""

    def checked(name: str) -> str:
        if name not in known:
            raise ValueError(f"wanted one of {', '.join(known)}")
        return name

    return AfterValidator(checked)


def all_problems(where: str, problems: Sequence[str]) -> str:
    """Return the message for all problems: one line if there is one problem, else a heading and a line for each."""
    if len(problems) == 1:
        return f"{where}: {problems[0]}"
    return "\n  ".join((f"{where}: {len(problems)} mistakes:", *problems))


def _beside(value: object, folder: Path) -> Any:
    if isinstance(value, Section):
        return value.beside(folder)
    if isinstance(value, Path):
        return (folder / value).resolve()
    if isinstance(value, str) and (value.endswith((".npz", ".toml")) or ".toml:" in value):
        return str((folder / value).resolve())
    return beside(value, folder) if isinstance(value, str) else value


def sections_in(annotation: object) -> tuple[list[type[Section]], bool]:
    """Return the sections that a key of this type may hold, and whether it holds many sections by name."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation], False
    if origin is Annotated:
        return sections_in(inner[0])
    if origin in (Union, UnionType):
        return [kind for one in inner for kind in sections_in(one)[0]], False
    return (sections_in(inner[1])[0], True) if origin is dict else ([], False)
