"""Reads a layer's weights from the adder tree that the strategy `distributed_arithmetic` makes of it.

da4ml writes a layer as straight-line C++ of additions and shifts, without a weight array. The code is an affine
function of the layer's inputs, and its coefficients are the weights. To find them, the code is evaluated with vectors
of coefficients instead of numbers. Doubles hold them exactly, because all are dyadic and far below 53 bits.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import FirmwareError

_HEAD = r"void\s+{name}\(\s*inp_t\s+model_inp\[(\d+)\]\s*,\s*out_t\s+model_out\[(\d+)\]\s*\)\s*\{{(.*?)\n\}}"
_LINE = re.compile(r"^(?:ap_u?fixed<[^>]*>\s+)?(?P<to>v\d+|model_out\[\d+\])\s*=\s*(?P<expression>[^;]+);")
_TOKEN = re.compile(
    r"\s*(?:(?P<cast>ap_u?fixed<[^>]*>)|bit_shift<(?P<shift>-?\d+)>|(?P<input>model_inp\[\d+\])|(?P<name>v\d+)|"
    r"(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?)|(?P<sign>[-+()]))"
)

Affine = NDArray[np.float64]


def read_adder_weights(text: str, function: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights (N_in, N_out) and biases (N_out,) of the adder tree `function` in the C++ `text`; exact.

    Raises:
        FirmwareError: the function is missing, or contains something other than additions and shifts.
    """
    found = re.search(_HEAD.format(name=re.escape(function)), text, re.DOTALL)
    if not found:
        raise FirmwareError(f"the generated code has no function {function!r}")
    inputs = int(found[1])
    outputs = [f"model_out[{place}]" for place in range(int(found[2]))]
    values = {f"model_inp[{place}]": np.eye(inputs + 1)[place] for place in range(inputs)}
    for line in found[3].splitlines():
        plain = line.partition("//")[0].strip()
        if not plain or plain.startswith("#pragma"):
            continue
        statement = _LINE.match(plain)
        if not statement:
            raise FirmwareError(f"{function}: {plain!r} is neither an addition nor a shift")
        values[statement["to"]] = _Expression(statement["expression"], values, inputs, function).value()
    missing = [name for name in outputs if name not in values]
    if missing:
        raise FirmwareError(f"{function} never sets {missing[0]}")
    matrix = np.stack([values[name] for name in outputs], axis=1)
    return matrix[:-1], matrix[-1]


class _Expression:
    """Evaluates one right-hand side from left to right."""

    def __init__(self, text: str, known: dict[str, Affine], inputs: int, where: str) -> None:
        self.text, self.known, self.inputs, self.where = text, known, inputs, where
        self.tokens: list[re.Match[str]] = []
        place = 0
        while place < len(text.rstrip()):
            token = _TOKEN.match(text, place)
            if not token:
                raise self._problem()
            self.tokens.append(token)
            place = token.end()

    def value(self) -> Affine:
        """Parse the whole expression; return the coefficient of each input."""
        result = self._sum()
        if self.tokens:
            raise self._problem()
        return result

    def _sum(self) -> Affine:
        total = self._term()
        while self.tokens and self.tokens[0]["sign"] in ("+", "-"):
            sign = 1.0 if self.tokens.pop(0)["sign"] == "+" else -1.0
            total = total + sign * self._term()
        return total

    def _term(self) -> Affine:
        if not self.tokens:
            raise self._problem()
        token = self.tokens.pop(0)
        if token["sign"] == "-":
            return -self._term()
        if token["sign"] == "(":
            return self._rest_of_brackets()
        if token["shift"] is not None:
            return self._brackets() * 2.0 ** int(token["shift"])
        if token["cast"]:
            # da4ml casts to the type that holds the exact value.
            return self._brackets()
        if token["number"]:
            constant = np.zeros(self.inputs + 1)
            constant[-1] = float(token["number"])
            return constant
        name: Any = token["input"] or token["name"]
        if name not in self.known:
            raise self._problem()
        return self.known[name]

    def _brackets(self) -> Affine:
        if not self.tokens or self.tokens.pop(0)["sign"] != "(":
            raise self._problem()
        return self._rest_of_brackets()

    def _rest_of_brackets(self) -> Affine:
        inner = self._sum()
        if not self.tokens or self.tokens.pop(0)["sign"] != ")":
            raise self._problem()
        return inner

    def _problem(self) -> FirmwareError:
        return FirmwareError(f"{self.where}: {self.text.strip()!r} is neither an addition nor a shift")
