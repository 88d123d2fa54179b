"""Locks of HGQ2's kernels together with their bits."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.quantise import import_hgq, with_bits

pytest.importorskip("hgq")
from hgq.config import LayerConfigScope, QuantizerConfig, QuantizerConfigScope
from hgq.layers import QDense

_MOMENTS = ("momentum", "velocity")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 6)).astype(np.float32)
Y = X[:, :3].argmax(axis=1).astype(np.int32)


def network(trained: bool = False, **options: Any) -> Any:
    """Two Dense layers whose weights have bits that train against a price; trained, Adam has moments for every bit."""
    keras.utils.set_random_seed(3)
    weights = QuantizerConfigScope(place=("weight", "bias"), default_q_type="kbi", overflow_mode="SAT_SYM")
    data = QuantizerConfigScope(place="datalane", default_q_type="kif", overflow_mode="WRAP")
    with weights, data, LayerConfigScope(enable_ebops=True, beta0=1e-4):
        layers = [QDense(5, activation="relu", name="d1", **options), QDense(3, name="d2")]
        model = keras.Sequential([keras.Input((6,)), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(5e-3), loss)
    if trained:
        model.fit(X, Y, verbose=0)
    return model


def bits(layer: Any) -> np.ndarray:
    """The bits of each weight, as HGQ2's price counts them."""
    return np.asarray(layer.kq.bits_(layer.kernel.shape))


def moments(model: Any) -> dict[str, np.ndarray]:
    """Adam's moments for the bits of both kernels, by path."""
    slots = {variable.path: np.array(variable) for variable in model.optimizer.variables}
    return {path: slot for path, slot in slots.items() if "_kq_" in path and path.split("_b_")[-1] in _MOMENTS}


def locked(seed: int) -> fp.MaskSet:
    rng = np.random.default_rng(seed)
    return fp.MaskSet({"d1/kernel": rng.random((6, 5)) < 0.5, "d2/kernel": rng.random((5, 3)) < 0.5})


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_a_locked_weight_has_no_bits_and_no_price_and_its_moments_rest(seed, tmp_path):
    model, masks = network(trained=True), locked(seed)
    both, before = with_bits(model, masks), moments(model)
    assert len(before) == 4
    fp.finetune(model, both, X, Y, epochs=2, verbose=0)
    assert fp.certify(model, both).ok
    for layer in model.layers:
        mask = masks[f"{layer.name}/kernel"]
        assert not bits(layer)[~mask].any()
        assert bits(layer)[mask].all()
        assert not np.asarray(layer.qkernel)[~mask].any()
    for path, moment in moments(model).items():
        free = masks["d1/kernel" if "d1_kq" in path else "d2/kernel"]
        np.testing.assert_array_equal(moment[~free], before[path][~free])
        assert (moment[free] != before[path][free]).any()
    model.save(tmp_path / "model.keras")
    found = import_hgq(tmp_path / "model.keras")
    for path, mask in masks.items():
        assert not found.masks[path][~mask].any()
    np.testing.assert_array_equal(np.asarray(found.model(X)), np.asarray(model(X, training=False)))


def test_without_it_a_locked_weight_keeps_its_price():
    model, masks = network(), locked(0)
    fp.finetune(model, masks, X, Y, epochs=1, verbose=0)
    first = model.layers[0]
    assert bits(first)[~masks["d1/kernel"]].all()


def test_bits_that_weights_share_are_locked_with_the_last_of_them():
    conf = QuantizerConfig("kbi", "weight", overflow_mode="SAT_SYM", homogeneous_axis=(0,))
    model = network(kq_conf=conf)
    mask = np.ones((6, 5), bool)
    mask[:, 1] = False
    mask[:5, 2] = False
    both = with_bits(model, fp.MaskSet({"d1/kernel": mask}))
    (path,) = set(both) - {"d1/kernel"}
    np.testing.assert_array_equal(both[path], [[True, False, True, True, True]])


def test_other_masks_stay():
    model, masks = network(), locked(1)
    bias = np.array([True, False, True, True, False])
    both = with_bits(model, fp.MaskSet({**masks, "d1/bias": bias}))
    np.testing.assert_array_equal(both["d1/bias"], bias)
    np.testing.assert_array_equal(both["d1/kernel"], masks["d1/kernel"])
    assert with_bits(model, both).digest() == both.digest()


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        (QuantizerConfig("kbi", "weight", overflow_mode="SAT"), "is 'kbi' with SAT, which has a price even"),
        (QuantizerConfig("kif", "weight", overflow_mode="SAT_SYM"), "is 'kif' with SAT_SYM, which has a price even"),
    ],
)
def test_a_quantiser_whose_bits_cannot_be_zero_is_refused(conf, said):
    with pytest.raises(fp.FpgaPruneError) as error:
        with_bits(network(kq_conf=conf), locked(0))
    assert str(error.value).startswith(f"the quantiser of 'd1/kernel' {said}")


def test_masks_that_lock_no_kernel_of_hgq2_are_refused():
    plain = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, name="d1")], name="plain")
    none = fp.MaskSet({"d1/kernel": np.zeros((6, 5), bool)})
    with pytest.raises(fp.FpgaPruneError, match="in model 'plain'; it has no layer of HGQ2's with a kernel"):
        with_bits(plain, none)
    free = fp.MaskSet({"d1/kernel": np.ones((6, 5), bool)})
    with pytest.raises(fp.FpgaPruneError, match="its kernels are d1/kernel, d2/kernel"):
        with_bits(network(), free)
