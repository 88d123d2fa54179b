"""Corrects hls4ml's LSTM template for Vivado and Vitis, so that it compiles with any types.

hls4ml 1.3.0 instantiates a variant of the layer that never runs. The variant declares both products with the types of
the data, so it does not compile if inputs, state and accumulator have different types. The correction declares them as
in the variant that runs.
"""

from __future__ import annotations

from pathlib import Path

from fpgaprune.design import Design, Recurrent
from fpgaprune.errors import HlsError

_HEADER = Path("firmware", "nnet_utils", "nnet_recurrent.h")
_CALLS = {
    "nnet::dense<data_T, res_T, typename CONFIG_T::mult_config1>(data, tmpres,": (
        "nnet::dense<data_T, typename CONFIG_T::accum_t, typename CONFIG_T::mult_config1>(data, tmpres,"
    ),
    "nnet::dense<data_T, res_T, typename CONFIG_T::mult_config2>(h_newstate, tmpres_state,": (
        "nnet::dense<res_T, typename CONFIG_T::accum_t, typename CONFIG_T::mult_config2>(h_newstate, tmpres_state,"
    ),
}


def mend_lstm(folder: Path, design: Design) -> None:
    """Make the project in `folder` compile with the types of `design`'s LSTM layers; without these it is unchanged.

    Raises:
        HlsError: the template is neither that of hls4ml 1.3.0 nor a corrected one.
    """
    if not any(isinstance(la.operation, Recurrent) and la.operation.cell == "lstm" for la in design.layers):
        return
    header = folder / _HEADER
    text = header.read_text()
    for wrong, right in _CALLS.items():
        if wrong not in text and right not in text:
            raise HlsError(
                f"{_HEADER} is not the one of hls4ml 1.3.0, so that LSTM layers may not compile: install that"
            )
        text = text.replace(wrong, right)
    header.write_text(text)
