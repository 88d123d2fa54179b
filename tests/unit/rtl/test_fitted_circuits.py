"""Equal circuits are fitted once; others are not taken for equal."""

import pytest

from fpgaprune.rtl import Circuit, fitted_circuit, quick_schedule, with_small_tables, with_three_operands


def circuit(*, table=(0, 3, 1, 2), width=2, high=3, bias=5, bits=4, signed=False):
    """A table, a sum with a bias and a limit."""
    made = Circuit()
    first = made.input(width, signed, 0, high)
    second = made.rom(first, table)
    made.output(made.clip(made.add(second, made.const(bias)), 0, 7), bits)
    return made


def fitted(one, tables=4, operands=2, levels=1):
    return fitted_circuit(one, tables, operands, levels, quick_schedule)


def text(one):
    return one.nodes, one.tables, one.inputs, one.outputs


def test_equal_circuits_are_one():
    assert fitted(circuit()) is fitted(circuit())


@pytest.mark.parametrize(
    "other",
    [{"table": (0, 3, 2, 1)}, {"high": 2}, {"bias": 6}, {"bits": 5}, {"width": 3}, {"signed": True}],
    ids=lambda changed: next(iter(changed)),
)
def test_a_circuit_that_differs_in_one_place_is_another(other):
    assert text(fitted(circuit(**other))) != text(fitted(circuit()))
    assert text(fitted(circuit(**other))) == text(with_small_tables(circuit(**other), 4))


@pytest.mark.parametrize("asked", [{"tables": 0}, {"operands": 3}])
def test_another_layout_has_circuits_of_its_own(asked):
    wanted = with_small_tables(circuit(), asked.get("tables", 4), asked.get("operands", 2))
    if asked.get("operands") == 3:
        wanted = with_three_operands(wanted)
    fitted(circuit())
    assert text(fitted(circuit(), **asked)) == text(wanted)


def test_the_circuit_that_was_given_stays_as_it_is():
    given = circuit()
    fitted(given)
    assert text(given) == text(circuit())
