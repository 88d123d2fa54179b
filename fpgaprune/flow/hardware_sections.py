"""The sections of a flow file that say what hardware is made and measured: hls, measure, target."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from fpgaprune.design import IO_TYPES, STRATEGIES
from fpgaprune.fabric import find_board, find_family, find_router
from fpgaprune.fixed import FixedType
from fpgaprune.flow.section import Section, require
from fpgaprune.target import Target, find_part


class LayerHlsConfig(Section):
    """What one layer, or those that a glob fits, has instead: its layout, its widths, its types."""

    strategy: Literal[STRATEGIES] | None = None  # type: ignore[valid-type]
    """How its multiplications are laid out."""
    reuse_factor: int | None = Field(default=None, ge=1)
    """Times that one of its multipliers is used for each output position."""
    weight_bits: int | None = Field(default=None, ge=2, le=32)
    """Bits of a weight."""
    activation_bits: int | None = Field(default=None, ge=2, le=32)
    """Bits of its output."""
    weight: str | None = None
    """Type of its weights, as `fixed<8,1>`."""
    bias: str | None = None
    """Type of its biases."""
    accum: str | None = None
    """Type of its sums."""
    result: str | None = None
    """Type of its output."""

    @field_validator("weight", "bias", "accum", "result")
    @classmethod
    def _type(cls, text: str | None) -> str | None:
        if text is not None:
            require(FixedType.parse, text)
        return text


class HlsConfig(Section):
    """The hls4ml project: backend, fixed-point types, C simulation, as `weight_bits = 6`."""

    backend: str = "Vitis"
    """hls4ml backend: `Vivado`, `Vitis`, `Quartus`, `oneAPI`, `Catapult` or another that hls4ml has; an unknown one
    lists them."""
    backend_options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Options of that backend, handed on to hls4ml."""
    precision: str = "widths"
    """`widths` (the three widths below), `auto` (widths are searched to `max_loss`), or one type for everything, as
    `fixed<16,6>`."""
    max_loss: float = Field(default=0.005, ge=0, le=1)
    """Most accuracy that precision `auto` may lose, on the validation samples or else the training samples."""
    weight_bits: int = Field(default=8, ge=2, le=32)
    """Bits of a weight."""
    activation_bits: int = Field(default=8, ge=2, le=32)
    """Bits of what a layer gives."""
    sum_bits: int = Field(default=16, ge=2, le=32)
    """Bits of what a convolution or a Dense layer hands on."""
    layers: dict[str, LayerHlsConfig] = Field(default_factory=dict)
    """A layer, or a glob of layers, to what it has instead."""
    build: tuple[str, ...] = ()
    """Steps that the vendor's tool does where it is found, as `synth` and `cosim`."""
    build_timeout_s: float = Field(default=14_400.0, gt=0)
    """Most seconds for each of these steps."""
    simulate: int = Field(default=360, ge=1)
    """Held-out samples that the C simulation runs, where there is a compiler; fewer where `simulate_s` is too short."""
    simulate_s: float = Field(default=5.0, gt=0)
    """Most seconds for the C simulation, on all cores; it runs 8 samples at least, and compiling comes on top."""

    @field_validator("precision")
    @classmethod
    def _precision(cls, precision: str) -> str:
        if precision not in ("widths", "auto"):
            require(FixedType.parse, precision)
        return precision

    @field_validator("backend")
    @classmethod
    def _backend(cls, backend: str) -> str:
        from fpgaprune.hls.hls_backends import BACKENDS

        if backend not in BACKENDS:
            raise ValueError(f"wanted one of {', '.join(BACKENDS)}")
        return backend


class MeasureConfig(Section):
    """What open tools measure of the network as Verilog; nothing unless a family, seeds or a board are named."""

    families: tuple[str, ...] = ()
    """Families of FPGAs to synthesise for: `xc7`, `xcup`, `ecp5`, `gowin` or `ice40`."""
    seeds: int = Field(default=0, ge=0, le=100)
    """Runs of place and route on an ECP5, each with a seed of its own."""
    device: str | None = None
    """The ECP5; the smallest that holds the network if left out."""
    board: str | None = None
    """Write a bitstream for it: `ulx3s`, or a TOML file like those in hw/boards."""
    target_mhz: float | None = Field(default=None, gt=0)
    """Clock that place and route aims at; the network's own if left out."""
    interval: int = Field(default=0, ge=0)
    """Clock cycles that a sample may take: the more, the smaller; 0 for as many as it has positions."""
    simulate: int = Field(default=360, ge=0)
    """Held-out samples that Verilator runs; 0 for none."""
    timeout_s: float = Field(default=3600.0, gt=0)
    """Most seconds for each run of a tool."""

    @field_validator("families")
    @classmethod
    def _families(cls, families: tuple[str, ...]) -> tuple[str, ...]:
        for family in families:
            require(find_family, family)
        return families

    @field_validator("device")
    @classmethod
    def _device(cls, device: str | None) -> str | None:
        return device if device is None else str(require(find_router("ecp5").devices.find, device).name)

    @field_validator("board")
    @classmethod
    def _board(cls, board: str | None) -> str | None:
        # A file is looked for when its folder is known.
        if board is not None and not board.endswith(".toml"):
            require(find_board, board)
        return board

    @property
    def asks(self) -> bool:
        """Whether anything is to be measured."""
        return bool(self.families or self.seeds or self.board)


class TargetConfig(Section):
    """The part and how the network is put on it, as `part = "pynq-z2"`."""

    part: str = "xc7z020clg400-1"
    """A part, an order number or a board, as `fpgaprune parts` lists them; or `board.toml:name` of your own."""
    clock_ns: float = Field(default=5.0, gt=0)
    """Clock period in ns."""
    io_type: Literal[IO_TYPES] = "io_stream"  # type: ignore[valid-type]
    """Everything of a sample at once, or one position after another."""
    strategy: Literal[STRATEGIES] = "latency"  # type: ignore[valid-type]
    """How multiplications are laid out."""
    reuse_factor: int = Field(default=1, ge=1)
    """Times that one multiplier is used for each output position."""

    @field_validator("part")
    @classmethod
    def _known(cls, part: str, info: ValidationInfo) -> str:
        if ".toml" in part and info.context is not None:
            part = str(Path(info.context["folder"]) / part)
        require(find_part, part)
        return part

    def target(self) -> Target:
        """The target that these settings describe."""
        return Target.of(**self.model_dump())
