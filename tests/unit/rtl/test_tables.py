"""Activations that are looked up: the emulator's values, from the smaller of two tables."""

import numpy as np
import pytest

from fpgaprune.emulate import Exact, Step
from fpgaprune.emulate import look_up as look_up_real
from fpgaprune.hls import layer_of
from fpgaprune.rtl import Circuit, Number, look_up
from fpgaprune.values import FixedType

TABLE_SIZE = 2048


@pytest.mark.parametrize(("width", "entries"), [(6, 64), (10, 1024), (11, TABLE_SIZE), (13, TABLE_SIZE)])
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "softplus", "softsign", "selu", "gelu", "silu", "exponential"])
def test_a_narrow_input_has_an_entry_for_each_value_and_a_wide_one_the_table_of_the_template(name, width, entries):
    source, result = FixedType(width, 4), FixedType(10, 2, True, "RND", "SAT")
    attributes = {"activation": name, "table_size": TABLE_SIZE}
    types = {"result": result, "table": FixedType(18, 8)}
    layer = layer_of("a", "Activation", ("x",), (1,), types, attributes=attributes)
    entry = layer_of("x", "Input", (), (1,), {"result": source})
    raws = np.arange(source.raw_min, source.raw_max + 1, dtype=np.int64)
    circuit = Circuit()
    x = Number(circuit, circuit.input(width, True, source.raw_min, source.raw_max), source.fraction)
    circuit.output(look_up(Step(layer, (entry,)), x).place, result.width)
    step = Step(layer, (entry,))
    wanted = look_up_real(step, Exact(raws.astype(np.float64), source.fraction, source.raw_min, source.raw_max))
    assert (circuit.evaluate([raws])[0] == wanted.integers()).all()
    assert [len(table) for table in circuit.tables] == [entries]
