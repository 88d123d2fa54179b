"""What stages put into the manifest: links that hold, and the size of a set of masks."""

from __future__ import annotations

from typing import Any

from fpgaprune.certificate import LinkCheck, LockCertificate
from fpgaprune.masks import MaskSet


def proven(*checks: LinkCheck) -> dict[str, Any]:
    """`links` for the manifest; each of `checks` holds.

    Raises:
        CertificateError: one does not.
    """
    LockCertificate(checks).require()
    return {"links": [check.to_json() for check in checks]}


def counts(masks: MaskSet) -> dict[str, Any]:
    """How much `masks` lock, and their digest."""
    return {"locked": masks.locked_count, "elements": masks.size, "digest": masks.digest()}
