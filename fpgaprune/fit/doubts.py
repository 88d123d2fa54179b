"""What the samples that judge cannot tell, in words for the user."""

from __future__ import annotations

from fpgaprune.fit.answer import HELD_BACK, FitPoint
from fpgaprune.fit.limits import Limits


def few_samples(point: FitPoint, limits: Limits) -> str | None:
    """A sentence if the samples that judged `point` tell its loss less exactly than the limit needs; else None."""
    if not 0 < limits.most_lost < point.lost_error:
        return None
    key = "x_valid" if point.judged_on == HELD_BACK else "x_test"
    return (
        f"{point.samples:,} {point.judged_on} samples tell a loss only to ± {100 * point.lost_error:.2f} %, and at "
        f"most {100 * limits.most_lost:g} % may be lost: chance decides whether a network keeps this limit; "
        f"give more {key}"
    )


def known_samples(limits: Limits) -> str:
    """A sentence: the trained network knows the samples that judge, so the search allows more loss on them."""
    return (
        "the trained network knows the samples that judge this search: trained without them, it loses "
        f"{100 * limits.forgotten:.2f} % on them by itself, so the search allows so much more; give x_valid and "
        "y_valid that the network has not seen"
    )


def unknown_samples() -> str:
    """A sentence: no trial measured what the trained network knows of the samples that judge."""
    return (
        "there was no time to measure how well the trained network knows the samples that judge this search; give more "
        "--minutes, or x_valid and y_valid that the network has not seen"
    )
