"""`HlsConfig`: how a network becomes hardware, and what of that decides how it rounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator

from fpgaprune.backends import VERILOG
from fpgaprune.design import STRATEGIES
from fpgaprune.errors import ConfigError, HlsError, UnsupportedLayerError
from fpgaprune.flow.file import Flow, LossLimit, Section, TargetConfig, read_by, section_json
from fpgaprune.flow.task import Dataset
from fpgaprune.values import FixedType

if TYPE_CHECKING:
    import keras

    from fpgaprune.flow.stages.hardware import ProjectSettings
    from fpgaprune.lowering import AnyPrecision


_TypeText = Annotated[str, read_by(FixedType.parse)]


class LayerHlsConfig(Section):
    """The layout, the widths and the types of one layer, or of those that match a glob."""

    strategy: Literal[STRATEGIES] | None = None  # type: ignore[valid-type]
    """How its multiplications are laid out."""
    reuse_factor: int | None = Field(default=None, ge=1)
    """How often one of its multipliers is used for each output position."""
    weight_bits: int | None = Field(default=None, ge=2, le=32)
    """Bits of a weight."""
    activation_bits: int | None = Field(default=None, ge=1, le=32)
    """Bits of its output."""
    table_size: int | None = Field(default=None, ge=2, le=1 << 20)
    """Entries of the table of its activation; unset as many as its bits can tell apart, 1,024 to 16,384."""
    weight: _TypeText | None = None
    """Type of its weights, such as `fixed<8,1>`."""
    bias: _TypeText | None = None
    """Type of its biases."""
    accum: _TypeText | None = None
    """Type of its sums."""
    result: _TypeText | None = None
    """Type of its output."""


class HlsConfig(Section):
    """The hls4ml project: backend, fixed-point types, C simulation. Example: `weight_bits = 6`."""

    backend: str = "Vitis"
    """hls4ml backend: `Vivado`, `Vitis`, `oneAPI`, `Catapult` or another that hls4ml has; an unknown one
    lists them."""
    backend_options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Options of that backend, which are given to hls4ml."""
    precision: Annotated[str, read_by(FixedType.parse, "widths", "auto")] = "widths"
    """`widths` (the three widths below), `auto` (the narrowest widths within `max_loss`), or one type for everything,
    as `fixed<16,6>`."""
    max_loss: LossLimit = "0.5 %"
    """Most accuracy that precision `auto` may lose, on the validation samples, or on the training samples if there are
    none."""
    weight_bits: int = Field(default=8, ge=2, le=32)
    """Bits of a weight."""
    activation_bits: int = Field(default=8, ge=1, le=32)
    """Bits of the output of a layer."""
    sum_bits: int = Field(default=16, ge=2, le=32)
    """Bits of the output of a convolution or a Dense layer."""
    layers: dict[str, LayerHlsConfig] = Field(default_factory=dict)
    """A layer, or a glob of layers, to its own settings."""
    build: tuple[str, ...] = ()
    """Steps of the vendor's tool, such as `synth` and `cosim`; they run if the tool is found."""
    build_timeout_s: float = Field(default=14_400.0, gt=0)
    """Most seconds for each of these steps."""
    simulate: int = Field(default=360, ge=0)
    """Held-out samples for the C simulation, if there is a compiler; fewer if `simulate_s` is too short, 0 for none."""
    simulate_s: float = Field(default=5.0, gt=0)
    """Most seconds for the C simulation on all cores, without compiling; it runs 8 samples or more."""

    @field_validator("backend")
    @classmethod
    def _backend(cls, backend: str) -> str:
        from fpgaprune.backends import BACKENDS

        if backend not in BACKENDS:
            raise ValueError(f"wanted one of {', '.join(BACKENDS)}")
        return backend


def hardware_of(config: Flow, data: Dataset) -> ProjectSettings:
    """Return the hardware that `[hls]` and `[target]` of `config` describe."""
    from fpgaprune.flow.stages.hardware import ProjectSettings
    from fpgaprune.lowering import AutoPrecision, Precision

    settings, projects = config[HlsConfig], config[TargetConfig].makes_project
    precision: AnyPrecision = settings.precision
    if settings.precision == "auto":
        precision = AutoPrecision(max_loss=settings.max_loss, sum_bits=settings.sum_bits)
    elif settings.precision == "widths":
        precision = Precision(settings.weight_bits, settings.activation_bits, settings.sum_bits)
    return ProjectSettings(
        target=replace(config[TargetConfig].target(), backend=settings.backend if projects else VERILOG),
        name=config.name,
        data=data,
        precision=precision,
        sum_bits=settings.sum_bits,
        layers={name: entry.model_dump(exclude_none=True) for name, entry in settings.layers.items()},
        backend_options=settings.backend_options,
    )


def rounding_settings(config: Flow) -> Any:
    """Return the settings that decide how a network rounds, without those of simulation and builds."""
    only_project = {"simulate", "simulate_s", "build", "build_timeout_s"}
    hls = config[HlsConfig].model_dump(mode="json", exclude=only_project)
    return [hls, section_json(config[TargetConfig])]


def require_exact_types(precision: str, key: str, off: str) -> None:
    """Check that `precision` gives every sum a type that holds it.

    Args:
        precision: of `[hls]`.
        key: asks for the training, as `quantise.epochs`.
        off: its value without that training.

    Raises:
        ConfigError: it does not.
    """
    if precision not in ("widths", "auto"):
        raise ConfigError(
            f"{key}: hls.precision is {precision!r}, one type for every sum too; wanted 'widths' or 'auto', or "
            f"{key.rpartition('.')[2]} = {off}"
        )


def unroundable(model: keras.Model, key: str, off: str) -> Iterator[str]:
    """Yield a line where a layer of `model` cannot round in Keras; `key` and `off` as for `require_exact_types`."""
    from fpgaprune.lowering import require_roundable

    try:
        require_roundable(model)
    except (HlsError, UnsupportedLayerError) as error:
        yield f"{key}: {error}; or let {key.rpartition('.')[2]} be {off}"
