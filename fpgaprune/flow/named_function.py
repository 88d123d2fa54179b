"""A user's function, named in a flow as `package.module:function`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from fpgaprune.errors import FpgaPruneError

_FUNCTION = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")


def is_function_name(text: str) -> bool:
    """Whether `text` has the form `package.module:function`."""
    return _FUNCTION.match(text) is not None


def named_function(text: str, what: str, error: type[FpgaPruneError]) -> Callable[..., Any]:
    """The function that `text` names; its module is imported.

    Args:
        text: `package.module:function`.
        what: what the function is for; begins the message.
        error: what is raised.

    Raises:
        FpgaPruneError: of the class `error`: there is no such function.
    """
    module_name, _, function_name = text.partition(":")
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as problem:
        raise error(f"{what} {text!r} cannot be imported: {problem}") from problem
    if not callable(function):
        raise error(f"{what} {text!r} is a {type(function).__name__}; wanted a function")
    found: Callable[..., Any] = function
    return found
