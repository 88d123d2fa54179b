"""`Stage`: the step of a tool flow that a figure comes from, in one spelling and one order."""

from __future__ import annotations

import re

from fpgaprune.errors import ReportError

_WORDS = {"csynth": "C synthesis", "synth": "logic synthesis", "route": "place and route", "cosim": "RTL simulation"}
_FORM = re.compile(rf"(?P<analytic>analytic_)?(?P<step>{'|'.join(_WORDS)})(\((?P<family>[a-z0-9]+)\))?")


class Stage(str):
    """The text that names a stage, as `csynth`, `analytic_synth` or `route(ecp5)`.

    `analytic_` marks an estimate of what that step will report. Brackets mark open tools; after `route` they hold the
    device family.

    Raises:
        ReportError: the text names no stage.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Stage:
        """The stage that `text` spells."""
        if not isinstance(text, str) or _FORM.fullmatch(text) is None:
            raise ReportError(f"stage {text!r} is unknown; wanted {', '.join(_WORDS)}, or one such as route(ecp5)")
        return super().__new__(cls, text)

    def _part(self, name: str) -> str:
        found = _FORM.fullmatch(self)
        return (found[name] if found else None) or ""

    @property
    def step(self) -> str:
        """`csynth`, `synth`, `route` or `cosim`."""
        return self._part("step")

    @property
    def analytic(self) -> bool:
        """Whether the figures are estimated."""
        return bool(self._part("analytic"))

    @property
    def family(self) -> str:
        """The name in brackets; empty for an estimate and for a vendor's tool."""
        return self._part("family")

    @property
    def words(self) -> str:
        """The step in words, as `logic synthesis`."""
        return _WORDS[self.step]

    @property
    def order(self) -> tuple[bool, int, bool, str]:
        """The sort key: vendor tools before open tools, then earlier steps first, then an estimate before its step."""
        return (bool(self.family), list(_WORDS).index(self.step), not self.analytic, self.family)


ANALYTIC_CSYNTH, CSYNTH = Stage("analytic_csynth"), Stage("csynth")
ANALYTIC_SYNTH, SYNTH = Stage("analytic_synth"), Stage("synth")
ROUTE, COSIM = Stage("route"), Stage("cosim")
OPEN_SYNTH, ROUTE_ECP5 = Stage("synth(open)"), Stage("route(ecp5)")
ANALYTIC_OPEN_SYNTH = Stage("analytic_synth(open)")
STAGES = (ANALYTIC_CSYNTH, CSYNTH, ANALYTIC_SYNTH, SYNTH, ROUTE, COSIM, ANALYTIC_OPEN_SYNTH, OPEN_SYNTH, ROUTE_ECP5)
