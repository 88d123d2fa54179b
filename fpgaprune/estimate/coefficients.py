"""`Calibration`: the fitted coefficients of the estimates, as in `hw/calibration/coefficients.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from fpgaprune.errors import EstimateError, FpgaPruneError, shown
from fpgaprune.estimate.hardware import Rates
from fpgaprune.files import hardware_path, read_toml, write_bytes


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One fitted number.

    Attributes:
        name: as `lut.add_bit`.
        value: the fitted value, in `unit`.
        prior: the textbook value, which the fit keeps to if the reports say little.
        unit: of `value`.
        meaning: what it counts, in words.
    """

    name: str
    value: float
    prior: float
    unit: str
    meaning: str


@dataclass(frozen=True)
class Calibration:
    """Everything that was fitted.

    Attributes:
        coefficients: name -> coefficient.
        intervals: figure, as `csynth.lut` -> two factors on the estimate, between which 80 % of the true values lay in
            designs that were left out of the fit.
    """

    coefficients: Mapping[str, Coefficient]
    intervals: Mapping[str, tuple[float, float]]

    @property
    def values(self) -> dict[str, float]:
        """Name of a coefficient -> its value."""
        return {name: c.value for name, c in self.coefficients.items()}

    @cached_property
    def rates(self) -> Rates:
        """LUTs and flip-flops for a unit of each quantity, at each stage."""
        return Rates.of(self.values)

    @cached_property
    def factors(self) -> Mapping[str, Mapping[str, tuple[float, float]]]:
        """The factors of `intervals`, by stage and then by resource."""
        found: dict[str, dict[str, tuple[float, float]]] = {}
        for figure, pair in self.intervals.items():
            stage, _, resource = figure.partition(".")
            found.setdefault(stage, {})[resource] = pair
        return found


def read_calibration(path: Path) -> Calibration:
    """Return the calibration in a TOML file with the form of `hw/calibration/coefficients.toml`.

    Raises:
        EstimateError: the file is missing or has another form.
    """
    try:
        document = read_toml(path, EstimateError, "calibration file")
        rows = [Coefficient(**row) for row in document["coefficient"]]
        intervals = {row["figure"]: (float(row["low"]), float(row["high"])) for row in document.get("interval", ())}
    except FileNotFoundError as error:
        raise EstimateError(f"calibration file {path} does not exist") from error
    except FpgaPruneError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise EstimateError(f"calibration file {path} is malformed: {shown(error)}") from error
    return Calibration({row.name: row for row in rows}, intervals)


@cache
def calibration() -> Calibration:
    """Return the calibration that is part of this package."""
    return read_calibration(hardware_path("calibration", "coefficients.toml"))


def read_own_calibration(path: Path) -> Calibration:
    """Return the calibration in a user's own file, which must have every coefficient.

    Raises:
        EstimateError: the file is missing or of another form, or a coefficient is missing, negative or infinite.
    """
    found = read_calibration(path)
    lacking = sorted(calibration().coefficients.keys() - found.coefficients.keys())
    if lacking:
        raise EstimateError(
            f"calibration file {path} lacks {', '.join(lacking[:3])}{' and more' if len(lacking) > 3 else ''}; "
            "write it anew with this fpgaprune: fpgaprune calibrate"
        )
    for name, value in found.values.items():
        if not 0 <= value < float("inf"):
            raise EstimateError(f"calibration file {path} has {name} = {value}; wanted a number from 0 on")
    return found


_HEAD = """\
# Coefficients of the resource model: quantities of hardware to LUTs and flip-flops.
# `prior` is the textbook value that the fit is drawn to where rows say little; `value` is the fitted one.
# `interval`: factors on an estimate that held 80 % of the truths of repositories left out of the fit.
"""


def write_calibration(path: Path, calibrated: Calibration, origin: str) -> Path:
    """Write a TOML file for `read_calibration` to `path`; numbers are rounded to five digits.

    Args:
        path: the file.
        calibrated: what to write.
        origin: a sentence for the head of the file that says what the coefficients were fitted to.
    """
    lines = [f"{_HEAD}# {origin}\n"]
    for c in calibrated.coefficients.values():
        lines.append(f'[[coefficient]]\nname = "{c.name}"\nvalue = {c.value:.5g}\nprior = {c.prior:.5g}')
        lines.append(f'unit = "{c.unit}"\nmeaning = "{c.meaning}"\n')
    for figure, (low, high) in calibrated.intervals.items():
        lines.append(f'[[interval]]\nfigure = "{figure}"\nlow = {low:.4g}\nhigh = {high:.4g}\n')
    return write_bytes(path, "\n".join(lines).encode())
