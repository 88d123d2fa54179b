"""The fitted numbers of the model, read from `hw/calibration/coefficients.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fpgaprune.errors import EstimateError
from fpgaprune.target import hardware_path


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One number of the model: `value` in `unit`; `prior` is what it is drawn to where rows say little."""

    name: str
    value: float
    prior: float
    unit: str
    meaning: str


@dataclass(frozen=True)
class Calibration:
    """Everything that was fitted.

    Attributes:
        coefficients: by name. values: the same, numbers only.
        intervals: by figure, as `csynth.lut`: factors on the estimate between which 80 % of left-out truths fell.
    """

    coefficients: Mapping[str, Coefficient]
    intervals: Mapping[str, tuple[float, float]]

    @property
    def values(self) -> dict[str, float]:
        """Value by coefficient name."""
        return {name: c.value for name, c in self.coefficients.items()}


def read_calibration(path: Path) -> Calibration:
    """The calibration that a TOML file of the form of `hw/calibration/coefficients.toml` holds.

    Raises:
        EstimateError: the file is missing or not of that form.
    """
    try:
        document = tomllib.loads(path.read_text())
        rows = [Coefficient(**row) for row in document["coefficient"]]
        intervals = {row["figure"]: (float(row["low"]), float(row["high"])) for row in document.get("interval", ())}
    except FileNotFoundError as error:
        raise EstimateError(f"calibration file {path} does not exist") from error
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise EstimateError(f"calibration file {path} is malformed: {error}") from error
    return Calibration({row.name: row for row in rows}, intervals)


@cache
def calibration() -> Calibration:
    """The calibration that ships with this package."""
    return read_calibration(hardware_path("calibration", "coefficients.toml"))
