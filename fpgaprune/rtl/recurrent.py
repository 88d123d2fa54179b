"""A recurrent layer: the sums of a step by a schedule or at once, then gates from tables and new states, unit by unit.

The gates of a unit come one after another, so that all of them read the same tables. What a step makes comes back as an
input of the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fpgaprune.design import FUNCTIONS, LayerSpec, Recurrent
from fpgaprune.emulate import Exact, Step, input_order
from fpgaprune.errors import RtlError
from fpgaprune.rtl.bus import Lane
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.folded import WORTH
from fpgaprune.rtl.gate_weights import by_unit, joined_weights
from fpgaprune.rtl.links import AROUND, Loop, Module
from fpgaprune.rtl.node import width_of
from fpgaprune.rtl.number import Number
from fpgaprune.rtl.program import Program
from fpgaprune.rtl.scheduled import ORDER_COUNTS, multiplied, program_of
from fpgaprune.rtl.scheduled_sums import ScheduledSums
from fpgaprune.rtl.solve import Context
from fpgaprune.rtl.sums import Weights, weighted
from fpgaprune.rtl.tables import centred, table_in

# The gate that proposes a new state: it has the layer's activation, all others its recurrent activation.
_PROPOSES = 2
_GATES = {"gru": 3, "lstm": 4, "rnn": 1}


def recurrent(context: Context, chain: Chain) -> None:
    """Compute the states of all steps of a sample, one step after another."""
    step = context.step
    operation, result = step.operation(Recurrent), step.result
    steps, inputs = chain.stream.shape
    units, gates = operation.units, _GATES[operation.cell]
    chain.unpack()
    chain.relaid(1)
    own = (chain.stream.low, chain.stream.high), (result.raw_min, result.raw_max)
    chain.widened(max(kind.width + (not kind.signed) for kind in (chain.stream, result)))
    s = chain.stream
    low, high = min(own[0][0], own[1][0], 0), max(own[0][1], own[1][1], 0)
    beats = replace(s, shape=(steps, inputs + units), beats=steps * (inputs + units), low=low, high=high, each=None)
    sums = Chain.begin(beats)
    x, h = (_weights(step, *roles) for roles in _ROLES)
    products = _Products(x, h, *own, s.fraction, result.fraction)
    multipliers = _multipliers(context, products)
    if multipliers is None:
        _at_once(context, sums, products)
        chain.reads = sums.reads
    else:
        program = _scheduled(step.layer, sums, products, multipliers)
        chain.notes.append(
            f"scheduled: {program.multipliers} multipliers, {len(program.places)} of {products.all} weights kept, "
            f"{program.steps} cycles of every step"
        )
    _gates(step, sums, products, gates, raw=multipliers is not None)
    sums.relaid(sums.stream.lanes * gates)
    sums.pack()
    state = _states(step, sums)
    made = state.stream
    parameters = {
        "X_WIDTH": s.width,
        "SUMS_WIDTH": sums.stream.bits,
        "H_WIDTH": result.width,
        "R_WIDTH": made.bits,
        "H_SIGNED": int(result.signed),
        "INPUTS": inputs,
        "UNITS": units,
        "STEPS": steps,
        "SEQUENCES": int(operation.sequences),
    }
    module = Module.of("fp_recurrent", s.bits, result.width, **parameters)
    chain.links.append(Loop(module, tuple(sums.links), tuple(state.links)))
    ends = chain.need[inputs - 1 :: inputs]
    chain.need = np.repeat(ends if operation.sequences else ends[-1:], units)
    chain.held += inputs + units
    output = made.each[0] if made.each else Lane(made.low, made.high, 0)
    leaving = replace(made, shape=step.layer.output_shape, beats=chain.need.size, lanes=1, each=None)
    chain.stream = replace(leaving, low=output.low, high=output.high)
    if operation.sequences:
        # A step can go on while what the one before it has made is read.
        chain.queue(units)
    chain.kept, chain.dropped = products.kept, products.all - products.kept


_ROLES = (("weight", "bias"), ("recurrent_weight", "recurrent_bias"))


@dataclass(frozen=True)
class _Products:
    """The weights of the inputs and those of the state; outputs are unit by unit, gate by gate.

    Attributes:
        x, h: weights of the inputs, and of the state.
        x_bounds, h_bounds: of the raw inputs, and of the raw state.
        x_fraction, h_fraction: of the inputs, and of the state.
    """

    x: Weights
    h: Weights
    x_bounds: tuple[int, int]
    h_bounds: tuple[int, int]
    x_fraction: int
    h_fraction: int

    @property
    def kept(self) -> int:
        """Weights other than zero."""
        return self.x.kept + self.h.kept

    @property
    def all(self) -> int:
        """All weights."""
        return self.x.matrix.size + self.h.matrix.size

    @property
    def any_order(self) -> bool:
        """Whether the products can be added in any order."""
        x = self.x.any_order(*self.x_bounds, self.x_fraction)
        return bool(x.all() and self.h.any_order(*self.h_bounds, self.h_fraction).all())

    def bounds(self) -> tuple[int, int]:
        """Bound every sum."""
        pairs = (self.x.bounds(*self.x_bounds), self.h.bounds(*self.h_bounds))
        return min(low for low, _ in pairs), max(high for _, high in pairs)

    def accumulated(self, totals: list[Number], starts: list[Number]) -> list[Number]:
        """Return the accumulators of an output: each of its two biases plus the sum of its raw products."""
        fractions = self.x_fraction + self.x.kind.fraction, self.h_fraction + self.h.kind.fraction
        return [
            (start + replace(total, fraction=fraction)).into(self.x.accum)
            for total, start, fraction in zip(totals, starts, fractions, strict=True)
        ]


def _weights(step: Step, weight: str, bias: str) -> Weights:
    units, matrix, start = step.operation(Recurrent).units, step.weight(weight), step.constants(bias)
    start = start.on(by_unit(np.broadcast_to(start.raw, matrix.shape[1:]), units))
    orders = [input_order(step, len(matrix))] * matrix.shape[1]
    return Weights(by_unit(matrix, units), step.type(weight), start, step.type("accum"), orders)


def _multipliers(context: Context, products: _Products) -> int | None:
    """Return how many multipliers the layer has; None if its sums are made at once.

    Where the layout does not say, they are as few as keep the cycles of a sample, if each computes many products.

    Raises:
        RtlError: the layout gives it some, and the order of additions counts.
    """
    wanted = context.layout.multipliers.get(context.step.layer.name)
    if wanted is not None and not products.any_order:
        raise RtlError(ORDER_COUNTS)
    if wanted is not None or not products.any_order:
        return wanted
    steps, outputs = context.step.sources[0].output_shape[0], 2 * len(products.x.starts)
    room = max(context.beats // steps - outputs - AROUND, 1)
    fewest, most = -(-products.kept // room), context.layout.parallel_products
    if products.kept > most:
        return min(fewest, -(-products.kept // most))
    return fewest if fewest and products.kept >= WORTH * fewest else None


def _scheduled(layer: LayerSpec, sums: Chain, products: _Products, multipliers: int) -> Program:
    """Make the raw sums of each step by a schedule, in pairs."""
    s, program = sums.stream, program_of(layer, multipliers)
    (steps, values), (low, high) = s.shape, products.bounds()
    made = ScheduledSums(program, values, s.width, s.signed, max(2, width_of(low, high)), steps)
    multiplied(sums, made, (steps, program.outputs), (low, high))
    sums.relaid(2)
    return program


def _at_once(context: Context, sums: Chain, products: _Products) -> None:
    """Make all sums of each step at once, with their biases, and hand them on in pairs."""
    x, h, accum = products.x, products.h, products.x.accum
    inputs, matrix = len(x.matrix), joined_weights(context.step.layer)
    sums.relaid(len(matrix))
    lanes = (Lane(*products.x_bounds, 0),) * inputs + (Lane(*products.h_bounds, 0),) * len(h.matrix)
    sums.stream = replace(sums.stream, each=lanes)
    sums.reads = sums.stream.bus

    def finish(totals: list[Number]) -> list[Number]:
        found = []
        for n, pair in enumerate(zip(totals[::2], totals[1::2], strict=True)):
            starts = [Number.constant(pair[0].circuit, one.starts[n], accum.fraction) for one in (x, h)]
            found += products.accumulated(list(pair), starts)
        return found

    def computed(values: list[Number]) -> list[Number]:
        states = [replace(value, fraction=products.h_fraction) for value in values[inputs:]]
        both = weighted(values[:inputs], x, context.solve), weighted(states, h, context.solve)
        return [total for pair in zip(*both, strict=True) for total in pair]

    if context.counter is not None and products.any_order:
        sums.compute_counted(context.counter.trees(matrix, sums.stream), finish, accum)
    else:
        sums.compute("sums", computed, accum)
    sums.relaid(2)


def _gates(step: Step, sums: Chain, products: _Products, gates: int, raw: bool) -> None:
    """Look up one gate after another; a GRU hands both sums on beside it. `raw` sums get their biases first."""
    operation, accum = step.operation(Recurrent), step.type("accum")
    period = len(products.x.starts) if raw else gates

    def gated(values: list[Number], number: Number) -> list[Number]:
        if raw:
            starts = [number.looked_up(one.starts, accum.fraction) for one in (products.x, products.h)]
            values = products.accumulated(values, starts)
        total = (values[0] + values[1]).into(accum)
        gate = _function(step, operation.gate, total).short()
        if operation.cell == "gru":
            return [gate.at_fraction(accum.fraction), *values]
        if operation.cell == "rnn":
            return [gate.at_fraction(accum.fraction)]
        proposal = _function(step, operation.function, total).short()
        fraction = max(gate.fraction, proposal.fraction)
        proposes = number.looked_up(_proposes(gates, period), 0).place
        chosen = proposal.at_fraction(fraction).chosen(proposes, gate.at_fraction(fraction))
        return [chosen.at_fraction(accum.fraction)]

    sums.compute_numbered("gates", gated, accum, period)


def _states(step: Step, sums: Chain) -> Chain:
    """Compute a unit's output from its gates and its state of the step before, and its state where that is another."""
    operation, accum, result = step.operation(Recurrent), step.type("accum"), step.result
    gates, kind = sums.stream.each, sums.stream.kind()
    if gates is None or not sums.stream.packed:
        # Gates that are all zero leave nothing to pack.
        gates = (Lane(kind.raw_min, kind.raw_max, 0),) * sums.stream.lanes
    lanes = (*gates, Lane(result.raw_min, result.raw_max, 0))
    chain = Chain.begin(replace(sums.stream, lanes=len(lanes), each=lanes, packed=True))

    def of_gru(values: list[Number]) -> list[Number]:
        # Each gate comes with both of its sums.
        update, reset, own, of_state = (values[place].short() for place in (0, 3, 7, 8))
        state = replace(values[-1], fraction=result.fraction)
        kept = (reset * of_state).into(accum)
        proposal = _function(step, operation.function, (own + kept).into(accum)).short()
        rest = Number.constant(update.circuit, 1, 0) - update
        return [(proposal * rest + state * update).into(result)]

    def of_lstm(values: list[Number]) -> list[Number]:
        take, forget, proposal, out = (value.short() for value in values[:-1])
        before = replace(values[-1], fraction=result.fraction)
        state = (proposal * take + before * forget).into(result)
        return [(out * _function(step, operation.function, state).short()).into(result), state]

    def of_rnn(values: list[Number]) -> list[Number]:
        return [values[0].into(result)]

    cells: dict[str, Callable[[list[Number]], list[Number]]] = {"gru": of_gru, "lstm": of_lstm, "rnn": of_rnn}
    chain.compute("state", cells[operation.cell], result)
    return chain


def gate_tables(step: Step) -> dict[str, Exact]:
    """Return what the tables of a recurrent layer hold: its functions, its biases, and which gate is the proposal."""
    operation, accum = step.operation(Recurrent), step.type("accum")
    found = {}
    for name in (operation.gate, operation.function):
        if name != "relu":
            found[name] = table_in(step, FUNCTIONS[name], accum)
    outputs, gates = step.weight("weight").shape[1], _GATES[operation.cell]
    for roles in _ROLES:
        starts = _weights(step, *roles).starts
        found[f"the {roles[1]}"] = Exact(np.array(starts), accum.fraction, min(starts), max(starts))
    for period in (gates, outputs):
        found[f"the mark of {period} gates"] = Exact(np.array(_proposes(gates, period)), 0, 0, 1)
    return found


def _proposes(gates: int, period: int) -> list[int]:
    """Return for each of `period` gates whether it is the proposal."""
    return [int(number % gates == _PROPOSES) for number in range(period)]


def _function(step: Step, name: str, x: Number) -> Number:
    """Return the scalar function called `name`, as the accumulator holds its results."""
    accum = step.type("accum")
    if name == "relu":
        return x.on(x.circuit.larger(x.place, x.circuit.const(0))).into(accum)
    return centred(step, x, FUNCTIONS[name], accum)
