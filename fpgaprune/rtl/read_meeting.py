"""`Meeting`: which modules the two streams of a layer pass before they meet, read from the text of its module."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fpgaprune.errors import CertificateError
from fpgaprune.rtl.project import RtlLayer, VerilogProject
from fpgaprune.rtl.read_expression import UndecidedError

_INSTANCE = re.compile(r"^ +(\w+) (?:#\(([^;]*?)\) )?\w+ \(\n? *([^;]*?)\);$", re.M)
_PORT = re.compile(r"\.(\w+)\(([^()]*)\)")
# A whole bus, or the part of it that one of several equal modules takes.
_BUS = re.compile(r"(\w+)(?:\[\w+\*(\d+) \+: \2\])?")
_MEETINGS = ("fp_join", "fp_append")


@dataclass(frozen=True)
class Meeting:
    """Where two streams meet.

    Attributes:
        branches: what each stream passes before, in order: the role of a datapath, or the name of a library module.
        bits: of a beat of each stream where they meet.
        joins: whether two beats become one; else beats of both alternate.
        behind: the roles of all other datapaths.
    """

    branches: tuple[tuple[str, ...], ...]
    bits: tuple[int, ...]
    joins: bool
    behind: tuple[str, ...]

    @classmethod
    def read(cls, project: VerilogProject, row: RtlLayer) -> Meeting:
        """Return where the streams of a layer meet.

        Raises:
            CertificateError: its text is gone, or a stream meets in the place of the other.
            UndecidedError: the text has another form than `to_verilog` writes.
        """
        path = project.path / next(name for name in row.files if name.endswith(f"/{row.module}.v"))
        try:
            text = path.read_text()
        except FileNotFoundError as error:
            raise CertificateError(f"{project.path}: {error.filename} is gone; write the Verilog again") from error
        drivers: dict[str, tuple[str, str]] = {}
        meeting: tuple[str, dict[str, str], dict[str, str]] | None = None
        for module, parameters, connections in _INSTANCE.findall(text):
            ports = dict(_PORT.findall(connections))
            if module in _MEETINGS:
                meeting = module, dict(_PORT.findall(parameters)), ports
                continue
            source = ports.get("in_data", ports.get("s_data"))
            target = ports.get("out_data", ports.get("m_data"))
            if source is not None and target is not None:
                drivers[_bus(target, row)] = module.removeprefix(f"{row.module}_"), _bus(source, row)
        if meeting is None:
            raise UndecidedError(f"module {row.module} joins no two streams in a form that to_verilog writes")
        kind, sizes, ports = meeting
        branches = []
        for port in "ab":
            name, modules = _bus(ports.get(f"{port}_data", ""), row), list[str]()
            while name in drivers and len(modules) <= len(drivers):
                module, name = drivers[name]
                modules.append(module)
            if name != f"{port}_data":
                raise CertificateError(f"in module {row.module}, stream {port!r} of the two comes from {name!r}")
            branches.append(tuple(reversed(modules)))
        passed = {module for modules in branches for module in modules}
        return cls(
            tuple(branches),
            tuple(int(sizes.get(f"WIDTH_{port}", sizes.get("WIDTH", "0"))) for port in "AB"),
            kind == "fp_join",
            tuple(name for name, _ in drivers.values() if name not in passed and not name.startswith("fp_")),
        )


def _bus(connection: str, row: RtlLayer) -> str:
    found = _BUS.fullmatch(connection)
    if found is None:
        raise UndecidedError(f"module {row.module} connects {connection!r}, which is no bus of values")
    return found[1]
