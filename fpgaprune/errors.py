"""The errors that fpgaprune raises.

Each derives from `FpgaPruneError` and from a builtin error, so a caller can catch either. A message says in one line
what happened, where, what was found, what was wanted and what to do.
"""

from __future__ import annotations

import re
from typing import Any

# A message repeats this many characters of a value, and of a word that is longer than any path.
SHOWN = 60
_ENDLESS = re.compile(r"\S{500,}")


def fraction_meant(value: object) -> str:
    """Return `; did you mean 0.6?` for 60, which is per cent where a fraction is wanted; else nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 < value <= 100:
        return ""
    return f"; did you mean {value / 100:g}?"


def shown(value: object) -> str:
    """Write `value` for a message: as code writes it, with sixty characters at most, on one line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits, a list within a list within a list
        return f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def require_kind(value: object, kind: type | tuple[type, ...], error: type[Exception], what: str, wanted: str) -> None:
    """Check that an argument is of its kind, before its first attribute is read.

    Raises:
        error: `value` is of another kind; the message says which, and what is wanted.
    """
    if not isinstance(value, kind):
        raise error(f"{what} is a {type(value).__name__}; wanted {wanted}")


class FpgaPruneError(Exception):
    """An error that the user of fpgaprune can understand and correct.

    Examples:
        >>> try:
        ...     fp.MaskSet({"conv1/kernel": [1.0]})
        ... except fp.FpgaPruneError as error:
        ...     print(type(error).__name__, str(error)[:43])
        MaskError mask for 'conv1/kernel' has dtype float64;
    """

    def __str__(self) -> str:
        return _ENDLESS.sub(lambda found: f"{found[0][:SHOWN]}...", super().__str__())


class StorageError(FpgaPruneError, OSError):
    """A file or folder cannot be written or read: the disk is full, permission is missing, or a name is taken."""


class MaskError(FpgaPruneError, ValueError):
    """A mask, or a slice that describes one, does not fit the weights."""


class LockError(FpgaPruneError, ValueError):
    """A lock cannot be set as asked; the model is unchanged."""


class CertificateError(FpgaPruneError, ValueError):
    """A claim does not hold, so it cannot be certified."""


class EquivalenceError(CertificateError):
    """Two models that should compute the same do not.

    Attributes:
        worst_input: the sample with the largest difference, one array for each input of the model; empty if unknown.
    """

    def __init__(self, message: str, worst_input: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.worst_input = worst_input


class UnsupportedLayerError(FpgaPruneError, NotImplementedError):
    """A layer has no rule for the operation that was asked for."""


class RemovalError(FpgaPruneError, ValueError):
    """Channels cannot be removed as asked."""


class ModelImportError(FpgaPruneError, RuntimeError):
    """A model of another library cannot be imported with the same meaning."""


class ExportError(FpgaPruneError, RuntimeError):
    """A model cannot be written in another format with the same meaning."""


class HlsError(FpgaPruneError, RuntimeError):
    """hls4ml cannot make a correct project from the model."""


class FirmwareError(FpgaPruneError, ValueError):
    """A file of a hardware project is missing or malformed."""


class DesignError(FpgaPruneError, ValueError):
    """A `Design` or a part of it is malformed."""


class TargetError(FpgaPruneError, LookupError):
    """A part or a target is unknown or contradicts itself."""


class RtlError(FpgaPruneError, ValueError):
    """No Verilog can be written for a design, or a folder holds none."""


class ReadbackError(FpgaPruneError, ValueError):
    """A bitstream cannot be read back, or holds a cell that fpgaprune does not decode."""


class EstimateError(FpgaPruneError, ValueError):
    """A design cannot be priced."""


class ReportError(FpgaPruneError, ValueError):
    """A report cannot be written, or a vendor report cannot be read."""


class NoReportError(ReportError):
    """A folder holds no vendor report at all."""


class ConfigError(FpgaPruneError, ValueError):
    """A flow configuration asks for something impossible."""


class DataError(FpgaPruneError, ValueError):
    """Training or test data do not have the form that a flow needs."""


class RunError(FpgaPruneError, RuntimeError):
    """A folder is in use, incomplete or not a run folder."""


class BoardError(FpgaPruneError, RuntimeError):
    """A board is not there, does not answer, or holds another design."""


class ToolError(FpgaPruneError, RuntimeError):
    """An external tool is missing, failed or ran too long."""


class ToolTimeoutError(ToolError):
    """An external tool did not end within its time limit and was stopped."""


class ToolExitError(ToolError):
    """An external tool ended with a `code` other than 0, which is negative for a signal."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


# A network cannot be as it is wanted, or cannot become hardware: of several, the others may.
NETWORK_ERRORS = (
    DesignError,
    EstimateError,
    HlsError,
    MaskError,
    RemovalError,
    RtlError,
    UnsupportedLayerError,
)
