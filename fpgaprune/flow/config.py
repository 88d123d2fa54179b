"""`FlowConfig`: what a flow's TOML file may say, checked before anything is written."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from fpgaprune.design import IO_TYPES, STRATEGIES
from fpgaprune.errors import ConfigError, DesignError, MaskError, TargetError
from fpgaprune.fixed import FixedType
from fpgaprune.flow.named_function import is_function_name
from fpgaprune.flow.schedule_config import SCHEDULES, Fraction, OneShotConfig, RoundsConfig, ScheduleConfig
from fpgaprune.flow.section import Section as _Section
from fpgaprune.hls.reserved import PROJECT_NAMES, is_project_name
from fpgaprune.rtl.boards import find_board
from fpgaprune.rtl.cells import find_family
from fpgaprune.rtl.ecp5 import find_ecp5
from fpgaprune.select.cost import parse_cost
from fpgaprune.select.criteria import CRITERIA
from fpgaprune.select.granularity import parse_granularity
from fpgaprune.select.normalize import NORMALIZATIONS
from fpgaprune.slices import parse_slice
from fpgaprune.target import Target, find_part

# The granularity that takes strategy, reuse factor and io_type from [target].
MULTIPLIER = "multiplier"


class DataConfig(_Section):
    """Where samples come from: `digits`, an `.npz`, or `package.module:function`."""

    source: str = "digits"


class TrainConfig(_Section):
    """How the network is trained, or which trained model stands in for that.

    `model` is a `.keras` file, or what tf_keras saved (`.keras`, `.h5` or a SavedModel folder), pruned with TF-MOT or
    not; with `zeros` in `[select]` its zeros stay.
    """

    model: Path | None = None
    epochs: int = Field(default=24, ge=1)
    batch_size: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=0.002, gt=0)


class SelectConfig(_Section):
    """Which elements are locked: named outright, in a mask file, zero already or in a type, then by score.

    `sparsity` is one fraction, or a table of globs of weight paths to fractions. `fixed` is a type as `fixed<8,1>`, or
    a table of globs to types: what it would round to zero is locked. `granularity` is `weight`, `kernel`, `filter`,
    `input_channel`, `n:m`, `block(4, 4)`, `multiplier(resource_unrolled, 9)`, or `multiplier` for that of `[target]`.
    `criterion` is a name or `package.module:function`; of the training data it sees the first `samples`. `cost` is
    `none`, or `adders(6)` for scores by the adders that weights of 6 bits take; `normalize` then makes those of
    different layers comparable. `min_free_channels` is the share of each layer's channels that stays alive. With
    `close`, locks that follow from others are added: by every rule, or by those named besides the one for unread
    channels.
    """

    locks: tuple[str, ...] = ()
    masks: Path | None = None
    zeros: bool = False
    fixed: str | dict[str, str] | None = None
    sparsity: Fraction | dict[str, Fraction] = 0.0
    granularity: str = "kernel"
    criterion: str = "l1"
    samples: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=32, ge=1)
    scope: Literal["network", "layer"] = "network"
    normalize: str = "lamp"
    cost: str = "none"
    paths: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    min_free: int = Field(default=1, ge=0)
    min_free_per_output: int = Field(default=0, ge=0)
    min_free_channels: float = Field(default=0.125, ge=0, le=1)
    coupled: bool = True
    close: bool | tuple[Literal["bias", "batch_norm", "dead_inputs"], ...] = False

    @field_validator("locks")
    @classmethod
    def _readable(cls, locks: tuple[str, ...]) -> tuple[str, ...]:
        for text in locks:
            parse_slice(text)
        return locks

    @field_validator("fixed")
    @classmethod
    def _types(cls, fixed: str | dict[str, str] | None) -> str | dict[str, str] | None:
        for text in [fixed] if isinstance(fixed, str) else (fixed or {}).values():
            FixedType.parse(text)
        return fixed

    @field_validator("granularity")
    @classmethod
    def _granularity(cls, granularity: str) -> str:
        if granularity != MULTIPLIER:
            parse_granularity(granularity)
        return granularity

    @field_validator("criterion")
    @classmethod
    def _scores(cls, name: str) -> str:
        if name not in CRITERIA and not is_function_name(name):
            raise ValueError(f"wanted one of {', '.join(CRITERIA)}, or 'package.module:function'")
        return name

    @field_validator("cost")
    @classmethod
    def _costs(cls, cost: str) -> str:
        parse_cost(cost)
        return cost

    @field_validator("normalize")
    @classmethod
    def _normalizes(cls, name: str) -> str:
        if name not in NORMALIZATIONS:
            raise ValueError(f"wanted one of {', '.join(NORMALIZATIONS)}")
        return name

    @property
    def patterns(self) -> tuple[str, ...]:
        """Every glob of weight paths in this section."""
        tables = (table for table in (self.sparsity, self.fixed) if isinstance(table, dict))
        return (*self.paths, *self.protect, *(pattern for table in tables for pattern in table))


class FinetuneConfig(_Section):
    """How the locked network is trained on, and when its locks are set."""

    epochs: int = Field(default=16, ge=1)
    batch_size: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=0.001, gt=0)
    schedule: ScheduleConfig = OneShotConfig()

    @property
    def rewind_epoch(self) -> int | None:
        """The epoch of the training whose weights are needed again; None where none are."""
        rewinds = isinstance(self.schedule, RoundsConfig) and isinstance(self.schedule.rewind_to, int)
        return self.schedule.rewind_to if rewinds else None  # type: ignore[union-attr, return-value]

    @property
    def rewind_file(self) -> Path | None:
        """The file of the weights to go back to; None where there is none."""
        rewinds = isinstance(self.schedule, RoundsConfig) and isinstance(self.schedule.rewind_to, Path)
        return self.schedule.rewind_to if rewinds else None  # type: ignore[union-attr, return-value]


class ExportConfig(_Section):
    """How `model.onnx` is written, and whether it goes to hls4ml too.

    `batch` is the size of the first axis; left out, it is free. With `second_opinion`, the file goes to hls4ml past
    Keras, and must give the design that Keras gave; that takes a batch that is free or 1.
    """

    batch: int | None = Field(default=None, ge=1)
    opset: int = Field(default=17, ge=13, le=18)
    second_opinion: bool = False


class LayerHlsConfig(_Section):
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
            FixedType.parse(text)
        return text


class HlsConfig(_Section):
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
            FixedType.parse(precision)
        return precision

    @field_validator("backend")
    @classmethod
    def _backend(cls, backend: str) -> str:
        from fpgaprune.hls.backends import BACKENDS

        if backend not in BACKENDS:
            raise ValueError(f"wanted one of {', '.join(BACKENDS)}")
        return backend


class MeasureConfig(_Section):
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
            find_family(family)
        return families

    @field_validator("device")
    @classmethod
    def _device(cls, device: str | None) -> str | None:
        return device if device is None else find_ecp5(device).name

    @field_validator("board")
    @classmethod
    def _board(cls, board: str | None) -> str | None:
        # A file is looked for when its folder is known.
        if board is not None and not board.endswith(".toml"):
            find_board(board)
        return board

    @property
    def asks(self) -> bool:
        """Whether anything is to be measured."""
        return bool(self.families or self.seeds or self.board)


class TargetConfig(_Section):
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
        find_part(part)
        return part

    def target(self) -> Target:
        """The target that these settings describe."""
        return Target.of(**self.model_dump())


class FlowConfig(_Section):
    """A whole flow."""

    name: str = "flow"
    seed: int = Field(default=0, ge=0, lt=2**31)
    data: DataConfig = DataConfig()
    train: TrainConfig = TrainConfig()
    select: SelectConfig = SelectConfig()
    finetune: FinetuneConfig = FinetuneConfig()
    export: ExportConfig = ExportConfig()
    hls: HlsConfig = HlsConfig()
    measure: MeasureConfig = MeasureConfig()
    target: TargetConfig = TargetConfig()

    @field_validator("name")
    @classmethod
    def _names_a_function(cls, name: str) -> str:
        if not is_project_name(name):
            raise ValueError(PROJECT_NAMES)
        return name


def read_config(path: Path | None) -> FlowConfig:
    """The configuration in the TOML file at `path`, or the built-in default; paths in it count from its folder.

    Raises:
        ConfigError: the file cannot be read, or says something that is not allowed; one line that says where.
    """
    if path is None:
        text = resources.files("fpgaprune.flow").joinpath("default.toml").read_text()
        return parse_config(tomllib.loads(text), "default.toml")
    try:
        document = tomllib.loads(path.read_text())
    except FileNotFoundError as error:
        raise ConfigError(f"flow file {path} does not exist") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"flow file {path} is no TOML: {error}") from error
    config = parse_config(document, str(path), path.parent)
    return _beside(config, path.parent)


def parse_config(document: Mapping[str, Any], where: str, folder: Path | None = None) -> FlowConfig:
    """The configuration that `document` describes; a part's own file is looked for in `folder`.

    Raises:
        ConfigError: it says something that is not allowed; `where` begins the message.
    """
    try:
        return FlowConfig.model_validate(dict(document), context={"folder": folder or Path()})
    except ValidationError as error:
        raise ConfigError(f"{where}: {_first_problem(error)}") from error
    except (DesignError, MaskError, TargetError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _beside(config: FlowConfig, folder: Path) -> FlowConfig:
    updates: dict[str, Any] = {}
    if config.train.model is not None:
        updates["train"] = config.train.model_copy(update={"model": folder / config.train.model})
    if config.select.masks is not None:
        updates["select"] = config.select.model_copy(update={"masks": folder / config.select.masks})
    if config.measure.board is not None and config.measure.board.endswith(".toml"):
        updates["measure"] = config.measure.model_copy(update={"board": str(folder / config.measure.board)})
    if config.finetune.rewind_file is not None:
        schedule = config.finetune.schedule.model_copy(update={"rewind_to": folder / config.finetune.rewind_file})
        updates["finetune"] = config.finetune.model_copy(update={"schedule": schedule})
    if config.data.source.endswith(".npz"):
        updates["data"] = DataConfig(source=str(folder / config.data.source))
    return config.model_copy(update=updates)


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]["loc"]
    # Of several forms that are allowed, the one that came farthest is the one that was meant.
    problem = max((e for e in error.errors() if e["loc"][:2] == first[:2]), key=lambda e: len(e["loc"]))
    # Where two forms are allowed, pydantic puts the form's name into the place.
    where = ".".join(str(part) for part in problem["loc"] if not _is_form(part))
    got = problem["input"]
    if problem["type"] == "extra_forbidden":
        known = _keys_at(problem["loc"][:-1])
        near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return f"{where} is no known key; {hint}allowed here: {', '.join(known)}"
    if problem["type"] == "missing":
        return f"{where} is missing"
    said = problem["msg"].removeprefix("Value error, ")
    found, parsed, _ = said.partition("; wanted")
    # What parses a value names it before it says what it wanted.
    return f"{where}: {said}" if parsed and repr(got) in found else f"{where} is {got!r}; {said[:1].lower()}{said[1:]}"


def _is_form(part: int | str) -> bool:
    return part in SCHEDULES or str(part).startswith(("constrained-", "dict[", "tuple[", "bool"))


def _keys_at(location: tuple[int | str, ...]) -> list[str]:
    model: Any = FlowConfig
    for part in location:
        model = SCHEDULES.get(str(part)) or model.model_fields[part].annotation
    return list(model.model_fields)
