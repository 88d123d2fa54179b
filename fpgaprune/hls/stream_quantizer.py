"""`RoundedChannels` in hls4ml: for arrays the quantiser that hls4ml has for HGQ, for streams one of ours.

Importing this registers both.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hls4ml.backends import get_backend
from hls4ml.backends.template import FunctionCallTemplate
from hls4ml.model.layers import Layer, register_layer
from hls4ml.model.types import Source
from numpy.typing import NDArray

from fpgaprune.backends import QUANTISING
from fpgaprune.values import FixedType

ARRAYS, STREAMS = "FixedPointQuantizer", "StreamQuantizer"
_STREAM = """
// Written by fpgaprune: each channel is assigned to a type of its own.
template <class data_T, class res_T> void {name}(hls::stream<data_T> &data, hls::stream<res_T> &res) {{
    for (unsigned i = 0; i < {packets}; i++) {{
        #pragma HLS PIPELINE
        typename data_T::value_type number[res_T::size];
        // A flattened image comes pixel by pixel.
        for (unsigned j = 0; j < res_T::size; j += data_T::size) {{
            data_T in_data = data.read();
            for (unsigned k = 0; k < data_T::size; k++) {{
                #pragma HLS UNROLL
                number[j + k] = in_data[k];
            }}
        }}
        res_T out_data;
        PRAGMA_DATA_PACK(out_data)
{numbers}
        res.write(out_data);
    }}
}}
"""


class StreamQuantizer(Layer):  # type: ignore[misc, unused-ignore]
    """A quantiser that takes one packet of channels after another."""

    def initialize(self) -> None:
        """Put the quantiser's text among what hls4ml writes as generated code."""
        shape = self.get_input_variable().shape
        self.add_output_variable(shape)
        self.set_attr("n_in", self.get_input_variable().size())
        self.mask_kbi, self.SAT, self.RND = (self.attributes[key] for key in ("mask_kbi", "SAT", "RND"))
        rows = _rows(self)
        numbers = [
            f"        out_data[{place}] = {'0' if kind is None else f'{_cpp(kind)}(number[{place}])'};"
            for place, kind in enumerate(_kind(self, row) for row in rows[0].tolist())
        ]
        text = _STREAM.format(name=self.name, packets=math.prod(shape[:-1]), numbers="\n".join(numbers))
        self.set_attr("stream_codegen", Source(text))


class _StreamCall(FunctionCallTemplate):  # type: ignore[misc, unused-ignore]
    def __init__(self) -> None:
        super().__init__(StreamQuantizer, include_header=[])
        self.template = "nnet::{name}<{input_t}, {output_t}>({input}, {output});"

    def format(self, node: object) -> str:
        return str(self.template.format(**self._default_function_params(node)))


register_layer(STREAMS, StreamQuantizer)
for _backend in QUANTISING:
    get_backend(_backend).register_template(_StreamCall)


def _cpp(kind: FixedType) -> str:
    modes = f"AP_{kind.rounding},AP_{kind.overflow}"
    return f"ap_{'' if kind.signed else 'u'}fixed<{kind.width},{kind.integer},{modes}>"


def _kind(node: Any, row: list[int]) -> FixedType | None:
    signed, width, integer = row
    return FixedType(width, integer, bool(signed), node.RND, node.SAT) if width else None


def _rows(node: Any) -> NDArray[np.int64]:
    """Return sign, width and integer bits of each value, (positions, channels, 3)."""
    shape = tuple(node.get_output_variable().shape)
    parts = [np.broadcast_to(part[0], shape).astype(np.int64) for part in node.mask_kbi]
    return np.stack(parts, axis=-1).reshape(-1, shape[-1], 3)
