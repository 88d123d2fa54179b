"""Reads JSON and TOML files, or refuses them with one line; writes values as TOML does."""

from __future__ import annotations

import json
import lzma
import os
import struct
import tokenize
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from fpgaprune.errors import FpgaPruneError, shown
from fpgaprune.files.whole_files import storage_error

# Not `Exception`: any other error is a mistake of ours and must be seen. RuntimeError includes RecursionError and
# NotImplementedError, ValueError includes the errors of Unicode and JSON.
PARSER_ERRORS = (
    *(EOFError, OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, tokenize.TokenError),
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, SyntaxError, TypeError, ValueError),
)


def in_a_line(error: BaseException, after: str = "") -> str:
    """Return the message of `error` on one line of at most 200 characters; only what is behind `after`, if in it."""
    said = str(error)
    text = " ".join((said.partition(after)[2] if after and after in said else said).split()) or type(error).__name__
    plain = "".join(sign if sign.isprintable() else "?" for sign in text)
    return plain if len(plain) <= 200 else f"{plain[:200]}..."


# fpgaprune writes no larger document.
_MAX_BYTES = 1 << 28
# The digits of a whole number of 64 bits, with its sign.
_MAX_DIGITS = 20
_DEEPEST = 200


def read_json(
    path: str | os.PathLike[str], problem: type[FpgaPruneError], what: str, advice: str, *, strict: bool = True
) -> Any:
    """Return the JSON data in the file at `path`.

    Args:
        path: the file.
        problem: class of the error to raise.
        what: what the file should be, for example `a design`.
        advice: what to do if it is not.
        strict: refuse a name that stands twice in an object, numbers that are not finite, and whole numbers of more
            than 64 bits. Python and other tools write such files.

    Raises:
        problem: the file cannot be read; one line says where.
        FileNotFoundError: it does not exist.
    """
    try:
        return parse_json(_text(Path(path), problem), strict=strict)
    except FpgaPruneError:
        raise
    except ValueError as error:
        raise problem(f"{os.fspath(path)} is not {what}: {error}; {advice}") from error


def parse_json(text: str | bytes, *, strict: bool = True, infinite: bool = False) -> Any:
    """Return the JSON data in `text`; `strict` as for `read_json`.

    Args:
        text: a document.
        strict: as for `read_json`.
        infinite: whether a number may be `Infinity`, as Python writes it: HGQ2 has such settings of its layers.

    Raises:
        ValueError: the text cannot be read; one line says why.
    """
    with _one_line():
        plain = text.decode("utf-8") if isinstance(text, bytes) else text
        if not strict:
            return json.loads(plain)
        constant = _infinite if infinite else _no_number
        found = json.loads(
            plain, parse_constant=constant, parse_float=_finite, parse_int=_whole, object_pairs_hook=_object
        )
        _check(found)
        return found


def read_toml(path: str | os.PathLike[str], problem: type[FpgaPruneError], what: str, advice: str = "") -> Any:
    """Return the TOML data in the file at `path`, with whole numbers of at most 64 bits.

    Args:
        path: the file.
        problem: class of the error to raise.
        what: what the file should be, for example `flow file`.
        advice: what to do if it is not.

    Raises:
        problem: the file cannot be read; one line says where.
        FileNotFoundError: it does not exist.
    """
    try:
        with _one_line():
            found = tomllib.loads(_text(Path(path), problem))
            _check(found)
            return found
    except FpgaPruneError:
        raise
    except ValueError as error:
        reason = str(error).splitlines()[0][:200]
        raise problem(f"{what} {os.fspath(path)} is not TOML: {reason}{f'; {advice}' if advice else ''}") from error


@contextmanager
def _one_line() -> Iterator[None]:
    """Turn errors of parsers within the block into a `ValueError` of one line."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise ValueError(f"not UTF-8 text: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except MemoryError as error:
        raise ValueError("too large for the memory") from error


def toml_value(value: object) -> str:
    """Write `value` as one line of TOML: an array, an inline table, a text, a number or a boolean."""
    if isinstance(value, Mapping):
        entries = ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items())
        return f"{{ {entries} }}" if entries else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Path):
        value = str(value)
    # JSON's texts, numbers and booleans are valid TOML, except for one control character that JSON does not escape.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def toml_key(key: str) -> str:
    """Write `key` as TOML does: in quotes unless it is plain."""
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else toml_value(key)


def _text(path: Path, problem: type[FpgaPruneError]) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise problem(str(storage_error(error, path, "read"))) from error
    if len(data) > _MAX_BYTES:
        raise ValueError(f"it has more than {_MAX_BYTES:,} bytes")
    return data.decode("utf-8")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is not a JSON number")


def _infinite(name: str) -> float:
    return float("inf") if name == "Infinity" else _no_number(name)


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {shown(text)} is too large")
    return number


def _whole(text: str) -> int:
    if len(text) > _MAX_DIGITS or not -(2**63) <= int(text) < 2**64:
        raise ValueError(f"the whole number {shown(text)} has more than 64 bits")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {shown(twice)} stands twice in one object")
    return found


def _check(document: object) -> None:
    """Check that texts can be written, whole numbers have at most 64 bits, and nothing is nested too deep to show."""
    rest: list[tuple[Any, int]] = [(document, 0)]
    while rest:
        value, depth = rest.pop()
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        if isinstance(value, dict):
            rest += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            rest += [(part, depth + 1) for part in value]
        elif isinstance(value, str):
            value.encode("utf-8")
        elif isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise ValueError(f"the whole number {shown(value)} has more than 64 bits")
