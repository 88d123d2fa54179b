"""hls4ml's template of relu6 for streams, which hls4ml 1.3.0 has for arrays only."""

from __future__ import annotations

from pathlib import Path

from fpgaprune.design import Design
from fpgaprune.errors import HlsError

_HEADER = Path("firmware", "nnet_utils", "nnet_activation_stream.h")
_END = "} // namespace nnet"
# What a backend calls its streams; those that are not here have no such template.
STREAMS = {
    **dict.fromkeys(("Vivado", "Vitis", "VivadoAccelerator"), "hls::stream"),
    "Quartus": "stream",
    "Catapult": "ac_channel",
}
# What stands before and within both loops, as in the templates beside it.
_PRAGMAS = {
    "hls::stream": {
        "pipeline": "\n        #pragma HLS PIPELINE",
        "pack": "\n        PRAGMA_DATA_PACK(out_data)",
        "unroll": "\n            #pragma HLS UNROLL",
    },
    "stream": {"outer": "\n    #pragma ii 1", "inner": "\n        #pragma unroll"},
    "ac_channel": {},
}
_PLACES = ("outer", "pipeline", "pack", "inner", "unroll")
_TEMPLATE = """\
// Written by fpgaprune: what nnet::relu6 is for arrays.
template <class data_T, class res_T, typename CONFIG_T> void relu6({stream}<data_T> &data, {stream}<res_T> &res) {{
ReLU6ActLoop:{outer}
    for (unsigned i = 0; i < CONFIG_T::n_in / res_T::size; i++) {{{pipeline}
        data_T in_data = data.read();
        res_T out_data;{pack}
    ReLU6PackLoop:{inner}
        for (unsigned j = 0; j < res_T::size; j++) {{{unroll}
            if (in_data[j] < 0)
                out_data[j] = 0;
            else if (in_data[j] > 6)
                out_data[j] = 6;
            else
                out_data[j] = in_data[j];
        }}
        res.write(out_data);
    }}
}}

"""


def add_relu6(folder: Path, design: Design) -> None:
    """The project in `folder` has a template for each relu6 of `design` that reads a stream; else it is unchanged.

    Raises:
        HlsError: the header is not that of hls4ml 1.3.0.
    """
    names = {str(layer.attributes.get("activation", "")).lower() for layer in design.layers}
    if "relu6" not in names or design.io_type != "io_stream" or design.backend not in STREAMS:
        return
    header = folder / _HEADER
    text = header.read_text()
    if " relu6(" in text:
        return
    before, end, after = text.rpartition(_END)
    if not end:
        raise HlsError(f"{_HEADER} is not the one of hls4ml 1.3.0, so that relu6 would not compile: install that")
    stream = STREAMS[design.backend]
    template = _TEMPLATE.format(stream=stream, **(dict.fromkeys(_PLACES, "") | _PRAGMAS[stream]))
    header.write_text(before + template + end + after)
