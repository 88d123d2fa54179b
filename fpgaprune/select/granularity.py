"""Reads a granularity, which is text in a flow file and on a command line."""

from __future__ import annotations

import re

from fpgaprune.errors import MaskError
from fpgaprune.select.units import Block, Granularity, Multiplier, Named, NofM

GRANULARITIES = ("weight", "kernel", "filter", "input_channel")
FORMS = f"{', '.join(GRANULARITIES)}, n:m such as 2:4, block(4, 4), or multiplier(resource_unrolled, 9)"
_N_OF_M = re.compile(r"^(?P<n>\d{1,9}):(?P<m>\d{1,9})$")
_CALL = re.compile(r"^(?P<name>block|multiplier)\((?P<arguments>[^()]*)\)$")
_INTEGER = re.compile(r"^-?\d{1,9}$")


def parse_granularity(value: str | Granularity) -> Granularity:
    """The granularity that the text `value` names; a `Block` or `Multiplier` is returned as it is.

    Args:
        value: `weight`, `kernel`, `filter` or `input_channel`; `2:4`; `block(4, 4)`, whose numbers are the sides of
            `Block`; `multiplier(resource_unrolled, 9)`, strategy and reuse factor of `Multiplier`, and, if wanted,
            the io_type.

    Raises:
        MaskError: there is no such granularity; the message lists the forms.
    """
    if not isinstance(value, str):
        if not hasattr(value, "partition"):
            raise MaskError(f"granularity {value!r} is unknown; wanted one of {FORMS}, or a Block or Multiplier")
        return value
    if value in GRANULARITIES:
        return Named(value)
    pattern = _N_OF_M.match(value)
    if pattern:
        return NofM(int(pattern["n"]), int(pattern["m"]))
    call = _CALL.match(value.strip())
    arguments = [argument.strip() for argument in call["arguments"].split(",")] if call else []
    if call and call["name"] == "block" and all(_INTEGER.match(argument) for argument in arguments):
        return Block(tuple(int(argument) for argument in arguments))
    if call and call["name"] == "multiplier" and 2 <= len(arguments) <= 3 and _INTEGER.match(arguments[1]):
        return Multiplier(arguments[0], int(arguments[1]), *arguments[2:])
    raise MaskError(f"granularity {value!r} is unknown; wanted one of {FORMS}")
