"""Dilated, grouped and transposed convolutions, and depth multipliers, as plain ones: same numbers, same locks."""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.certify import check_design
from fpgaprune.errors import CertificateError
from fpgaprune.lowering import fold
from fpgaprune.rtl import check_verilog
from fpgaprune.values import MaskSet, gathered, named_weights, spread
from tests.called import called

TARGET = fp.Target.of("xc7z020clg400-1", backend="Verilog")
IMAGE, LINE = (6, 7, 4), (9, 4)
LAYERS = {
    "dilated": (IMAGE, lambda: layers.Conv2D(3, (2, 3), dilation_rate=(3, 2), padding="same", name="l")),
    "groups": (IMAGE, lambda: layers.Conv2D(6, 3, groups=2, strides=2, padding="same", activation="relu", name="l")),
    "both": (IMAGE, lambda: layers.Conv2D(4, 2, groups=4, dilation_rate=2, name="l")),
    "multiplier": (IMAGE, lambda: layers.DepthwiseConv2D(3, depth_multiplier=2, activation="relu", name="l")),
    "dilated depthwise": (IMAGE, lambda: layers.DepthwiseConv2D(3, dilation_rate=2, padding="same", name="l")),
    "dilated multiplier": (IMAGE, lambda: layers.DepthwiseConv2D(2, depth_multiplier=3, dilation_rate=2, name="l")),
    "transposed": (IMAGE, lambda: layers.Conv2DTranspose(3, 3, strides=2, activation="relu", name="l")),
    "transposed same": (IMAGE, lambda: layers.Conv2DTranspose(4, (4, 3), strides=(3, 1), padding="same", name="l")),
    "transposed plain": (IMAGE, lambda: layers.Conv2DTranspose(4, 3, padding="same", name="l")),
    "transposed 1-D": (LINE, lambda: layers.Conv1DTranspose(3, 5, strides=2, padding="same", name="l")),
    "separable": (IMAGE, lambda: layers.SeparableConv2D(3, 3, depth_multiplier=2, name="l")),
    "causal": (LINE, lambda: layers.Conv1D(4, 3, dilation_rate=2, groups=2, padding="causal", name="l")),
    "depthwise 1-D": (LINE, lambda: layers.DepthwiseConv1D(3, depth_multiplier=2, name="l")),
}


def network(shape, make, seed=0):
    """Weights of few bits, so that a design computes what Keras does, to the bit."""
    inputs = keras.Input(shape, name="x")
    model = keras.Model(inputs, layers.Dense(2, name="head")(layers.Flatten()(make()(inputs))))
    rng = np.random.default_rng(seed)
    model.set_weights([rng.integers(-7, 8, weight.shape) / 8 for weight in model.get_weights()])
    return model, rng.integers(-8, 8, (6, *shape)).astype("float32")


def set_zero(model, masks):
    for path, variable in named_weights(model).items():
        if path in masks:
            variable.assign(np.where(masks[path], np.asarray(variable), 0))


@pytest.mark.parametrize("name", LAYERS)
def test_it_computes_the_same_and_holds_its_locks(name, tmp_path):
    model, x = network(*LAYERS[name])
    folded = fold(model)
    made = [layer for layer in folded.layers if "conv" in type(layer).__name__.lower()]
    assert all(max(layer.dilation_rate) == getattr(layer, "groups", 1) == 1 for layer in made)
    assert np.array_equal(called(folded, x), called(model, x))

    path = next(path for path in fp.weight_arrays(model) if path.startswith("l/") and path.endswith("kernel"))
    mask = np.random.default_rng(1).random(fp.weight_arrays(model)[path].shape) < 0.6
    masks = MaskSet({path: mask})
    set_zero(model, masks)
    design = fp.make_design(model, TARGET, x, fp.Precision(8, 16, 24))
    wanted = called(model, x)
    assert np.array_equal(fp.emulate(design, x), wanted)
    assert check_design(design, masks).locked == (~mask).sum()
    project = fp.to_verilog(design, tmp_path / "rtl")
    link = check_verilog(project, design, masks)
    assert link.locked == (~mask).sum() > 0
    assert link.violations == 0
    # The same kernel with a weight that is free, called locked, is found in the text.
    wrong = MaskSet({path: ~mask})
    assert check_verilog(project, design, wrong).violations == np.count_nonzero(fp.weight_arrays(model)[path])


def test_a_weight_beside_the_taps_is_no_kernel(tmp_path):
    model, x = network(*LAYERS["dilated"])
    masks = MaskSet.from_slices(model, ["l/kernel[:, :, 0, 0]"])
    set_zero(model, masks)
    design = fp.make_design(model, TARGET, x)
    layer = next(layer for layer in design.layers if layer.name == "l")
    assert check_design(design, masks).violations == 0
    layer.weights["weight"][1, 1, 1, 1] = 1
    with pytest.raises(CertificateError, match=r"weight 'l/kernel' has shape \(4, 5, 4, 3\); its mask has"):
        check_design(design, masks)


@pytest.mark.parametrize(
    ("shape", "plain", "phases"),
    [
        ((3, 3, 4, 6), (5, 7, 4, 6), None),
        ((3, 2, 6), (3, 4, 6), None),
        ((1, 2, 2, 6), (1, 4, 6, 6), None),
        ((3, 3, 4, 2), (3, 3, 4, 8), None),
        ((3, 4, 1), (7, 4, 1), None),
        ((3, 3, 4, 6), (2, 2, 6, 16), (2, 2)),
        ((1, 4, 2, 3), (1, 2, 3, 12), (3, 2)),
        ((5, 2, 3), (3, 3, 4), (2,)),
    ],
)
def test_a_kernel_comes_back_from_among_its_zeros(shape, plain, phases):
    kernel = np.random.default_rng(0).integers(1, 99, shape)
    wide = spread(kernel, plain, phases)
    assert np.count_nonzero(wide) == kernel.size
    assert np.array_equal(gathered(wide, shape, phases), kernel)
    beside = wide.copy()
    beside[np.unravel_index(np.argmin(wide), plain)] = 1
    assert gathered(beside, shape, phases) is beside


def test_a_transposed_kernel_of_the_same_shape_is_not_taken_for_a_plain_one():
    """With stride 1 and as many filters as channels, only the strides tell that its elements lie elsewhere."""
    kernel = np.arange(1, 37).reshape(3, 3, 2, 2)
    plain = spread(kernel, kernel.shape, (1, 1))
    assert np.array_equal(plain, kernel[::-1, ::-1].swapaxes(-1, -2))
    assert np.array_equal(gathered(plain, kernel.shape, (1, 1)), kernel)
    assert gathered(plain, kernel.shape) is plain


@pytest.mark.parametrize(
    ("shape", "plain"), [((3, 3, 4, 6), (6, 7, 4, 6)), ((3, 3, 4, 6), (3, 3, 6, 6)), ((4, 6), (8, 6))]
)
def test_other_shapes_are_no_such_kernels(shape, plain):
    array = np.zeros(plain)
    assert gathered(array, shape) is array
    with pytest.raises(ValueError, match="no plain kernel of shape"):
        spread(np.zeros(shape), plain)
