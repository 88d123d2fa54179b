"""Networks of QKeras: the files in `qkeras/` were written by QKeras 0.9.0, with what it predicts beside them."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import h5py
import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import DesignError, ModelImportError, UnsupportedLayerError
from fpgaprune.network import trained_bits
from fpgaprune.quantise import import_qkeras, read_quantizer
from fpgaprune.values import FixedType
from tests.called import called

FILES = Path(__file__).with_name("qkeras")
NAMES = ("mlp", "cnn", "skip", "parts")


@pytest.fixture(scope="module", params=NAMES)
def taken(request):
    """Name, what is imported, inputs and what QKeras predicts."""
    with np.load(FILES / f"{request.param}.npz") as arrays:
        return request.param, import_qkeras(FILES / f"{request.param}.h5"), arrays["x"], arrays["y"]


def changed(tmp_path, name, change):
    """A copy of `name` whose configuration went through `change`."""
    path = shutil.copyfile(FILES / f"{name}.h5", tmp_path / f"{name}.h5")
    with h5py.File(path, "r+") as file:
        document = json.loads(file.attrs["model_config"])
        change({layer["config"]["name"]: layer for layer in document["config"]["layers"]})
        file.attrs["model_config"] = json.dumps(document)
    return path


def test_predictions_are_those_of_qkeras_bit_for_bit(taken):
    name, found, x, wanted = taken
    got = called(found.model, x)
    if name == "mlp":  # its softmax is left out
        assert np.array_equal(got.argmax(axis=1), wanted.argmax(axis=1))
        assert np.allclose(keras.ops.softmax(got), wanted, rtol=0, atol=2e-7)
        assert any("softmax 'softmax'" in note for note in found.notes)
    else:
        assert np.array_equal(got, wanted)


def test_hardware_has_the_bits_of_the_network(taken):
    name, found, x, _ = taken
    target = fp.Target.of("xc7z020clg400-1", io_type="io_parallel" if name == "mlp" else "io_stream")
    design = fp.make_design(found.model, target)
    assert np.array_equal(fp.emulate(design, x), called(found.model, x))


def test_weights_keep_their_few_bits_beside_a_normalisation():
    found = import_qkeras(FILES / "cnn.h5")
    design = fp.make_design(found.model, fp.Target.of("xc7z020clg400-1", io_type="io_stream"))
    assert design["conv1"].types["weight"].width <= 5


def test_zeros_are_masks_and_notes_say_what_is_else(taken):
    name, found, _, _ = taken
    zeros = sum(int((weight == 0).sum()) for path, weight in kernels(found.model).items())
    # No power of two is zero.
    assert found.masks.locked_count == zeros
    assert (zeros > 0) is (name != "parts")
    assert found.to_json()["from"] == "QKeras"
    rounds_itself = name in ("cnn", "parts")
    assert any("the network does not round it" in note for note in found.notes) is not rounds_itself


def kernels(model):
    return {path: array for path, array in fp.weight_arrays(model).items() if path.endswith("/kernel")}


def test_every_quantiser_leaves_what_qkeras_leaves():
    with np.load(FILES / "quantizers.npz") as arrays:
        weights, texts, left = arrays["weights"], arrays["texts"].tolist(), arrays["left"]
    for text, wanted in zip(texts, left, strict=True):
        # QKeras adds x and the difference to x, which in float32 may miss by a unit in the last place.
        assert np.allclose(read_quantizer(text).weights(weights), wanted, rtol=0, atol=2e-7), text


def test_types_are_those_of_the_quantisers():
    types = {
        "quantized_bits(6,2,alpha=1)": "fixed<6,3,RND_CONV,SAT>",
        "quantized_bits(6,2,1)": "fixed<6,3,RND_CONV,SAT_SYM>",
        "quantized_bits(6,2,keep_negative=0)": "ufixed<6,2,RND_CONV,SAT>",
        "quantized_relu(4,1)": "ufixed<4,1,RND_CONV,SAT>",
        "quantized_relu": "ufixed<8,0,RND_CONV,SAT>",
        "quantized_tanh(6)": "fixed<6,1,RND_CONV,SAT>",
        "quantized_tanh(6,symmetric=1)": "fixed<6,1,RND_CONV,SAT_SYM>",
        "quantized_sigmoid(5)": "ufixed<5,0,RND_CONV,SAT>",
    }
    for text, kind in types.items():
        assert read_quantizer(text).data_type() == FixedType.parse(kind), text
    as_mapping = {"class_name": "quantized_bits", "config": {"bits": 6, "integer": [2], "alpha": 1.0}}
    assert read_quantizer(as_mapping) == read_quantizer("quantized_bits(6,2,alpha=1)")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("quantized_linear(4)", "'quantized_linear' is not taken over; wanted one of quantized_bits"),
        ("quantized_tanh(4,use_real_tanh=1)", "a real tanh"),
        ("quantized_sigmoid(4,0,1)", "a real tanh or sigmoid"),
        ("quantized_sigmoid(4,1)", "the latter without symmetric"),
        ("quantized_po2(4)", "that no type holds"),
        ("quantized_relu(4,0,1)", "use_sigmoid"),
        ("quantized_relu(4,0,0,0.25)", "negative_slope"),
        ("quantized_bits(4,0,alpha='auto')", "alpha=1"),
        ("quantized_bits(1)", "alpha=1"),
        ("quantized_bits(64)", "bits from 1 to 32"),
        ("quantized_bits(4,qnoise_factor=0.5)", "rounds in part"),
        ("quantized_bits(4,0,colour=2)", "setting 'colour'"),
        ("__import__('os').system('true')", "cannot be read"),
        ("quantized_bits(4, (lambda: 0)())", "cannot be read"),
        ("quantized_bits(" * 300 + ")" * 300, "cannot be read"),
        (7, "cannot be read"),
    ],
)
def test_a_quantiser_of_data_without_a_type_is_refused_by_name(text, says):
    with pytest.raises(UnsupportedLayerError, match="quanti") as error:
        read_quantizer(text).data_type()
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_scales_that_are_no_powers_of_two_are_refused():
    with pytest.raises(UnsupportedLayerError, match="'auto_po2'"):
        read_quantizer("quantized_bits(4,0,1,alpha='auto')").weights(np.ones((2, 2), np.float32))
    with pytest.raises(UnsupportedLayerError, match="2 bits or more"):
        read_quantizer("quantized_bits(1,0,1,alpha='auto_po2')").weights(np.ones((2, 2), np.float32))


def test_a_layer_or_quantiser_that_is_not_known_is_named(tmp_path):
    def renamed(layers):
        layers["conv2"]["class_name"] = "QSeparableConv2D"

    def floating(layers):
        layers["conv1"]["config"]["kernel_quantizer"] = None

    def curved(layers):
        layers["relu1"]["config"]["activation"] = "quantized_sigmoid(6,use_real_sigmoid=1)"

    for change, says in (
        (renamed, "QSeparableConv2D"),
        (floating, "layer 'conv1' has no quantiser for its kernel"),
        (curved, "layer 'relu1', activation: quantized_sigmoid(bits=6, use_real_sigmoid=1) leaves"),
    ):
        with pytest.raises((UnsupportedLayerError, ModelImportError)) as error:
            import_qkeras(changed(tmp_path, "cnn", change))
        assert says in str(error.value)


def test_a_pruning_wrapper_is_told_to_be_stripped(tmp_path):
    def wrapped(layers):
        layers["out"].update(class_name="PruneLowMagnitude", config={"name": "out", "layer": dict(layers["out"])})

    with pytest.raises(ModelImportError, match="strip_pruning"):
        import_qkeras(changed(tmp_path, "mlp", wrapped))


def test_another_file_and_another_type_are_refused(tmp_path):
    plain = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    plain.save(tmp_path / "plain.keras")
    with pytest.raises(ModelImportError, match="names no layer of QKeras's"):
        import_qkeras(tmp_path / "plain.keras")
    with pytest.raises(ModelImportError, match=r"gone\.h5"):
        import_qkeras(tmp_path / "gone.h5")
    with pytest.raises(DesignError, match="wide"):
        import_qkeras(FILES / "mlp.h5", input_type="wide")


def test_the_library_is_told_from_the_file(tmp_path):
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).save(tmp_path / "plain.keras")
    assert trained_bits(FILES / "mlp.h5") == "QKeras"
    assert trained_bits(tmp_path / "plain.keras") is None
    assert trained_bits(tmp_path / "missing.h5") is None


def test_a_flow_takes_the_file_and_shows_what_is_to_know():
    from fpgaprune.flow.run import tell_end
    from fpgaprune.flow.task import read_model

    model, found = read_model(FILES / "mlp.h5")
    assert model.count_params() > 0
    said = []

    class Heard:
        def stage(self, name, state, note="", seconds=None):
            said.append((name, state, note, seconds))

    tell_end(Heard(), "train", 1.0, notes=found["notes"])
    assert said == [("train", "done", "; ".join(found["notes"]), 1.0)]
    assert "rounded to fixed<16,6,RND,SAT>" in said[0][2]


def test_run_takes_zeros_and_bits_as_they_are():
    from fpgaprune.errors import ConfigError
    from fpgaprune.flow.engine import flow_from_options, parse_config
    from fpgaprune.flow.stages import Known, stage_named

    config = flow_from_options(FILES / "mlp.h5", data="x.npz", part="zcu104")
    assert (config.select.zeros, config.select.sparsity, config.finetune.epochs) == (True, 0.0, 0)
    document = {"name": "a", "train": {"model": str(FILES / "mlp.h5")}, "finetune": {"epochs": 3}}
    *_, check = stage_named("finetune").checks(Known(parse_config(document, "test"), SimpleNamespace()))
    with pytest.raises(ConfigError, match="whose bits QKeras trained, and they would leave them"):
        check()
