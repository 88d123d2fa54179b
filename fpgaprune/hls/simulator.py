"""Writes the program of a project's C simulation, and runs it.

The program runs in a process of its own, so an assertion or a crash in the compiled code ends only that process.
"""

from __future__ import annotations

import math
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design, Input
from fpgaprune.errors import ToolError, ToolTimeoutError
from fpgaprune.processes import last_line

_SOURCE = """\
// The C simulation as a program, written by fpgaprune: it reads samples from standard input and writes outputs to
// standard output, float32 numbers in the machine's order, all inputs (outputs) of one sample after another.

#include <cstddef>
#include <unistd.h>

extern "C" void {name}_float({parameters});

static bool read_all(char *place, std::size_t left) {{
    while (left > 0) {{
        const ssize_t got = read(0, place, left);
        if (got <= 0)
            return false;
        place += got;
        left -= got;
    }}
    return true;
}}

static bool write_all(int file, const char *place, std::size_t left) {{
    while (left > 0) {{
        const ssize_t put = write(file, place, left);
        if (put <= 0)
            return false;
        place += put;
        left -= put;
    }}
    return true;
}}

{arrays}
int main() {{
    // What the firmware prints is no result.
    const int results = dup(1);
    dup2(2, 1);
    while ({reads}) {{
        {name}_float({arguments});
        if (!({writes}))
            return 1;
    }}
    return 0;
}}
"""
_TAIL = """\
# The network beside all the rest: two processes at once.
compile() {{
  ${{CC}} ${{CFLAGS}} ${{INCFLAGS}} {options}-c "$1" -o "$2"
}}
compile firmware/${{PROJECT}}.cpp ${{PROJECT}}.o &
NETWORK=$!
{wrapper}compile ${{PROJECT}}_bridge.cpp ${{PROJECT}}_bridge.o
compile ${{PROJECT}}_simulate.cpp ${{PROJECT}}_simulate.o
wait ${{NETWORK}}
${{CC}} ${{CFLAGS}} -shared ${{PROJECT}}.o {wrapped}${{PROJECT}}_bridge.o -o {program}.so
${{CC}} ${{CFLAGS}} ${{PROJECT}}.o {wrapped}${{PROJECT}}_bridge.o ${{PROJECT}}_simulate.o -o {program}
rm -f *.o
"""
_NEWEST = re.compile(r"# Include -std=c\+\+23 .*?\nfi\n", re.DOTALL)
_VOLATILE = re.compile(r"  INLINE void clearUnusedBits\(void\) volatile\n.*?\n  \}\n", re.DOTALL)


def write_simulator(folder: Path, design: Design) -> None:
    """Write into the project in `folder` the program's source, a script that compiles it fast, and faster headers.

    hls4ml's script compiles one file after the other with -O3, and as C++23 for the sake of bfloat16, which no design
    has: the headers of C++ are longer there. -O1 and C++11 take half of the time, and the program is as fast if
    `ap_private`, the class of every number, keeps its value in a register. In hls4ml's copy of that header, the
    function that cuts off spare bits exists for `volatile` objects only, so the value goes to memory and back after
    each operation. A second function for all other objects changes no result. Synthesis uses neither.

    Args:
        folder: the project as hls4ml wrote it.
        design: the project's design.
    """
    (folder / f"{design.name}_simulate.cpp").write_text(_source(design))
    script = folder / "build_lib.sh"
    head, _, tail = script.read_text().partition("${CC} ${CFLAGS} ${INCFLAGS}")
    options = tail.partition("-c firmware/")[0].strip()
    if design.backend == "Catapult":
        # hls4ml's bridge looks for the weights where the project was written, not where the folder is now.
        _find_weights_beside_the_script(folder, design.name)
        head += 'WEIGHTS_DIR="\\"$(cd "$(dirname "$0")" && pwd)/firmware/weights\\""\n\n'
        options = '-D SIMULATED_WEIGHTS_DIR="${WEIGHTS_DIR}"'
    head = head.replace("#!/bin/bash\n\nCC", "#!/bin/bash\nset -e\n\nCC").replace("-O3", "-O1")
    head = _NEWEST.sub('CFLAGS+=" -std=c++11"\n', head)
    wrapper = wrapped = ""
    if (folder / "firmware" / f"{design.name}_axi.cpp").is_file():
        # For a board of AMD, the bridge may call the network by its wrapper.
        wrapper, wrapped = "compile firmware/${PROJECT}_axi.cpp ${PROJECT}_axi.o\n", "${PROJECT}_axi.o "
    options += " " if options else ""
    program = "firmware/${PROJECT}-${LIB_STAMP}"
    script.write_text(head + _TAIL.format(options=options, wrapper=wrapper, wrapped=wrapped, program=program))
    header = folder / "firmware" / "ap_types" / "etc" / "ap_private.h"
    if header.exists():
        header.write_text(_VOLATILE.sub(_both, header.read_text()))


def program_of(folder: Path) -> Path:
    """Return the path to which `build_lib.sh` of the project in `folder` writes the compiled program."""
    script = (folder / "build_lib.sh").read_text()
    settings = dict(re.findall(r"^(PROJECT|LIB_STAMP)=(\w+)$", script, flags=re.MULTILINE))
    return (folder / "firmware" / f"{settings['PROJECT']}-{settings['LIB_STAMP']}").resolve()


def ports(design: Design) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the shapes of one sample's inputs and of its outputs, in the program's order."""
    inputs = [layer.output_shape for layer in design.layers if isinstance(layer.operation, Input)]
    return inputs, [design.given_shape(name) for name in design.outputs]


class Simulator:
    """One running copy of the program; always end it with `end`."""

    def __init__(self, program: Path, design: Design, log: Path) -> None:
        """Start the program, which waits for samples; its output goes to `log`.

        Raises:
            ToolError: it cannot be started.
        """
        self._outputs = ports(design)[1]
        self._log = log
        with log.open("wb") as printed:
            try:
                self._process = subprocess.Popen(
                    [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=printed, bufsize=0
                )
            except OSError as error:
                raise ToolError(
                    f"the C simulation {program} cannot be started: {error.strerror}; compile it again"
                ) from None

    def give(self, sample: Sequence[NDArray[np.float32]], timeout_s: float) -> list[NDArray[np.float32]]:
        """Return the outputs for one sample, which has an array for each input.

        Raises:
            ToolTimeoutError: it takes longer than `timeout_s`.
            ToolError: the program ended: it crashed, or an assertion in it failed.
        """
        inlet, outlet = self._process.stdin, self._process.stdout
        if inlet is None or outlet is None:
            raise ToolError("the C simulation has no pipes; it was ended before")
        size = 4 * sum(math.prod(shape) for shape in self._outputs)
        answer, until = b"", time.monotonic() + timeout_s
        left = memoryview(b"".join(array.tobytes() for array in sample))
        # If the program no longer reads, it also no longer answers, which is noticed below.
        with suppress(BrokenPipeError):
            while left:
                left = left[os.write(inlet.fileno(), left) :]
        while len(answer) < size:
            if not select.select([outlet], [], [], max(0.0, until - time.monotonic()))[0]:
                raise ToolTimeoutError(
                    f"the C simulation took longer than {timeout_s:g} s for one sample and was stopped; "
                    f"its output is in {self._log}"
                )
            got = os.read(outlet.fileno(), size - len(answer))
            if not got:
                raise ToolError(self._ended())
            answer += got
        values = np.frombuffer(answer, dtype=np.float32)
        ends = np.cumsum([math.prod(shape) for shape in self._outputs])
        parts = np.split(values, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self._outputs, strict=True)]

    def end(self) -> None:
        """End the process of the simulation."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._process.kill()
        self._process.wait()

    def _ended(self) -> str:
        code = self._process.wait()
        how = f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        last = last_line(self._log)
        return f"the C simulation ended {how} at a sample; its last line: {last!r}; all its output is in {self._log}"


def _source(design: Design) -> str:
    inputs, outputs = ([math.prod(shape) for shape in shapes] for shapes in ports(design))
    names = [f"in{n}" for n in range(len(inputs))], [f"out{n}" for n in range(len(outputs))]
    sizes = dict(zip(names[0] + names[1], inputs + outputs, strict=True))
    return _SOURCE.format(
        name=design.name,
        parameters=", ".join(["float *"] * len(sizes)),
        arrays="".join(f"static float {name}[{size}];\n" for name, size in sizes.items()),
        arguments=", ".join(sizes),
        reads=" && ".join(f"read_all((char *){name}, sizeof {name})" for name in names[0]),
        writes=" && ".join(f"write_all(results, (const char *){name}, sizeof {name})" for name in names[1]),
    )


def _both(match: re.Match[str]) -> str:
    """Return the function for `volatile` objects, and the same function for all other objects."""
    return (
        match[0]
        + "  // Added by fpgaprune: as above, and the value may stay in a register.\n"
        + match[0].replace("(void) volatile", "(void)")
    )


def _find_weights_beside_the_script(folder: Path, name: str) -> None:
    bridge = folder / f"{name}_bridge.cpp"
    bridge.write_text(re.sub(r'(s_weights_dir = )"[^"]*"', r"\1SIMULATED_WEIGHTS_DIR", bridge.read_text()))
