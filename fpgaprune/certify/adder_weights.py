"""The weights in the adder trees into which strategy `distributed_arithmetic` turns a layer.

da4ml writes a layer as straight-line C++ of additions and shifts, without a weight array. It is an affine function of
the layer's inputs, so its coefficients are its weights: they are found by computing with coefficients in place of
numbers. Doubles hold them exactly, because all are dyadic and far below 53 bits.
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
    """Weights (N_in, N_out) and biases (N_out,) of the adder tree `function` in the C++ `text`; exact.

    Raises:
        FirmwareError: there is no such function, or it holds anything but additions and shifts.
    """
    found = re.search(_HEAD.format(name=re.escape(function)), text, re.DOTALL)
    if not found:
        raise FirmwareError(f"the generated code holds no function {function!r}")
    inputs, outputs = int(found[1]), int(found[2])
    values = {f"model_inp[{place}]": np.eye(inputs + 1)[place] for place in range(inputs)}
    for line in found[3].splitlines():
        plain = line.partition("//")[0].strip()
        if not plain or plain.startswith("#pragma"):
            continue
        statement = _LINE.match(plain)
        if not statement:
            raise FirmwareError(f"{function}: {plain!r} is neither an addition nor a shift")
        values[statement["to"]] = _Expression(statement["expression"], values, inputs, function).value()
    columns = [values.get(f"model_out[{place}]") for place in range(outputs)]
    missing = [place for place, column in enumerate(columns) if column is None]
    if missing:
        raise FirmwareError(f"{function} never sets its output {missing[0]}")
    matrix = np.stack([column for column in columns if column is not None], axis=1)
    return matrix[:-1], matrix[-1]


class _Expression:
    """One right-hand side, read from left to right."""

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
        """The whole expression."""
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
            inner = self._sum()
            self._close()
            return inner
        if token["shift"] is not None:
            return self._inner() * 2.0 ** int(token["shift"])
        if token["cast"]:
            # da4ml casts to the type that holds the exact value.
            return self._inner()
        if token["number"]:
            constant = np.zeros(self.inputs + 1)
            constant[-1] = float(token["number"])
            return constant
        name: Any = token["input"] or token["name"]
        if name not in self.known:
            raise self._problem()
        return self.known[name]

    def _inner(self) -> Affine:
        if not self.tokens or self.tokens.pop(0)["sign"] != "(":
            raise self._problem()
        inner = self._sum()
        self._close()
        return inner

    def _close(self) -> None:
        if not self.tokens or self.tokens.pop(0)["sign"] != ")":
            raise self._problem()

    def _problem(self) -> FirmwareError:
        return FirmwareError(f"{self.where}: {self.text.strip()!r} is neither an addition nor a shift")
