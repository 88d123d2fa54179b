"""Adds templates of activations that hls4ml 1.3.0 lacks (relu6 for streams, our tables), and corrects two headers."""

from __future__ import annotations

from pathlib import Path

from fpgaprune.backends import has_template
from fpgaprune.design import CENTRED, FUNCTIONS, RECTIFIED, Design, LookUp, Recurrent, ScalarFunction, function_of
from fpgaprune.errors import HlsError

_FOLDER = Path("firmware", "nnet_utils")
_HEADERS = {"io_parallel": _FOLDER / "nnet_activation.h", "io_stream": _FOLDER / "nnet_activation_stream.h"}
_END = "} // namespace nnet"
# The class of a backend's streams; backends that are not here get no template.
STREAMS = {**dict.fromkeys(("Vivado", "Vitis", "VivadoAccelerator"), "hls::stream"), "Catapult": "ac_channel"}
# The pragmas before and inside both loops, as in hls4ml's own templates.
_PRAGMAS = {
    "hls::stream": {
        "pipeline": "\n        #pragma HLS PIPELINE",
        "pack": "\n        PRAGMA_DATA_PACK(out_data)",
        "unroll": "\n            #pragma HLS UNROLL",
    },
    "ac_channel": {},
}
_PLACES = ("pipeline", "pack", "unroll")
_STREAM = """\
// Written by fpgaprune: {what}.
template <class data_T, class res_T, typename CONFIG_T> void {name}({stream}<data_T> &data, {stream}<res_T> &res) {{
{table}{label}ActLoop:
    for (unsigned i = 0; i < CONFIG_T::n_in / res_T::size; i++) {{{pipeline}
        data_T in_data = data.read();
        res_T out_data;{pack}
    {label}PackLoop:
        for (unsigned j = 0; j < res_T::size; j++) {{{unroll}
{number}        }}
        res.write(out_data);
    }}
}}

"""
_ARRAY = """\
// Written by fpgaprune: {what}.
template <class data_T, class res_T, typename CONFIG_T>
void {name}(data_T data[CONFIG_T::n_in], res_T res[CONFIG_T::n_in]) {{
{table}    #pragma HLS PIPELINE
    for (unsigned j = 0; j < CONFIG_T::n_in; j++) {{
{number}    }}
}}

"""
_RELU6 = """\
if (in_data[j] < 0)
    out_data[j] = 0;
else if (in_data[j] > 6)
    out_data[j] = 6;
else
    out_data[j] = in_data[j];
"""
_TABLE = """\
    static_assert(CONFIG_T::table_size == {size}, "the table was written for {size} entries");
    static const typename CONFIG_T::table_t table[{size}] = {{{entries}}};
"""
_CENTRED = """\
int scaled = {x}[j] * CONFIG_T::table_size / {span};
int index = scaled + CONFIG_T::table_size / 2;
if (index < 0)
    index = 0;
if (index > CONFIG_T::table_size - 1)
    index = CONFIG_T::table_size - 1;
{y}[j] = table[index];
"""
_RECTIFIED = """\
int scaled = {x}[j] * CONFIG_T::table_size / {span};
unsigned index = scaled < 0 ? -scaled : scaled;
if (index > CONFIG_T::table_size - 1)
    index = CONFIG_T::table_size - 1;
if ({x}[j] > 0)
    {y}[j] = {x}[j] + table[index];
else
    {y}[j] = table[index];
"""

# How the function is computed of a table's entry, and in words.
_FORMS = {
    CENTRED: (_CENTRED, "the entry of the table at or next to x on the side of zero"),
    RECTIFIED: (_RECTIFIED, "x where that is positive, and the table of what -|x| gives"),
}


def add_templates(folder: Path, design: Design) -> None:
    """Write into the project in `folder` a template for each function of `design` that hls4ml lacks.

    Raises:
        HlsError: a header is not that of hls4ml 1.3.0, or two layers need tables of one function in different sizes.
    """
    sizes: dict[str, set[int]] = {}
    for layer in design.layers:
        function = FUNCTIONS.get(function_of(layer.operation))
        if function is not None and _is_added(function, design):
            size = layer.operation.table_size if isinstance(layer.operation, LookUp) else 0
            sizes.setdefault(function.name, set()).add(size)
    for name, wanted in sizes.items():
        _add(folder, design, FUNCTIONS[name], wanted)


def _is_added(function: ScalarFunction, design: Design) -> bool:
    relu6 = function.name == "relu6" and design.io_type == "io_stream"
    return (relu6 or function.has_exact_table) and has_template(function, design.backend, design.io_type)


def _add(folder: Path, design: Design, function: ScalarFunction, sizes: set[int]) -> None:
    header = folder / _HEADERS[design.io_type]
    text = header.read_text()
    if f" {function.name}(" in text:
        return
    before, end, after = text.rpartition(_END)
    if not end:
        raise HlsError(
            f"{_HEADERS[design.io_type]} is not the one of hls4ml 1.3.0, so that {function.name} would not compile: "
            "install that"
        )
    if function.table is not None and len(sizes) > 1:
        raise HlsError(
            f"layers need tables of {function.name} of {', '.join(map(str, sorted(sizes)))} entries, and a project has "
            "one: give them one table size"
        )
    header.write_text(before + _template(design, function, max(sizes)) + end + after)


def _template(design: Design, function: ScalarFunction, size: int) -> str:
    streamed = design.io_type == "io_stream"
    x, y = ("in_data", "out_data") if streamed else ("data", "res")
    if function.table is None or function.values is None:
        label, what, table, number = "ReLU6", "what nnet::relu6 is for arrays", "", _RELU6
    else:
        label, (number, what) = function.operation, _FORMS[function.table.form]
        entries = function.values(function.table.places(size))
        table = _TABLE.format(size=size, entries=", ".join(repr(float(entry)) for entry in entries))
        number = number.format(x=x, y=y, span=function.table.span)
        what = f"{function.name} of x is {what}"
    indent = " " * (12 if streamed else 8)
    number = "".join(f"{indent}{line}\n" for line in number.splitlines())
    stream = STREAMS[design.backend]
    return (_STREAM if streamed else _ARRAY).format(
        name=function.name,
        label=label,
        what=what,
        table=table,
        number=number,
        stream=stream,
        **(dict.fromkeys(_PLACES, "") | _PRAGMAS[stream]),
    )


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

    hls4ml 1.3.0 instantiates a variant of the layer that never runs. The variant declares both products with the types
    of the data, so it does not compile if inputs, state and accumulator have different types. The correction declares
    them as in the variant that runs.

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


_DEPTHWISE_1D = _FOLDER / "nnet_sepconv1d_latency.h"
_GUARDS = ("NNET_SEPARABLE_CONV2D_LATENCY_H_", "NNET_SEPARABLE_CONV1D_LATENCY_H_")


def mend_depthwise(folder: Path, design: Design) -> None:
    """Make the project in `folder` compile with depthwise convolutions in one and in two dimensions; else leave it.

    The header for one dimension of hls4ml 1.3.0 has the include guard of that for two, so that only the first counts.
    """
    header = folder / _DEPTHWISE_1D
    if {2, 3} <= {len(layer.output_shape) for layer in design.layers if layer.is_depthwise} and header.is_file():
        header.write_text(header.read_text().replace(*_GUARDS))
