"""The Verilog simulated within a run: other bits are counted, and a missing simulator leaves the rest as it is."""

from types import SimpleNamespace

import numpy as np
import pytest

from fpgaprune.emulate import emulate
from fpgaprune.errors import RtlError, ToolError
from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.run import Silent
from fpgaprune.flow.stages import NotCompared, hls, simulate_verilog, verilog_checks, verilog_measurements
from fpgaprune.measure import Measured, Simulated

from ..emulate.designs import mlp

NETWORK = mlp()
X = np.random.default_rng(3).uniform(-1, 1, (5, 2))


def simulated(monkeypatch, change=lambda outputs: None, samples=5):
    """What is found where the Verilog gives the emulation's outputs after `change`."""

    def simulate(project, x, timeout_s):
        output = emulate(NETWORK, x).copy()
        change(output)
        return SimpleNamespace(outputs=(output,), latency_cycles=91, interval_cycles=36)

    steps = []
    monkeypatch.setattr(verilog_measurements, "simulate", simulate)
    found = simulate_verilog(None, NETWORK, X[:samples], 60, lambda *step: steps.append(step))
    return found, steps


def fail(error):
    def raising(outputs):
        raise error

    return raising


def test_equal_bits_hold(monkeypatch):
    found, steps = simulated(monkeypatch)
    assert found.outputs_unlike_emulation == 0
    assert (found.samples, found.latency_cycles, found.interval_cycles) == (5, 91, 36)
    assert steps == [(0, 1, "simulation"), (1, 1, "simulation")]
    (bits,) = verilog_checks(Measured(None, (), {}, None, found))
    assert (bits.holds, bits.samples) == (True, 5)


def test_every_other_output_is_counted_and_fails_the_check(monkeypatch):
    def change(outputs):
        outputs[2, 1] += 2.0**-4
        outputs[4, 0] -= 2.0**-4

    found, _ = simulated(monkeypatch, change)
    assert found.outputs_unlike_emulation == 2
    assert verilog_checks(Measured(None, (), {}, None, found))[-1].holds is False


def test_without_a_simulator_the_check_is_left_out(monkeypatch):
    found, _ = simulated(monkeypatch, fail(ToolError("g++ was not found")))
    assert found == Simulated(left_out="g++ was not found")
    (check,) = verilog_checks(Measured(None, (), {}, None, found))
    assert (check.holds, check.left_out) == (None, "g++ was not found")


def test_verilog_that_is_stuck_is_an_error(monkeypatch):
    with pytest.raises(RtlError, match="stuck"):
        simulated(monkeypatch, fail(RtlError("the design is stuck")))


def test_no_sample_starts_no_simulator(monkeypatch):
    found, steps = simulated(monkeypatch, fail(AssertionError("started")), samples=0)
    assert (found, steps) == (Simulated(left_out="the flow asks for no samples (simulate is 0)"), [])


def test_a_run_that_measured_nothing_has_no_such_check():
    assert verilog_checks(None) == []


def test_a_c_simulation_runs_eight_samples_at_least_and_may_be_left_out():
    def run(x, seconds, fewest, tell):
        tell(1)
        raise ToolError(f"{len(x)} samples, {seconds} s, {fewest} at least")

    config = parse_config({"hls": {"simulate": 12, "simulate_s": 2.5}}, "flow")
    data = SimpleNamespace(x_test=np.zeros((20, 2)))
    context = SimpleNamespace(config=config, data=data, progress=Silent())
    project = SimpleNamespace(compile=lambda _: SimpleNamespace(run=run))
    found = hls._simulated(context, project, None, None)
    assert found == NotCompared("12 samples, 2.5 s, 8 at least")
    none = SimpleNamespace(config=parse_config({"hls": {"simulate": 0}}, "flow"), data=data, progress=Silent())
    # Nothing is compiled either.
    said = NotCompared("the flow does not ask for it (simulate above 0 in [hls])")
    assert hls._simulated(none, SimpleNamespace(), None, None) == said
