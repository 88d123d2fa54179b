"""Every scalar function that a layer can apply to each of its numbers, once: what it is and how hardware computes it.

A function with a `FunctionTable` is looked up, any other is computed with comparisons. To add one that is looked up,
add a row with its `values` and its table: HLS projects get a template of ours, the emulator and our Verilog read the
same table, and removal knows what becomes of a channel of zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.values import Array, FixedType

Values = Callable[[Array], Array]

# What the entries of a table stand for, with `reach` the largest magnitude that it covers:
# CENTRED: numbers from -reach to reach, those beyond take the entry at the end.
# NEGATIVE: numbers from 0 down to -reach; what is not negative is the number itself, times a constant for selu.
# RECTIFIED: f(-|x|) for magnitudes from 0 to reach, to which a positive x is added, of f with f(x) = x + f(-x).
CENTRED, NEGATIVE, RECTIFIED = "centred", "negative", "rectified"

# hls4ml's size of a table, which is the smallest chosen here: in 8 bits it is one block memory.
USUAL_SIZE = 1024


@dataclass(frozen=True)
class FunctionTable:
    """How hardware looks a function up.

    Attributes:
        form: `CENTRED`, `NEGATIVE` or `RECTIFIED`.
        reach: the largest magnitude that it covers.
        slope: the largest magnitude of the slope of what the entries hold; None where a slope is its entry.
        written: how the C++ of the usual templates computes the entries, a mix of single and double precision; None
            where there is no such template, and the entries are exact (not of the form `NEGATIVE`).
    """

    form: str
    reach: int
    slope: float | None
    written: Values | None = None

    @property
    def span(self) -> int:
        """The distance between the two ends of the table."""
        return 2 * self.reach if self.form == CENTRED else self.reach

    def error(self, size: int, result: FixedType) -> float:
        """Bound the error of a table of `size` entries where the function's value is a number of type `result`."""
        return self._steepest(result) * self.span / size

    def needed(self, source: FixedType, result: FixedType) -> int:
        """Return the number of entries, a power of two, at which the table costs no more than rounding its result.

        That is an entry for each number of type `source`, or steps so fine that an entry is within half the last place
        of `result`, whichever takes fewer.
        """
        every, enough = self.span / source.lsb, self.span * self._steepest(result) / (result.lsb / 2)
        return 1 << max(math.ceil(math.log2(min(every, enough))), 0)

    def entries(self, source: FixedType, result: FixedType, most: int) -> int:
        """Return the number of entries that a table gets: those that are needed, at most `most`, or the usual ones."""
        return max(min(self.needed(source, result), most), USUAL_SIZE)

    def _steepest(self, result: FixedType) -> float:
        return result.magnitude if self.slope is None else self.slope

    def places(self, size: int) -> NDArray[np.float64]:
        """Return the number that each of `size` entries stands for, as float32 holds it."""
        if self.form == CENTRED:
            places = 2.0 * self.reach * (np.arange(size) - np.float32(size) / 2.0) / np.float64(size)
        else:
            places = -float(self.reach) * np.arange(size) / np.float64(size)
        return places.astype(np.float32).astype(np.float64)


@dataclass(frozen=True)
class ScalarFunction:
    """One function of one number.

    Attributes:
        name: as Keras spells it.
        at_zero: its value at 0; None where that depends on parameters.
        values: computes it in float64; None where it has parameters, or only removal knows it.
        table: how it is looked up; None where comparisons and products compute it.
        hardware: whether designs may hold it.
        converts: whether a Keras model that names it as an activation can become a design.
        gate: whether it may be a gate of a recurrent layer; recurrent: whether it may be the activation of one.
        onnx: the ONNX operator that computes it.
        spellings: other names of it.
    """

    name: str
    at_zero: float | None
    values: Values | None = None
    table: FunctionTable | None = None
    hardware: bool = True
    converts: bool = True
    gate: bool = False
    recurrent: bool = False
    onnx: str | None = None
    spellings: tuple[str, ...] = ()

    @property
    def operation(self) -> str:
        """The name of the class of Keras's operation, as `HardSigmoid`."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def has_exact_table(self) -> bool:
        """Whether it is looked up in a table whose entries are rounded once, from its exact values."""
        return self.table is not None and self.table.written is None


def single_exp(x: Array) -> NDArray[np.float32]:
    """Compute `std::exp` of single-precision numbers."""
    with np.errstate(over="ignore"):
        return np.exp(x.astype(np.float64)).astype(np.float32)


def _written_sigmoid(x: Array) -> Array:
    return 1.0 / (np.float32(1) + single_exp(-x)).astype(np.float64)


def _written_softplus(x: Array) -> Array:
    return np.log(single_exp(x).astype(np.float64) + 1.0)


def _written_elu(x: Array) -> Array:
    return single_exp(x).astype(np.float64) - 1.0


def _written_selu(x: Array) -> Array:
    return np.asarray(SELU_SCALE * (_SELU_ALPHA * _written_elu(x)))


# Klambauer, Unterthiner, Mayr, Hochreiter, "Self-Normalizing Neural Networks", 2017, section 2.
SELU_SCALE, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def _elu(x: Array) -> Array:
    return np.where(x < 0, np.expm1(np.minimum(x, 0.0)), x)


def _selu(x: Array) -> Array:
    return np.asarray(SELU_SCALE * np.where(x < 0, _SELU_ALPHA * np.expm1(np.minimum(x, 0.0)), x))


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(0.0, x))


def _softsign(x: Array) -> Array:
    return np.asarray(x / (np.abs(x) + 1.0))


def _gelu(x: Array) -> Array:
    # Hendrycks, Gimpel, "Gaussian Error Linear Units", 2016, section 2, with tails that do not cancel.
    return np.asarray([0.5 * each * math.erfc(-each / math.sqrt(2.0)) for each in x.ravel()]).reshape(x.shape)


def _rectified(limit: float) -> Values:
    return lambda x: np.clip(x, 0.0, limit)


def _known(name: str, at_zero: float | None) -> ScalarFunction:
    """Return a function for which there is no hardware here."""
    return ScalarFunction(name, at_zero, hardware=False, converts=False)


_ROWS = (
    ScalarFunction("linear", 0.0, lambda x: x),
    ScalarFunction("relu", 0.0, _rectified(math.inf), recurrent=True, onnx="Relu"),
    ScalarFunction("relu6", 0.0, _rectified(6.0)),
    ScalarFunction("leaky_relu", 0.0, onnx="LeakyRelu", spellings=("leakyrelu",)),
    ScalarFunction("thresholded_relu", 0.0, converts=False, spellings=("thresholdedrelu",)),
    ScalarFunction("prelu", 0.0, converts=False),
    # Several layers compute these in hardware.
    ScalarFunction("hard_sigmoid", 0.5, hardware=False, converts=False, onnx="HardSigmoid"),
    _known("hard_tanh", 0.0),
    ScalarFunction(
        "sigmoid",
        0.5,
        _sigmoid,
        FunctionTable(CENTRED, 8, 0.25, _written_sigmoid),
        gate=True,
        recurrent=True,
        onnx="Sigmoid",
    ),
    ScalarFunction(
        "tanh",
        0.0,
        np.tanh,
        FunctionTable(CENTRED, 4, 1.0, np.tanh),
        gate=True,
        recurrent=True,
        onnx="Tanh",
        spellings=("dense_tanh",),
    ),
    ScalarFunction(
        "softplus", math.log(2.0), _softplus, FunctionTable(CENTRED, 8, 1.0, _written_softplus), onnx="Softplus"
    ),
    ScalarFunction("softsign", 0.0, _softsign, FunctionTable(CENTRED, 8, 1.0, _softsign), onnx="Softsign"),
    ScalarFunction("elu", 0.0, _elu, FunctionTable(NEGATIVE, 8, 1.0, _written_elu), onnx="Elu"),
    ScalarFunction(
        "selu", 0.0, _selu, FunctionTable(NEGATIVE, 8, SELU_SCALE * _SELU_ALPHA, _written_selu), onnx="Selu"
    ),
    ScalarFunction("gelu", 0.0, _gelu, FunctionTable(RECTIFIED, 4, 0.5)),
    ScalarFunction("silu", 0.0, lambda x: x * _sigmoid(x), FunctionTable(RECTIFIED, 8, 0.5), spellings=("swish",)),
    ScalarFunction("mish", 0.0, lambda x: x * np.tanh(_softplus(x)), FunctionTable(CENTRED, 8, 1.1)),
    ScalarFunction("exponential", 1.0, np.exp, FunctionTable(CENTRED, 8, None)),
    # What becomes of quantisers of other libraries: projects that hold them can be priced.
    *(_known("binary_tanh", None), _known("ternary_tanh", 0.0), _known("clipped_relu", 0.0), _known("relu1", 0.0)),
    *(_known(name, 0.0) for name in ("celu", "hard_shrink", "hard_silu", "soft_shrink")),
    *(_known("tanh_shrink", 0.0), _known("log_sigmoid", -math.log(2.0))),
    *(_known("sparse_plus", 0.25), _known("sparse_sigmoid", 0.5), _known("squareplus", 1.0), _known("threshold", None)),
)
FUNCTIONS: Mapping[str, ScalarFunction] = {row.name: row for row in _ROWS}
_SPELLED = {name.replace("_", ""): row for row in _ROWS for name in (row.name, *row.spellings)}


def function_named(name: str) -> ScalarFunction | None:
    """Find the function that `name` stands for, in any case and with or without underscores; None if none."""
    return _SPELLED.get(name.lower().replace("_", ""))
