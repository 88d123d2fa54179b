"""A certificate is about the numbers in use: no model or file passes whose layers compute with others."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.certify import certify
from fpgaprune.errors import CertificateError
from fpgaprune.values import MaskSet

FREE = np.random.default_rng(0).random((5, 4)) > 0.5
MASKS = MaskSet({"a/kernel": FREE})


class Shifted(layers.Dense):
    def call(self, x):
        return keras.ops.matmul(x, self.kernel + 0.1)


@pytest.fixture
def model():
    return pruned(layers.Dense(4, name="a"))


def pruned(layer):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((5,)), layer])
    layer.kernel.assign(np.where(FREE, layer.kernel.numpy(), 0))
    return model


def test_zeros_to_which_lora_adds_are_not_certified(model):
    assert certify(model, MASKS).ok
    model.get_layer("a").enable_lora(2)
    with pytest.raises(CertificateError, match=r"'a/kernel' is not what layer 'a' computes with: LoRA adds to it"):
        certify(model, MASKS)


def test_merged_lora_is_counted_in_the_file_and_in_the_network_built_without_it(model, tmp_path):
    layer = model.get_layer("a")
    layer.enable_lora(2)
    layer.lora_kernel_b.assign(np.ones((2, 4)))
    model.save(tmp_path / "lora.keras")
    model.save_weights(tmp_path / "merged.weights.h5")
    merged = pruned(layers.Dense(4, name="a"))
    merged.load_weights(tmp_path / "merged.weights.h5")
    x = np.eye(5, dtype=np.float32)
    assert np.array_equal(merged(x), model(x))
    for subject in (tmp_path / "lora.keras", merged):
        assert certify(subject, MASKS).violations == np.count_nonzero(~FREE)


@pytest.mark.filterwarnings("ignore")  # Keras calls the format a legacy
def test_lora_stands_beside_the_kernel_of_an_h5_file_which_is_refused(model, tmp_path):
    model.get_layer("a").enable_lora(2)
    model.save(tmp_path / "lora.h5")
    with pytest.raises(
        CertificateError, match=r"'a/kernel' is not what its layer computes with: LoRA adds to it; save"
    ):
        certify(tmp_path / "lora.h5", MASKS)


@pytest.mark.parametrize("mode", ["int8", "int4", "float8"])
def test_what_keras_has_quantised_is_not_certified(model, mode, tmp_path):
    model.get_layer("a").quantize(mode)
    model.save(tmp_path / "q.keras")
    for subject in (model, tmp_path / "q.keras"):
        with pytest.raises(
            CertificateError, match=rf"'a/kernel' is not what .* computes with: Keras's quantize\('{mode}'\)"
        ):
            certify(subject, MASKS)


def test_a_layer_of_hers_is_not_taken_for_the_one_of_its_name(tmp_path):
    hers = keras.saving.register_keras_serializable("certify")(type("Dense", (Shifted,), {}))
    model = pruned(hers(4, name="a"))
    model.save(tmp_path / "hers.keras")
    with pytest.raises(CertificateError, match="'a/kernel' is locked but missing"):
        certify(tmp_path / "hers.keras", MASKS)
    locked = np.count_nonzero(~FREE)
    with pytest.raises(CertificateError, match=f"{locked} of its {locked} locked elements have other values behind"):
        certify(model, MASKS)


def test_masks_that_lock_nothing_compare_nothing(model):
    certificate = certify(model, MaskSet({"a/kernel": np.ones((5, 4), bool)}))
    assert certificate.ok
    assert certificate.links[0].locked == 0
