"""`PARSER_ERRORS` are the errors that libraries raise when they read damaged files."""

from __future__ import annotations

import lzma
import struct
import tokenize
import zipfile
import zlib

# Not `Exception`: any other error is a mistake of ours and must be seen. RuntimeError includes RecursionError and
# NotImplementedError, ValueError includes the errors of Unicode and JSON.
PARSER_ERRORS = (
    *(EOFError, OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, tokenize.TokenError),
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, SyntaxError, TypeError, ValueError),
)


def in_a_line(error: BaseException, after: str = "") -> str:
    """The message of `error` on one line of at most 200 characters; only the part behind `after`, if that is in it."""
    said = str(error)
    text = " ".join((said.partition(after)[2] if after and after in said else said).split()) or type(error).__name__
    plain = "".join(sign if sign.isprintable() else "?" for sign in text)
    return plain if len(plain) <= 200 else f"{plain[:200]}..."
