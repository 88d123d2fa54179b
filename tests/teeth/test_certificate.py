"""What a certificate must refuse: one wrong bit, in any link."""

import io
import json
import zipfile

import h5py
import numpy as np
import pytest

from fpgaprune.certify import certify, count_firmware, read_firmware_weights
from fpgaprune.design import Design
from fpgaprune.errors import CertificateError
from fpgaprune.hls import layer_of
from fpgaprune.measure import LinkCheck, LockCertificate, check_link
from fpgaprune.network import read_keras_weights
from fpgaprune.values import FixedType, MaskSet

SMALLEST = np.float32(1e-45)


def masks(shape=(3, 3, 2, 2)):
    return MaskSet.from_slices({"conv/kernel": shape}, ["conv/kernel[:, :, 1, 0]"])


@pytest.mark.parametrize("value", [np.float32(-0.0), np.float32(np.nan), SMALLEST, np.float32(1)])
def test_any_bit_in_a_locked_element_is_a_violation(value):
    array = np.zeros((3, 3, 2, 2), np.float32)
    array[1, 2, 1, 0] = value
    certificate = LockCertificate((check_link("memory", {"conv/kernel": array}, masks()),))
    assert not certificate.ok
    assert certificate.violations == 1
    with pytest.raises(CertificateError, match=r"memory: 1 of 9 locked elements of 'conv/kernel'.*\[1, 2, 1, 0\]"):
        certificate.require()


def test_free_elements_may_hold_anything():
    array = np.full((3, 3, 2, 2), -0.0, np.float32)
    array[:, :, 1, 0] = 0.0
    link = check_link("memory", {"conv/kernel": array}, masks())
    assert (link.violations, link.locked) == (0, 9)
    assert LockCertificate((link,)).require().ok


def test_a_certificate_of_nothing_is_not_ok():
    assert not LockCertificate(()).ok
    with pytest.raises(CertificateError, match="nothing was compared"):
        LockCertificate(()).require()


def test_a_missing_weight_and_a_wrong_shape_are_refused():
    with pytest.raises(CertificateError, match="'conv/kernel' is locked but missing"):
        check_link("x", {}, masks())
    with pytest.raises(CertificateError, match=r"has shape \(3, 3, 2, 3\); its mask has \(3, 3, 2, 2\)"):
        check_link("x", {"conv/kernel": np.zeros((3, 3, 2, 3))}, masks())


def test_every_bit_moves_the_digest():
    array = np.zeros((3, 3, 2, 2), np.float32)
    digests = {check_link("x", {"conv/kernel": array}, masks()).weights[0].sha256}
    for at in range(array.size):
        changed = array.copy()
        changed.flat[at] = SMALLEST
        digests.add(check_link("x", {"conv/kernel": changed}, masks()).weights[0].sha256)
    assert len(digests) == array.size + 1


def test_json_round_trip():
    link = check_link("x", {"conv/kernel": np.zeros((3, 3, 2, 2), np.float32)}, masks(), {"conv/kernel2": "why"})
    assert LinkCheck.from_json(json.loads(json.dumps(link.to_json()))) == link
    with pytest.raises(CertificateError, match="malformed"):
        LinkCheck.from_json({"link": "x"})


def keras_file(path, kernel):
    """A .keras file as Keras 3 writes it, made by hand."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        variables = file.create_group("layers/conv2d/vars")
        variables.attrs["name"] = "conv"
        variables["0"] = kernel
        variables["1"] = np.ones(kernel.shape[-1], np.float32)
    config = {"config": {"layers": [{"class_name": "Conv2D", "config": {"name": "conv", "use_bias": True}}]}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", buffer.getvalue())


def test_one_bit_in_a_keras_file_is_found(tmp_path):
    kernel = np.ones((3, 3, 2, 2), np.float32)
    kernel[:, :, 1, 0] = 0
    keras_file(tmp_path / "good.keras", kernel)
    assert certify(tmp_path / "good.keras", masks()).require().ok
    kernel[0, 0, 1, 0] = -0.0
    keras_file(tmp_path / "bad.keras", kernel)
    assert certify(tmp_path / "bad.keras", masks()).violations == 1
    assert list(read_keras_weights(tmp_path / "bad.keras")) == ["conv/kernel", "conv/bias"]


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + b"\0" * 18, b"not a zip"])
def test_a_broken_keras_file_is_refused(tmp_path, content):
    (tmp_path / "broken.keras").write_bytes(content)
    with pytest.raises(CertificateError, match=r"is not a whole \.keras file"):
        certify(tmp_path / "broken.keras", masks())


def test_a_missing_or_foreign_file_is_refused(tmp_path):
    with pytest.raises(CertificateError, match="does not exist"):
        certify(tmp_path / "no.keras", masks())
    with pytest.raises(CertificateError, match="does not exist"):
        certify(tmp_path / "no.onnx", masks())
    with pytest.raises(CertificateError, match="does not exist"):
        certify(tmp_path / "no.h5", masks())
    with pytest.raises(CertificateError, match=r"is no \.keras, \.h5 or \.onnx file"):
        certify(tmp_path / "no.txt", masks())


KIND = FixedType(8, 1)


def firmware(folder, raw):
    """The weight files of an hls4ml project with one Dense layer, and its design."""
    weights = folder / "firmware" / "weights"
    weights.mkdir(parents=True)
    (folder / "firmware" / "defines.h").write_text(f"typedef ap_{KIND} fc_weight_t;\n")
    text = ", ".join(f"{value:.7f}" for value in KIND.to_float(raw).ravel())
    (weights / "w2.h").write_text(f"#else\nfc_weight_t w2[{raw.size}] = {{{text}}};\n#endif\n")
    (weights / "w2.txt").write_text(text)
    inputs = layer_of("x", "Input", (), (raw.shape[0],), {"result": KIND})
    dense = layer_of("fc", "Dense", ("x",), (raw.shape[1],), {"weight": KIND}, {"weight": raw}, {"weight": "fc/kernel"})
    return Design("net", (inputs, dense), ("fc",))


def test_firmware_is_read_back_as_integers(tmp_path):
    raw = np.array([[3, -128], [0, 127]])
    assert np.array_equal(read_firmware_weights(tmp_path, firmware(tmp_path, raw))["fc/kernel"], raw)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("w2.h", "0.0000000", "0.0078125", "simulation and synthesis would differ"),
        ("w2.txt", "0.0000000", "0.0078125", "simulation and synthesis would differ"),
        ("both", "0.0000000", "0.0078125", "the design have different integers"),
        ("both", "0.0000000", "0.0010000", "cannot represent"),
        ("both", "0.0000000", "zero", "not a number"),
        ("w2.txt", ", 0.0000000", "", "3 values|holds 3"),
    ],
)
def test_a_changed_firmware_weight_is_found(tmp_path, file, old, new, message):
    design = firmware(tmp_path, np.array([[3, -128], [0, 127]]))
    for name in ("w2.h", "w2.txt") if file == "both" else (file,):
        path = tmp_path / "firmware" / "weights" / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    with pytest.raises(CertificateError, match=message):
        read_firmware_weights(tmp_path, design)


def test_a_missing_weight_file_is_found(tmp_path):
    design = firmware(tmp_path, np.array([[3, -128], [0, 127]]))
    (tmp_path / "firmware" / "weights" / "w2.h").unlink()
    with pytest.raises(CertificateError, match="no weight file for weight of layer 'fc'"):
        read_firmware_weights(tmp_path, design)


def sized(folder):
    """A stream's project of a convolution, its ReLU and a pointwise convolution, and its design."""
    kinds = {"weight": KIND, "result": KIND}
    shapes = {"conv": (3, 3, 1, 2), "point": (1, 1, 2, 3)}
    weights = folder / "firmware" / "weights"
    weights.mkdir(parents=True)
    for number, (name, shape) in zip((2, 4), shapes.items(), strict=True):
        text = ", ".join(["0.5"] * int(np.prod(shape)))
        (weights / f"w{number}.h").write_text(
            f"#else\n{name}_weight_t w{number}[{np.prod(shape)}] = {{{text}}};\n#endif\n"
        )
        (weights / f"w{number}.txt").write_text(text)
    (folder / "firmware" / "defines.h").write_text(
        "".join(f"typedef ap_{KIND} {name}_weight_t;\n" for name in shapes)
        + f"typedef nnet::array<ap_{KIND}, 2*1> layer2_t;\ntypedef nnet::array<ap_{KIND}, 2*1> layer3_t;\n"
        f"typedef nnet::array<ap_{KIND}, 3*1> layer4_t;\n"
    )
    (folder / "firmware" / "parameters.h").write_text(
        "struct config2 : nnet::conv2d_config {\n    static const unsigned n_chan = 1;\n"
        "    static const unsigned n_filt = 2;\n};\n"
    )
    (folder / "firmware" / "net.cpp").write_text(
        "    nnet::conv_2d_cl<input_t, layer2_t, config2>(x, layer2_out, w2, b2); // conv\n"
        "    nnet::relu<layer2_t, layer3_t, relu_config3>(layer2_out, layer3_out); // relu\n"
        "    nnet::pointwise_conv_2d_cl<layer3_t, layer4_t, config9>(layer3_out, layer4_out, w4, b4); // point\n"
    )
    raw = {name: np.full(shape, int(KIND.to_raw(0.5)), dtype=np.int64) for name, shape in shapes.items()}
    sources = {name: {"weight": f"{name}/kernel"} for name in shapes}
    layers = (
        layer_of("x", "Input", (), (5, 5, 1), {"result": KIND}),
        layer_of("conv", "Conv2D", ("x",), (3, 3, 2), kinds, {"weight": raw["conv"]}, sources["conv"]),
        layer_of("relu", "Activation", ("conv",), (3, 3, 2), {"result": KIND}, attributes={"activation": "relu"}),
        layer_of("point", "PointwiseConv2D", ("relu",), (3, 3, 3), kinds, {"weight": raw["point"]}, sources["point"]),
    )
    return Design("net", layers, ("point",), io_type="io_stream")


def test_sizes_that_are_those_of_the_design_are_accepted(tmp_path):
    assert [layer.outputs for layer in count_firmware(tmp_path, sized(tmp_path))] == [2, 3]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("parameters.h", "n_filt = 2", "n_filt = 3", "layer 'conv' has n_filt = 3; its weights have 2: a channel was"),
        ("parameters.h", "n_chan = 1", "n_chan = 2", "layer 'conv' has n_chan = 2; its weights have 1: a channel was"),
        ("defines.h", "2*1> layer2_t", "3*1> layer2_t", "layer 'conv' is declared with 3 elements; its shape"),
        ("defines.h", "2*1> layer3_t", "3*1> layer3_t", "layer 'relu' is declared with 3 elements; its shape"),
        ("defines.h", "3*1> layer4_t", "4*1> layer4_t", "'point' is declared with 4 elements; its shape"),
        ("net.cpp", "nnet::relu", "layer3_t layer3_out[3*3*4];\n nnet::relu", r"'relu' is .* with 36 elements"),
    ],
)
def test_a_removed_channel_that_is_left_in_a_size_is_found(tmp_path, file, old, new, message):
    design, path = sized(tmp_path), tmp_path / "firmware" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(CertificateError, match=message):
        count_firmware(tmp_path, design)
