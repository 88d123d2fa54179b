"""What is made of a model before hls4ml sees it: averages over the whole map, and the type of a concatenation."""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import HlsError
from fpgaprune.lowering import LayerOptions, Precision, Range, choose_types, fold, observe
from fpgaprune.values import FixedType
from tests.called import called

RNG = np.random.default_rng(0)


def averaged(pool, *rest, shape=(4, 5, 3)):
    """The same weights each time."""
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input(shape), pool, *rest, layers.Dense(2, name="head")], name="averaged")


@pytest.mark.parametrize(
    ("pool", "rest", "shape", "kinds"),
    [
        (layers.AveragePooling2D((4, 5)), [layers.Flatten()], (4, 5, 3), ["GlobalAveragePooling2D", "Flatten"]),
        (
            layers.AveragePooling2D(6, padding="same"),
            [layers.Flatten()],
            (4, 5, 3),
            ["GlobalAveragePooling2D", "Flatten"],
        ),
        (
            layers.AveragePooling2D((4, 5), name="pool"),
            [layers.Conv2D(2, 1)],
            (4, 5, 3),
            ["GlobalAveragePooling2D", "Reshape", "Conv2D"],
        ),
        (layers.AveragePooling1D(4), [layers.Flatten()], (4, 3), ["GlobalAveragePooling1D", "Flatten"]),
        (layers.AveragePooling2D((4, 4)), [layers.Flatten()], (4, 5, 3), ["AveragePooling2D", "Flatten"]),
        (
            layers.AveragePooling2D((2, 5), padding="same"),
            [layers.Flatten()],
            (4, 5, 3),
            ["AveragePooling2D", "Flatten"],
        ),
        (layers.MaxPooling2D((4, 5)), [layers.Flatten()], (4, 5, 3), ["MaxPooling2D", "Flatten"]),
    ],
)
def test_an_average_over_the_whole_map_is_a_global_one(pool, rest, shape, kinds):
    model = averaged(pool, *rest, shape=shape)
    folded = fold(model)
    assert [type(layer).__name__ for layer in folded.layers[1:-1]] == kinds
    assert folded.layers[1].name == model.layers[0].name
    x = RNG.normal(size=(3, *shape)).astype("float32")
    assert np.abs(called(folded, x) - called(model, x)).max() < 1e-6


@pytest.mark.parametrize("io_type", ["io_stream", "io_parallel"])
def test_both_forms_cost_the_same_and_give_the_same_bits(io_type):
    target = fp.Target.of("xc7z020clg400-1", io_type=io_type)
    x = RNG.normal(size=(20, 4, 5, 3)).astype("float32")
    made = [
        fp.make_design(averaged(layers.AveragePooling2D((4, 5), name="pool"), layers.Flatten()), target, x),
        fp.make_design(averaged(layers.GlobalAveragePooling2D(name="pool")), target, x),
    ]
    assert fp.emulate(made[0], x).tobytes() == fp.emulate(made[1], x).tobytes()
    assert made[0]["pool"].types == made[1]["pool"].types
    luts = [fp.estimate(design, target).total["csynth"].lut.value for design in made]
    assert abs(luts[0] - luts[1]) <= 0.03 * luts[1]


def joined():
    image = keras.Input((4, 4, 2), name="image")
    a = layers.Conv2D(2, 1, activation="relu", name="a")(image)
    b = layers.Conv2D(3, 1, activation="relu", name="b")(image)
    return fold(keras.Model(image, layers.Concatenate(name="join")([a, b])))


@pytest.mark.parametrize(
    ("ranges", "wanted"),
    [
        ({"a_relu": (0, 0.9), "b_relu": (0, 0.9)}, FixedType(8, 0, False, "RND", "SAT")),
        ({"a_relu": (0, 0.9), "b_relu": (0, 3.5)}, FixedType(10, 2, False)),
        ({"a_relu": (0, 3.5), "b_relu": (-0.9, 0.9)}, FixedType(10, 3, True)),
    ],
)
def test_a_concatenation_holds_what_it_joins_and_no_more(ranges, wanted):
    folded = joined()
    found = {layer.name: Range(*ranges.get(layer.name, (-8.0, 8.0))) for layer in folded.layers}
    types = choose_types(folded, found, Precision())
    result = types["join"]["result"]
    assert result == wanted
    for name in ("a_relu", "b_relu"):
        kind = types[name]["result"]
        values = np.array([kind.raw_min, kind.raw_max]) * kind.lsb
        assert (result.to_float(result.to_raw(values)) == values).all()


def test_one_bit_is_two_where_values_may_be_negative():
    folded = joined()
    ranges = {layer.name: Range(-8.0, 8.0) for layer in folded.layers} | {"a_relu": Range(0.0, 0.9)}
    types = choose_types(folded, ranges, Precision(activation_bits=1))
    assert types["a_relu"]["result"] == FixedType(1, 1, False, "RND", "SAT")
    assert {types[name]["result"].width for name in ("b_relu", folded.layers[0].name)} == {2}


def test_a_width_that_is_given_for_a_concatenation_counts():
    folded = joined()
    ranges = {name: Range.of(values) for name, values in observe(folded, RNG.normal(size=(9, 4, 4, 2))).items()}
    types = choose_types(folded, ranges, Precision(), {"join": LayerOptions(activation_bits=5)})
    assert types["join"]["result"].width == 5


def test_what_hls4ml_raises_while_it_writes_is_one_line(monkeypatch, tmp_path):
    import hls4ml

    def fail(graph):
        raise KeyError("a template\nthat is not there")

    monkeypatch.setattr(hls4ml.model.graph.ModelGraph, "write", fail)
    model = averaged(layers.Flatten())
    with pytest.raises(HlsError) as caught:
        fp.to_hls(model, fp.Target.of("xc7z020clg400-1"), RNG.normal(size=(5, 4, 5, 3)), tmp_path / "hls")
    assert "hls4ml cannot write the project of 'network': KeyError: " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
