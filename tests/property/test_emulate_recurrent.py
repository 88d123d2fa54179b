"""GRU, LSTM and tables of negative numbers against loops over single numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpgaprune.hls import layer_of
from fpgaprune.values import FixedType

from .test_emulate_layers import Number, data, draw, examples, run, seeds

ROLES = ("weight", "recurrent_weight", "bias", "recurrent_bias")


def recurrent(kind, kinds, weights, steps, units, **attributes):
    types = {**kinds, "table": FixedType(24, 4, True, "RND", "SAT")}
    given = {"n_out": units, "return_sequences": True, "table_size": 8192} | attributes
    return layer_of("g", kind, ("x",), (steps, units), types, weights, attributes=given, strategy="latency")


def drawn(rng, kind, features, units, of_type):
    """Types and raw weights of a layer."""
    gates = units * (3 if kind == "GRU" else 4)
    shapes = {"weight": (features, gates), "recurrent_weight": (units, gates), "bias": (gates,)}
    # Keras gives an LSTM one bias; hls4ml writes the other as zeros.
    shapes["recurrent_bias"] = (gates,)
    kinds = {role: of_type(rng) for role in ROLES}
    return kinds, {role: data(rng, kinds[role], shape) for role, shape in shapes.items()}


def by_numbers(kind, kinds, weights, x, source, units):
    """Each number of each step, as the templates' loops compute it where every gate is a ReLU."""
    accum, result = kinds["accum"], kinds["result"]
    gates = 3 if kind == "GRU" else 4

    def value(role, *place):
        return Fraction(int(weights[role][place])) / Fraction(2) ** kinds[role].fraction

    def product(inputs, role, bias):
        found = []
        for out in range(gates * units):
            total = Number(accum, value(bias, out))
            for place, each in enumerate(inputs):
                total.set(total.value + Number(accum, each * value(role, place, out)).value)
            found.append(total.value)
        return found

    def gate(number):
        return max(Number(accum, number).value, Fraction(0))

    state = [Fraction(0)] * units
    cell = [Fraction(0)] * units
    for row in x:
        seen = [Fraction(int(each)) / Fraction(2) ** source.fraction for each in row]
        a, b = product(seen, "weight", "bias"), product(state, "recurrent_weight", "recurrent_bias")
        after = list(state)
        for unit in range(units):
            first, second, third, fourth = (unit + units * n for n in range(4))
            if kind == "GRU":
                update, reset = gate(a[first] + b[first]), gate(a[second] + b[second])
                proposal = gate(a[third] + Number(accum, reset * b[third]).value)
                after[unit] = Number(result, proposal * (1 - update) + state[unit] * update).value
            else:
                take, forget, made, out = (gate(a[place] + b[place]) for place in (first, second, third, fourth))
                cell[unit] = Number(result, made * take + cell[unit] * forget).value
                after[unit] = Number(result, out * gate(cell[unit])).value
        state = after
        yield [Number(result, each).raw for each in state]


@examples(12)
@given(seeds, st.sampled_from(["GRU", "LSTM"]))
def test_gates_and_states_are_those_of_the_templates_number_by_number(seed, kind):
    rng = np.random.default_rng(seed)
    units, features, steps = int(rng.integers(1, 4)), int(rng.integers(1, 3)), 3
    kinds, weights = drawn(rng, kind, features, units, lambda rng: draw(rng, (3, 8), (0, 3)))
    source = draw(rng, (3, 8), (0, 3))
    kinds |= {"accum": draw(rng, (6, 16), (2, 8)), "result": draw(rng, (4, 10), (1, 5))}
    x = data(rng, source, (2, steps, features))
    layer = recurrent(kind, kinds, weights, steps, units, activation="relu", recurrent_activation="ReLU")
    got = run(layer, source, x, "io_parallel")
    for sample in range(2):
        assert got[sample].tolist() == list(by_numbers(kind, kinds, weights, x[sample], source, units))


@examples(10)
@given(seeds, st.sampled_from(["GRU", "LSTM"]), st.sampled_from([("tanh", "sigmoid"), ("sigmoid", "tanh")]))
def test_with_wide_numbers_a_recurrent_layer_is_that_of_keras(seed, kind, functions):
    rng = np.random.default_rng(seed)
    units, features, steps = 3, 2, 4
    wide = FixedType(24, 4, True, "RND", "SAT")
    kinds, weights = drawn(rng, kind, features, units, lambda _: FixedType(10, 2, True, "RND", "SAT"))
    kinds |= {"accum": FixedType(40, 12, True, "RND", "SAT"), "result": wide}
    x = data(rng, FixedType(10, 2), (2, steps, features))
    names = dict(zip(("activation", "recurrent_activation"), functions, strict=True))
    got = wide.to_float(run(recurrent(kind, kinds, weights, steps, units, **names), FixedType(10, 2), x, "io_parallel"))
    sigmoid = {"tanh": np.tanh, "sigmoid": lambda v: 1 / (1 + np.exp(-v))}
    act, gate = (sigmoid[name] for name in functions)
    reals = {role: kinds[role].to_float(raw) for role, raw in weights.items()}
    state, cell = np.zeros((2, units)), np.zeros((2, units))
    for place in range(steps):
        a = FixedType(10, 2).to_float(x[:, place]) @ reals["weight"] + reals["bias"]
        b = state @ reals["recurrent_weight"] + reals["recurrent_bias"]
        a, b = (np.split(each, a.shape[1] // units, axis=1) for each in (a, b))
        if kind == "GRU":
            update, reset = gate(a[0] + b[0]), gate(a[1] + b[1])
            state = update * state + (1 - update) * act(a[2] + reset * b[2])
        else:
            take, forget, made, out = (one + other for one, other in zip(a, b, strict=True))
            cell = gate(forget) * cell + gate(take) * act(made)
            state = gate(out) * act(cell)
        # A table of 8,192 entries, over 8 or 16, whose error grows from step to step.
        assert np.abs(got[:, place] - state).max() < 0.05
        state = got[:, place]


@pytest.mark.parametrize("io_type", ["io_parallel", "io_stream"])
@pytest.mark.parametrize("name", ["elu", "selu"])
@pytest.mark.parametrize("size", [512, 1024])
def test_tables_of_negative_numbers_hold_the_function_at_the_place_nearer_to_zero(io_type, name, size):
    source, table = FixedType(11, 5), FixedType(18, 6, True, "RND", "SAT")
    x = np.arange(source.raw_min, source.raw_max + 1).reshape(1, -1)
    attributes = {"activation": name, "table_size": size, "activ_param": 0.75}
    types = {"result": table, "table": table, "param": FixedType(8, 2)}
    layer = layer_of("a", "Activation", ("x",), x.shape[1:], types, {}, {}, attributes)
    got = table.to_float(run(layer, source, x, io_type))[0]
    # The streaming template of selu writes lambda in the type of the data.
    scale = 1.0507009873554805
    written = math.floor(scale * 2**source.fraction) / 2**source.fraction if io_type == "io_stream" else scale
    for value, found in zip(source.to_float(x)[0], got, strict=True):
        place = min(int(-value * size / 8), size - 1)
        below = math.exp(-8.0 * place / size) - 1
        wanted = {
            "elu": 0.75 * below if value < 0 else value,
            "selu": scale * 1.6732632423543772 * below if value < 0 else written * value,
        }[name]
        assert abs(found - wanted) <= 2 * table.lsb + (1e-3 * abs(value) if name == "selu" else 0)
