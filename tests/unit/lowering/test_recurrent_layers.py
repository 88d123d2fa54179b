"""Recurrent layers on their way to a design: what is refused, what their states hold, their types and directions."""

from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import layers as kl

import fpgaprune as fp
import fpgaprune.design as op
from fpgaprune.design import ReuseWarning
from fpgaprune.errors import HlsError, UnsupportedLayerError
from fpgaprune.lowering import check_layers, flattened, fold, observed_states
from fpgaprune.rtl import check_verilog, to_verilog
from fpgaprune.values import named_weights
from tests.called import called

pytest.importorskip("hls4ml")

STEPS, FEATURES = 6, 4
RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, STEPS, FEATURES)).astype("float32")

NO_HARDWARE = "for which there is no hardware here"


def network(*layers, name="net", scale=0.8):
    """A network of `layers` over 6 steps of 4 features, with random weights."""
    model = keras.Sequential([keras.Input((STEPS, FEATURES)), *layers], name=name)
    rng = np.random.default_rng(5)
    model.set_weights([rng.normal(scale=scale, size=w.shape) for w in model.get_weights()])
    return model


def target(**options):
    return fp.Target.of("xc7z020clg400-1", clock_ns=10.0, **options)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (
            lambda: kl.GRU(3, reset_after=False, name="g"),
            r"layer 'g' \(GRU\) .*reset_after=False.*use reset_after=True",
        ),
        (lambda: kl.SimpleRNN(3, activation="elu", name="g"), r"layer 'g' \(SimpleRNN\) .*its activation is 'elu'"),
        (
            lambda: kl.Bidirectional(kl.GRU(3, reset_after=False), name="g"),
            r"layer 'forward_gru' \(GRU\) .*reset_after=False",
        ),
        (
            lambda: kl.Bidirectional(kl.RNN(kl.GRUCell(3)), name="g"),
            r"layer 'g' \(Bidirectional\) .*it wraps RNN and RNN; hardware has GRU, LSTM and SimpleRNN in both",
        ),
        (
            lambda: kl.GRU(3, activation="elu", name="g"),
            "its activation is 'elu'; hardware has .* in a recurrent layer",
        ),
        (lambda: kl.GRU(3, recurrent_activation="relu", name="g"), "its recurrent_activation is 'relu'"),
        (
            lambda: kl.GRU(3, recurrent_activation="hard_sigmoid", name="g"),
            "its recurrent_activation is 'hard_sigmoid'",
        ),
        (
            lambda: kl.LayerNormalization(name="g"),
            f"layer 'g' is a LayerNormalization, {NO_HARDWARE}; use BatchNormalization$",
        ),
    ],
)
def test_what_hardware_would_compute_otherwise_is_refused(layer, message):
    model = network(layer())
    with pytest.raises(UnsupportedLayerError, match=message):
        check_layers(flattened(model))


def test_attention_has_no_converter():
    x = keras.Input((STEPS, FEATURES))
    model = keras.Model(x, kl.MultiHeadAttention(2, 3, name="g")(x, x))
    with pytest.raises(
        UnsupportedLayerError, match="layer 'g' is a MultiHeadAttention, for which there is no hardware"
    ):
        check_layers(model)


def test_states_that_come_or_go_are_refused():
    x = keras.Input((STEPS, FEATURES))
    for kind, message in (("state", "it returns its state"), ("initial", "it reads an initial state")):
        if kind == "state":
            outputs = kl.GRU(3, return_state=True, name="g")(x)[0]
        else:
            outputs = kl.GRU(3, name="g")(x, initial_state=kl.Dense(3)(kl.Flatten()(x)))
        with pytest.raises(UnsupportedLayerError, match=message):
            check_layers(keras.Model(x, outputs))
    one = keras.Input((STEPS, FEATURES), batch_size=1)
    with pytest.raises(UnsupportedLayerError, match="keeps its state between samples"):
        check_layers(keras.Model(one, kl.GRU(3, stateful=True, name="g")(one)))
    free = keras.Input((None, FEATURES))
    with pytest.raises(UnsupportedLayerError, match="its number of steps is unknown"):
        check_layers(keras.Model(free, kl.GRU(3, name="g")(free)))


@pytest.mark.parametrize("backend", ["oneAPI", "Catapult"])
def test_backends_with_templates_of_their_own_are_refused(backend):
    strategy = "resource" if backend == "oneAPI" else "latency"
    with pytest.raises(UnsupportedLayerError, match=f"layer 'g' .GRU.: .* for its templates of backend {backend}"):
        fp.make_design(network(kl.GRU(3, name="g")), target(backend=backend, strategy=strategy), X)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("options", [{}, {"activation": "relu", "recurrent_activation": "tanh"}])
def test_states_are_those_of_keras(bias, options):
    gru = network(kl.GRU(3, return_sequences=True, use_bias=bias, **options), scale=0.3)
    np.testing.assert_allclose(observed_states(gru.layers[0], X), called(gru, X), atol=1e-5)
    functions = {"activation": options.get("activation", "sigmoid")}
    rnn = network(kl.SimpleRNN(3, return_sequences=True, use_bias=bias, **functions), scale=0.3)
    np.testing.assert_allclose(observed_states(rnn.layers[0], X), called(rnn, X), atol=1e-5)
    x = keras.Input((STEPS, FEATURES))
    layer = kl.LSTM(3, return_sequences=True, return_state=True, use_bias=bias, **options)
    lstm = keras.Model(x, layer(x))
    outputs, _, cell = lstm.predict(X, verbose=0)
    found = observed_states(layer, X)
    np.testing.assert_allclose(found[..., :3], outputs, atol=1e-5)
    np.testing.assert_allclose(found[:, -1, 3:], cell, atol=1e-5)


def test_the_state_of_an_lstm_has_room_for_its_cell():
    model = network(kl.LSTM(3, name="l"))
    kernel, recurrent, bias = model.layers[0].get_weights()
    # Open gates and a proposal of 1: the cell gains one with every step, while the output stays below 1.
    bias[:] = 6.0
    model.layers[0].set_weights([kernel * 0.1, recurrent * 0, bias])
    kind = fp.make_design(model, target(), X)["l"].types["result"]
    assert kind.raw_max * kind.lsb >= STEPS - 0.1
    assert kind.overflow == "SAT"


@pytest.mark.parametrize(
    ("layer", "precision"),
    [(kl.GRU, None), (kl.LSTM, "fixed<14,5>"), (kl.GRU, fp.Precision(5, 4, 9)), (kl.LSTM, fp.Precision(5, 4, 9))],
)
def test_accumulators_lose_nothing_at_any_input(layer, precision):
    model = network(layer(5, name="r", return_sequences=True), kl.Flatten(), kl.Dense(3))
    design = fp.make_design(model, target(), X, precision)
    wide = replace(design["r"].types["accum"], width=60, integer=60 - design["r"].types["accum"].fraction)
    types = {**design["r"].types, "accum": wide}
    layers = [replace(one, types=types) if one.name == "r" else one for one in design.layers]
    extremes = RNG.choice([-100.0, 0.3, 100.0], size=(50, STEPS, FEATURES))
    assert np.array_equal(fp.emulate(design, extremes), fp.emulate(replace(design, layers=tuple(layers)), extremes))


@pytest.mark.parametrize(("layer", "io_type"), [(kl.GRU, "io_stream"), (kl.LSTM, "io_parallel")])
def test_the_design_is_near_to_keras_and_says_where_its_weights_come_from(layer, io_type):
    stack = (layer(5, name="a", return_sequences=True), layer(4, name="b", use_bias=False), kl.Dense(3, name="fc"))
    model = network(*stack, scale=0.3)
    design = fp.make_design(model, target(io_type=io_type), X, fp.Precision(14, 14, 18))
    wanted = called(model, X)
    assert np.abs(fp.emulate(design, X) - wanted).max() < 0.02 < np.abs(wanted).max()
    cell = f"{layer.__name__.lower()}_cell"
    biases = {"bias": f"a/{cell}/bias"} | ({"recurrent_bias": f"a/{cell}/bias"} if layer is kl.GRU else {})
    assert dict(design["a"].sources) == {
        "weight": f"a/{cell}/kernel",
        "recurrent_weight": f"a/{cell}/recurrent_kernel",
        **biases,
    }
    assert set(design["b"].sources) == {"weight", "recurrent_weight"}
    kernel = model.get_layer("a").get_weights()[1]
    kind = design["a"].types["recurrent_weight"]
    assert np.array_equal(design["a"].weights["recurrent_weight"], kind.to_raw(kernel))


OURS = fp.Target.of("tang-nano-20k")
# Wrapped or not, and what reads the steps.
DIRECTIONS = {
    "backwards": lambda: kl.LSTM(3, return_sequences=True, go_backwards=True, name="g"),
    "last": lambda: kl.SimpleRNN(3, go_backwards=True, name="g"),
    "concat": lambda: kl.Bidirectional(kl.GRU(3, return_sequences=True), name="g"),
    "sum": lambda: kl.Bidirectional(kl.SimpleRNN(3), merge_mode="sum", name="g"),
    "mul": lambda: kl.Bidirectional(kl.GRU(3, return_sequences=True), merge_mode="mul", name="g"),
    "ave": lambda: kl.Bidirectional(kl.LSTM(3), merge_mode="ave", name="g"),
    "none": lambda: kl.Bidirectional(kl.GRU(3), merge_mode=None, name="g"),
    "other": lambda: kl.Bidirectional(
        kl.GRU(3, return_sequences=True, go_backwards=True),
        backward_layer=kl.LSTM(3, return_sequences=True, name="l"),
        name="g",
    ),
}


@pytest.mark.parametrize("name", DIRECTIONS)
def test_what_reads_backwards_or_both_ways_is_computed_by_layers_that_read_forwards(name, tmp_path):
    """The mutants read the wrong way, join otherwise, or keep the order in which a direction was read."""
    model = network(DIRECTIONS[name](), scale=0.5)
    folded, wanted = fold(model), called(model, X)
    assert not any(getattr(layer, "go_backwards", False) for layer in folded.layers)
    for one, other in zip(*map(keras.tree.flatten, (called(folded, X), wanted)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    design = fp.make_design(model, OURS, X, fp.Precision(16, 16, 18))
    again = fp.Design.load(design.save(tmp_path / "design.json"))
    assert [layer.operation for layer in again.layers] == [layer.operation for layer in design.layers]

    def off(given):
        pairs = zip(*map(keras.tree.flatten, (given, wanted)), strict=True)
        return max(np.abs(one.reshape(other.shape) - other).max() for one, other in pairs)

    assert off(fp.emulate(design, X)) < 0.03
    others = {op.Reverse(): op.Reshape(), op.Concatenate(2): op.Concatenate(2), op.Merge("add"): op.Merge("subtract")}
    others |= {op.Merge("multiply"): op.Merge("add"), op.Merge("average"): op.Merge("maximum")}
    mutants = [
        replace(layer, operation=others[layer.operation], inputs=layer.inputs[::-1])
        for layer in design.layers
        if layer.operation in others
    ]
    assert mutants
    for mutant in mutants:
        layers = tuple(mutant if layer.name == mutant.name else layer for layer in design.layers)
        assert off(fp.emulate(replace(design, layers=layers), X)) > 0.1, mutant.name


def test_weights_of_both_directions_come_from_their_own_layers_and_stay_locked(tmp_path):
    wrapped = (kl.Bidirectional(kl.GRU(3, return_sequences=True, name="g"), name=name) for name in ("a", "b"))
    model = network(*wrapped, kl.Flatten(), kl.Dense(2, name="fc"))
    paths = [path for path, _ in named_weights(model).items() if path.endswith("kernel")]
    masks = fp.select(model, 0.5, paths=paths)
    model.compile("sgd", "mse")
    fp.lock(model, masks)
    design = fp.make_design(model, OURS, X)
    sources = {path for layer in design.layers for path in layer.sources.values()}
    assert sources == set(named_weights(model))
    assert design["a_forward_g"].sources["weight"] == "a/forward_g/gru_cell/kernel"
    model.save(tmp_path / "model.keras")
    for subject in (model, tmp_path / "model.keras"):
        assert {check.path for check in fp.certify(subject, masks).require().links[0].weights} == set(masks)
    # A locked weight that is not zero is found where it is: in one direction of one layer.
    raws = design["b_backward_g"].weights["recurrent_weight"].copy()
    raws[tuple(np.argwhere(raws == 0)[0])] = 1
    changed = replace(design["b_backward_g"], weights={**design["b_backward_g"].weights, "recurrent_weight": raws})
    layers = tuple(changed if layer.name == changed.name else layer for layer in design.layers)
    for number, (made, wrong) in enumerate(
        ((design, []), (replace(design, layers=layers), ["b/backward_g/gru_cell/recurrent_kernel"]))
    ):
        project = to_verilog(made, tmp_path / f"verilog{number}")
        checks = check_verilog(project, design, masks).weights
        assert {check.path for check in checks} == set(masks)
        assert [check.path for check in checks if check.violations] == wrong


@pytest.mark.parametrize(("name", "said"), [("last", r"'g_reversed' \(Reverse\)"), ("rnn", r"'g' \(RNN\)")])
def test_hls_has_neither_a_plain_rnn_nor_steps_in_reverse(name, said):
    layer = DIRECTIONS[name]() if name in DIRECTIONS else kl.SimpleRNN(3, name="g")
    with pytest.raises(UnsupportedLayerError, match=f"layer {said}: .*choose our Verilog"):
        fp.make_design(network(layer), target(), X)


def test_both_products_have_one_reuse_factor():
    model = network(kl.GRU(6, name="g"))
    made = fp.make_design(model, target(strategy="resource", reuse_factor=2), X)
    assert (made["g"].reuse_factor, made["g"].strategy) == (2, "resource")
    # 4 divides the inputs of the one product, not the 6 of the other: the target's factor moves to the nearest of both.
    size = r"layer 'g' \(4 inputs, 18 outputs, and 6 inputs of the same outputs\)"
    with pytest.warns(ReuseWarning, match=rf"{size} has reuse factor 2, the nearest to 4 that strategy 'resource'"):
        moved = fp.make_design(model, target(strategy="resource", reuse_factor=4), X)
    assert moved["g"].reuse_factor == 2


def test_adders_of_single_weights_are_not_for_recurrent_layers():
    model = network(kl.GRU(6, name="g"))
    made = fp.make_design(model, target(strategy="distributed_arithmetic"), X)
    assert (made["g"].reuse_factor, made["g"].strategy) == (1, "latency")
    with pytest.raises(HlsError, match="layer 'g' is a GRU, which has no template for strategy"):
        fp.make_design(model, target(), X, layers={"g": {"strategy": "distributed_arithmetic"}})


def test_a_given_type_that_the_recurrent_weights_overflow_is_refused():
    model = network(kl.GRU(6, name="g"))
    with pytest.raises(HlsError, match=r"layer 'g': .* of 108 weights of the model overflow its recurrent_weight type"):
        fp.make_design(model, target(), X, layers={"g": {"recurrent_weight": "fixed<8,-2>"}})


def test_widths_are_searched():
    model = network(kl.GRU(4, name="g"), kl.Dense(3, activation="softmax"), scale=0.5)
    auto = fp.AutoPrecision(max_loss="10 %", spare=0.0)
    made = fp.make_design(model, target(), X, auto)
    types = made["g"].types
    assert types["weight"].width == types["recurrent_weight"].width < 16
    assert types["result"].width < 16
