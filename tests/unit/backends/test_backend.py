"""A backend takes its own strategies and io types; another one is refused by a line that names those who have it."""

import pytest

from fpgaprune.backends import BACKENDS, backend_named
from fpgaprune.design import IO_TYPES, STRATEGIES
from fpgaprune.errors import HlsError


@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_takes_its_own_strategies_and_io_types_only(name):
    backend = backend_named(name)
    for strategy in STRATEGIES:
        if strategy in backend.strategies:
            backend.require(strategy, "io_parallel")
        else:
            with pytest.raises(HlsError, match=f"backend {name} has no strategy '{strategy}'; it has"):
                backend.require(strategy, "io_parallel")
    for io_type in set(IO_TYPES) - set(backend.io_types):
        with pytest.raises(HlsError, match=rf"{name} has no io_type '{io_type}'; it has .*another backend \(Vitis, "):
            backend.require(backend.strategies[0], io_type)


def test_an_unknown_backend_is_refused():
    with pytest.raises(HlsError, match=r"backend 'Vitus' is unknown; wanted one of Vitis, Vivado"):
        backend_named("Vitus")
