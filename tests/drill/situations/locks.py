"""Locks of layers that compute with something else than the weight they store, and of weights with several users."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp

from ...unit.remove.test_shared import tied
from ._asking import refused

_FREE = np.random.default_rng(0).random((8, 6)) > 0.5
_MASKS = fp.MaskSet({"a/kernel": _FREE})


def _data() -> tuple[Any, Any]:
    draws = np.random.default_rng(1)
    return draws.normal(size=(64, 8)).astype(np.float32), draws.normal(size=(64, 3)).astype(np.float32)


def _model(first: Any = None) -> Any:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((8,)), first or layers.Dense(6, name="a"), layers.Dense(3, name="b")])
    model.compile("adam", "mse")
    return model


def _pruned() -> Any:
    model = _model()
    fp.finetune(model, _MASKS, *_data())
    return model


def lora_is_enabled_after_the_lock(folder: Path) -> None:
    """LoRA makes locked zeros non-zero in use: no certificate, lock or selection, until it is merged as advised."""
    model = _pruned()
    fp.certify(model, _MASKS).require()
    model.get_layer("a").enable_lora(2)
    model.compile("adam", "mse")
    model.fit(*_data(), verbose=0)
    used = keras.ops.convert_to_numpy(model.get_layer("a").kernel)
    assert np.count_nonzero(used[~_FREE]) > 0
    refused(lambda: fp.certify(model, _MASKS), r"'a/kernel' is not what layer 'a' computes with: LoRA")
    refused(lambda: fp.lock(model, _MASKS), "LoRA", r"merged\.weights\.h5")
    refused(lambda: fp.finetune(model, _MASKS, *_data()), "LoRA")
    refused(lambda: fp.select(model, 0.5, "weight"), "LoRA")
    refused(lambda: fp.from_zeros(model), "LoRA")
    model.save_weights(folder / "merged.weights.h5")
    plain = keras.Sequential([keras.Input((8,)), layers.Dense(6, name="a"), layers.Dense(3, name="b")])
    plain.load_weights(folder / "merged.weights.h5")
    plain.compile("adam", "mse")
    assert np.array_equal(plain.predict(_data()[0], verbose=0), model.predict(_data()[0], verbose=0))
    assert fp.certify(plain, _MASKS).violations == np.count_nonzero(used[~_FREE])
    fp.finetune(plain, _MASKS, *_data())
    fp.certify(plain, _MASKS).require()


def lora_is_enabled_on_a_locked_model(folder: Path) -> None:
    """Keras refuses it because of the lock's constraint, as the page on locks says; the lock still holds after that."""
    model = _model()
    fp.lock(model, _MASKS)
    with pytest.raises(ValueError, match="Lora is incompatible with kernel constraints"):
        model.get_layer("a").enable_lora(2)
    model.fit(*_data(), verbose=0)
    fp.certify(model, _MASKS).require()
    fp.unlock(model)
    model.get_layer("a").enable_lora(2)
    model.compile("adam", "mse")
    model.fit(*_data(), verbose=0)


def lora_in_a_file(folder: Path) -> None:
    """A .keras file holds the kernel with LoRA merged and is counted so; an .h5 file does not and is refused."""
    model = _pruned()
    model.get_layer("a").enable_lora(2)
    model.get_layer("a").lora_kernel_b.assign(np.ones((2, 6)))
    model.save(folder / "lora.keras")
    assert fp.certify(folder / "lora.keras", _MASKS).violations == np.count_nonzero(~_FREE)
    with warnings.catch_warnings(action="ignore"):  # Keras calls the format a legacy
        model.save(folder / "lora.h5")
    refused(lambda: fp.certify(folder / "lora.h5", _MASKS), "LoRA adds to it; save the model as .keras")


def keras_quantises_after_the_lock(folder: Path) -> None:
    """`model.quantize` puts other numbers in place of Dense, EinsumDense and Embedding: refused in memory and file."""
    for mode in ("int8", "int4", "float8"):
        model = _pruned()
        model.get_layer("a").quantize(mode)
        refused(lambda model=model: fp.certify(model, _MASKS), rf"quantize\('{mode}'\)", "before quantize")
        model.save(folder / f"{mode}.keras")
        refused(lambda mode=mode: fp.certify(folder / f"{mode}.keras", _MASKS), rf"quantize\('{mode}'\)")
    model = _model(layers.EinsumDense("ab,bc->ac", output_shape=6, name="a"))
    model.get_layer("a").quantize("int8")
    refused(lambda: fp.lock(model, _MASKS), r"quantize\('int8'\)")
    table = keras.Sequential([keras.Input((5,), dtype="int32"), layers.Embedding(10, 4, name="a")])
    table.compile("adam", "mse")
    table.get_layer("a").quantize("int8")
    refused(lambda: fp.lock(table, {"a/embeddings": np.zeros((10, 4), bool)}), r"quantize\('int8'\)")


class _Shifted(layers.Dense):
    """Multiplies by its kernel and 0.1."""

    def call(self, x: Any) -> Any:
        return keras.ops.matmul(x, self.kernel + 0.1)


def a_layer_of_hers_computes_with_a_derived_kernel(folder: Path) -> None:
    """Zeros of a kernel to which a layer adds 0.1 are no zeros: refused early, and no ONNX file says so."""
    model = _model(_Shifted(6, name="a"))
    refused(lambda: fp.lock(model, _MASKS), "'a/kernel' is not what the model computes with")
    refused(lambda: fp.select(model, 0.5, "weight"), "'a/kernel' is not what the model computes with")
    stored = model.get_layer("a").kernel
    stored.assign(np.where(_FREE, stored.numpy(), 0))
    refused(lambda: fp.certify(model, _MASKS), f"{np.count_nonzero(~_FREE)} of its {np.count_nonzero(~_FREE)} locked")
    refused(lambda: fp.export_onnx(model, folder / "m.onnx"), "'a/kernel' .* is missing from the ONNX file")


def a_layer_of_hers_is_called_dense(folder: Path) -> None:
    """A class of hers with the name of one of Keras's is not read from a file as if it were Keras's."""
    hers = keras.saving.register_keras_serializable("hers")(type("Dense", (_Shifted,), {}))
    model = _model(hers(6, name="a"))
    stored = model.get_layer("a").kernel
    stored.assign(np.where(_FREE, stored.numpy(), 0))
    model.save(folder / "hers.keras")
    refused(lambda: fp.certify(folder / "hers.keras", _MASKS), "'a/kernel' is locked but missing")


class _WeightNormalised(layers.Layer):
    """Multiplies by its kernel with columns of length `gain`."""

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], 6))
        self.gain = self.add_weight(name="gain", shape=(6,), initializer="ones")

    def call(self, x: Any) -> Any:
        return keras.ops.matmul(x, self.gain * self.kernel / (keras.ops.norm(self.kernel, axis=0) + 1e-6))


def a_weight_normalised_layer(folder: Path) -> None:
    """Zeros stay zeros when columns are scaled, so they can be locked; other values do not, and are refused."""
    del folder
    model = _model(_WeightNormalised(name="a"))
    refused(lambda: fp.lock(model, _MASKS, "current"), "'a/kernel' is not what the model computes with")
    fp.finetune(model, _MASKS, *_data())
    fp.certify(model, _MASKS).require()


def spectral_normalisation(folder: Path) -> None:
    """The wrapper writes its kernel anew in each training step; the locked zeros in it are zero in use."""
    del folder
    model = _model(layers.SpectralNormalization(layers.Dense(6, name="a"), name="s"))
    masks = fp.MaskSet({"s/a/kernel": _FREE})
    fp.finetune(model, masks, *_data(), epochs=3)
    fp.certify(model, masks).require()
    used = keras.ops.convert_to_numpy(model.get_layer("s").layer.kernel)
    assert not used[~_FREE].any()
    assert used[_FREE].all()


def constraints_that_rescale(folder: Path) -> None:
    """A constraint on a locked kernel holds for its free elements, eager or not, and the locked ones are zero."""
    del folder
    for eager in (False, True):
        for name, holds in (
            ("unit_norm", lambda w: np.allclose(np.linalg.norm(w, axis=0), 1, atol=1e-5)),
            ("non_neg", lambda w: (w >= 0).all()),
            (keras.constraints.MaxNorm(0.5), lambda w: (np.linalg.norm(w, axis=0) <= 0.5 + 1e-6).all()),
        ):
            model = _model(layers.Dense(6, name="a", kernel_constraint=name))
            model.compile(keras.optimizers.Adam(0.1), "mse", run_eagerly=eager)
            fp.finetune(model, _MASKS, *_data())
            fp.certify(model, _MASKS).require()
            assert holds(model.get_layer("a").kernel.numpy()), (name, eager)


def a_kernel_that_nothing_reads(folder: Path) -> None:
    """A lock of a kernel that a layer stores and does not compute with is refused."""
    del folder

    class Merged(layers.Dense):
        def call(self, x: Any) -> Any:
            return keras.ops.matmul(x, self.deployed)

        def build(self, shape: Any) -> None:
            self.deployed = self.add_weight(name="deployed", shape=(shape[-1], self.units))
            super().build(shape)

    refused(lambda: fp.lock(_model(Merged(6, name="a")), _MASKS), "'a/kernel' is not in use")


def one_layer_called_twice(folder: Path) -> None:
    """The lock, the file, removal and ONNX of a layer that is called twice are right; a design refuses it early."""
    keras.utils.set_random_seed(0)
    left, right, shared = keras.Input((8,)), keras.Input((8,)), layers.Dense(6, "relu", name="a")
    model = keras.Model([left, right], layers.Dense(3, name="b")(layers.Concatenate()([shared(left), shared(right)])))
    model.compile("adam", "mse")
    x, y = _data()
    masks = fp.MaskSet(
        {"a/kernel": np.repeat([[False, True, True] * 2], 8, axis=0), "a/bias": np.array([0, 1, 1] * 2, bool)}
    )
    fp.finetune(model, masks, [x, x[::-1]], y)
    fp.certify(model, masks).require()
    model.save(folder / "twice.keras")
    fp.certify(folder / "twice.keras", masks).require()
    small = fp.apply_removal(model, fp.plan_removal(model))
    assert small.get_layer("a").units == 4
    fp.equivalence(model, small).require()
    fp.certify(fp.export_onnx(model, folder / "twice.onnx"), masks).require()
    target = fp.Target.of("xc7z020clg400-1")
    refused(lambda: fp.make_design(model, target, [x, x]), "layer 'a' is used 2 times")


def two_layers_share_one_kernel(folder: Path) -> None:
    """The lock of a kernel of two layers holds; removal, which would need one of them alone, refuses it early."""
    model = tied(8)
    model.compile("adam", "mse")
    masks = fp.MaskSet({"a/kernel": np.random.default_rng(0).random((8, 8)) > 0.5})
    x = _data()[0]
    fp.finetune(model, masks, x, x)
    fp.certify(model, masks).require()
    fp.certify(fp.export_onnx(model, folder / "m.onnx"), masks).require()
    refused(lambda: fp.plan_removal(model), "layers 'a' and 'b' share the weight 'a/kernel'")
    assert not fp.equivalence(model, keras.models.clone_model(model), tolerance=0).ok


def a_decoder_uses_the_kernel_of_its_encoder(folder: Path) -> None:
    """A kernel that another layer reads transposed can be locked: its zeros are zeros in both."""
    del folder

    class Decoder(layers.Layer):
        def call(self, x: Any) -> Any:
            return keras.ops.matmul(x, keras.ops.transpose(coder.kernel))

    entry, coder = keras.Input((8,)), layers.Dense(6, "relu", name="a")
    model = keras.Model(entry, Decoder(name="d")(coder(entry)))
    model.compile("adam", "mse")
    x = _data()[0]
    fp.finetune(model, _MASKS, x, x)
    fp.certify(model, _MASKS).require()
    assert np.count_nonzero(coder.kernel.numpy()) == _FREE.sum()
