"""Networks that nobody here wrote: what is left after removal computes the same."""

import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location(
    "bench_remove", Path(__file__).parents[1] / "benchmarks" / "bench_remove.py"
)
bench = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(bench)

FAST = [("MobileNetV3Small", 0.5, "filter")]
ALL = [
    (name, fraction, grain) for name in bench.SIZES for fraction in (0.3, 0.5, 0.7) for grain in ("filter", "kernel")
]


def check(name, fraction, granularity):
    plan, found = bench.remove_and_compare(bench.prune(bench.application(name), fraction, granularity))
    found.require()
    # Else the network hardly reads its input, and equality says little.
    assert found.variation > 1e-3
    assert plan.unsupported == {}
    assert plan.channel_counts[1] <= plan.channel_counts[0]


@pytest.mark.parametrize(("name", "fraction", "granularity"), FAST)
def test_small_applications(name, fraction, granularity):
    check(name, fraction, granularity)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fraction", "granularity"), ALL)
def test_all_applications(name, fraction, granularity):
    check(name, fraction, granularity)
