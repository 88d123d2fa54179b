"""`PARSER_ERRORS`: what libraries raise over bytes that they did not write."""

from __future__ import annotations

import lzma
import struct
import tokenize
import zipfile
import zlib

# By name and not `Exception`: what is none of these is a mistake of ours, and is seen. RuntimeError holds recursion and
# what a library has not implemented, ValueError all of Unicode and JSON.
PARSER_ERRORS = (
    *(EOFError, OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, tokenize.TokenError),
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, SyntaxError, TypeError, ValueError),
)


def in_a_line(error: BaseException, after: str = "") -> str:
    """What `error` says, on one line of two hundred characters at most; what stands after `after`, where that does."""
    said = str(error)
    text = " ".join((said.partition(after)[2] if after and after in said else said).split()) or type(error).__name__
    plain = "".join(sign if sign.isprintable() else "?" for sign in text)
    return plain if len(plain) <= 200 else f"{plain[:200]}..."
