"""The recipe for a Dense network as adders, where a search begins: what `examples/trained_bits.toml` says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import keras

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


def recipe_suits(model: keras.Model) -> bool:
    """Tell whether `model` is a Dense network: none of its kernels has positions."""
    return all(len(weight.shape) <= 2 for weight in model.trainable_weights)
