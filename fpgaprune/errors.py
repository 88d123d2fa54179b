"""Every error that fpgaprune raises on purpose.

Each derives from `FpgaPruneError` and from the builtin that fits, so a caller may catch either.
A message says what, where, what was got, what was wanted and what to do, in one line.
"""

from __future__ import annotations

import re
from typing import Any

# Characters of a value that a message repeats; words that are longer than any path are cut to as many.
SHOWN = 60
_ENDLESS = re.compile(r"\S{500,}")


def shown(value: object) -> str:
    """`value` as code writes it, as a message repeats it: sixty characters at most, on one line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits, a list within a list within a list
        return f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


class FpgaPruneError(Exception):
    """Something that the user of fpgaprune can understand and mend."""

    def __str__(self) -> str:
        return _ENDLESS.sub(lambda found: f"{found[0][:SHOWN]}...", super().__str__())


class StorageError(FpgaPruneError, OSError):
    """A file or folder cannot be written or read: the disk is full, nothing may be written there, a name is taken."""


class MaskError(FpgaPruneError, ValueError):
    """A mask, or a slice that describes one, does not fit the weights."""


class LockError(FpgaPruneError, ValueError):
    """A lock cannot be set as asked; the model is unchanged."""


class CertificateError(FpgaPruneError, ValueError):
    """A claim that was to be certified does not hold."""


class EquivalenceError(CertificateError):
    """Two models that should compute the same function do not.

    Attributes:
        worst_input: the input with the largest difference, one array for each input of the model; empty if unknown.
    """

    def __init__(self, message: str, worst_input: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.worst_input = worst_input


class UnsupportedLayerError(FpgaPruneError, NotImplementedError):
    """A layer has no rule for what was asked of it."""


class RemovalError(FpgaPruneError, ValueError):
    """Channels cannot be removed as asked."""


class ModelImportError(FpgaPruneError, RuntimeError):
    """A model of another library cannot be taken over with the same meaning."""


class ExportError(FpgaPruneError, RuntimeError):
    """A model could not be written in another format with the same meaning."""


class HlsError(FpgaPruneError, RuntimeError):
    """hls4ml cannot make a correct project from the model."""


class FirmwareError(FpgaPruneError, ValueError):
    """A file of a hardware project is missing or not of the form that it should have."""


class DesignError(FpgaPruneError, ValueError):
    """A `Design` or a part of it is malformed."""


class TargetError(FpgaPruneError, LookupError):
    """A part or a target is unknown or contradicts itself."""


class RtlError(FpgaPruneError, ValueError):
    """A design has no Verilog, or a folder holds none."""


class EstimateError(FpgaPruneError, ValueError):
    """A design cannot be priced."""


class ReportError(FpgaPruneError, ValueError):
    """A report cannot be written from, or a vendor report read as, what was given."""


class NoReportError(ReportError):
    """A folder holds no vendor report at all."""


class ConfigError(FpgaPruneError, ValueError):
    """A flow configuration says something that cannot be done."""


class DataError(FpgaPruneError, ValueError):
    """Training or test data do not have the form that a flow needs."""


class RunError(FpgaPruneError, RuntimeError):
    """A run directory is in use, incomplete or not one."""


class ToolError(FpgaPruneError, RuntimeError):
    """An external tool is missing, failed or ran too long."""


class ToolTimeoutError(ToolError):
    """An external tool did not end within its time limit and was stopped."""


class ToolExitError(ToolError):
    """An external tool ended with a code other than 0, which is its `code`; negative for a signal."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
