"""`play`: a netlist runs cycle by cycle, and a host speaks to it over its serial line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from fpgaprune.errors import ReadbackError, ToolExitError
from fpgaprune.fabric import compile_to, compiled_folder
from fpgaprune.files import digest_file, hardware_path, make_folder, write_bytes
from fpgaprune.processes import run_tool
from fpgaprune.readback.netlist import Lut, Multiplier, Netlist

_COMPLAINTS = {
    5: "the design sends nothing any more",
    6: "the design sends more bytes than a result has",
    7: "the design sends something that is no byte",
}
_DIGITS = bytes.maketrans(b"\0\1", b"01")


class SilentDesignError(ReadbackError):
    """A design that does not answer, or not as the serial line asks for."""


def simulator() -> Path:
    """Return the program that runs netlists, compiled once for each user.

    Raises:
        ToolError: there is no C++ compiler.
    """
    source = hardware_path("sim", "netlist.cpp")
    program = compiled_folder("netlist") / digest_file(source)[:16]
    if not program.exists():
        compile_to(program, ["-std=c++20", "-O2", str(source.resolve())], program.parent, 300.0)
    return program


def play(
    netlist: Netlist,
    input_pin: str,
    sent: bytes,
    samples: int,
    out_bytes: int,
    *,
    cycles_per_bit: float,
    patience: int,
    opened: int,
    folder: Path,
    timeout_s: float,
) -> bytes:
    """Compute the answers to the samples in `sent`, each simulated from the start of the chip.

    Args:
        netlist: as `read_netlist` gives it.
        input_pin: the pin that hears the host.
        sent: the bytes of all samples.
        samples: how many.
        out_bytes: bytes of one result.
        cycles_per_bit: cycles of the clock inside for each bit on the line.
        patience: cycles without a byte after which a design counts as silent.
        opened: 0 or 1, what a wire gives that is connected to nothing.
        folder: for the files of this run.
        timeout_s: most seconds.

    Raises:
        SilentDesignError: the design does not answer as it should.
        ReadbackError: the input pin leads nowhere.
        ToolError: there is no C++ compiler, or the program ran too long.
    """
    if input_pin not in netlist.pins:
        raise SilentDesignError(f"the output does not depend on pin {input_pin}, which hears the host")
    program, place = simulator(), make_folder(folder)
    lines = _lines(netlist, netlist.pins[input_pin])
    write_bytes(place / "cells.txt", ("\n".join(lines) + "\n").encode())
    write_bytes(place / "sent.bin", sent)
    sizes = (samples, len(sent) // samples, out_bytes, round(65536 * cycles_per_bit), patience, opened)
    command = [str(program.resolve()), "cells.txt", "sent.bin", "came.bin", *map(str, sizes)]
    try:
        run_tool(command, place, timeout_s, log_name="run.log")
        return (place / "came.bin").read_bytes()
    except ToolExitError as error:
        if error.code not in _COMPLAINTS:
            raise
        raise SilentDesignError(_COMPLAINTS[error.code]) from None
    finally:
        for name in ("cells.txt", "sent.bin", "came.bin", "run.log"):
            (place / name).unlink(missing_ok=True)


def _lines(netlist: Netlist, input_net: int) -> Iterator[str]:
    """Yield the netlist as the program reads it."""

    def row(kind: str, *numbers: int | Iterable[int]) -> str:
        """Return a line of the program's input; a group of numbers stands behind its count."""
        said = [kind]
        for number in numbers:
            if isinstance(number, int):
                said.append(str(number))
            else:
                group = list(number)
                said += [str(len(group)), *map(str, group)]
        return " ".join(said)

    yield row("nets", netlist.nets, input_net, netlist.output)
    small = {cell.output: at for at, cell in enumerate(netlist.small)}
    for cell in netlist.ordered():
        if isinstance(cell, Lut):
            yield row("table", cell.table, *cell.inputs, cell.output)
        elif isinstance(cell, Multiplier):
            yield row("multiplier", cell.a_signed, cell.b_signed, cell.a, cell.b, cell.outputs)
        else:
            yield row("read", small[cell.output], *cell.read, cell.output)
    for register in netlist.registers:
        yield row("register", register.data, register.enable, register.reset, register.start, register.output)
    for memory in netlist.small:
        yield row("small", memory.content, *memory.write, memory.enable, memory.data)
    for block in netlist.blocks:
        yield f"block {len(block.content)} {block.content.translate(_DIGITS).decode()}"
        for port in block.ports:
            flags = (port.enable, port.write, port.output_enable, port.registered, port.mode)
            yield row("port", port.width, *map(int, flags), port.address, port.data, port.outputs, port.masks)
