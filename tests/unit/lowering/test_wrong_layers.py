"""Which layers a backend refuses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.lowering.backends import BACKENDS
from fpgaprune.lowering.convertible_layers import check_kinds


@pytest.mark.parametrize(
    ("backend", "io_type", "kind", "message"),
    [
        ("oneAPI", "io_parallel", "Cropping2D", "leaves the output unset"),
        ("oneAPI", "io_stream", "Cropping1D", "leaves the output unset"),
        ("Catapult", "io_parallel", "Average", "cannot hold one half"),
        ("Catapult", "io_stream", "Maximum", "does not compile: choose io_parallel"),
        ("Catapult", "io_stream", "Permute", "does not compile: choose io_parallel"),
    ],
)
def test_a_layer_that_a_backend_builds_wrongly_is_refused(backend, io_type, kind, message):
    layer = type(kind, (), {"name": "odd"})()
    model = SimpleNamespace(layers=[layer], get_layer=lambda _: layer)
    with pytest.raises(UnsupportedLayerError, match=f"'odd' is a {kind}.*{message}"):
        check_kinds(model, BACKENDS[backend], io_type, "resource")
    check_kinds(model, BACKENDS["Vitis"], io_type, "resource")
