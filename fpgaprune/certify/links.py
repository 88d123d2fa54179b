"""`certify`: the locked elements of a model, a file or a project are compared with zero, bit for bit."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fpgaprune.certificate import LinkCheck, LockCertificate, check_link
from fpgaprune.certify.firmware import count_firmware, read_firmware_weights
from fpgaprune.certify.onnx_file import read_onnx_weights
from fpgaprune.design import Design
from fpgaprune.errors import CertificateError
from fpgaprune.keras_file import read_keras_weights
from fpgaprune.masks import MaskSet
from fpgaprune.weights import named_weights


@runtime_checkable
class Project(Protocol):
    """A written hardware project: where it is and what it computes."""

    @property
    def path(self) -> Path:
        """The project's folder."""

    @property
    def design(self) -> Design:
        """What it computes."""


def certify(subject: Any, masks: MaskSet) -> LockCertificate:
    """Every locked element of `subject` has been compared with zero; `.require()` raises where one differs.

    Args:
        subject: a Keras model, the path of a `.keras` or `.onnx` file, or a project from `to_hls`.
        masks: True = free, False = locked.

    Raises:
        CertificateError: the file cannot be read, or a masked weight is missing from it.
    """
    if isinstance(subject, str | os.PathLike):
        path = Path(subject)
        checks = {".keras": check_keras_file, ".onnx": check_onnx_file}
        if path.suffix not in checks:
            raise CertificateError(f"{path} is neither a .keras nor a .onnx file; a project is certified by its object")
        return LockCertificate((checks[path.suffix](path, masks),))
    if isinstance(subject, Project):
        return LockCertificate((check_firmware(subject.path, subject.design, masks),))
    return LockCertificate((check_model(subject, masks),))


def check_model(model: Any, masks: MaskSet) -> LinkCheck:
    """The link `memory`: the variables of a live Keras model."""
    arrays = {path: variable.numpy() for path, variable in named_weights(model).items() if path in masks}
    return check_link("memory", arrays, masks)


def check_keras_file(path: Path, masks: MaskSet) -> LinkCheck:
    """The link of a `.keras` file, read without Keras."""
    return check_link(path.name, read_keras_weights(path), masks)


def check_onnx_file(path: Path, masks: MaskSet) -> LinkCheck:
    """The link of an ONNX file that `export_onnx` wrote."""
    arrays = read_onnx_weights(path)
    reasons = {p: "merged into another initialiser by the exporter" for p in masks if p not in arrays}
    _require_kernels(path.name, reasons, masks)
    return check_link(path.name, arrays, masks, reasons)


def check_firmware(folder: Path, design: Design, masks: MaskSet) -> LinkCheck:
    """The link of an hls4ml project: the integers that synthesis will read from its weight files, locked and counted.

    Raises:
        CertificateError: a weight file is missing, holds other integers than `design`, or a size in the files is not
            that of the design, so that removed channels would still be there.
    """
    arrays = read_firmware_weights(folder, design)
    reasons = {p: "folded with BatchNorm into the layer's bias" for p in masks if p not in arrays}
    _require_kernels(f"{folder.name}/firmware", reasons, masks)
    link = check_link(f"{folder.name}/firmware", arrays, masks, reasons)
    return replace(link, layers=count_firmware(folder, design))


def _require_kernels(link: str, missing: dict[str, str], masks: MaskSet) -> None:
    # What multiplies must be there: only vectors (biases, BatchNorm) may merge into others.
    for path in missing:
        if masks[path].ndim > 1:
            raise CertificateError(f"{link}: weight {path!r} is locked but missing from it")
