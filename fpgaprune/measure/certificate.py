"""`LockCertificate` says which locked elements were compared, where, and what was found.

A link is one place that the weights pass through on their way to the hardware (memory, a `.keras` file, an ONNX file,
the firmware). A link holds if every locked element there has exactly the bits of zero: -0.0 and NaN are violations. A
link may also compare elements that are held at other values; then they must have the bits of these values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import CertificateError
from fpgaprune.values import MaskSet, Summarised, Summary

Count = Annotated[int, msgspec.Meta(ge=0)]
# Whether a claim was proven or tried.
ALL_INPUTS = "for all inputs"
_Record = TypeVar("_Record")


def on_samples(count: int) -> str:
    """Return the other word beside `ALL_INPUTS`: a claim that was tried on so many samples."""
    return f"on {count:,} sample{'s' * (count != 1)}"


def _converted(data: object, kind: type[_Record], advice: str) -> _Record:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise CertificateError(f"certificate is malformed: {error}; {advice}") from error


@dataclass(frozen=True)
class WeightCheck:
    """One weight at one link.

    Attributes:
        path: weight path.
        elements: number of elements of the array.
        locked: number of locked elements, which were compared.
        violations: locked elements whose bits are not those of zero, or of the value at which they are held.
        first_violation: index and value of the first violation, as text; None if there is none.
        sha256: over dtype, shape and all bytes of the array, in Keras's axis order.
    """

    path: str
    elements: Count
    locked: Count
    violations: Count
    first_violation: str | None
    sha256: str


@dataclass(frozen=True)
class LayerCounts:
    """The weights of one layer, counted in the files that synthesis reads.

    Attributes:
        layer: the layer's name.
        path: the Keras weight that they come from, or "".
        inputs: inputs of one output position, KH * KW * C_in.
        outputs: C_out.
        weights: number of weights; removed ones are not counted.
        zero: how many are zero.
        power_of_two: how many are a power of two or its negative.
        distinct: number of different magnitudes other than zero.
    """

    layer: str
    path: str
    inputs: Count
    outputs: Count
    weights: Count
    zero: Count
    power_of_two: Count
    distinct: Count


@dataclass(frozen=True)
class LinkCheck:
    """All weights at one link.

    Attributes:
        link: the place, for example `finetuned.keras`.
        weights: one check for each masked weight that this link carries.
        not_carried: masked weights that this link does not hold as arrays of their own, with the reason.
        layers: counts of each layer's weights after quantisation; empty at links before it.
        held: whether the elements were compared with the values at which they are held, not with zero.
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
        """Return the check as JSON data."""
        return {
            "link": self.link,
            "locked": self.locked,
            "violations": self.violations,
            # A weight that is zero is so whatever the inputs are.
            "inputs": ALL_INPUTS,
            **msgspec.to_builtins(self, str_keys=True),
        }

    @classmethod
    def from_json(cls, data: object) -> LinkCheck:
        """Return the check that `to_json` wrote as `data`; other keys are ignored.

        Raises:
            CertificateError: `data` has another form.
        """
        return _converted(data, cls, "run the flow again")


@dataclass(frozen=True)
class Claim:
    """One thing that a bitstream was found to do.

    Attributes:
        claim: what holds.
        inputs: `ALL_INPUTS`, or `on_samples`.
        found: what was found: how much was compared, or the first difference.
        holds: whether it was found to hold.
    """

    claim: str
    inputs: str
    found: str
    holds: bool

    def sentence(self) -> str:
        """Return the claim in one line."""
        return f"{self.claim} {self.inputs}: {self.found}"


@dataclass(frozen=True)
class BitstreamLink:
    """The last link: the file that configures an FPGA, read back.

    Attributes:
        link: the file's name.
        board: the board that it configures.
        sha256: of the file.
        claims: what was found; empty if it was not read back.
        left_out: why it was not read back, or not all of it; None if it was.
        cells_sha256: of the file with the cells of synthesis that it was compared with; empty if there is none.
    """

    link: str
    board: str
    sha256: str
    claims: tuple[Claim, ...]
    left_out: str | None = None
    cells_sha256: str = ""

    @property
    def holds(self) -> bool:
        """Whether it was read back, and every claim was found to hold."""
        return bool(self.claims) and all(claim.holds for claim in self.claims)

    def text(self) -> str:
        """Write the claims in one line, with the reason for what was left out."""
        if not self.claims:
            return f"it was not, for {self.left_out}"
        return "; ".join(claim.sentence() for claim in self.claims) + (f"; {self.left_out}" if self.left_out else "")

    def to_json(self) -> dict[str, Any]:
        """Return the link as JSON data."""
        return {"holds": self.holds, **msgspec.to_builtins(self)}

    @classmethod
    def from_json(cls, data: Any) -> BitstreamLink:
        """Return the link that `to_json` wrote as `data`; other keys are ignored.

        Raises:
            CertificateError: `data` has another form.
        """
        return _converted(data, cls, "export the run again")


@dataclass(frozen=True, repr=False)
class LockCertificate(Summarised):
    """Locked elements, compared with zero or with the values that they are held at, at every link."""

    links: tuple[LinkCheck, ...]

    @property
    def ok(self) -> bool:
        """Whether a link was read and no locked element differs there; masks that lock nothing have none to differ."""
        return bool(self.links) and not self.violations

    @property
    def violations(self) -> int:
        """Locked elements, over all links, that are not exactly zero, or not exactly what they are held at."""
        return sum(link.violations for link in self.links)

    def _summary(self) -> Summary:
        rows = [
            (link.link, f"{len(link.weights):,}", f"{link.locked:,}", f"{link.violations:,}", link.wanted)
            for link in self.links
        ]
        found = "nothing was compared" if not self.links else f"{self.violations:,} violations"
        firsts = (
            f"{link.link}: {weight.path}{weight.first_violation}"
            for link in self.links
            for weight in link.weights
            if weight.violations
        )
        title = f"Certificate: {'holds' if self.ok else 'does not hold'}, {found}"
        return Summary(title, ("place", "weights", "locked elements", "violations", "wanted"), rows, tuple(firsts))

    def require(self) -> LockCertificate:
        """Return the certificate if it is `ok`.

        Raises:
            CertificateError: a locked element differs (the message names the first), or there is no link.
        """
        for link in self.links:
            for weight in link.weights:
                if weight.violations:
                    raise CertificateError(
                        f"{link.link}: {weight.violations} of {weight.locked} locked elements of {weight.path!r} are "
                        f"not {link.wanted}, the first {weight.first_violation}; train the model under its lock again"
                    )
        if not self.links:
            raise CertificateError("the certificate has no link, so nothing was compared; certify at least one link")
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as JSON data."""
        return {"ok": self.ok, "violations": self.violations, "links": [link.to_json() for link in self.links]}


def check_link(
    link: str,
    arrays: Mapping[str, NDArray[Any]],
    masks: MaskSet,
    not_carried: Mapping[str, str] | None = None,
    values: Mapping[str, NDArray[Any]] | None = None,
) -> LinkCheck:
    """Compare every locked element of `arrays` with zero, or with its element of `values`, bit for bit.

    Args:
        link: the place where the arrays were read.
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
    """Return the SHA-256 over dtype, shape and bytes in C order, little endian."""
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
    # Compared as bytes, because -0.0 equals 0.0 as a value.
    octets = [np.ascontiguousarray(one).view(np.uint8).reshape(*one.shape, one.itemsize) for one in (array, wanted)]
    return np.asarray((octets[0] != octets[1]).any(axis=-1))
