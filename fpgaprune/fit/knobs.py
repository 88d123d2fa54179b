"""`Knobs`: the point of the search space that makes a network, as keys of a flow file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import keras


# The recipe for a Dense network as adders, where a search begins, is that of `examples/trained_bits.toml`.
# Values of weights that cost no adder: each kept weight is a power of two.
POWERS_OF_TWO: Final = "digits(1)"
# The network; its share of zeros is the smallest one that a search tries.
RECIPE: Final[dict[str, Any]] = {"sparsity": 0.6, "weight_bits": 6, "activation_bits": 4, "hold": POWERS_OF_TWO}
# How it is trained, in steps of at most so many samples.
RECIPE_BATCH: Final = 512
RECIPE_TRAINING: Final[dict[str, dict[str, float]]] = {
    "finetune": {"learning_rate": 0.01, "weight_decay": 0.1},
    "quantise": {"learning_rate": 0.01},
}
SPARSITIES = (
    *(0.0, 0.2, 0.35, 0.5, 0.6, 0.68, 0.75, 0.8, 0.84, 0.87),
    *(0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99),
)
WIDTHS = (8, 7, 6, 5, 4, 3, 2)
# With so many zeros, size scatters the weights that are left, and their paths keep them together:
# docs/measurements/field.md, "How weights are chosen".
_SCATTERED = 0.95
_TOGETHER: Final[dict[str, Any]] = {"criterion": "synflow", "normalize": "none", "min_free_channels": 0.01}
# Whole filters are locked before other units.
FILTER = "filter"
# The smallest network that is likely to succeed: shares of filters and of other units that are locked, and bits.
_MOST_FILTERS, _MOST_UNITS, _FEWEST_BITS = 0.5, 0.95, 4
_ROUNDS = 4


@dataclass(frozen=True)
class Knobs:
    """One network: what is locked, and with how many bits it computes.

    Attributes:
        granularity: the unit that is locked, as in `[select]`.
        sparsity: fraction of these units that is locked, 0..1, of the network without the locked `filters`.
        weight_bits: bits of a weight.
        activation_bits: bits of an activation.
        hold: values at which kept weights are held, as in `[quantise]`; empty for any value.
        filters: fraction of whole filters that is locked first, 0..1.
        narrow: layers with one bit less, each with `weight_bits` or `activation_bits`.
        signed: inputs with a sign, which get a bit more for it where weights are held.
    """

    granularity: str
    sparsity: float = SPARSITIES[0]
    weight_bits: int = WIDTHS[0]
    activation_bits: int = WIDTHS[0]
    hold: str = ""
    filters: float = SPARSITIES[0]
    narrow: frozenset[tuple[str, str]] = frozenset()
    signed: frozenset[str] = frozenset()

    @property
    def strongest(self) -> Iterator[Knobs]:
        """The smallest network that is likely to succeed, 4 bits and few units kept; then those that keep more."""
        few = replace(self, weight_bits=_FEWEST_BITS, activation_bits=_FEWEST_BITS)
        shares = [sparsity for sparsity in reversed(SPARSITIES) if sparsity <= _MOST_UNITS]
        for filters in (0.0,) if self.granularity == FILTER else (_MOST_FILTERS, 0.0):
            yield from (replace(few, filters=filters, sparsity=sparsity) for sparsity in shares)

    @property
    def recipe(self) -> Knobs:
        """The network that the flow file for adders among the examples makes, with the same filters locked."""
        return replace(self, **RECIPE)

    @property
    def recipes(self) -> list[Knobs]:
        """The network of the flow file for adders, and the same with more units locked, the largest network first."""
        return [self.recipe, *self.recipe.stronger("sparsity")]

    @property
    def kept(self) -> float:
        """The share of the products that the zeros leave, 0..1.

        Half of the filters of a layer and of the layer before it leave a quarter of its kernels.
        """
        filters, units = 1 - self.filters, 1 - self.sparsity
        return filters**2 * (units**2 if self.granularity == FILTER else units)

    def leads_to(self, other: Knobs) -> bool:
        """Tell whether `other` is as strong or stronger in every knob, so that its training can start from here."""
        return (
            self.granularity == other.granularity
            and self.filters <= other.filters
            and self.sparsity <= other.sparsity
            and self.weight_bits >= other.weight_bits
            and self.activation_bits >= other.activation_bits
            and self.hold in ("", other.hold)
            and (self.narrow <= other.narrow or self.activation_bits > other.activation_bits)
        )

    def stronger(self, name: str) -> Iterator[Knobs]:
        """Yield these knobs with the knob `name` at each stronger value, from mild to strong."""
        if name == "sparsity":
            return (replace(self, sparsity=value) for value in SPARSITIES if value > self.sparsity)
        if name == "filters":
            return (replace(self, filters=value) for value in SPARSITIES if value > self.filters)
        if name == "hold":
            return iter(() if self.hold else (replace(self, hold=POWERS_OF_TWO),))
        # Layers have one bit less than a certain width; at another width they would be other layers.
        steps: Iterator[dict[str, Any]] = ({name: bits} for bits in WIDTHS if bits < getattr(self, name))
        return (replace(self, **step, narrow=frozenset()) for step in steps)

    @property
    def of_layers(self) -> dict[str, dict[str, int]]:
        """Layer to its own widths, as in `[hls]`."""
        found = {name: {"activation_bits": self.activation_bits + 1} for name in sorted(self.signed) if self.hold}
        for name, role in sorted(self.narrow):
            own = found.setdefault(name, {})
            own[role] = own.get(role, getattr(self, role)) - 1
        return found

    def choice(self, document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return what a flow file needs beside `settings` to choose units; nothing if `document` says some of it."""
        scattered = self.granularity == "weight" and self.sparsity >= _SCATTERED
        said = _TOGETHER.keys() & document.get("select", {}).keys()
        return {"select": _TOGETHER} if scattered and not said else {}

    def settings(self) -> dict[str, dict[str, Any]]:
        """Return sections of a flow file to the keys that make this network."""
        held = {"quantise": {"hold": self.hold, "rounds": _ROUNDS, "epochs": _ROUNDS}} if self.hold else {}
        # Filters that the flow itself names stay in force.
        filters = {"filters": self.filters} if self.filters else {}
        layers = {"layers": self.of_layers} if self.of_layers else {}
        return {
            **held,
            "select": {"sparsity": self.sparsity, "granularity": self.granularity, **filters},
            "hls": {
                "precision": "widths",
                "weight_bits": self.weight_bits,
                "activation_bits": self.activation_bits,
                **layers,
            },
        }

    @property
    def locked(self) -> str:
        """Locks of the point in words; empty if nothing is locked."""
        units = [(self.filters, "filters"), (self.sparsity, f"{self.granularity}s")]
        return ", then ".join(f"{share:.0%} of {unit}" for share, unit in units if share)

    @property
    def less(self) -> str:
        """The layers with one bit less, in words; empty if there are none."""
        return ", ".join(sorted(f"{name}'s weights" if role == "weight_bits" else name for name, role in self.narrow))

    def __str__(self) -> str:
        locked = f"{self.locked} locked" if self.locked else "nothing locked"
        weights = f"{self.weight_bits}-bit powers of two" if self.hold else f"{self.weight_bits}-bit weights"
        fewer = f" (a bit less: {self.less})" if self.narrow else ""
        sign = " and a bit for the sign of inputs" if self.hold and self.signed else ""
        return f"{locked}, {weights}, {self.activation_bits}-bit activations{sign}{fewer}"


def recipe_suits(model: keras.Model) -> bool:
    """Tell whether `model` is a Dense network: none of its kernels has positions."""
    return all(len(weight.shape) <= 2 for weight in model.trainable_weights)
