"""What a layer computes with is what may be locked: told by TensorFlow's graph, for layers of any class."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.errors import LockError
from fpgaprune.network import require_in_use
from fpgaprune.train import Frozen
from fpgaprune.values import named_weights


class Reparametrised(layers.Layer):
    """`x @ make(kernel, matrix)`, where `matrix` is (C_in, units)."""

    def __init__(self, make: Any, **options: Any) -> None:
        super().__init__(**options)
        self.make = make

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], 4))
        self.matrix = self.add_weight(name="matrix", shape=(shape[-1], 4), initializer="zeros")

    def call(self, x: Any) -> Any:
        return keras.ops.matmul(x, self.make(self.kernel, self.matrix))


class Derived(layers.Dense):
    """A Dense layer whose `kernel` is a property of her own."""

    @property
    def kernel(self) -> Any:
        return self._kernel * 2.0 + 1.0


class Decoder(layers.Layer):
    """Computes with the kernel of another layer, transposed."""

    def __init__(self, other: Any, **options: Any) -> None:
        super().__init__(**options)
        self.other = other

    def call(self, x: Any) -> Any:
        return keras.ops.matmul(x, keras.ops.transpose(self.other.kernel))


def sequential(*parts: Any, shape: tuple[int, ...] = (8,), dtype: str | None = None) -> Any:
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input(shape, dtype=dtype), *parts])


def half(shape: Any) -> Any:
    return np.random.default_rng(0).random(tuple(shape)) > 0.5


def require(model: Any, *paths: str, stays: bool = True, values: Any = None) -> None:
    weights = named_weights(model)
    paths = paths or tuple(path for path, variable in weights.items() if len(variable.shape) > 1)
    require_in_use(model, {path: half(weights[path].shape) for path in paths}, LockError, values, stays=stays)


def autoencoder(size: int) -> Any:
    entry = keras.Input((8,))
    coder = layers.Dense(size, name="a")
    return keras.Model(entry, Decoder(coder)(coder(entry)))


def attention() -> Any:
    entry = keras.Input((5, 4))
    return keras.Model(entry, layers.MultiHeadAttention(2, 3)(entry, entry))


def called_twice() -> Any:
    entry, shared = keras.Input((8,)), layers.Dense(8, name="a")
    return keras.Model(entry, shared(shared(entry)))


class Subclassed(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.a = layers.Dense(4, name="a")

    def call(self, x: Any) -> Any:
        return self.a(x)


def subclassed() -> Any:
    model = Subclassed()
    model(np.zeros((2, 8), np.float32))
    return model


AS_STORED = {
    "dense": lambda: sequential(layers.Dense(4)),
    "mixed precision": lambda: sequential(layers.Dense(4, dtype="mixed_float16")),
    "einsum": lambda: sequential(layers.EinsumDense("ab,bc->ac", output_shape=4)),
    "convolutions": lambda: sequential(
        layers.Conv2D(4, 3, dilation_rate=2),
        layers.BatchNormalization(),
        layers.DepthwiseConv2D(3),
        layers.SeparableConv2D(5, 3, padding="same"),
        layers.Conv2DTranspose(4, 2),
        layers.Conv2D(4, 1, groups=2),
        shape=(12, 12, 2),
    ),
    "recurrent": lambda: sequential(
        layers.LSTM(3, return_sequences=True),
        layers.Bidirectional(layers.GRU(3, return_sequences=True)),
        layers.SimpleRNN(2),
        shape=(5, 4),
    ),
    "embedding": lambda: sequential(layers.Embedding(10, 4), shape=(5,), dtype="int32"),
    "each time step": lambda: sequential(layers.TimeDistributed(layers.Dense(3)), shape=(5, 4)),
    "attention": attention,
    "frozen": lambda: sequential(Frozen(layers.Dense(3)), layers.Dense(2)),
    "spectral": lambda: sequential(layers.SpectralNormalization(layers.Dense(4, name="a"), name="s")),
    "turned": lambda: sequential(Reparametrised(lambda w, _: keras.ops.flip(w, 0), name="a")),
    "decoder": lambda: autoencoder(4),
    "square decoder": lambda: autoencoder(8),
    "called twice": called_twice,
    "subclassed": subclassed,
}
_KERNELS = {"spectral": ("s/a/kernel",), "turned": ("a/kernel",), "frozen": ("dense/kernel",)}


@pytest.mark.parametrize("name", AS_STORED)
def test_layers_that_compute_with_their_weights_may_be_locked(name: str) -> None:
    model = AS_STORED[name]()
    kernels = _KERNELS.get(name, ())
    if name == "frozen":
        kernels = tuple(path for path in named_weights(model) if path.endswith("kernel"))
    require(model, *kernels)


def test_a_weight_that_is_scaled_may_be_locked_at_zero_and_at_nothing_else() -> None:
    def scaled(kernel: Any, _: Any) -> Any:
        return kernel / (keras.ops.norm(kernel, axis=0) + 1e-3)

    model = sequential(Reparametrised(scaled, name="a"))
    require(model, "a/kernel")
    with pytest.raises(
        LockError, match=r"'a/kernel' is not what the model computes with: .* locked elements have other"
    ):
        require(model, "a/kernel", values={"a/kernel": np.full((8, 4), 0.5)})


NOT_AS_STORED = {
    "shifted": (lambda w, _: w + 0.1, "locked elements have other values"),
    "softmax": (lambda w, _: keras.ops.softmax(w, axis=-1), "locked elements have other values"),
    "sum": (lambda w, _: keras.ops.cumsum(w, axis=0), "locked elements have other values"),
    "cut anew": (
        lambda w, _: keras.ops.reshape(2 * keras.ops.reshape(w, (4, 8)), (8, 4)),
        "its elements are not where they were",
    ),
    "low rank, still zero": (lambda w, m: w + m, "locked zeros move with other weights"),
    "unused": (lambda _, m: m, "is not in use"),
}


@pytest.mark.parametrize("name", NOT_AS_STORED)
def test_what_is_made_of_a_weight_is_not_the_weight(name: str) -> None:
    make, reason = NOT_AS_STORED[name]
    with pytest.raises(LockError, match=reason):
        require(sequential(Reparametrised(make, name="a")), "a/kernel")


def test_a_kernel_that_is_a_property_is_not_the_stored_one() -> None:
    with pytest.raises(LockError, match=r"'a/kernel' is not what the model computes with: .* other values"):
        require(sequential(Derived(4, name="a")))


def test_a_certificate_asks_only_what_is_so_now() -> None:
    model = sequential(Reparametrised(lambda w, m: w + m, name="a"))
    weights = named_weights(model)
    weights["a/kernel"].assign(np.where(half((8, 4)), weights["a/kernel"].numpy(), 0))
    require(model, "a/kernel", stays=False)
    weights["a/matrix"].assign(np.ones((8, 4)))
    with pytest.raises(LockError, match=r"locked elements have other values behind operation"):
        require(model, "a/kernel", stays=False)


def test_free_weights_and_vectors_are_not_asked_about() -> None:
    model = sequential(Reparametrised(lambda w, _: w + 0.1, name="a"), layers.BatchNormalization(name="b"))
    require_in_use(model, {"a/kernel": np.ones((8, 4), bool), "b/beta": np.zeros(4, bool)}, LockError, stays=True)


def test_a_model_that_cannot_be_traced_is_refused_in_one_line() -> None:
    class Stubborn(layers.Dense):
        def call(self, x: Any) -> Any:
            if not isinstance(x, keras.KerasTensor):
                raise ValueError("not today\nand not tomorrow")
            return super().call(x)

    with pytest.raises(LockError, match=r"cannot be seen, because it cannot be traced: .*not today[^\n]*$"):
        require(sequential(Stubborn(4, name="a")))
