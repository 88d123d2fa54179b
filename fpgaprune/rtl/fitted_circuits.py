"""`fitted_circuit`: a circuit with small tables and wide adders; equal circuits of several layouts are made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from fpgaprune.rtl.circuit import Circuit
from fpgaprune.rtl.pipelining import Schedule
from fpgaprune.rtl.small_tables import with_small_tables
from fpgaprune.rtl.three_operands import with_three_operands

# Stages of a circuit with a register after every so many adder levels.
Scheduler = Callable[[Circuit, int], Schedule]
# Larger circuits are not kept: they would take too much memory.
_MOST_NODES, _KEPT = 4000, 256


def fitted_circuit(circuit: Circuit, tables: int, operands: int, levels: int, schedule: Scheduler) -> Circuit:
    """Return a circuit with the same outputs, whose tables are small and whose adders take up to `operands` operands.

    It is shared by all that asked for an equal one, so it must stay as it is.

    Args:
        circuit: with adders of two operands; it stays as it is.
        tables: bits of the index of a small table at most; 0 for none.
        operands: of an adder, at most: 2 or 3.
        levels: adder levels between two registers.
        schedule: says in which registers values wait.
    """
    if len(circuit.nodes) > _MOST_NODES:
        return _fitted(circuit, tables, operands, levels, schedule)
    return _remembered(_Content(circuit), tables, operands, levels, schedule)


class _Content:
    """A circuit that is equal to another one of the same nodes, tables, inputs and outputs."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.parts = tuple(circuit.nodes), tuple(circuit.tables), tuple(circuit.inputs), tuple(circuit.outputs)
        self.hash = hash(self.parts)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and self.parts == other.parts


@lru_cache(maxsize=_KEPT)
def _remembered(content: _Content, tables: int, operands: int, levels: int, schedule: Scheduler) -> Circuit:
    return _fitted(content.circuit, tables, operands, levels, schedule)


def _fitted(circuit: Circuit, tables: int, operands: int, levels: int, schedule: Scheduler) -> Circuit:
    def adding(one: Circuit) -> Circuit:
        return one if operands < 3 else with_three_operands(one)

    def waiting(one: Circuit) -> int:
        """Count the LUTs of shift registers in which the values of a circuit wait."""
        made = adding(one)
        return schedule(made, levels).shift_luts(made)

    return adding(with_small_tables(circuit, tables, operands, waiting))
