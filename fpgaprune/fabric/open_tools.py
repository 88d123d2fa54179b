"""Open tools: the program on PATH where there is one, else the Python package that carries it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from fpgaprune.errors import ToolError
from fpgaprune.processes import find_tool, run_tool


@dataclass(frozen=True, slots=True)
class OpenTool:
    """A tool that comes as a program and as a Python package.

    Attributes:
        program: its name on PATH.
        product: what it does, for messages.
        package: the Python package that holds it.
        module: the module that the package installs.
        version_flag: makes the program print its version; empty if the program cannot.
        call: Python code that runs the packaged tool with the arguments in `sys.argv[1:]`.
        extra: the extra of fpgaprune that installs the package.
    """

    program: str
    product: str
    package: str
    module: str
    version_flag: str
    call: str
    extra: str = "rtl"

    @property
    def install(self) -> str:
        """The command that installs the tool."""
        return _install(self)


@dataclass(frozen=True, slots=True)
class Found:
    """A tool that was found on this machine.

    Attributes:
        tool: the tool.
        command: starts it; arguments are appended.
        version: its name and version.
    """

    tool: OpenTool
    command: tuple[str, ...]
    version: str

    def run(
        self,
        arguments: Sequence[str],
        folder: Path,
        timeout_s: float,
        log_name: str,
        stop: Callable[[], bool] | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> float:
        """Run the tool in `folder`; return its wall-clock seconds. `on_line` gets the lines that it prints.

        Raises:
            ToolTimeoutError, ToolError: as for `run_tool`.
        """
        tool, command = self.tool, (*self.command, *arguments)
        run = run_tool(
            command,
            folder,
            timeout_s,
            on_line,
            name=tool.program,
            log_name=log_name,
            product=tool.product,
            stop=stop,
            computes=True,
        )
        return round(run.seconds, 2)


YOSYS = OpenTool(
    "yosys",
    "open synthesis",
    "pyosys",
    "pyosys",
    "-V",
    "import sys; from pyosys import libyosys; libyosys.Design().run_pass('script ' + sys.argv[-1])",
)

# The program that yosys leaves logic to; the package has it beside its module.
_ABC_CALL = (
    "import subprocess, sys, pathlib, pyosys; "
    "sys.exit(subprocess.run([pathlib.Path(pyosys.__file__).with_name('yosys-abc'), *sys.argv[1:]]).returncode)"
)
ABC = OpenTool("yosys-abc", "proofs of logic", "pyosys", "pyosys", "", _ABC_CALL)


def yowasp(program: str, product: str, package: str, extra: str = "rtl", version_flag: str = "--version") -> OpenTool:
    """Return a program that YoWASP packs for Python."""
    module, function = package.replace("-", "_"), program.replace("-", "_")
    call = f"import sys; from {module} import run_{function}; sys.exit(run_{function}(sys.argv[1:]))"
    return OpenTool(program, product, package, module, version_flag, call, extra)


def find_open_tool(tool: OpenTool) -> Found:
    """Find `tool` as it is started here: the program on PATH (or where its variable points), else the Python package.

    Raises:
        ToolError: both are missing; the message says how to install the package.
    """
    return find_open_tools(tool)[0]


def find_open_tools(*tools: OpenTool) -> list[Found]:
    """Return each of `tools`, as `find_open_tool` finds it.

    Raises:
        ToolError: some are missing; the message names all of them, and one command that installs them.
    """
    found = [_found(tool) for tool in tools]
    missing = [tool for tool, one in zip(tools, found, strict=True) if one is None]
    if missing:
        named = ", ".join(f"{tool.program} ({tool.product})" for tool in missing)
        were, package, them = (
            ("was", "a Python package", "it") if len(missing) == 1 else ("were", "Python packages", "them")
        )
        raise ToolError(
            f"{named} {were} found neither on PATH nor as {package}; install {them} with: {_install(*missing)}"
        )
    return [one for one in found if one is not None]


def _found(tool: OpenTool) -> Found | None:
    program = find_tool(tool.program)
    if program is not None:
        told = _printed_version(str(program), tool) if tool.version_flag else f"{tool.program} of unknown version"
        return Found(tool, (str(program),), told)
    if find_spec(tool.module) is None:
        return None
    # Without -P, Python would import a file of the work folder that has the name of one of the package's modules.
    return Found(tool, (sys.executable, "-P", "-c", tool.call), f"{tool.package} {version(tool.package)}")


def _install(*tools: OpenTool) -> str:
    """Return the command that installs `tools`."""
    return f"pip install 'fpgaprune[{','.join(dict.fromkeys(tool.extra for tool in tools))}]'"


def _printed_version(program: str, tool: OpenTool) -> str:
    try:
        done = subprocess.run(
            [program, tool.version_flag],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{program} does not say which version it is: {error}; is it {tool.program}?") from None
    lines = [line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
    return lines[0] if lines else tool.program
