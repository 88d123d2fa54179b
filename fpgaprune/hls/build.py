"""Builds a project with the vendor's tool.

The commands are those of hls4ml 1.3.0's own `build` methods, which print, change the process's folder and use a shell.
Here they are lists of arguments that run with a log and a time limit and leave no process behind.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fpgaprune.design import Design
from fpgaprune.errors import HlsError, ToolError
from fpgaprune.files import write_bytes
from fpgaprune.processes import ToolRun, find_tool, run_tool, tool_variable

# The steps that each backend's scripts can do, in their order.
_STEPS_OF: Mapping[str, tuple[str, ...]] = {
    "Vitis": ("csim", "synth", "cosim", "validation", "export", "vsynth"),
    "Vivado": ("csim", "synth", "cosim", "validation", "export", "vsynth"),
    "VivadoAccelerator": ("csim", "synth", "cosim", "validation", "export", "vsynth", "bitfile"),
    "oneAPI": ("csim", "synth", "cosim", "vsynth"),
    "Catapult": ("csim", "synth", "cosim", "validation", "export", "vsynth"),
    "Libero": ("csim", "synth", "cosim", "vsynth", "bitfile"),
}
# High-level synthesis, then logic synthesis: after them the tool has counted the resources.
COUNTING = ("synth", "vsynth")

_OPTIONS = ("reset", "csim", "synth", "cosim", "validation", "export", "vsynth", "fifo_opt")


@dataclass(frozen=True)
class Command:
    """One command of a build.

    Attributes:
        tool: the program that must be installed; the command starts with it or calls it.
        arguments: the command.
        product: the product that the tool belongs to.
        advice: how to make the tool visible.
        older: the same command with an older tool; it runs if that tool is found and `tool` is not.
    """

    tool: str
    arguments: tuple[str, ...]
    product: str
    advice: str
    older: Command | None = None


@dataclass(frozen=True)
class Build:
    """A finished build.

    Attributes:
        folder: the project's folder.
        runs: one for each command, with log and seconds.
    """

    folder: Path
    runs: tuple[ToolRun, ...]


def build_commands(design: Design, steps: Sequence[str] = ("synth",)) -> tuple[Command, ...]:
    """Return the commands that do `steps` in the folder of the project of `design`.

    Args:
        design: the project's design, with its backend and name.
        steps: some of `csim` (C simulation by the tool), `synth` (high-level synthesis), `cosim`, `validation` (of the
            co-simulation), `export` (an IP core), `vsynth` (logic synthesis; for oneAPI and Libero with place
            and route), `bitfile`.

    Raises:
        HlsError: a step is unknown, or the backend's scripts cannot do it.
    """
    known = _STEPS_OF.get(design.backend, ())
    for step in steps:
        if step not in known:
            raise HlsError(f"backend {design.backend} has no build step {step!r}; wanted some of {', '.join(known)}")
    if not steps:
        raise HlsError(f"there is no step to build; wanted some of {', '.join(known)}")
    return _COMMANDS[design.backend](design, steps)


def steps_of(design: Design) -> tuple[str, ...]:
    """Return the steps that the scripts of the design's backend can do, in order."""
    return _STEPS_OF[design.backend]


def can_count(design: Design) -> bool:
    """Return whether the tool of the design's backend is found, so that the steps `COUNTING` can count its resources.

    Raises:
        ToolError: a variable points to a tool that is not there.
    """
    if not set(COUNTING) <= set(_STEPS_OF.get(design.backend, ())):
        return False
    commands = map(_available, build_commands(design, COUNTING))
    return all(find_tool(command.tool) is not None for command in commands)


def run_build(
    folder: Path, design: Design, steps: Sequence[str], timeout_s: float, on_line: Callable[[str], None] | None
) -> Build:
    """Run `steps` in `folder`; see `HlsProject.build`."""
    commands = [_available(command) for command in build_commands(design, steps)]
    missing = next((command for command in commands if find_tool(command.tool) is None), None)
    if missing is not None:
        raise ToolError(_missing(missing, commands, folder))
    if design.backend == "Vitis":
        write_bytes(folder / "build_opt.tcl", _vitis_options(steps).encode())
    runs = []
    for place, command in enumerate(commands, start=1):
        # The tool calls other tools of its folder by name, and make and cmake call it by name.
        search = os.pathsep.join((str((find_tool(command.tool) or Path()).parent), os.environ.get("PATH", "")))
        runs.append(
            run_tool(
                command.arguments,
                folder,
                timeout_s,
                on_line,
                product=command.product,
                advice=command.advice,
                log_name=f"build_{place}_{Path(command.arguments[0]).name}.log",
                environment={"PATH": search},
            )
        )
    return Build(folder, tuple(runs))


def shown(command: Command) -> str:
    """Return the command as a user would type it."""
    return shlex.join(command.arguments)


def _available(command: Command) -> Command:
    if command.older is not None and find_tool(command.tool) is None and find_tool(command.older.tool) is not None:
        return command.older
    return command


def _missing(command: Command, commands: Sequence[Command], folder: Path) -> str:
    return (
        f"{command.tool} ({command.product}) was not found: {command.advice}, or set {tool_variable(command.tool)} to "
        f"its path; or copy {folder} to a machine that has it and run there: "
        f"{' && '.join(shown(each) for each in commands)}"
    )


def _vitis_options(steps: Sequence[str]) -> str:
    return "array set opt {\n" + "".join(f"    {name:<10} {int(name in steps)}\n" for name in _OPTIONS) + "}\n"


def _vitis(_: Design, __: Sequence[str]) -> tuple[Command, ...]:
    older = Command(
        "vitis_hls", ("vitis_hls", "-f", "build_prj.tcl"), "AMD Vitis HLS", "source settings64.sh of Vitis_HLS"
    )
    arguments = ("vitis-run", "--mode", "hls", "--tcl", "build_prj.tcl")
    return (Command("vitis-run", arguments, "AMD Vitis 2023.2 or newer", "source settings64.sh of Vitis", older),)


def _vivado(_: Design, steps: Sequence[str]) -> tuple[Command, ...]:
    # One argument, because the script searches each for 'synth=', and would find that in 'vsynth=' too.
    options = " ".join(f"{name}={int(name in steps)}" for name in _OPTIONS)
    product, advice = "AMD Vivado HLS, up to 2020.1", "source settings64.sh of Vivado"
    commands = [Command("vivado_hls", ("vivado_hls", "-f", "build_prj.tcl", options), product, advice)]
    if "bitfile" in steps:
        arguments = ("vivado", "-mode", "batch", "-source", "design.tcl")
        commands.append(Command("vivado", arguments, "AMD Vivado", advice))
    return tuple(commands)


def _oneapi(_: Design, steps: Sequence[str]) -> tuple[Command, ...]:
    product, advice = "the Intel oneAPI DPC++ compiler", "source setvars.sh of oneAPI"
    targets = {"csim": "fpga_emu", "synth": "report", "cosim": "fpga_sim", "vsynth": "fpga"}
    builds = [("cmake", "--build", "build", "--target", targets[step]) for step in targets if step in steps]
    return tuple(Command("icpx", line, product, advice) for line in (("cmake", "-S", ".", "-B", "build"), *builds))


def _catapult(_: Design, steps: Sequence[str]) -> tuple[Command, ...]:
    options = " ".join(f"{name}={int(name in steps)}" for name in (*_OPTIONS, "bitfile"))
    arguments = ("catapult", "-product", "ultra", "-shell", "-f", "build_prj.tcl", "-eval", f'set ::argv "{options}"')
    return (Command("catapult", arguments, "Siemens Catapult", "add $MGC_HOME/bin to PATH"),)


def _libero(_: Design, steps: Sequence[str]) -> tuple[Command, ...]:
    targets = {"csim": "sw_compile", "synth": "hw", "cosim": "cosim", "vsynth": "rtl_synth", "bitfile": "fpga"}
    advice = "add the bin folder of SmartHLS to PATH, and set SHLS_ROOT_DIR"
    return tuple(
        Command("shls", ("shls", "-s", target), "Microchip SmartHLS", advice)
        for step, target in targets.items()
        if step in steps
    )


_COMMANDS: Mapping[str, Callable[[Design, Sequence[str]], tuple[Command, ...]]] = {
    "Vitis": _vitis,
    "Vivado": _vivado,
    "VivadoAccelerator": _vivado,
    "oneAPI": _oneapi,
    "Catapult": _catapult,
    "Libero": _libero,
}
