"""Open tools: the program on PATH where there is one, else the Python package that carries it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec

from fpgaprune.errors import ToolError
from fpgaprune.processes import find_tool


@dataclass(frozen=True, slots=True)
class OpenTool:
    """A tool that comes as a program and as a Python package.

    Attributes:
        program: name on PATH.
        product: what it is.
        package: that holds it, for pip.
        module: that the package brings.
        version_flag: makes the program print its version.
        call: Python that runs the packaged tool with the arguments in `sys.argv[1:]`.
        extra: of fpgaprune that brings the package.
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
        """The command that brings the tool."""
        return f"pip install 'fpgaprune[{self.extra}]'"


@dataclass(frozen=True, slots=True)
class Found:
    """How a tool is started here.

    Attributes:
        command: to which its arguments are appended.
        version: which one it is.
    """

    command: tuple[str, ...]
    version: str


YOSYS = OpenTool(
    "yosys",
    "open synthesis",
    "pyosys",
    "pyosys",
    "-V",
    "import sys; from pyosys import libyosys; libyosys.Design().run_pass('script ' + sys.argv[-1])",
)


def yowasp(program: str, product: str, package: str, extra: str = "rtl") -> OpenTool:
    """A program that YoWASP packs for Python."""
    module, function = package.replace("-", "_"), program.replace("-", "_")
    call = f"import sys; from {module} import run_{function}; sys.exit(run_{function}(sys.argv[1:]))"
    return OpenTool(program, product, package, module, "--version", call, extra)


def find_open_tool(tool: OpenTool) -> Found:
    """How `tool` is started: the program on PATH (or where its variable points) goes before the package.

    Raises:
        ToolError: it is here neither way; the message holds the command that installs it.
    """
    program = find_tool(tool.program)
    if program is not None:
        return Found((str(program),), _printed_version(str(program), tool))
    if find_spec(tool.module) is None:
        raise ToolError(
            f"{tool.program} ({tool.product}) was found neither on PATH nor as a Python package; "
            f"install it with: {tool.install}"
        )
    # Without -P, a file in the work folder could stand in for a module of the package.
    return Found((sys.executable, "-P", "-c", tool.call), f"{tool.package} {version(tool.package)}")


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
