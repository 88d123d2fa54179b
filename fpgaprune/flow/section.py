"""`Section`: one table of a flow file, with no key that it does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

from fpgaprune.errors import FpgaPruneError

# The type of a problem whose message is a whole sentence and names the value.
WHOLE = "whole"
_Value = TypeVar("_Value")


class Section(BaseModel):
    """A table of a flow file; unknown keys are refused, and nothing changes afterwards.

    The text below each key says what it means; `fpgaprune config` and docs/flow_file.md show it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


def require(check: Callable[[_Value], Any], value: _Value) -> Any:
    """What `check` makes of `value`; an error of its becomes one problem among those of the whole file."""
    try:
        return check(value)
    except FpgaPruneError as error:
        raise PydanticCustomError(WHOLE, "{text}", {"text": str(error)}) from error
