"""GRU, LSTM and plain RNN: each step computes two products, looks up the gates in tables, and makes a new state.

`nnet::gru_static` and `nnet::lstm_static` are the same for `io_parallel` and `io_stream`: products, their sum and the
gates have type `accum`; the state has type `result`. An RNN, for which hls4ml has no such template, is like them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fpgaprune.design import FUNCTIONS, Recurrent
from fpgaprune.emulate.activations import not_negative
from fpgaprune.emulate.exact import Exact, carrier
from fpgaprune.emulate.products import accumulated
from fpgaprune.emulate.step import Step
from fpgaprune.emulate.sums import Kernel
from fpgaprune.emulate.tables import centred
from fpgaprune.errors import UnsupportedLayerError

States = tuple[Exact, ...]
# (step, product of its inputs, product of its state, states before it) -> states after it.
_Advance = Callable[[Step, Exact, Exact, States], States]

_KNOWN = tuple(function.name for function in FUNCTIONS.values() if function.recurrent)
_ONE = Exact(np.ones(1, np.float32), 0, 1, 1)


def check(step: Step) -> None:
    """Check that both functions of the layer have an emulation.

    Raises:
        UnsupportedLayerError: one has none.
    """
    layer = step.operation(Recurrent)
    for what, name in (("activation", layer.function), ("recurrent_activation", layer.gate)):
        if name not in _KNOWN:
            raise UnsupportedLayerError(
                f"{what} {name!r} of a recurrent layer has no emulation; those that have: {', '.join(_KNOWN)}"
            )


def recurrent(step: Step, x: Exact) -> Exact:
    """Compute `nnet::gru_stack` or `lstm_stack`.

    A GRU has the gates update, reset, proposal, in this order, and its reset gate acts after the product. An LSTM has
    the gates input, forget, proposal, output, in this order. The state of an RNN is the proposal.
    """
    advance, states = _CELLS[step.operation(Recurrent).cell]
    return _over_steps(step, x, advance, states)


def _rnn_step(step: Step, inputs: Exact, recurrent: Exact, states: States) -> States:
    del states
    total = (inputs + recurrent).into(step.type("accum"))
    return (_function(step, step.operation(Recurrent).function, total).into(step.result),)


def _gru_step(step: Step, inputs: Exact, recurrent: Exact, states: States) -> States:
    accum, (state,) = step.type("accum"), states
    update, reset = (
        _function(
            step, step.operation(Recurrent).gate, (_gate(step, inputs, n) + _gate(step, recurrent, n)).into(accum)
        )
        for n in (0, 1)
    )
    kept = (reset * _gate(step, recurrent, 2)).into(accum)
    proposal = _function(step, step.operation(Recurrent).function, (_gate(step, inputs, 2) + kept).into(accum))
    return ((proposal * (_ONE - update) + state * update).into(step.result),)


def _lstm_step(step: Step, inputs: Exact, recurrent: Exact, states: States) -> States:
    total, cell = (inputs + recurrent).into(step.type("accum")), states[1]
    take, forget, out = (_function(step, step.operation(Recurrent).gate, _gate(step, total, n)) for n in (0, 1, 3))
    proposal = _function(step, step.operation(Recurrent).function, _gate(step, total, 2))
    cell = (proposal * take + cell * forget).into(step.result)
    return (out * _function(step, step.operation(Recurrent).function, cell)).into(step.result), cell


_CELLS: Mapping[str, tuple[_Advance, int]] = {"gru": (_gru_step, 1), "lstm": (_lstm_step, 2), "rnn": (_rnn_step, 1)}


def _over_steps(step: Step, x: Exact, advance: _Advance, states: int) -> Exact:
    samples, steps, features = x.raw.shape
    products = _product(step, x.reshape(samples * steps, features), "weight", "bias")
    low, high = step.result.raw_min, step.result.raw_max
    zeros = np.zeros((samples, step.operation(Recurrent).units), carrier(low, high))
    now: States = (Exact(zeros, step.result.fraction, low, high),) * states
    seen = np.empty((samples, steps, step.operation(Recurrent).units), carrier(low, high))
    by_step = products.raw.reshape(samples, steps, products.raw.shape[-1])
    for place in range(steps):
        recurrent = _product(step, now[0], "recurrent_weight", "recurrent_bias")
        now = advance(step, products.on(by_step[:, place]), recurrent, now)
        seen[:, place] = now[0].raw
    found = seen if step.operation(Recurrent).sequences else seen[:, -1]
    return Exact(found, step.result.fraction, low, high)


def _product(step: Step, x: Exact, weight: str, bias: str) -> Exact:
    kernel = step.keep(f"kernel of {weight}", lambda: Kernel.of(step.weight(weight), step.type(weight)))
    return accumulated(step, [x], kernel, bias)


def _function(step: Step, name: str, x: Exact) -> Exact:
    """Compute the scalar function called `name`; its results have the accumulator's type."""
    found = not_negative(x) if name == "relu" else centred(step, x, FUNCTIONS[name])
    return found.into(step.type("accum"))


def _gate(step: Step, x: Exact, place: int) -> Exact:
    units = step.operation(Recurrent).units
    return x.on(x.raw[..., place * units : (place + 1) * units])
