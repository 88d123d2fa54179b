"""`Step`: one layer of a design for the emulator, which checks its types and keeps its tables."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Convolution, Dense, LayerSpec, Order, Recurrent
from fpgaprune.emulate.exact import Exact
from fpgaprune.errors import DesignError
from fpgaprune.values import FixedType

T = TypeVar("T")
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Step:
    """One layer, ready to be computed.

    Attributes:
        layer: the layer of the design.
        sources: the layers that it reads.
        kept: what does not depend on the data (tables, weight matrices), made on first use.
    """

    layer: LayerSpec
    sources: tuple[LayerSpec, ...]
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def order(self) -> Order:
        """In which order the layer adds its products."""
        found = self.layer.operation
        return found.order if isinstance(found, Dense | Convolution | Recurrent) else "in_order"

    @property
    def result(self) -> FixedType:
        """The type of the layer's output."""
        return self.type("result")

    def type(self, role: str) -> FixedType:
        """Return the type of `role`.

        Raises:
            DesignError: the design does not state it.
        """
        try:
            return self.layer.types[role]
        except KeyError:
            raise DesignError(f"no type for {role!r}; it has {', '.join(self.layer.types)}") from None

    def operation(self, kind: builtins.type[Kind]) -> Kind:
        """Return the layer's operation, of class `kind`.

        Raises:
            DesignError: it is of another class.
        """
        found = self.layer.operation
        if not isinstance(found, kind):
            raise DesignError(f"it is a {found.__class__.__name__}, not a {kind.__name__}")
        return found

    def weight(self, role: str) -> NDArray[np.int64]:
        """Return the raw weights of `role`.

        Raises:
            DesignError: the design has none.
        """
        try:
            return self.layer.weights[role]
        except KeyError:
            raise DesignError(f"no weights {role!r}; it has {', '.join(self.layer.weights) or 'none'}") from None

    def constants(self, role: str) -> Exact:
        """Return the weights of `role` as numbers of their type."""
        return self.keep(role, lambda: Exact.of(self.weight(role), self.type(role)))

    def keep(self, name: str, make: Callable[[], T]) -> T:
        """Return what `make` returned when `name` was first asked for."""
        if name not in self.kept:
            self.kept[name] = make()
        kept: T = self.kept[name]
        return kept
