"""`OPERATORS` has a function for each operator of ONNX that comes in; each is one row of the contract test."""

from fpgaprune.frontends.onnx.node import Operator
from fpgaprune.frontends.onnx.operators import (
    activation_functions,
    arithmetic,
    convolution,
    dense,
    joining,
    normalization,
    pools,
    quantisers,
    recurrent,
    shaping,
    transposed_convolution,
)

OPERATORS: dict[str, Operator] = {
    **convolution.OPERATORS,
    **transposed_convolution.OPERATORS,
    **dense.OPERATORS,
    **arithmetic.OPERATORS,
    **activation_functions.OPERATORS,
    **normalization.OPERATORS,
    **pools.OPERATORS,
    **quantisers.OPERATORS,
    **recurrent.OPERATORS,
    **shaping.OPERATORS,
    **joining.OPERATORS,
}
