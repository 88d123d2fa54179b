"""The lock on Keras models: set, changed, saved, lost never in silence."""

from itertools import product

import keras
import numpy as np
import pytest
import tensorflow as tf

import fpgaprune as fp
from fpgaprune.errors import FpgaPruneError, LockError, MaskError
from fpgaprune.values import named_weights
from tests.quick import quick

X = np.random.default_rng(0).normal(size=(24, 6, 6, 1)).astype("float32")
Y = np.random.default_rng(1).integers(0, 3, 24)


def small_model(optimizer="adam", **compile_options):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            keras.layers.Conv2D(3, 3, name="conv1"),
            keras.layers.Conv2D(3, 3, name="conv2"),
            keras.layers.BatchNormalization(name="norm"),
            keras.layers.Flatten(name="flatten"),
            keras.layers.Dense(3, name="dense"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, **compile_options)
    return model


def fit(model, epochs=1, **options):
    return model.fit(X, Y, epochs=epochs, batch_size=8, verbose=0, **options)


def fitted_model():
    """A model that was trained without a lock; Keras would trace the step twice to build the optimizer inside it."""
    model = small_model()
    model.optimizer.build(model.trainable_variables)
    fit(model)
    return model


def bits(model):
    return {path: variable.numpy().tobytes() for path, variable in named_weights(model).items()}


def held(model, masks):
    weights = named_weights(model)
    return {path: weights[path].numpy()[~mask] for path, mask in masks.items()}


def half(model, seed=5):
    rng = np.random.default_rng(seed)
    kernels = {path: v.shape for path, v in named_weights(model).items() if path.endswith("kernel")}
    return fp.MaskSet({path: rng.random(shape) < 0.5 for path, shape in kernels.items()})


def assert_zero(model, masks):
    for path, array in held(model, masks).items():
        assert not array.view(np.int32).any(), path


# Which elements, which values


SLICES = ["conv2/kernel[1, 1, 2, 0]", "conv2/kernel[:, :, 2, 0]", "conv2/kernel[..., 1]", "conv2/kernel", "dense/bias"]


@pytest.mark.parametrize("text", quick(["conv2/kernel[1, 1, 2, 0]", "dense/bias"], SLICES))
def test_an_element_a_kernel_a_filter_and_a_whole_weight_are_held_at_zero(text):
    model = fitted_model()
    masks = fp.MaskSet.from_slices(model, [text])
    fp.lock(model, masks)
    before = bits(model)
    fit(model)
    assert_zero(model, masks)
    after = bits(model)
    assert all(before[path] != after[path] for path in after if path not in masks)


# Each time a saved model keeps its current values under the lock.
@pytest.mark.slow
def test_values_may_be_the_current_ones():
    model = fitted_model()
    masks = half(model)
    before = held(model, masks)
    fp.lock(model, masks, "current")
    fit(model)
    assert all(np.array_equal(array, before[path]) for path, array in held(model, masks).items())


def test_values_may_be_given_and_broadcast():
    model = small_model()
    masks = fp.MaskSet.from_slices(model, ["conv2/kernel[:, :, 2, 0]", "dense/bias"])
    fp.lock(model, masks, {"conv2/kernel": 0.25, "dense/bias": [1.0, 2.0, -0.0]})
    fit(model)
    now = held(model, masks)
    assert (now["conv2/kernel"] == 0.25).all()
    assert now["dense/bias"].tobytes() == np.array([1, 2, -0.0], "float32").tobytes()


def test_a_lock_on_a_fitted_model_takes_effect_on_the_next_step():
    model = small_model()
    fit(model)
    traced = model.train_function
    fp.lock(model, half(model))
    assert model.train_function is not traced
    model.fit(X[:8], Y[:8], batch_size=8, verbose=0)
    assert_zero(model, half(model))


def test_the_lock_keeps_the_optimizer_and_its_moments():
    model = fitted_model()
    adam, moment = model.optimizer, model.optimizer._momentums[0].numpy()
    fp.lock(model, half(model))
    assert model.optimizer.inner_optimizer is adam
    assert np.array_equal(adam._momentums[0].numpy(), moment)
    assert int(model.optimizer.iterations) == 3
    model.optimizer.learning_rate = 0.5
    assert float(adam.learning_rate) == 0.5
    fp.unlock(model)
    assert model.optimizer is adam


def test_a_lock_of_zeros_costs_one_bool_a_weight():
    model = small_model()
    masks = half(model)
    fp.lock(model, masks)
    own = [v for v in model.optimizer._variables if v.shape.rank]
    assert {v.dtype for v in own} == {"bool"}
    assert sum(int(np.prod(v.shape)) for v in own) == masks.size


# Clipping, by hand


@pytest.mark.parametrize("clip", ["clipnorm", "global_clipnorm"])
@pytest.mark.parametrize(("option", "norm"), [("zero", 5.0), ("keep", 13.0)])
def test_clipping_is_what_a_hand_computes(clip, option, norm):
    weight = keras.Variable(np.zeros(3, "float32"), name="w")
    masks = {"w": np.array([True, True, False])}
    optimizer = fp.LockedOptimizer(keras.optimizers.SGD(1.0, **{clip: 1.0}), masks, locked_gradients=option)
    optimizer.apply([tf.constant([3.0, 4.0, 12.0])], [weight])
    np.testing.assert_allclose(weight.numpy(), [-3 / norm, -4 / norm, 0], rtol=1e-6)


# Masks that change


def test_two_iterations_with_two_masks():
    """Mask [0, 1, 1, 0], then [1, 0, 0, 1], under Adam: the question as it was asked in 2017."""
    weight = keras.Variable(np.array([1.0, 2.0, 3.0, 4.0], "float32"), name="w")
    adam = keras.optimizers.Adam(0.1)
    optimizer = fp.LockedOptimizer(adam, {"w": np.array([False, True, True, False])}, values="current")
    gradient = tf.constant([1.0, 1.0, -1.0, -1.0])
    optimizer.apply([gradient], [weight])
    np.testing.assert_allclose(weight.numpy(), [1.0, 1.9, 3.1, 4.0], rtol=1e-6)
    assert adam._momentums[0].numpy().tolist()[0::3] == [0.0, 0.0]
    first = weight.numpy()
    optimizer.change(fp.MaskSet({"w": np.array([True, False, False, True])}), "current")
    optimizer.apply([gradient], [weight])
    second = weight.numpy()
    assert second[1:3].tobytes() == first[1:3].tobytes()
    # Adam's second step from untouched moments: 0.1 m' / (sqrt(v') + eps) with m = 0.1 g, v = 0.001 g^2.
    step = 0.1 * (0.1 / (1 - 0.9**2)) / np.sqrt(0.001 / (1 - 0.999**2))
    np.testing.assert_allclose(second[[0, 3]], [1.0 - step, 4.0 + step], rtol=1e-5)


def test_relock_in_a_callback_takes_effect_on_the_next_step_without_a_retrace():
    model = small_model()
    fp.lock(model, half(model), "current")
    seen = []

    class Changes(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if seen:
                masks, before = seen[-1]
                now = held(model, masks)
                assert all(np.array_equal(now[path], before[path]) for path in now)
            masks = half(model, seed=50 + len(seen))
            fp.relock(model, masks, "current")
            seen.append((masks, held(model, masks)))

    model.make_train_function()
    traced = model.train_function
    fit(model, epochs=2, callbacks=[Changes()])
    assert len(seen) == 6
    assert model.train_function is traced


@pytest.mark.parametrize("values", quick(["current"], ["zero", "current", {"conv1/kernel": 0.5}]))
def test_relock_to_other_weights_and_values_works_in_the_middle_of_fit(values):
    model = small_model()
    fp.lock(model, fp.MaskSet.from_slices(model, ["dense/kernel[0]"]))
    others = fp.MaskSet.from_slices(model, ["conv1/kernel[..., 1]"])
    wanted = []

    class Change(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 0:
                fp.relock(model, others, values)
                wanted.append(held(model, others)["conv1/kernel"])

    fit(model, epochs=3, callbacks=[Change()])
    assert np.array_equal(held(model, others)["conv1/kernel"], wanted[0])
    assert named_weights(model)["dense/kernel"].numpy()[0].all(), "the first lock should be gone"


# Survival


@pytest.mark.parametrize("values", quick(["current"], ["zero", "current"]))
def test_a_saved_model_comes_back_locked(tmp_path, values):
    model = fitted_model()
    masks = half(model)
    fp.lock(model, masks, values)
    fit(model)
    before = held(model, masks)
    model.save(tmp_path / "locked.keras")
    loaded = keras.saving.load_model(tmp_path / "locked.keras")
    assert bits(loaded) == bits(model)
    assert loaded.optimizer.masks == masks
    for one, other in zip(loaded.optimizer.variables, model.optimizer.variables, strict=True):
        assert np.array_equal(one.numpy(), other.numpy()), one.name
    fit(loaded)
    fit(model)
    assert bits(loaded) == bits(model)
    assert all(np.array_equal(array, before[path]) for path, array in held(loaded, masks).items())
    fp.unlock(loaded)
    assert type(loaded.optimizer) is keras.optimizers.Adam


@pytest.mark.parametrize(
    ("values", "changed"), quick([("zero", False), ("current", True)], product(["zero", "current"], [False, True]))
)
def test_an_h5_file_comes_back_locked(tmp_path, values, changed):
    # Keras's reader builds the optimizer of such a file for an empty list of variables.
    model = small_model()
    masks = half(model)
    fp.lock(model, masks, values)
    fit(model)
    before = held(model, masks)
    model.save(tmp_path / "locked.h5")
    loaded = keras.saving.load_model(tmp_path / "locked.h5")
    if changed:
        fp.relock(loaded, masks, values)
    fit(loaded)
    assert bits(loaded) != bits(model), "nothing was trained"
    assert all(np.array_equal(array, before[path]) for path, array in held(loaded, masks).items())


def test_a_lock_that_knows_no_weight_yet_is_changed_by_relock_only():
    masks = {"dense/kernel": np.ones((12, 3), bool) & (np.arange(3) > 0)}
    model = small_model(fp.LockedOptimizer(keras.optimizers.Adam(), masks))
    with pytest.raises(LockError, match=r"knows no weight before its first step; call build"):
        model.optimizer.change(masks)
    others = fp.MaskSet({"dense/kernel": ~masks["dense/kernel"]})
    fp.relock(model, others)
    fit(model)
    assert_zero(model, others)


def test_an_optimizer_that_was_never_built_is_saved_with_its_lock():
    masks = {"dense/kernel": np.ones((12, 3), bool) & (np.arange(3) > 0)}
    for values in ("zero", "current"):
        model = small_model(fp.LockedOptimizer(keras.optimizers.Adam(), masks, values=values))
        clone = keras.models.clone_model(model)
        before = named_weights(clone)["dense/kernel"].numpy()[:, 0]
        fit(clone)
        after = named_weights(clone)["dense/kernel"].numpy()[:, 0]
        assert np.array_equal(after, before if values == "current" else np.zeros(12))
    given = fp.LockedOptimizer(keras.optimizers.Adam(), masks, values={"dense/kernel": 1.0})
    with pytest.raises(LockError, match="build the optimizer to save it"):
        given.get_config()


def test_a_clone_is_locked_too():
    model = small_model()
    fp.lock(model, half(model))
    clone = keras.models.clone_model(model)
    clone.build((None, 6, 6, 1))
    fit(clone)
    assert clone.optimizer.masks == half(model)
    assert_zero(clone, half(model))


@pytest.mark.parametrize("loaded", quick([True], [False, True]))
def test_a_locked_model_that_is_compiled_again_refuses_to_train_unlocked(tmp_path, loaded):
    model = small_model()
    masks = half(model)
    fp.lock(model, masks)
    if loaded:
        model.save(tmp_path / "locked.keras")
        model = keras.saving.load_model(tmp_path / "locked.keras")
    model.compile("sgd", model.loss)
    with pytest.raises(LockError, match=r"'conv1/kernel' is locked, but this optimizer does not hold it .* fp.lock"):
        fit(model)
    fp.lock(model, masks)
    fit(model)
    assert_zero(model, masks)
    fp.unlock(model)
    fit(model)
    assert all(array.any() for array in held(model, masks).values())


@pytest.mark.parametrize("how", quick(["file"], ["file", "config", "clone"]))
def test_a_model_without_its_optimizer_refuses_to_train_unlocked(tmp_path, how):
    model = small_model()
    model.get_layer("dense").kernel_constraint = keras.constraints.NonNeg()
    masks = half(model)
    fp.lock(model, masks)
    model.save(tmp_path / "locked.keras")
    if how == "file":
        loaded = keras.saving.load_model(tmp_path / "locked.keras", compile=False)
    elif how == "config":
        loaded = type(model).from_config(model.get_config())
    else:
        loaded = keras.models.clone_model(model)
    loaded.build((None, 6, 6, 1))
    loaded.compile("adam", model.loss)
    before = bits(loaded)
    with pytest.raises(LockError, match=r"'conv1/kernel' is locked, but this optimizer does not hold it .* fp.unlock"):
        fit(loaded)
    fp.lock(loaded, masks)
    fit(loaded)
    assert_zero(loaded, masks)
    assert before != bits(loaded)
    fp.unlock(loaded)
    assert isinstance(loaded.get_layer("dense").kernel_constraint, keras.constraints.NonNeg)
    assert loaded.get_layer("conv1").kernel_constraint is None
    fit(loaded)
    assert all(array.any() for array in held(loaded, masks).values())
    with pytest.raises(LockError, match="is not locked"):
        fp.unlock(loaded)


# Each time such a model is locked, trained and unlocked after it is compiled.
@pytest.mark.slow
def test_a_model_without_its_optimizer_can_be_unlocked_before_it_is_compiled(tmp_path):
    model = small_model()
    fp.lock(model, half(model))
    model.save(tmp_path / "locked.keras")
    loaded = keras.saving.load_model(tmp_path / "locked.keras", compile=False)
    fp.unlock(loaded)
    loaded.compile("adam", model.loss)
    fit(loaded)


LAYERS_WITH_CONSTRAINTS = [
    (keras.layers.Conv2D(2, 3), (6, 6, 2)),
    (keras.layers.DepthwiseConv2D(3), (6, 6, 2)),
    (keras.layers.SeparableConv2D(2, 3), (6, 6, 2)),
    (keras.layers.Conv2DTranspose(2, 3), (6, 6, 2)),
    (keras.layers.BatchNormalization(), (3,)),
    (keras.layers.LayerNormalization(), (3,)),
    (keras.layers.PReLU(), (3,)),
    (keras.layers.EinsumDense("ab,bc->ac", 2, bias_axes="c"), (3,)),
    (keras.layers.LSTM(2), (3, 2)),
    (keras.layers.GRU(2), (3, 2)),
    (keras.layers.Bidirectional(keras.layers.SimpleRNN(2)), (3, 2)),
    (keras.layers.TimeDistributed(keras.layers.Dense(2)), (3, 2)),
]


@pytest.mark.parametrize(("layer", "shape"), LAYERS_WITH_CONSTRAINTS, ids=lambda x: getattr(x, "name", ""))
def test_every_locked_weight_of_these_layers_is_remembered_without_the_optimizer(layer, shape):
    layer = type(layer).from_config(layer.get_config())
    model = keras.Sequential([keras.Input(shape), layer])
    for path, variable in named_weights(model).items():
        if not variable.trainable:
            continue
        model.compile("sgd", "mse")
        fp.lock(model, {path: np.zeros(variable.shape, bool)})
        again = keras.Sequential.from_config(model.get_config())
        guards = {v.constraint.path for v in again.trainable_variables if v.constraint is not None}
        assert path in guards, path
        fp.unlock(model)
        assert not any(v.constraint for v in keras.Sequential.from_config(model.get_config()).trainable_variables)


def test_a_locked_weight_whose_layer_names_no_constraint_is_remembered_by_another():
    tokens = keras.Input((3, 4))
    attended = keras.layers.MultiHeadAttention(1, 2, name="attend")(tokens, tokens)
    model = keras.Model(tokens, keras.layers.Dense(1)(attended))
    model.compile("adam", "mse")
    path = next(path for path in named_weights(model) if "query" in path and path.endswith("kernel"))
    fp.lock(model, {path: np.zeros(named_weights(model)[path].shape, bool)})
    again = keras.Model.from_config(model.get_config())
    again.compile("adam", "mse")
    with pytest.raises(LockError, match=f"weight '{path}' is locked"):
        again.fit(np.ones((4, 3, 4)), np.ones((4, 3, 1)), verbose=0)
    fp.unlock(again)
    again.fit(np.ones((4, 3, 4)), np.ones((4, 3, 1)), verbose=0)


def test_the_weights_own_constraint_still_works_under_a_lock():
    model = small_model()
    dense = model.get_layer("dense")
    dense.kernel.constraint = keras.constraints.NonNeg()
    masks = fp.MaskSet.from_slices(model, ["dense/kernel[0]"])
    fp.lock(model, masks, {"dense/kernel": -1.0})
    fit(model)
    assert (dense.kernel.numpy()[0] == -1).all()
    assert (dense.kernel.numpy()[1:] >= 0).all()
    fp.unlock(model)
    assert isinstance(dense.kernel.constraint, keras.constraints.NonNeg)


def rewind_by_set_weights(model, tmp_path):
    weights = model.get_weights()
    return lambda: model.set_weights([np.ones_like(array) for array in weights])


def rewind_by_checkpoint(model, tmp_path):
    for variable in model.trainable_variables:
        variable.assign(np.ones_like(variable.numpy()))
    path = tf.train.Checkpoint(variables=[v.value for v in model.trainable_variables]).write(str(tmp_path / "ckpt"))
    return lambda: tf.train.Checkpoint(variables=[v.value for v in model.trainable_variables]).read(path)


def rewind_by_weights_file(model, tmp_path):
    weights = model.get_weights()
    model.set_weights([np.ones_like(array) for array in weights])
    model.save_weights(tmp_path / "w.weights.h5")
    return lambda: model.load_weights(tmp_path / "w.weights.h5")


@pytest.mark.slow
@pytest.mark.parametrize("rewind", [rewind_by_set_weights, rewind_by_checkpoint, rewind_by_weights_file])
@pytest.mark.parametrize("values", ["zero", {"conv2/kernel": 0.5, "dense/kernel": 2.0, "conv1/kernel": 3.0}])
def test_rewinding_does_not_undo_a_lock(tmp_path, rewind, values):
    model = small_model("sgd")
    masks = half(model)
    fp.lock(model, masks, values)
    back = rewind(model, tmp_path)
    model.optimizer.settle()
    wanted = held(model, masks)
    back()
    assert not any(np.array_equal(array, wanted[path]) for path, array in held(model, masks).items())
    model.fit(X[:8], Y[:8], batch_size=8, verbose=0)
    assert all(np.array_equal(array, wanted[path]) for path, array in held(model, masks).items())
    back()
    model.optimizer.settle()
    assert all(np.array_equal(array, wanted[path]) for path, array in held(model, masks).items())


def test_a_checkpoint_of_the_optimizer_restores_masks_and_moments(tmp_path):
    model = small_model()
    fp.lock(model, half(model))
    fit(model)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    path = checkpoint.write(str(tmp_path / "ckpt"))
    moments = [v.numpy() for v in model.optimizer.inner_optimizer.variables]
    fp.relock(model, half(model, seed=9))
    fit(model)
    checkpoint.read(path)
    assert model.optimizer.masks == half(model)
    for variable, moment in zip(model.optimizer.inner_optimizer.variables, moments, strict=True):
        assert np.array_equal(variable.numpy(), moment), variable.name


# Bad input: one clear error each, everything as before


def unbuilt(model, masks):
    other = keras.Sequential([keras.layers.Dense(2)])
    other.compile("sgd", "mse")
    fp.lock(other, masks)


def not_compiled(model, masks):
    fp.lock(keras.models.clone_model(keras.Sequential(model.layers)), masks)


def foreign_optimizer(model, masks):
    model.optimizer.build([keras.Variable(np.zeros(2), name="other")])
    fp.lock(model, masks)


def nan_weights(model, masks):
    kernel = model.get_layer("conv1").kernel
    kernel.assign(np.full(kernel.shape, np.nan, "float32"))
    fp.lock(model, masks, "current")


BAD = {
    "shape": (
        lambda m, k: fp.lock(m, {"dense/kernel": np.ones(3, bool)}),
        MaskError,
        r"'dense/kernel' has shape \(3,\)",
    ),
    "dtype": (lambda m, k: fp.lock(m, {"dense/kernel": np.ones((12, 3))}), MaskError, "has dtype float64; wanted bool"),
    "path": (lambda m, k: fp.lock(m, {"dense/kernle": np.ones(3, bool)}), MaskError, "did you mean dense/kernel"),
    "a sparsity": (lambda m, k: fp.lock(m, 0.5), MaskError, r"masks is a float; wanted .* as fp\.select"),
    "slices": (lambda m, k: fp.lock(m, ["dense/kernel[0, :]"]), MaskError, "masks is a list; wanted weight path"),
    "a file": (lambda m, k: fp.select("mine.keras", 0.5), MaskError, "model is a str; wanted a Keras model"),
    "moved by its layer": (
        lambda m, k: fp.lock(m, {"norm/moving_mean": np.zeros(3, bool)}),
        LockError,
        "moved by its layer",
    ),
    "values word": (
        lambda m, k: fp.lock(m, k, "zeros"),
        LockError,
        "values 'zeros' is unknown; wanted 'zero', 'current'",
    ),
    "values type": (lambda m, k: fp.lock(m, k, 0.0), LockError, "values is a float"),
    "values missing": (
        lambda m, k: fp.lock(m, k, {"dense/kernel": 0}),
        LockError,
        "values for 'conv1/kernel' are missing",
    ),
    "values unmasked": (
        lambda m, k: fp.lock(m, k, {"dense/bias": 0}),
        LockError,
        "values for 'dense/bias' have no mask",
    ),
    "values shape": (
        lambda m, k: fp.lock(m, fp.MaskSet.from_slices(m, ["dense/bias"]), {"dense/bias": np.ones(4)}),
        LockError,
        r"have shape \(4,\); wanted numbers that broadcast to \(3,\)",
    ),
    "values nan": (
        lambda m, k: fp.lock(m, fp.MaskSet.from_slices(m, ["dense/bias"]), {"dense/bias": np.nan}),
        LockError,
        "hold 3 locked elements at NaN or infinity",
    ),
    "gradients": (lambda m, k: fp.lock(m, k, locked_gradients="no"), LockError, "locked_gradients is 'no'"),
    "unbuilt": (unbuilt, MaskError, "has no weights yet; call or build it first"),
    "not compiled": (
        lambda m, k: fp.lock(keras.Sequential(m.layers), k),
        LockError,
        r"is not compiled; call model.compile",
    ),
    "unlock": (lambda m, k: fp.unlock(m), LockError, "is not locked; call fp.lock first"),
    "relock": (lambda m, k: fp.relock(m, k), LockError, "is not locked; call fp.lock first"),
    "foreign optimizer": (foreign_optimizer, LockError, "was built for other variables"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_error_and_changes_nothing(name):
    call, error, message = BAD[name]
    model = small_model()
    before, optimizer = bits(model), model.optimizer
    with pytest.raises(error, match=message) as caught:
        call(model, half(model))
    assert isinstance(caught.value, FpgaPruneError)
    assert "\n" not in str(caught.value)
    assert bits(model) == before
    assert model.optimizer is optimizer
    assert not any(v.constraint for v in model.trainable_variables)


def test_nan_in_current_values_is_refused():
    model = small_model()
    with pytest.raises(LockError, match=r"'conv1/kernel' hold .* at NaN or infinity"):
        nan_weights(model, half(model))


@pytest.mark.parametrize(
    ("masks", "values", "message"),
    [
        ({"dense/kernel": np.ones(3, bool)}, "zero", "has shape"),
        ({"norm/moving_mean": np.zeros(3, bool)}, "zero", "moved by its layer"),
        ({"dense/bias": np.zeros(3, bool)}, {"dense/bias": np.inf}, "NaN or infinity"),
    ],
)
def test_a_bad_relock_leaves_the_lock_as_it_was(masks, values, message):
    model = small_model()
    fp.lock(model, half(model))
    before, optimizer = bits(model), model.optimizer
    with pytest.raises(FpgaPruneError, match=message):
        fp.relock(model, masks, values)
    assert bits(model) == before
    assert model.optimizer is optimizer
    assert optimizer.masks == half(model)


def test_a_second_lock_is_refused():
    model = small_model()
    fp.lock(model, half(model))
    with pytest.raises(LockError, match=r"is locked already; change the lock with fp\.relock"):
        fp.lock(model, half(model))


def test_loss_scaling_goes_outside():
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
    with pytest.raises(LockError, match="wrap the other way round"):
        fp.LockedOptimizer(scaled, {"w": np.ones(3, bool)})
