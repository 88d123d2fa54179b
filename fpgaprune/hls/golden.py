"""Puts golden samples into a project: inputs, the outputs of the emulation, and a test bench that compares.

hls4ml's test bench runs the inputs of `tb_data`, in C and, by co-simulation, in the synthesised hardware, and writes
the outputs to a log with six digits. Here it writes every digit, reads the log again at its end, and returns 1 if a
number is not the golden one. The vendor's tool then says that the simulation failed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import HlsError, UnsupportedLayerError
from fpgaprune.values import Array, real_array

if TYPE_CHECKING:
    from fpgaprune.lowering import Samples  # what that module imports is not loaded to hand a run over

GOLDEN_INPUTS = "tb_data/tb_input_features.dat"
GOLDEN_OUTPUTS = "tb_data/tb_output_predictions.dat"
# If no golden samples are given, this many of the data are taken.
GOLDEN = 32

_AXI = re.compile(r"nnet::print_result<output_axi_t, (\d+)>\(outputs, fout\);")
_COMPARISON = """\
// Added by fpgaprune: 0 where the numbers in file `given` are those in file `golden`, digit for digit, else 1.
static int golden_differences(const char *golden, const std::string &given) {
    std::ifstream wanted(golden), got(given.c_str());
    if (!wanted.is_open()) {
        std::cout << "INFO: No golden outputs, nothing is compared" << std::endl;
        return 0;
    }
    std::string a, b;
    unsigned long values = 0, wrong = 0, first = 0;
    while (true) {
        const bool more = static_cast<bool>(wanted >> a), others = static_cast<bool>(got >> b);
        if (!more && !others)
            break;
        if (more != others || atof(a.c_str()) != atof(b.c_str())) {
            if (wrong == 0)
                first = values;
            wrong++;
        }
        values++;
    }
    if (wrong > 0 || values == 0) {
        std::cout << "ERROR: " << wrong << " of " << values << " outputs are not the golden ones, the first in sample "
                  << first / @SIZE@ << " (output " << first % @SIZE@ << ")" << std::endl;
        return 1;
    }
    std::cout << "INFO: All " << values << " outputs are the golden ones" << std::endl;
    return 0;
}

"""


def golden_samples(design: Design, samples: Samples) -> tuple[NDArray[np.float32], NDArray[np.float64]] | None:
    """Return inputs and outputs of `samples`, one row of numbers for each; None if the design cannot be emulated.

    Args:
        design: the project's design.
        samples: an array (N, ...), or one for each input.

    Raises:
        HlsError: there is no sample.
        DataError: the samples do not fit the design.
    """
    given = samples if isinstance(samples, list | tuple) else [samples]
    arrays = [real_array(x, "golden samples").astype(np.float32, copy=False) for x in given]
    if not arrays or not len(arrays[0]):
        raise HlsError("there is no golden sample; give one or more, or golden=None for some of the data")
    inputs: Any = arrays if len(arrays) > 1 else arrays[0]
    try:
        found: Any = emulate(design, inputs)
    except UnsupportedLayerError:
        return None
    return _rows(arrays, np.float32), _rows(found if isinstance(found, tuple) else (found,), np.float64)


def write_golden(folder: Path, design: Design, samples: Samples | None) -> int:
    """Write golden samples into the project in `folder`, make its test bench compare, and return their number.

    A design that cannot be emulated has no outputs to compare with, so its project gets no golden samples.

    Args:
        folder: the project as hls4ml wrote it.
        design: the project's design.
        samples: as for `golden_samples`; None for no golden samples.
    """
    found = None if samples is None else golden_samples(design, samples)
    if found is not None:
        (folder / "tb_data").mkdir(exist_ok=True)
        for name, rows in ((GOLDEN_INPUTS, found[0]), (GOLDEN_OUTPUTS, found[1])):
            (folder / name).write_text("".join(" ".join(map(_digits, row)) + "\n" for row in rows))
    for bench in (folder / f"{design.name}_test.cpp", folder / "src" / f"{design.name}_test.cpp"):
        if bench.exists():
            size = sum(int(np.prod(design[name].output_shape)) for name in design.outputs)
            bench.write_text(_comparing(bench.read_text(), size))
    return 0 if found is None else len(found[0])


def _comparing(bench: str, size: int) -> str:
    main = "CCS_MAIN(" if "CCS_MAIN(" in bench else "int main("
    before, _, after = bench.partition(main)
    body, found, end = after.rpartition("return 0;")
    # The words of an AXI stream are printed with their flags.
    body = _AXI.sub(r'for (unsigned i = 0; i < \1; i++) { fout << outputs[i].data << " "; }', body)
    opened = "std::ofstream fout(RESULTS_LOG);"
    if not before or not found or opened not in body:
        raise HlsError("hls4ml's test bench is not the one of hls4ml 1.3, so that it cannot compare golden outputs")
    golden = "tb_out.c_str()" if main == "CCS_MAIN(" else f'"{GOLDEN_OUTPUTS}"'
    return (
        before
        + _COMPARISON.replace("@SIZE@", str(size))
        + main
        + body.replace(opened, f"{opened}\n    fout.precision(17);")
        + f"return golden_differences({golden}, RESULTS_LOG);"
        + end
    )


def _digits(value: Any) -> str:
    """Write digits from which the number can be read back exactly; nine are enough for every float32."""
    return repr(float(value)) if value.dtype == np.float64 else format(float(value), ".9g")


def _rows(arrays: Any, dtype: Any) -> Array:
    flat = [np.asarray(array, dtype=dtype).reshape(len(array), -1) for array in arrays]
    return np.concatenate(flat, axis=1)
