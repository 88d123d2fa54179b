"""The resources that a design lacks on its part, and priced changes, the best first."""

from __future__ import annotations

from functools import partial

from fpgaprune.advice.flow_file import OwnFlow
from fpgaprune.advice.order import rank
from fpgaprune.advice.search import Search
from fpgaprune.design import Design
from fpgaprune.estimate import Calibration, calibration, estimate
from fpgaprune.layout import Advice, DesignLayout, LayerShare, Shortage
from fpgaprune.measure import Estimate, Figure
from fpgaprune.target import Target

# Layers that a shortage names.
_NAMED = 3
BETWEEN = "FIFOs and registers between layers"


def advise(
    design: Design,
    target: Target | None = None,
    *,
    trained: Design | None = None,
    calibrated: Calibration | None = None,
) -> Advice:
    """Find the resources that `design` lacks on `target`, and what each knob would bring, the best first.

    There is no suggestion if even the upper end of the estimate fits. All figures are analytic estimates of logic
    synthesis. A change is priced on a copy of the design, in some milliseconds; docs/howto/make_it_fit.md says how a
    project that is made with the change may differ.

    Args:
        design: the network as fixed-point data.
        target: part and clock; the default is the design's own.
        trained: the same network before pruning; a suggested sparsity is a fraction of its kernels. `design` unless
            given.
        calibrated: coefficients of the estimator instead of those that ship with the package.

    Raises:
        EstimateError: a layer has no hardware model, or the design names no part and no target is given.

    Examples:
        >>> advice = fp.advise(fp.make_design(model, target, x), target)
        >>> advice.shortages
        ()
    """
    return advise_on_flow(OwnFlow(), design, target, trained=trained, calibrated=calibrated)


def advise_on_flow(
    flow: OwnFlow,
    design: Design,
    target: Target | None = None,
    *,
    trained: Design | None = None,
    calibrated: Calibration | None = None,
) -> Advice:
    """Advise as `advise` does on a design that `flow` made: each suggestion is an edit of that flow.

    It keeps what the flow says otherwise, and its estimate is that of the design which the changed flow makes.
    """
    calibrated = calibrated or calibration()
    now = estimate(design, target, calibrated=calibrated)
    laid = DesignLayout.of_project(now)
    shortages = _shortages(laid, now)
    advice = partial(Advice, design.name, laid.part, laid, shortages)
    if not shortages:
        return advice()
    search = Search(design, now, trained, calibrated, flow)
    order = partial(rank, own=now.target.part, now=search.now)
    found = list(search.knobs(shortages[0]))
    if not any(s.fits_upper and s.keeps_function and s.after.part == now.target.part.name for s in found):
        found += search.together()
    # Of two suggestions with the same text, the better one stays.
    unique = {suggestion.change: suggestion for suggestion in sorted(found, key=order, reverse=True)}
    if not any(suggestion.fits for suggestion in found):
        search.notes.append("no change that was priced makes it fit: a smaller network is needed, or a larger part")
    return advice(tuple(sorted(unique.values(), key=order)), tuple(search.notes))


def _shortages(laid: DesignLayout, now: Estimate) -> tuple[Shortage, ...]:
    """Return the resources whose upper end exceeds the part, the worst first; none if it is not known what fits."""
    taken = sorted(laid.occupancy.taken, key=lambda row: row.share("high"), reverse=True)
    short = [row for row in taken if row.high > row.capacity and laid.fits is not None]
    return tuple(
        Shortage(row.resource, Figure(row.used, row.low, row.high), row.capacity, _shares(now, row.resource, row.used))
        for row in short
    )


def _shares(now: Estimate, name: str, total: int) -> tuple[LayerShare, ...]:
    counts = [(layer.uses(name), layer.name, layer.kind) for layer in now.layers]
    # The rest is in FIFOs, or in registers of a pipeline.
    counts.append((max(total - sum(count for count, _, _ in counts), 0), BETWEEN, ""))
    largest = sorted((count for count in counts if count[0]), key=lambda count: count[0], reverse=True)
    return tuple(LayerShare(layer, kind, count, count / total) for count, layer, kind in largest[:_NAMED])
