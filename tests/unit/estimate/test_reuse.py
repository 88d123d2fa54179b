"""Reuse factors against the conditions of the templates, by brute force."""

import pytest

from fpgaprune.estimate.reuse import allowed_reuse


def valid(n_in, n_out, reuse):
    limit = -(-n_in * n_out // min(n_in, reuse))
    return (limit % n_out == 0 or reuse >= n_in) and (reuse % n_in == 0 or reuse < n_in) and n_in * n_out % reuse == 0


@pytest.mark.parametrize(("n_in", "n_out"), [(16, 12), (24, 120), (75, 32), (7, 1), (1, 9)])
def test_nearest_allowed(n_in, n_out):
    everything = [r for r in range(1, n_in * n_out + 1) if valid(n_in, n_out, r)]
    for wanted in (1, 5, 18, 1024, 10**6):
        got = allowed_reuse(n_in, n_out, wanted)
        assert got in everything
        assert abs(got - wanted) == min(abs(r - wanted) for r in everything)


def test_latency_of_a_published_design_follows_from_it():
    # jdweitz/wa-hls4ml 80-24-120 at a requested reuse of 2047: 3,365 cycles are 1,920 + 1,440 and 5 more.
    assert allowed_reuse(80, 24, 2047) + allowed_reuse(24, 120, 2047) == 1920 + 1440
