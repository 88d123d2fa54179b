"""What a flow asks of a network and its types before it trains while the network rounds as its hardware does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fpgaprune.errors import ConfigError, HlsError, UnsupportedLayerError


def require_exact_types(precision: str, key: str, off: str) -> None:
    """`precision` gives every sum a type that holds it.

    Args:
        precision: of `[hls]`.
        key: asks for the training, as `quantise.epochs`.
        off: its value without that training.

    Raises:
        ConfigError: it does not.
    """
    if precision not in ("widths", "auto"):
        raise ConfigError(
            f"{key}: hls.precision is {precision!r}, one type for every sum too; wanted 'widths' or 'auto', or "
            f"{key.rpartition('.')[2]} = {off}"
        )


def unroundable(model: Any, key: str, off: str) -> Iterator[str]:
    """A line where a layer of `model` cannot round in Keras; `key` and `off` as for `require_exact_types`."""
    from fpgaprune.lowering import require_roundable

    try:
        require_roundable(model)
    except (HlsError, UnsupportedLayerError) as error:
        yield f"{key}: {error}; or let {key.rpartition('.')[2]} be {off}"
