"""Laws of the default selection on random small networks: an eighth of each layer stays alive, and masks nest."""

import keras
import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from keras import layers

from fpgaprune.errors import MaskError
from fpgaprune.network import alive_channels
from fpgaprune.select import Protection, guard, select
from fpgaprune.values import named_weights
from tests.unit.select.networks import with_zeros

SETTINGS = settings(max_examples=4, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
BLOCKS = ("conv", "separable", "residual", "join", "pool")


def network(seed, blocks, widths, *, linear=False):
    """Convolutions, depthwise pairs, additions and concatenations in a row, each layer at a scale of its own.

    With `linear` the output is an affine function of the input, and all layers have about one scale.
    """
    keras.backend.clear_session()  # the same names each time: the criterion random goes by them
    activation = "linear" if linear else "relu"
    pool, flat = (layers.AveragePooling2D, layers.GlobalAveragePooling2D) if linear else (layers.MaxPooling2D, None)
    x = inputs = keras.Input((8, 8, 1 + seed % 2))
    for block, width in zip(blocks, widths, strict=False):
        if block == "separable":
            x = layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(x))
            x = layers.Conv2D(width, 1)(layers.Activation(activation)(x))
        elif block == "residual":
            trunk = layers.Conv2D(width, 1)(x)
            x = layers.Add()([layers.Conv2D(width, 3, padding="same", activation=activation)(x), trunk])
        elif block == "join":
            x = layers.Concatenate()([x, layers.Conv2D(width, 3, padding="same", activation=activation)(x)])
        elif block == "pool" and x.shape[1] > 1:
            x = pool(2)(x)
        else:
            x = layers.BatchNormalization()(layers.Conv2D(width, 3, padding="same", activation=activation)(x))
    x = layers.Flatten()(x) if seed % 3 else (flat or layers.GlobalMaxPooling2D)()(x)
    x = layers.Dense(3, activation=None if linear else "softmax")(layers.Dense(widths[0], activation=activation)(x))
    model = keras.Model(inputs, x)
    rng = np.random.default_rng(seed)
    for path, variable in named_weights(model).items():
        if path.endswith("kernel"):
            scale = 1 / np.sqrt(np.prod(variable.shape[:-1])) if linear else 10 ** rng.uniform(-3, 1)
            variable.assign(rng.normal(size=variable.shape) * scale)
    return model


CHOICES = {
    "seed": st.integers(0, 9999),
    "blocks": st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=4),
    "widths": st.lists(st.integers(2, 16), min_size=4, max_size=4),
    "granularity": st.sampled_from(["kernel", "kernel", "weight", "filter", "input_channel"]),
}


@SETTINGS
@given(sparsity=st.floats(0.3, 0.75), **CHOICES)
def test_an_eighth_of_each_layer_stays_alive(seed, blocks, widths, granularity, sparsity):
    model = network(seed, blocks, widths)
    masks = reached(model, sparsity, granularity)
    if masks is None:
        # So few units that what keeps an eighth alive is most of them.
        assert granularity in ("filter", "input_channel") or max(widths) < 8
        return
    alive = alive_channels(model, masks)
    assert len(alive) == sum(path.endswith("kernel") for path in named_weights(model))
    for layer, flags in alive.items():
        assert flags.sum() >= np.ceil(len(flags) / 8), layer
    assert list(alive.values())[-1].all(), "the model's outputs"
    assert not [warning for warning in guard(model, masks) if warning.rule != "uneven"]


@SETTINGS
@given(sparsity=st.floats(0.3, 0.95), **CHOICES)
def test_a_channel_is_alive_where_taking_it_out_changes_how_the_output_varies(
    seed, blocks, widths, granularity, sparsity
):
    """In an affine network that is so exactly where a path of free kernels leads through the channel."""
    model = network(seed, blocks, widths, linear=True)
    kernels = [path for path in named_weights(model) if path.endswith("kernel")]
    options = {"normalize": "none", "protect": Protection(min_free=0, min_free_channels=0)}
    masks = select(model, sparsity, granularity, "random", paths=kernels, seed=seed, **options)
    with_zeros(model, masks)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(6, *model.inputs[0].shape[1:])).astype(np.float32)
    whole = np.ptp(model(x, training=False).numpy(), axis=0)
    weights = named_weights(model)
    for layer, flags in alive_channels(model, masks).items():
        for channel in {int(rng.integers(len(flags))), *np.flatnonzero(~flags)[:1].tolist()}:
            kernel = weights[f"{layer}/kernel"].numpy()
            cut = kernel.copy()
            cut[(..., channel, 0) if "depthwise" in layer else (..., channel)] = 0
            weights[f"{layer}/kernel"].assign(cut)
            without = np.ptp(model(x, training=False).numpy(), axis=0)
            weights[f"{layer}/kernel"].assign(kernel)
            changed = np.abs(without - whole).max() > 1e-5 * max(whole.max(), 1e-9)
            assert changed == flags[channel], (layer, channel)


@SETTINGS
@given(fractions=st.tuples(st.floats(0, 0.75), st.floats(0, 0.75)), **CHOICES)
def test_masks_nest_with_the_depthwise_kernels_that_follow(seed, blocks, widths, granularity, fractions):
    model = network(seed, blocks, widths)
    small, large = (reached(model, share, granularity) for share in sorted(fractions))
    if small is None or large is None:
        return
    assert list(small) == list(large)
    assert all(not large[path][~small[path]].any() for path in small)


def reached(model, sparsity, granularity):
    """The default selection; None where it says that what must stay free leaves less."""
    try:
        return select(model, sparsity, granularity)
    except MaskError as error:
        if "cannot be reached" not in str(error):
            raise
        return None
