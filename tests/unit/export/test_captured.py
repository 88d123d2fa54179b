"""What a model captures becomes a constant of its ONNX file: the file asks for the model's inputs and no more."""

import keras
import numpy as np
import onnxruntime
import pytest
import tensorflow as tf
from keras import layers

from fpgaprune.errors import ExportError
from fpgaprune.export import export_onnx, require_runs, run_onnx

ROW = np.array([1.0, -2.0, 3.0, 0.5], np.float32)
TENSOR, VARIABLE = tf.constant(ROW), tf.Variable(ROW)


class Scaled(layers.Layer):
    """Multiplies by what its maker gave, which is no weight of the layer."""

    def __init__(self, factor, **options):
        super().__init__(**options)
        self.factor = lambda: factor

    def call(self, x):
        return x * self.factor()


def adapted(**options):
    layer = layers.Normalization(**options)
    layer.adapt(np.random.default_rng(0).normal(3, 2, size=(40, 4)))
    return layer


def arithmetic(function):
    x = keras.Input((4,))
    return keras.Model(x, layers.Dense(2)(function(x)))


CAPTURING = {
    "Normalization": lambda: keras.Sequential([keras.Input((4,)), adapted(), layers.Dense(2)]),
    "its inverse": lambda: keras.Sequential([keras.Input((4,)), layers.Dense(4), adapted(invert=True)]),
    "one mean for all": lambda: keras.Sequential([keras.Input((4,)), adapted(axis=None), layers.Dense(2)]),
    "Normalization before what folds": lambda: keras.Sequential(
        [keras.Input((4,)), adapted(), layers.Dense(3), layers.BatchNormalization()]
    ),
    "x * tensor": lambda: arithmetic(lambda x: x * TENSOR),
    "x + array": lambda: arithmetic(lambda x: x + ROW),
    "ops.add": lambda: arithmetic(lambda x: keras.ops.add(x, keras.ops.convert_to_tensor(ROW))),
    "ops.matmul": lambda: arithmetic(lambda x: keras.ops.matmul(x, tf.constant(np.outer(ROW, ROW)))),
    "a tensor of a layer": lambda: keras.Sequential([keras.Input((4,)), Scaled(TENSOR), layers.Dense(2)]),
    "an array of a layer": lambda: keras.Sequential([keras.Input((4,)), Scaled(ROW), layers.Dense(2)]),
    "an untracked variable": lambda: keras.Sequential([keras.Input((4,)), Scaled(VARIABLE), layers.Dense(2)]),
    "indices": lambda: arithmetic(lambda x: keras.ops.take(x, tf.constant([3, 1]), axis=-1)),
    "a Lambda": lambda: keras.Sequential([keras.Input((4,)), layers.Lambda(lambda x: x * TENSOR), layers.Dense(2)]),
    "a Lambda before what folds": lambda: keras.Sequential(
        [keras.Input((4,)), layers.Lambda(lambda x: x / TENSOR), layers.Dense(3), layers.BatchNormalization()]
    ),
    "a layer of hers before what folds": lambda: keras.Sequential(
        [keras.Input((4,)), Scaled(TENSOR), layers.Dense(3), layers.BatchNormalization()]
    ),
    "before a GRU": lambda: keras.Sequential(
        [keras.Input((5, 4)), layers.Lambda(lambda x: x * TENSOR), layers.GRU(3), layers.Dense(2)]
    ),
}


@pytest.mark.parametrize(("name", "batch"), [*((name, None) for name in CAPTURING), ("x * tensor", 2), ("a Lambda", 2)])
def test_a_file_takes_the_inputs_of_its_model_and_computes_the_same(name, batch, tmp_path):
    model = CAPTURING[name]()
    path = export_onnx(model, tmp_path / "model.onnx", batch=batch)
    assert len(onnxruntime.InferenceSession(path).get_inputs()) == len(model.inputs)
    x = np.random.default_rng(1).normal(size=(5, *model.input_shape[1:])).astype("float32")
    wanted = model.predict(x, verbose=0)
    assert np.abs(run_onnx(path, x) - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_a_layer_that_asks_for_the_number_of_samples_gets_it(tmp_path):
    def times_samples(x):
        return x * tf.cast(tf.shape(x)[0], tf.float32)

    def over_samples(x):
        return x / tf.cast(tf.shape(x)[0], tf.float32)

    x = np.ones((5, 4), np.float32)
    for function in (times_samples, over_samples):
        model = keras.Sequential([keras.Input((4,)), layers.Lambda(function)])
        path = export_onnx(model, tmp_path / "model.onnx")
        assert np.array_equal(run_onnx(path, x), function(x))


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        *((policy, "folded") for policy in ("float64", "float16", "bfloat16", "mixed_bfloat16")),
        *(("float64", "Lambda"), ("mixed_float16", "Lambda"), ("mixed_float16", "hers")),
    ],
)
def test_a_model_of_another_precision_is_written_in_float32(policy, kind, tmp_path):
    options = {"dtype": policy}
    extra = {"folded": [], "Lambda": [layers.Lambda(lambda x: x * 2.0, **options)], "hers": [Scaled(2.0, **options)]}
    inner = [layers.Conv2D(3, 3, **options), layers.BatchNormalization(**options), layers.ReLU(**options)]
    outer = [layers.Flatten(**options), layers.Dense(2, **options)]
    model = keras.Sequential([keras.Input((6, 6, 2)), *extra[kind], *inner, *outer])
    path = export_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(path)
    assert [entry.type for entry in (*session.get_inputs(), *session.get_outputs())] == ["tensor(float)"] * 2
    x = np.random.default_rng(1).normal(size=(5, 6, 6, 2)).astype("float32")
    wanted = np.asarray(model(x)).astype(np.float64)
    # bfloat16 has 8 bits.
    assert np.abs(run_onnx(path, x) - wanted).max() <= 2**-6 * np.abs(wanted).max()


@pytest.mark.parametrize("kind", [layers.GRU, layers.LSTM, layers.SimpleRNN])
def test_a_state_from_call_to_call_is_refused(kind, tmp_path):
    model = keras.Sequential([keras.Input((5, 3), batch_size=1), kind(4, stateful=True, name="memory")], name="net")
    with pytest.raises(ExportError, match=r"layer 'memory' \(\w+\) of model 'net' is stateful, .* stateful=False"):
        export_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_what_onnxruntime_cannot_run_is_one_line_and_no_file(tmp_path):
    inner = keras.Sequential([keras.Input((6, 6, 2)), layers.Conv2D(3, 3, dtype="float64", name="wide")])
    model = keras.Sequential([keras.Input((6, 6, 2)), inner], name="net")
    with pytest.raises(ExportError, match=r"onnxruntime cannot run the ONNX file of model 'net': .*wide.* of float32"):
        export_onnx(model, tmp_path / "model.onnx")
    python = layers.Lambda(lambda x: tf.numpy_function(np.sort, [x], tf.float32), output_shape=(4,), name="own")
    model = keras.Sequential([keras.Input((4,)), python, layers.Dense(2)], name="net")
    with pytest.raises(ExportError, match="model 'net' cannot be written as ONNX: ") as refusal:
        export_onnx(model, tmp_path / "model.onnx")
    assert "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_a_file_with_another_input_or_output_is_refused(tmp_path):
    model = keras.Sequential([keras.Input((4,)), layers.Dense(2)], name="net")
    content = export_onnx(model, tmp_path / "model.onnx").read_bytes()
    require_runs(content, model)
    wider = keras.Sequential([keras.Input((4,)), layers.Dense(3)], name="net")
    with pytest.raises(ExportError, match=r"gives outputs of shapes \[\(2,\)\]; the model gives \[\(3,\)\]"):
        require_runs(content, wider)
    several = keras.Model([keras.Input((4,)), x := keras.Input((4,))], layers.Dense(2)(x), name="net")
    with pytest.raises(ExportError, match=r"inputs of shapes \[\(4,\)\]; the model has \[\(4,\), \(4,\)\]"):
        require_runs(content, several)
