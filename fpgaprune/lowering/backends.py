"""Describes what each backend of hls4ml 1.3 and our Verilog can do, so that a target is checked first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fpgaprune.design import AP_BACKENDS, KNOWN_BACKENDS, VERILOG, ScalarFunction
from fpgaprune.errors import HlsError
from fpgaprune.target import Target

_ALL = ("latency", "resource", "resource_unrolled", "distributed_arithmetic")

# Backends with a template for types of single channels.
QUANTISING = ("Vivado", "Vitis")


@dataclass(frozen=True)
class Backend:
    """One backend.

    Attributes:
        name: hls4ml's name of it, or `Verilog` for ours.
        strategies: the strategies that it has templates for.
        io_types: the io types that it has templates for.
        compiles: whether g++ alone compiles its C simulation.
        kinds: the kinds of layers that it has templates for; None for nearly all kinds.
        wrong: kinds of layers that it silently converts wrongly, each with what it does.
        unstreamed: kinds of layers whose templates for io_stream do not compile.
        unsettled: kinds of layers that it has templates for, but whose types this package does not choose.
    """

    name: str
    strategies: tuple[str, ...] = _ALL
    io_types: tuple[str, ...] = ("io_parallel", "io_stream")
    compiles: bool = True
    kinds: frozenset[str] | None = None
    wrong: Mapping[str, str] = field(default_factory=dict)
    unstreamed: frozenset[str] = frozenset()
    unsettled: frozenset[str] = frozenset()


_AVERAGES = dict.fromkeys(
    ("AveragePooling1D", "AveragePooling2D", "GlobalAveragePooling1D", "GlobalAveragePooling2D"),
    "adds up averages in the type of the data, where they overflow",
)
_CROPPING = dict.fromkeys(("Cropping1D", "Cropping2D"), "leaves the output unset, for lack of a template")
_RECURRENT = frozenset({"GRU", "LSTM"})
_HALVES = {"Average": "halves with a constant of a type that cannot hold one half"}
# Measured on hls4ml 1.3.0. oneAPI takes any strategy and builds 'resource'; the code generators of
# 'resource_unrolled' and 'distributed_arithmetic' refuse every backend but Vitis and Vivado.
BACKENDS: Mapping[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend("Vitis"),
        Backend("Vivado"),
        Backend("VivadoAccelerator", ("latency", "resource")),
        Backend("oneAPI", ("resource",), compiles=False, wrong=_AVERAGES | _CROPPING, unsettled=_RECURRENT),
        Backend(
            "Catapult",
            ("latency", "resource"),
            wrong=_AVERAGES | _CROPPING | _HALVES,
            unstreamed=frozenset({"Maximum", "Minimum", "Permute"}),
            unsettled=_RECURRENT,
        ),
        Backend(
            "Libero",
            ("latency", "resource"),
            ("io_parallel",),
            compiles=False,
            kinds=frozenset({"InputLayer", "Dense", "Activation", "ReLU", "Flatten", "Reshape", "Dropout"}),
        ),
    )
}


# Our Verilog: how a layer is laid out is said elsewhere, so that it takes any strategy.
OURS = Backend(
    VERILOG,
    wrong=dict.fromkeys(("GRU", "LSTM"), "has no recurrent layers yet"),
)


def backend_named(name: str) -> Backend:
    """The backend of this name, hls4ml's or ours.

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


def backend_of(target: Target) -> Backend:
    """The backend of `target`, which has the target's io type and strategy.

    Raises:
        HlsError: the backend is unknown, or has no templates for the io type or the strategy.
    """
    backend = backend_named(target.backend)
    for what, got, allowed in (
        ("strategy", target.strategy, backend.strategies),
        ("io_type", target.io_type, backend.io_types),
    ):
        if got not in allowed:
            able = [b.name for b in BACKENDS.values() if got in (*b.strategies, *b.io_types)]
            raise HlsError(
                f"backend {backend.name} has no {what} {got!r}; it has {', '.join(allowed)}: "
                f"choose one of these, or another backend ({', '.join(able)})"
            )
    return backend


def has_template(function: ScalarFunction, backend: str, io_type: str) -> bool:
    """Whether a project of `backend` for `io_type` has a template of `function`, hls4ml's or ours."""
    if function.own_template:
        return backend in AP_BACKENDS
    # Of these hls4ml has no template for streams, and ours are for the backends of these names.
    return function.name != "relu6" or io_type != "io_stream" or backend in KNOWN_BACKENDS
