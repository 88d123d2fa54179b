"""Finds a user's function that a flow names as `package.module:function` or `file.py:function`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from fpgaprune.errors import FpgaPruneError

FORMS = "'package.module:function' or 'file.py:function'"
_FUNCTION = re.compile(r"^(?:[A-Za-z_][\w.]*|.+\.py):[A-Za-z_]\w*$")


def is_function_name(text: str) -> bool:
    """Return whether `text` is `package.module:function` or `file.py:function`."""
    return _FUNCTION.match(text) is not None


def beside(text: str, folder: Path) -> str:
    """Return `text` with the absolute path of a `file.py`, from `folder`; a module's name stays as it is."""
    home, _, function = text.rpartition(":")
    return f"{(folder / home).resolve()}:{function}" if home.endswith(".py") else text


def set_tensorflow_up() -> None:
    """Set what TensorFlow reads when it is loaded, here or by a user's own module."""
    # oneDNN picks kernels by processor, so that machines round differently.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def named_function(text: str, what: str, error: type[FpgaPruneError]) -> Callable[..., Any]:
    """Return the function that `text` names; importing its module runs the module's code.

    Raises:
        FpgaPruneError: of the class `error`: there is no such function; `what` begins the message.
    """
    module_name, _, function_name = text.rpartition(":")
    set_tensorflow_up()
    try:
        module = _from_file(Path(module_name)) if module_name.endswith(".py") else importlib.import_module(module_name)
        function = getattr(module, function_name)
    except (ImportError, AttributeError, OSError, SyntaxError) as problem:
        raise error(f"{what} {text!r} cannot be imported: {problem}") from problem
    if not callable(function):
        raise error(f"{what} {text!r} is a {type(function).__name__}; wanted a function")
    found: Callable[..., Any] = function
    return found


def _from_file(path: Path) -> ModuleType:
    """Return the module in the file at `path`; it may import its neighbours."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module
