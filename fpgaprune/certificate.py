"""`LockCertificate`: which locked elements were compared, where, and what was found; as data.

A link is one place that the weights pass through on their way to the hardware (memory, a `.keras`
file, an ONNX file, the firmware). A link holds when every locked element has exactly the bits of zero
there: -0.0 and NaN are violations. A link may also compare elements that are held at other values; then the bits
of these values are the ones that count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from types import UnionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import CertificateError, shown
from fpgaprune.masks import MaskSet


@dataclass(frozen=True)
class WeightCheck:
    """One weight at one link.

    Attributes:
        path: weight path.
        elements: elements of the array. locked: those that were compared.
        violations: locked elements whose bits are not those of zero, or of the value that they are held at.
        first_violation: index and value of the first, as text; None without one.
        sha256: over dtype, shape and all bytes of the array, in Keras's axis order.
    """

    path: str
    elements: int
    locked: int
    violations: int
    first_violation: str | None
    sha256: str


@dataclass(frozen=True)
class LayerCounts:
    """The weights of one layer as hardware has them, counted in the files that synthesis reads.

    Attributes:
        layer: its name. path: the Keras weight that they came from, or "".
        inputs, outputs: of one output position, as the files state them: KH * KW * C_in, and C_out.
        weights: how many there are; what was removed is not among them.
        zero: how many are zero. power_of_two: how many are a power of two or its negative.
        distinct: different magnitudes other than zero.
    """

    layer: str
    path: str
    inputs: int
    outputs: int
    weights: int
    zero: int
    power_of_two: int
    distinct: int


@dataclass(frozen=True)
class LinkCheck:
    """All weights at one link.

    Attributes:
        link: where, as `finetuned.keras`.
        weights: one check per masked weight that this link carries.
        not_carried: masked weights that do not exist here on their own, with the reason.
        layers: what the weights of each layer are after quantisation; empty at links before it.
        held: whether the elements were compared with values that they are held at, rather than with zero.
    """

    link: str
    weights: tuple[WeightCheck, ...]
    not_carried: Mapping[str, str]
    layers: tuple[LayerCounts, ...] = ()
    held: bool = False

    @property
    def wanted(self) -> str:
        """What each locked element has to be, in words."""
        return "at the values that they are held at" if self.held else "exactly zero"

    @property
    def violations(self) -> int:
        """Locked elements that are something else."""
        return sum(weight.violations for weight in self.weights)

    @property
    def locked(self) -> int:
        """Locked elements that were compared."""
        return sum(weight.locked for weight in self.weights)

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "link": self.link,
            "locked": self.locked,
            "violations": self.violations,
            "weights": [asdict(weight) for weight in self.weights],
            "not_carried": dict(self.not_carried),
            "layers": [asdict(layer) for layer in self.layers],
            "held": self.held,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LinkCheck:
        """What `to_json` gave.

        Raises:
            CertificateError: `data` has another form.
        """
        try:
            weights = tuple(WeightCheck(**_of_kinds(WeightCheck, row)) for row in data["weights"])
            layers = tuple(LayerCounts(**_of_kinds(LayerCounts, row)) for row in data.get("layers", []))
            not_carried = {_text(k): _text(v) for k, v in data["not_carried"].items()}
            return cls(_text(data["link"]), weights, not_carried, layers, data.get("held", False) is True)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CertificateError(f"certificate is malformed: {shown(error)}; run the flow again") from error


@dataclass(frozen=True)
class LockCertificate:
    """What was compared at every link."""

    links: tuple[LinkCheck, ...]

    @property
    def ok(self) -> bool:
        """True when something was compared and every locked element is exactly zero at every link."""
        return bool(self.links) and not self.violations

    @property
    def violations(self) -> int:
        """Locked elements, over all links, that are not exactly zero."""
        return sum(link.violations for link in self.links)

    def require(self) -> LockCertificate:
        """The certificate itself, where it holds.

        Raises:
            CertificateError: a locked element is not exactly zero; the first is named.
        """
        for link in self.links:
            for weight in link.weights:
                if weight.violations:
                    raise CertificateError(
                        f"{link.link}: {weight.violations} of {weight.locked} locked elements of {weight.path!r} are "
                        f"not {link.wanted}, the first {weight.first_violation}; the model trained without its lock"
                    )
        if not self.links:
            raise CertificateError("the certificate compares nothing; give it at least one link")
        return self

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        return {"ok": self.ok, "violations": self.violations, "links": [link.to_json() for link in self.links]}


# The kinds of values in rows of a certificate, by the name of the annotation.
_KINDS: Mapping[str, type | UnionType] = {"int": int, "str": str, "str | None": str | None}


def _of_kinds(row_type: type[Any], row: Mapping[str, Any]) -> Mapping[str, Any]:
    """`row`, where each value is of the kind that `row_type` has there."""
    for field in fields(row_type):
        value = row[field.name]
        if not isinstance(value, _KINDS[str(field.type)]) or (isinstance(value, int) and (value < 0 or value is True)):
            raise TypeError(f"{field.name} is {shown(value)}")
    return row


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{shown(value)} is no text")
    return value


def check_link(
    link: str,
    arrays: Mapping[str, NDArray[Any]],
    masks: MaskSet,
    not_carried: Mapping[str, str] | None = None,
    values: Mapping[str, NDArray[Any]] | None = None,
) -> LinkCheck:
    """Every locked element of `arrays` compared with zero, or with its element of `values`, bit for bit.

    Args:
        link: where the arrays were read.
        arrays: weight path to array, floats or integers, in Keras's axis order.
        masks: True = free, False = locked.
        not_carried: weight path to the reason why this link has no such array.
        values: weight path to what locked elements are held at, for each masked weight; zero if left out.

    Raises:
        CertificateError: a masked weight is missing, or has another shape than its mask or its values.
    """
    if values is not None:
        link = f"{link}, held values"
    reasons = dict(not_carried or {})
    checks = []
    for path, mask in masks.items():
        if path in reasons:
            continue
        if path not in arrays:
            raise CertificateError(
                f"{link}: weight {path!r} is locked but missing; it has {', '.join(arrays) or 'none'}"
            )
        array = np.asarray(arrays[path])
        wanted = np.zeros_like(array) if values is None else _values_of(link, path, values, array)
        checks.append(_check_weight(link, path, array, mask, wanted))
    left = {path: reason for path, reason in reasons.items() if path in masks}
    return LinkCheck(link, tuple(checks), left, held=values is not None)


def _values_of(link: str, path: str, values: Mapping[str, NDArray[Any]], array: NDArray[Any]) -> NDArray[Any]:
    if path not in values or np.shape(values[path]) != array.shape:
        got = f"shape {np.shape(values[path])}" if path in values else "none"
        raise CertificateError(f"{link}: values of {path!r} have {got}; wanted one for each of {array.shape}")
    return np.asarray(values[path]).astype(array.dtype)


def digest_array(array: NDArray[Any]) -> str:
    """SHA-256 over dtype, shape and bytes in C order, little endian."""
    plain = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return hashlib.sha256(f"{plain.dtype.str}{plain.shape}".encode() + plain.tobytes()).hexdigest()


def _check_weight(
    link: str, path: str, array: NDArray[Any], mask: NDArray[np.bool_], wanted: NDArray[Any]
) -> WeightCheck:
    if array.shape != mask.shape:
        raise CertificateError(f"{link}: weight {path!r} has shape {array.shape}; its mask has {mask.shape}")
    wrong = ~mask & _differs(array, wanted)
    first = None
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        first = f"{list(index)} = {array[index]!s}"
    locked = int(mask.size - mask.sum())
    return WeightCheck(path, int(array.size), locked, int(wrong.sum()), first, digest_array(array))


def _differs(array: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.bool_]:
    # A comparison of values would take -0.0 for 0.0; bytes do not.
    octets = [np.ascontiguousarray(one).view(np.uint8).reshape(*one.shape, one.itemsize) for one in (array, wanted)]
    return np.asarray((octets[0] != octets[1]).any(axis=-1))
