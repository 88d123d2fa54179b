"""The sections of a flow file that say what hardware is made and measured: hls, measure, target."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from fpgaprune.design import IO_TYPES, STRATEGIES
from fpgaprune.fixed import FixedType
from fpgaprune.flow.section import Section, require
from fpgaprune.rtl.boards import find_board
from fpgaprune.rtl.cells import find_family
from fpgaprune.rtl.ecp5 import find_ecp5
from fpgaprune.target import Target, find_part


class LayerHlsConfig(Section):
    """What one layer (or those that a glob fits) has instead: its layout, its widths, its types."""

    strategy: Literal[STRATEGIES] | None = None  # type: ignore[valid-type]
    reuse_factor: int | None = Field(default=None, ge=1)
    weight_bits: int | None = Field(default=None, ge=2, le=32)
    activation_bits: int | None = Field(default=None, ge=2, le=32)
    weight: str | None = None
    bias: str | None = None
    accum: str | None = None
    result: str | None = None

    @field_validator("weight", "bias", "accum", "result")
    @classmethod
    def _type(cls, text: str | None) -> str | None:
        if text is not None:
            require(FixedType.parse, text)
        return text


class HlsConfig(Section):
    """The hls4ml backend, fixed-point types, and how many held-out samples the C simulation runs.

    `precision` is `widths` (the three widths below), `auto` (widths are searched to `max_loss`, measured on the labels
    of the training samples), or one type for everything, as `fixed<16,6>`. With `build`, the vendor's tool does these
    steps (`synth`, `cosim`, ...) where it is found.
    """

    backend: str = "Vitis"
    backend_options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    precision: str = "widths"
    max_loss: float = Field(default=0.005, ge=0, le=1)
    weight_bits: int = Field(default=8, ge=2, le=32)
    activation_bits: int = Field(default=8, ge=2, le=32)
    sum_bits: int = Field(default=16, ge=2, le=32)
    layers: dict[str, LayerHlsConfig] = Field(default_factory=dict)
    build: tuple[str, ...] = ()
    build_timeout_s: float = Field(default=14_400.0, gt=0)
    simulate: int = Field(default=360, ge=1)

    @field_validator("precision")
    @classmethod
    def _precision(cls, precision: str) -> str:
        if precision not in ("widths", "auto"):
            require(FixedType.parse, precision)
        return precision

    @field_validator("backend")
    @classmethod
    def _backend(cls, backend: str) -> str:
        from fpgaprune.hls.backends import BACKENDS

        if backend not in BACKENDS:
            raise ValueError(f"wanted one of {', '.join(BACKENDS)}")
        return backend


class MeasureConfig(Section):
    """What open tools measure of the network as Verilog; nothing unless a family, seeds or a board are named.

    `families` of `hw/synth`; `seeds` of place and route on an ECP5 `device`; `board` of `hw/boards`, or a file like
    those, for a bitstream; `target_mhz` that place and route aims at, the project's own clock unless given; `interval`,
    the clocks that an image may take, as many as its pixels do unless given; `simulate`, the held-out samples that
    Verilator runs; `timeout_s` for each run of a tool.
    """

    families: tuple[str, ...] = ()
    seeds: int = Field(default=0, ge=0, le=100)
    device: str | None = None
    board: str | None = None
    target_mhz: float | None = Field(default=None, gt=0)
    interval: int = Field(default=0, ge=0)
    simulate: int = Field(default=360, ge=0)
    timeout_s: float = Field(default=3600.0, gt=0)

    @field_validator("families")
    @classmethod
    def _families(cls, families: tuple[str, ...]) -> tuple[str, ...]:
        for family in families:
            require(find_family, family)
        return families

    @field_validator("device")
    @classmethod
    def _device(cls, device: str | None) -> str | None:
        return device if device is None else str(require(find_ecp5, device).name)

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
    """The part and how the network is put on it."""

    part: str = "xc7z020clg400-1"
    clock_ns: float = Field(default=5.0, gt=0)
    io_type: Literal[IO_TYPES] = "io_stream"  # type: ignore[valid-type]
    strategy: Literal[STRATEGIES] = "latency"  # type: ignore[valid-type]
    reuse_factor: int = Field(default=1, ge=1)

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
