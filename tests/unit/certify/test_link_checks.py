"""What each link of a certificate compares, and what it says that it cannot."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from fpgaprune.certify import certify
from fpgaprune.design import Design
from fpgaprune.errors import CertificateError
from fpgaprune.files import LAYOUT_KEY
from fpgaprune.measure import LinkCheck
from fpgaprune.values import MaskSet

from ..select.fakes import fake_model
from .projects import design, layer, write

SHAPE = (2, 3, 4, 5)
MASKS = MaskSet.from_slices({"conv/kernel": SHAPE}, ["conv/kernel[:, :, 1, 2]"])


def kernel():
    """A locked kernel of zeros among numbers that differ."""
    array = np.arange(1, 121, dtype=np.float32).reshape(SHAPE)
    array[:, :, 1, 2] = 0
    return array


def test_a_model_in_memory_is_compared_where_it_is_masked():
    array = kernel()
    certificate = certify(fake_model({"conv/kernel": array, "conv/bias": np.ones(5)}), MASKS).require()
    (link,) = certificate.links
    assert (link.link, link.locked, dict(link.not_carried)) == ("memory", 6, {})
    assert [weight.path for weight in link.weights] == ["conv/kernel"]
    array[1, 2, 1, 2] = -0.0
    assert certify(fake_model({"conv/kernel": array}), MASKS).violations == 1


def onnx_file(path, arrays, layout, key=LAYOUT_KEY):
    graph = onnx.helper.make_graph([], "g", [], [], [onnx.numpy_helper.from_array(a, n) for n, a in arrays.items()])
    model = onnx.helper.make_model(graph)
    onnx.helper.set_model_props(model, {"other": "x", key: json.dumps(layout)})
    onnx.save(model, str(path))
    return path


def place(initializer, shape=SHAPE, permutation=(3, 2, 0, 1)):
    return {"initializer": initializer, "shape": list(shape), "permutation": list(permutation)}


def test_an_onnx_file_is_read_in_the_axes_of_keras(tmp_path):
    array = kernel()
    stored = np.ascontiguousarray(array.transpose(3, 2, 0, 1))
    layout = {"conv/kernel": place("W")}
    path = onnx_file(tmp_path / "a.onnx", {"V": np.zeros(3, np.float32), "W": stored}, layout)
    (link,) = certify(path, MASKS).require().links
    assert (link.link, link.locked) == ("a.onnx", 6)
    (in_memory,) = certify(fake_model({"conv/kernel": array}), MASKS).links
    assert link.weights[0].sha256 == in_memory.weights[0].sha256
    stored[2, 1, 1, 0] = np.float32(1e-45)
    bad = onnx_file(tmp_path / "b.onnx", {"W": stored}, layout)
    with pytest.raises(CertificateError, match=r"b\.onnx: 1 of 6 locked elements of 'conv/kernel'.*\[1, 0, 1, 2\]"):
        certify(str(bad), MASKS).require()


def test_an_initialiser_of_another_shape_is_taken_apart_into_the_axes_of_keras(tmp_path):
    """A depthwise kernel, whose last two axes are one in the file."""
    array = kernel()
    path = onnx_file(
        tmp_path / "a.onnx", {"W": array.transpose(2, 3, 0, 1).reshape(20, 1, 2, 3)},
        {"conv/kernel": place("W", permutation=(2, 3, 0, 1))},
    )  # fmt: skip
    assert certify(path, MASKS).require().links[0].locked == 6


def test_an_onnx_file_without_its_layout_or_an_initialiser_is_refused(tmp_path):
    path = onnx_file(tmp_path / "a.onnx", {"W": kernel()}, {}, key="another")
    with pytest.raises(CertificateError, match=r"a\.onnx has no metadata 'fpgaprune\.layout'"):
        certify(path, MASKS)
    path = onnx_file(tmp_path / "b.onnx", {"W": kernel()}, {"conv/kernel": place("V")})
    with pytest.raises(CertificateError, match=r"b\.onnx has no initialiser 'V' for 'conv/kernel'"):
        certify(path, MASKS)


VECTORS = MaskSet({"conv/kernel": MASKS["conv/kernel"], "norm/gamma": np.array([True, False])})


def test_a_vector_may_merge_into_another_initialiser_and_a_kernel_may_not(tmp_path):
    stored = np.ascontiguousarray(kernel().transpose(3, 2, 0, 1))
    path = onnx_file(tmp_path / "a.onnx", {"W": stored}, {"conv/kernel": place("W")})
    (link,) = certify(path, VECTORS).require().links
    assert dict(link.not_carried) == {"norm/gamma": "merged into another initialiser by the exporter"}
    path = onnx_file(tmp_path / "b.onnx", {"W": stored}, {"other/kernel": place("W")})
    with pytest.raises(CertificateError) as caught:
        certify(path, VECTORS)
    assert str(caught.value) == "b.onnx: weight 'conv/kernel' is locked but missing from it"
    matrix = MaskSet({"fc/kernel": np.zeros((2, 2), bool)})
    with pytest.raises(CertificateError, match="weight 'fc/kernel' is locked but missing from it"):
        certify(path, matrix)


@dataclass
class Written:
    path: Path
    design: Design


def test_a_project_is_compared_by_its_files_and_counted(tmp_path):
    raw = np.array([[0, 3], [5, 0], [7, 8]])
    made = design(layer("fc", "Dense", {"weight": raw, "bias": [1, 2]}, sources={"weight": "fc/kernel"}))
    write(tmp_path / "hls" / "firmware", made)
    masks = MaskSet({"fc/kernel": raw != 0, "fc/bias": np.zeros(2, bool)})
    (link,) = certify(Written(tmp_path / "hls", made), masks).require().links
    assert (link.link, link.locked) == ("hls/firmware", 2)
    assert dict(link.not_carried) == {"fc/bias": "folded with BatchNorm into the layer's bias"}
    assert [(counts.layer, counts.zero, counts.weights) for counts in link.layers] == [("fc", 2, 6)]
    assert certify(Written(tmp_path / "hls", made), MaskSet({"fc/kernel": raw == 0})).violations == 4
    with pytest.raises(CertificateError, match="hls/firmware: weight 'other/kernel' is locked but missing from it"):
        certify(Written(tmp_path / "hls", made), MaskSet({"other/kernel": raw != 0}))


def test_elements_are_compared_with_the_values_that_they_are_held_at():
    array = kernel()
    array[:, :, 1, 2] = 0.5
    held = {"conv/kernel": np.where(MASKS["conv/kernel"], 0, 0.5).astype(np.float32)}
    (link,) = certify(fake_model({"conv/kernel": array}), MASKS, held).require().links
    assert (link.link, link.locked, link.held) == ("memory, held values", 6, True)
    assert LinkCheck.from_json(json.loads(json.dumps(link.to_json()))) == link
    assert certify(fake_model({"conv/kernel": array}), MASKS).violations == 6
    array[1, 2, 1, 2] = np.nextafter(np.float32(0.5), np.float32(1))
    with pytest.raises(CertificateError, match="1 of 6 locked elements of 'conv/kernel' are not at the values that"):
        certify(fake_model({"conv/kernel": array}), MASKS, held).require()
    for values, got in (({}, "none"), ({"conv/kernel": np.zeros(3)}, r"shape \(3,\)")):
        with pytest.raises(CertificateError, match=f"values of 'conv/kernel' have {got}"):
            certify(fake_model({"conv/kernel": array}), MASKS, values)


def test_a_project_has_the_exact_value_of_what_is_held(tmp_path):
    raw = np.array([[0, 3], [5, 0], [4, 8]])
    made = design(layer("fc", "Dense", {"weight": raw, "bias": [1, 2]}, sources={"weight": "fc/kernel"}))
    write(tmp_path / "hls" / "firmware", made)
    masks = MaskSet({"fc/kernel": ~np.isin(raw, (4, 8))})
    values = {"fc/kernel": made["fc"].types["weight"].to_float(raw).astype(np.float32)}
    (link,) = certify(Written(tmp_path / "hls", made), masks, values).require().links
    assert (link.link, link.locked) == ("hls/firmware, held values", 2)
    other = {"fc/kernel": values["fc/kernel"] * np.float32(2)}
    assert certify(Written(tmp_path / "hls", made), masks, other).violations == 2
