"""`Stage`, `Cycles` and `Measurement`: what a layer, or a whole design, takes at one stage of a tool flow; as JSON."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from fpgaprune.errors import ReportError
from fpgaprune.measure.resources import Count, Figure, Resources

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
        """Return the stage that `text` spells."""
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


class Cycles(Struct, frozen=True):
    """Clock cycles; an unknown number is None.

    Attributes:
        latency_min: fewest cycles from the first input to the last output.
        latency_max: most cycles from the first input to the last output.
        interval_min: fewest cycles between two samples.
        interval_max: most cycles between two samples.
    """

    latency_min: int | None = None
    latency_max: int | None = None
    interval_min: int | None = None
    interval_max: int | None = None


class Measurement(Struct, Generic[Count], frozen=True):
    """What one layer, or the whole design, takes at one stage.

    Attributes:
        stage: the stage of every figure.
        layer: name of the layer; None for the whole design.
        resources: what it takes.
        cycles: latency and interval.
        clock_ns: period that the stage reached or estimates.
    """

    stage: Stage
    layer: str | None = None
    resources: Resources[Count] = Resources()
    cycles: Cycles = Cycles()
    clock_ns: float | None = None

    @property
    def unknown(self) -> bool:
        """Whether no resource is known."""
        return self.resources == Resources()

    def figure(self, name: str) -> Figure | None:
        """Return the count of resource `name` with its range; the range of a tool's count is the count itself."""
        count = self.resources[name]
        return Figure(count, count, count) if isinstance(count, int) else count


def interval_words(cycles: int) -> str:
    """Return how often a sample comes: `every cycle`, `every 1,024 cycles`."""
    return "every cycle" if cycles == 1 else f"every {cycles:,} cycles"


Result = TypeVar("Result")


def to_plain(result: object) -> Any:
    """Return `result` as JSON data: an object is a mapping of its fields, a stage or a path is its text."""
    return msgspec.json.decode(msgspec.json.encode(result, enc_hook=_as_text))


def from_plain(data: object, kind: type[Result], what: str) -> Result:
    """Return the object of `kind` that `data`, the JSON form of `what`, describes; unknown keys are ignored.

    Raises:
        ReportError: a field is missing or malformed.
    """
    try:
        return msgspec.convert(data, kind, dec_hook=lambda kind, text: kind(text))
    except msgspec.ValidationError as error:
        raise ReportError(f"{what} is not what fpgaprune wrote: {error}; make it anew") from error


def _as_text(value: object) -> str:
    if isinstance(value, Stage | Path):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")
