"""Precision searched, uniform or given: what it promises is measured again here, without the code that promised it."""

import re

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.design import ReuseWarning
from fpgaprune.errors import DataError, HlsError, UnsupportedLayerError
from fpgaprune.hls import StrategyWarning
from fpgaprune.lowering import exact_accumulator, lower, width_search
from fpgaprune.values import FixedType, named_weights
from tests.called import called

TARGET = fp.Target.of("xc7z020clg400-1", io_type="io_parallel")


@pytest.fixture(scope="module")
def trained():
    """A small network that tells three clouds of points apart, half of its first kernel zero; data and labels."""
    keras.utils.set_random_seed(5)
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, 600)
    centres = rng.normal(size=(3, 6))
    x = (centres[labels] + 0.55 * rng.normal(size=(600, 6))).astype("float32")
    model = keras.Sequential(
        [
            keras.Input((6,), name="points"),
            layers.Dense(12, activation="relu", name="first"),
            layers.Dense(8, activation="relu", name="second"),
            layers.Dense(3, name="head"),
        ],
        name="clouds",
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    masks = fp.MaskSet({"first/kernel": rng.random((6, 12)) > 0.5})
    fp.finetune(model, masks, x, labels, epochs=12, batch_size=32, verbose=0)
    return model, x, labels, masks


def accuracy(outputs, labels):
    return float((np.asarray(outputs).argmax(axis=-1) == labels).mean())


def loss_of(model, x, labels, layer_settings, auto):
    """The loss and one standard error: the root of how many samples are judged differently, over all."""
    precision = fp.Precision(auto.uniform_bits, auto.uniform_bits, 16)
    design = fp.make_design(model, TARGET, x, precision, layers=layer_settings)
    before, after = (o.argmax(axis=-1) == labels for o in (called(model, x), fp.emulate(design, x)))
    return (before.sum() - after.sum() + np.sqrt((before != after).sum())) / len(x)


def test_auto_keeps_its_loss_and_no_single_width_can_be_lower(trained, tmp_path):
    model, x, labels, masks = trained
    project = fp.to_hls(model, TARGET, x[:400], tmp_path / "hls", "auto", labels=labels[:400])
    found = project.search
    reference = accuracy(called(model, x[:400]), labels[:400])
    measured = reference - accuracy(fp.emulate(project.design, x[:400]), labels[:400])
    assert measured == pytest.approx(found.loss, abs=1e-12)
    assert measured + found.error <= 0.005
    assert found.samples == 400
    assert found.cost <= found.uniform_cost
    # The cost, counted anew.
    cost = 0
    for layer in project.design.layers:
        if "weight" in layer.weights:
            incoming = project.design[layer.inputs[0]].types["result"].width
            cost += int(np.count_nonzero(layer.weights["weight"])) * layer.types["weight"].width * incoming
    assert cost == found.cost
    # Teeth: one bit less anywhere costs more accuracy than was allowed, or the width was at its end.
    settings = {name: {"weight_bits": bits} for name, bits in found.weight_bits.items()}
    settings |= {name: {"activation_bits": bits} for name, bits in found.activation_bits.items()}
    lower = 0
    for name, entry in settings.items():
        for role, bits in entry.items():
            if bits > 2:
                tried = loss_of(model, x[:400], labels[:400], settings | {name: {role: bits - 1}}, found)
                lower += tried <= 0.005
    assert lower == 0
    # Zeros stayed zeros, and what rounding made zero is reported.
    raw = project.design["first"].weights["weight"]
    assert not raw[~masks["first/kernel"]].any()
    kernel = named_weights(model)["first/kernel"].numpy()
    vanished = (kernel != 0) & (raw == 0)
    free = project.free_locks
    assert np.array_equal(~free["first/kernel"] if "first/kernel" in free else np.zeros_like(vanished), vanished)
    assert fp.certify(project, masks).require().ok
    # Locking what is free changes no bit of the hardware.
    if len(free):
        joint = fp.MaskSet({path: free[path] for path in free})
        assert fp.certify(project, joint).require().ok


class StoppedError(Exception):
    """As a kill, for a search that runs in this process."""


def test_a_search_that_was_stopped_goes_on_and_finds_the_same(trained, tmp_path, monkeypatch):
    model, x, labels, _ = trained
    x, labels, file = x[:200], labels[:200], tmp_path / "losses.json"
    emulated = []
    monkeypatch.setattr(width_search, "emulate", lambda *given: emulated.append(None) or fp.emulate(*given))

    def searched(data=x, truth=labels, progress=None, results=file):
        emulated.clear()
        found = lower(model, TARGET, data, "auto", "clouds", labels=truth, results=results, progress=progress)
        return found.search, len(emulated)

    whole, measured = searched(results=None)
    assert whole.evaluations == measured > 8
    told = []

    def stop_after_six(done, total, note):
        told.append((done, total, note))
        if done == 6:
            raise StoppedError

    with pytest.raises(StoppedError):
        searched(progress=stop_after_six)
    assert [done for done, _, _ in told] == [1, 2, 3, 4, 5, 6]
    assert all(done <= total and "bits" in note for done, total, note in told)
    assert searched() == (whole, measured - 6)
    assert searched() == (whole, 0)
    # Labels, samples and a metric that are others have other losses.
    assert searched(truth=np.roll(labels, 1))[1] > 0
    assert searched(data=x + 0.01)[1] > 0
    own = [lambda a, b, shift=shift: (float(np.abs(a - b).mean()) + shift, 0.0) for shift in (0.0, 1e-4)]
    auto = fp.AutoPrecision(max_loss="20 %")
    counts = []
    for judge in (own[0], own[0], own[1]):
        emulated.clear()
        lower(model, TARGET, x, auto, "clouds", labels=judge, results=file)
        counts.append(len(emulated))
    assert counts[1] == 0 < counts[2]
    for content in ("{", "[]", '{"format": 9}', '{"format": 1, "question": "", "losses": {"a": [1]}}'):
        file.write_text(content)
        with pytest.raises(HlsError, match=r"is not the losses of a search: .*; delete it or name another file"):
            searched()
        assert file.read_text() == content


def test_a_loss_that_no_types_keep_is_refused(trained, tmp_path):
    model, x, labels, _ = trained
    auto = fp.AutoPrecision(max_loss="0 %", widest=2)
    with pytest.raises(HlsError, match=r"with 2 bits everywhere the loss is .*, together over 0\.00% \(accuracy lost"):
        fp.to_hls(model, TARGET, x, tmp_path / "hls", auto, labels=labels)
    assert list(tmp_path.iterdir()) == []


def test_without_labels_the_class_of_keras_counts(trained):
    model, x, _, _ = trained
    design = fp.make_design(model, TARGET, x[:200], fp.AutoPrecision(max_loss="2 %"))
    same = fp.emulate(design, x[:200]).argmax(axis=-1) == called(model, x[:200]).argmax(axis=-1)
    assert same.mean() >= 0.98


def test_labels_must_fit_the_data(trained):
    model, x, labels, _ = trained
    with pytest.raises(DataError, match="there are 10 labels for 600 samples"):
        fp.make_design(model, TARGET, x, "auto", labels=labels[:10])
    with pytest.raises(HlsError, match='max_loss: 5 has no unit: write "5 %"'):
        fp.AutoPrecision(max_loss=5)


def test_one_type_for_everything_needs_no_data(trained):
    model, x, _, _ = trained
    design = fp.make_design(model, TARGET, precision="fixed<16,6>")
    kind = FixedType(16, 6)
    for layer in design.layers:
        assert layer.types["result"] == kind
        if "weight" in layer.weights:
            assert layer.types["weight"] == layer.types["bias"] == kind
            assert layer.types["accum"].fraction == 2 * kind.fraction
    assert np.abs(fp.emulate(design, x) - called(model, x)).max() < 0.1
    with pytest.raises(HlsError, match=r"ranges of the layers are read from samples: .* or one type for everything"):
        fp.make_design(model, TARGET)
    with pytest.raises(HlsError, match="precision 'tiny' is neither 'auto' nor a type"):
        fp.make_design(model, TARGET, x, "tiny")


def test_single_layers_can_be_told(trained):
    model, x, _, _ = trained
    settings = {"first": {"weight": "fixed<6,2,RND,SAT>"}, "*relu": {"activation_bits": 5}, "head": {"weight_bits": 4}}
    design = fp.make_design(model, TARGET, x, fp.Precision(8, 8), layers=settings)
    assert design["first"].types["weight"] == FixedType(6, 2, True, "RND", "SAT")
    assert design["second"].types["weight"].width == 8
    assert design["head"].types["weight"].width == 4
    assert design["first_relu"].types["result"].width == design["second_relu"].types["result"].width == 5


def test_a_given_type_that_overflows_is_refused_with_layer_count_and_data(trained):
    model, x, _, _ = trained
    seen = called(keras.Model(model.inputs, model.get_layer("head").output), x)
    beyond = int(((seen < -1 - 1 / 256) | (seen > 1 - 1 / 128 + 1 / 128)).sum())
    with pytest.raises(HlsError) as caught:
        fp.make_design(model, TARGET, x, layers={"head": {"result": "fixed<8,1>"}})
    message = str(caught.value)
    found = re.match(r"layer 'head': (\d+) of 1800 values on 600 samples overflow its result type fixed<8,1>", message)
    # Before this layer the hardware's types cut off some values, as Keras does not.
    assert found is not None
    assert abs(int(found[1]) - beyond) <= 0.01 * beyond
    assert "give it more integer bits, or let it saturate" in message
    fp.make_design(model, TARGET, x, layers={"head": {"result": "fixed<8,1,RND,SAT>"}})
    largest = float(np.abs(named_weights(model)["second/kernel"].numpy()).max())
    assert largest > 0.25
    with pytest.raises(HlsError, match=r"layer 'second': \d+ of 96 weights of the model overflow its weight type"):
        fp.make_design(model, TARGET, x, layers={"second": {"weight": "fixed<8,-1>"}})


@pytest.mark.parametrize("seed", range(6))
def test_no_input_overflows_or_rounds_an_accumulator(seed):
    rng = np.random.default_rng(seed)
    layer = layers.Dense(4)
    kernel = rng.normal(size=(7, 4)) * 10.0 ** rng.integers(-2, 2)
    bias = rng.normal(size=4)
    weight = FixedType(int(rng.integers(3, 10)), int(rng.integers(-1, 5)), True, "RND", "SAT")
    incoming = FixedType(int(rng.integers(2, 9)), int(rng.integers(-1, 4)), bool(rng.integers(2)), "RND", "SAT")
    accum = exact_accumulator(layer, weight, incoming, kernel, bias)
    assert accum.fraction >= weight.fraction + incoming.fraction
    raw = weight.to_raw(kernel).astype(object)
    # The inputs that drive each output furthest up and down.
    for extreme in (incoming.raw_min, incoming.raw_max):
        x = np.where(raw * extreme > 0, extreme, incoming.raw_min if extreme > 0 else incoming.raw_max)
        total = (raw * x).sum(axis=0) * 2 ** (accum.fraction - weight.fraction - incoming.fraction)
        biased = total + FixedType(accum.width, accum.integer, True, "RND", "SAT").to_raw(bias)
        assert all(accum.raw_min <= int(v) <= accum.raw_max for v in (*total, *biased))


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (
            lambda: layers.LayerNormalization(name="odd"),
            "is a LayerNormalization, for which there is no hardware here; use BatchNormalization",
        ),
        (lambda: layers.Activation("log_softmax", name="odd"), "hardware has no activation 'log_softmax'"),
        (lambda: layers.UpSampling2D(interpolation="bilinear", name="odd"), "interpolation is 'bilinear'"),
        (lambda: layers.Conv2DTranspose(4, 3, dilation_rate=2, name="odd"), r"its dilation_rate is \(2, 2\)"),
    ],
)
def test_a_layer_without_hardware_is_named_with_an_alternative(layer, message):
    image = keras.Input((8, 8, 2))
    model = keras.Model(image, layer()(image))
    with pytest.raises(UnsupportedLayerError, match=message) as caught:
        fp.make_design(model, TARGET, np.zeros((4, 8, 8, 2), "float32"))
    assert "'odd'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_layer_that_is_used_twice_is_named():
    image = keras.Input((4,))
    shared = layers.Dense(4, name="shared")
    model = keras.Model(image, shared(shared(image)))
    with pytest.raises(UnsupportedLayerError, match="layer 'shared' is used 2 times"):
        fp.make_design(model, TARGET, np.zeros((4, 4), "float32"))


def test_names_that_hls4ml_would_change_are_changed_here(tmp_path):
    model = keras.Sequential([keras.Input((4,), name="input"), layers.Dense(3, name="p"), layers.Dense(2, name="q")])
    x = np.random.default_rng(0).normal(size=(20, 4)).astype("float32")
    project = fp.to_hls(model, TARGET, x, tmp_path / "hls")
    assert [layer.name for layer in project.design.layers] == ["input", "p", "q"]
    assert [layer.project_name for layer in project.design.layers] == ["input_layer", "p_layer", "q"]
    masks = fp.MaskSet.from_slices(model, ["p/kernel[0, 0]"])
    assert fp.certify(project, masks).violations == 1


def test_a_reuse_factor_that_is_not_possible_is_answered_with_the_nearest(trained, tmp_path):
    model, x, _, _ = trained
    target = fp.Target.of("xc7z020clg400-1", io_type="io_parallel", strategy="resource", reuse_factor=5)
    with pytest.warns(StrategyWarning), pytest.warns(ReuseWarning, match="'second' .12 inputs, 8 outputs. has"):
        project = fp.to_hls(model, target, x, tmp_path / "hls")
    assert project.notes[:2] == (
        "layer 'first' (6 inputs, 12 outputs) has reuse factor 6, the nearest to 5 that strategy 'resource' can build",
        "layer 'second' (12 inputs, 8 outputs) has reuse factor 4, the nearest to 5 that strategy 'resource' can build",
    )
    assert [project.design[n].reuse_factor for n in ("first", "second")] == [6, 4]
    own = {name: {"reuse_factor": 4} for name in ("second", "head")} | {"first": {"reuse_factor": 3}}
    with pytest.warns(
        StrategyWarning, match=r"strategy .resource. with reuse factor 3, 4 saves 0 of \d+ multipliers by the"
    ):
        project = fp.to_hls(model, target, x, tmp_path / "hls", layers=own)
    assert [project.design[n].reuse_factor for n in ("first", "second", "head")] == [3, 4, 4]
    assert project.advice.recommended == "latency"


def test_a_concatenation_and_an_average_over_the_map_have_the_bits_of_the_c_simulation(tmp_path):
    image = keras.Input((4, 4, 2), name="image")
    wide = layers.Conv2D(3, 3, padding="same", activation="relu", name="wide")(image)
    deep = layers.Conv2D(2, 3, padding="same", activation="relu", name="deep")(layers.MaxPooling2D(name="half")(wide))
    joined = layers.Concatenate(name="join")([layers.UpSampling2D(name="twice")(deep), wide])
    mixed = layers.Conv2D(3, 1, activation="relu", name="mixed")(joined)
    out = layers.Dense(2, name="head")(layers.Flatten(name="flat")(layers.AveragePooling2D(4, name="pool")(mixed)))
    x = np.random.default_rng(0).normal(size=(30, 4, 4, 2)).astype("float32")
    project = fp.to_hls(keras.Model(image, out), TARGET, x, tmp_path / "hls")
    assert project.design["pool"].kind == "GlobalPooling"
    read = [project.design[name].types["result"] for name in ("twice", "wide_relu")]
    assert project.design["join"].types["result"].width <= max(kind.width for kind in read) + 2
    assert project.predict(x).tobytes() == fp.emulate(project.design, x).tobytes()
