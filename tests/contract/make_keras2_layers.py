"""Saves networks of tf_keras, each with many layers side by side: `python make_keras2_layers.py FOLDER`.

Needs TF_USE_LEGACY_KERAS=1. Writes for each of `images`, `steps`, `numbers` an `.h5` and a `.keras` file, and `x.npz`
and `y.npz` with samples and what tf_keras makes of them.
"""

import atexit
import gc
import sys
from pathlib import Path

import numpy as np
import tf_keras

L = tf_keras.layers


def nested():
    inner = tf_keras.Sequential([L.Conv2D(3, 3, name="inside"), L.ReLU(6.0)], name="inner")
    inner.build((None, 12, 12, 3))
    return inner


def adapted(axis):
    layer = L.Normalization(axis=axis)
    layer.adapt(np.random.default_rng(4).normal(3, 2, (50, 9)))
    return layer


LAYERS = {
    "images": (
        (12, 12, 3),
        [
            *(L.Conv2D(4, 3, dilation_rate=2), L.Conv2D(6, 3, strides=2, padding="same", activation="relu")),
            *(L.Conv2D(6, 3, groups=3), L.Conv2DTranspose(3, 2), L.SeparableConv2D(4, 3, depth_multiplier=2)),
            *(
                L.DepthwiseConv2D(3),
                L.BatchNormalization(),
                L.LayerNormalization(),
                L.Normalization(mean=1, variance=4),
            ),
            *(L.MaxPooling2D(), L.AveragePooling2D(3, padding="same"), L.GlobalMaxPooling2D(keepdims=True)),
            *(L.UpSampling2D(), L.ZeroPadding2D(), L.Cropping2D(), L.SpatialDropout2D(0.2), L.Dropout(0.3)),
            *(L.RandomFlip(), L.RandomRotation(0.1), L.RandomZoom(0.2), L.RandomTranslation(0.1, 0.1)),
            *(L.RandomContrast(0.2), L.RandomBrightness(0.2), L.Rescaling(1 / 255, offset=-0.5)),
            *(L.RandomCrop(12, 12), L.Resizing(6, 6), L.CenterCrop(8, 8), nested()),
            *(L.GaussianNoise(0.1), L.GaussianDropout(0.1), L.AlphaDropout(0.1), L.ActivityRegularization(0.1)),
            *(L.PReLU(), L.PReLU(shared_axes=[1, 2]), L.LeakyReLU(0.2), L.ELU(0.5), L.ReLU(6.0, 0.0, 0.0)),
            *(L.ThresholdedReLU(0.5), L.Softmax(), L.Permute((2, 1, 3)), L.Activation("swish")),
            *(L.TimeDistributed(L.Conv1D(3, 2)), L.Identity(), L.UnitNormalization(), L.GroupNormalization(3)),
        ],
    ),
    "steps": (
        (12, 3),
        [
            *(L.GRU(4), L.GRU(4, reset_after=False), L.GRU(4, return_sequences=True), L.LSTM(4), L.SimpleRNN(4)),
            *(L.LSTM(4, go_backwards=True), L.LSTM(3, unit_forget_bias=False), L.RNN(L.LSTMCell(4))),
            *(L.RNN([L.GRUCell(3), L.GRUCell(2)]), L.Bidirectional(L.LSTM(3))),
            *(L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode="sum"), L.TimeDistributed(L.Dense(3))),
            *(L.Conv1D(4, 3, padding="causal", dilation_rate=2), L.Conv1DTranspose(3, 2), L.SeparableConv1D(4, 3)),
            *(L.DepthwiseConv1D(3), L.MaxPooling1D(), L.AveragePooling1D(), L.GlobalAveragePooling1D()),
            *(L.UpSampling1D(), L.ZeroPadding1D(), L.Cropping1D(), L.SpatialDropout1D(0.2)),
            *(L.EinsumDense("abc,cd->abd", (12, 4)),),
        ],
    ),
    "numbers": (
        (9,),
        [
            *(L.Dense(4, activation="relu"), adapted(-1), adapted(None), L.Reshape((3, 3)), L.RepeatVector(3)),
            *(L.Dense(3, activation=tf_keras.activations.gelu), L.Dense(3, kernel_regularizer="l2"), L.Flatten()),
            L.Dense(3, kernel_constraint=tf_keras.constraints.NonNeg(), kernel_initializer="he_normal"),
        ],
    ),
}


def flat(layer, x):
    y = layer(x)
    return L.Flatten()(y) if len(y.shape) > 2 else y


if __name__ == "__main__":
    atexit.register(gc.freeze)
    folder, rng = Path(sys.argv[1]), np.random.default_rng(0)
    inputs, outputs = {}, {}
    for name, (shape, layers) in LAYERS.items():
        entry = L.Input(shape)
        model = tf_keras.Model(entry, L.Concatenate()([flat(layer, entry) for layer in layers]), name=name)
        model.set_weights([w if w.ndim == 0 else w + rng.uniform(-0.05, 0.05, w.shape) for w in model.get_weights()])
        inputs[name] = rng.normal(size=(5, *shape)).astype(np.float32)
        outputs[name] = model(inputs[name], training=False).numpy()
        model.save(folder / f"{name}.h5", save_format="h5")
        model.save(folder / f"{name}.keras", save_format="keras")
    np.savez(folder / "x.npz", **inputs)
    np.savez(folder / "y.npz", **outputs)
