"""The page reference/errors.md: every error that fpgaprune raises, from their docstrings."""

from __future__ import annotations

import inspect

from fpgaprune import cli, errors

PLACE = "reference/errors.md"
_HEAD = """# Errors

Every error is one line. It says what was found, where, what was wanted, and what to do. Each error is also a
`fpgaprune.errors.FpgaPruneError`, so one `except` catches all of them. On the command line the exit status is 1 if a
check, a conversion or a tool failed, and 2 if something in your input is wrong. A network that does not fit its part is
no error: `run` and `measure` then end with status 3, or with 4 if a check fails too.

```python
import fpgaprune as fp
import pytest

with pytest.raises(fp.FpgaPruneError, match="'conv9/kernel' matches no weight"):
    fp.MaskSet.from_slices(model, ["conv9/kernel[:, :, 0, 0]"])
```

| error | also a | status | what it says |
|---|---|---:|---|
"""


def page() -> str:
    """The page as Markdown."""
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
    own = sorted((kind for kind in kinds if kind is not errors.FpgaPruneError), key=_place)
    return _HEAD + "".join(map(_row, own))


def _place(kind: type) -> int:
    return inspect.getsourcelines(kind)[1]


def _row(kind: type) -> str:
    ancestors = [
        base for base in kind.__mro__[1:] if base not in (errors.FpgaPruneError, Exception, BaseException, object)
    ]
    status = 1 if issubclass(kind, cli._BROKEN_PROMISES) else 2
    meaning = inspect.getdoc(kind).splitlines()[0]
    return f"| `{kind.__name__}` | `{ancestors[0].__name__}` | {status} | {meaning} |\n"
