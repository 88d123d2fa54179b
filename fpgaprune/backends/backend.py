"""Names each backend of hls4ml 1.3 and our Verilog, and what each can do, so that a target is checked first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fpgaprune.design import IO_TYPES, STRATEGIES
from fpgaprune.errors import HlsError

# Our own Verilog, which computes every operation as it says: nothing of hls4ml's limits it.
VERILOG = "Verilog"
AP_BACKENDS = ("Vitis", "Vivado", "VivadoAccelerator", VERILOG)
CATAPULT = "Catapult"
KNOWN_BACKENDS = (*AP_BACKENDS, CATAPULT)


@dataclass(frozen=True)
class Backend:
    """One backend.

    Attributes:
        name: hls4ml's name of it, or `Verilog` for ours.
        strategies: the strategies that it has templates for.
        io_types: the io types that it has templates for.
        compiles: whether g++ alone compiles its C simulation.
    """

    name: str
    strategies: tuple[str, ...] = STRATEGIES
    io_types: tuple[str, ...] = IO_TYPES
    compiles: bool = True

    def require(self, strategy: str, io_type: str) -> None:
        """Check that it has templates for `strategy` and `io_type`.

        Raises:
            HlsError: it has none.
        """
        for what, got, allowed in (("strategy", strategy, self.strategies), ("io_type", io_type, self.io_types)):
            if got not in allowed:
                able = [b.name for b in BACKENDS.values() if got in (*b.strategies, *b.io_types)]
                raise HlsError(
                    f"backend {self.name} has no {what} {got!r}; it has {', '.join(allowed)}: "
                    f"choose one of these, or another backend ({', '.join(able)})"
                )


# Measured on hls4ml 1.3.0. oneAPI takes any strategy and builds 'resource'; the code generators of
# 'resource_unrolled' and 'distributed_arithmetic' refuse every backend but Vitis and Vivado.
BACKENDS: Mapping[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend("Vitis"),
        Backend("Vivado"),
        Backend("VivadoAccelerator", ("latency", "resource")),
        Backend("oneAPI", ("resource",), compiles=False),
        Backend("Catapult", ("latency", "resource")),
        Backend("Libero", ("latency", "resource"), ("io_parallel",), compiles=False),
    )
}

# Our Verilog: how a layer is laid out is said elsewhere, so that it takes any strategy.
OURS = Backend(VERILOG)


def backend_named(name: str) -> Backend:
    """Return the backend of this name, hls4ml's or ours.

    Raises:
        HlsError: there is none.
    """
    found = OURS if name == VERILOG else BACKENDS.get(name)
    if name == "Quartus":
        raise HlsError(
            "backend 'Quartus' is not supported: Intel has discontinued its HLS compiler, and hls4ml drops the "
            "backend; choose 'oneAPI', or 'Verilog' and then 'fpgaprune export RUN --for quartus'"
        )
    if found is None:
        raise HlsError(f"backend {name!r} is unknown; wanted one of {', '.join((*BACKENDS, VERILOG))}")
    return found
