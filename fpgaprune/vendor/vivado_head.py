"""`VivadoHead`: the head of Vivado's reports, and the stage that the state of the design stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fpgaprune.measure import ROUTE, SYNTH, Stage

_FIELD = re.compile(r"^\| {0,4}(?P<name>[A-Z][A-Za-z ]{1,40}):(?P<value>.*)")
_VERSION = re.compile(r"Vivado v\.? ?(?P<version>\S{1,40})")
# After synth_design and opt_design no cell has a site yet: the stage is `synth`. From placement on, cells have sites,
# and Vivado's own run writes its final utilization.
_STAGES = {
    "synthesized": SYNTH,
    "optimized": SYNTH,
    "placed": ROUTE,
    "physopt": ROUTE,
    "routed": ROUTE,
}


@dataclass(frozen=True, slots=True)
class VivadoHead:
    """The head of a report of Vivado, as printed; what it does not state is None.

    Attributes:
        version: version of Vivado.
        command: the command that wrote the report.
        design: name of the design.
        part: name of the device.
        date: date of the report.
        state: state of the design.
    """

    version: str | None
    command: str | None
    design: str | None
    part: str | None
    date: str | None
    state: str | None

    @property
    def stage(self) -> Stage | None:
        """`synth` or `route`; None if the state is missing or not known."""
        words = [] if self.state is None else self.state.casefold().split()
        return next((_STAGES[word] for word in words if word in _STAGES), None)


def read_vivado_head(text: str) -> VivadoHead | None:
    """The head at the beginning of `text`; None if Vivado did not write it."""
    fields: dict[str, str] = {}
    for line in text.splitlines()[:40]:
        match = _FIELD.match(line)
        if match and match["value"].strip():
            fields.setdefault(match["name"].strip(), match["value"].strip())
    version = _VERSION.search(fields.get("Tool Version", ""))
    if version is None:
        return None
    return VivadoHead(
        version=version["version"],
        command=fields.get("Command"),
        design=fields.get("Design"),
        part=fields.get("Device"),
        date=fields.get("Date"),
        state=fields["Design State"][:80] if "Design State" in fields else None,
    )
