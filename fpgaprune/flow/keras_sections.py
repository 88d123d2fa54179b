"""The sections of a flow file that say what is done to the Keras network: data, train, select, finetune, export."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from fpgaprune.fixed import FixedType
from fpgaprune.flow.named_function import is_function_name
from fpgaprune.flow.schedule_config import Fraction, OneShotConfig, RoundsConfig, ScheduleConfig
from fpgaprune.flow.section import Section
from fpgaprune.select.cost import parse_cost
from fpgaprune.select.criteria import CRITERIA
from fpgaprune.select.granularity import parse_granularity
from fpgaprune.select.normalize import NORMALIZATIONS
from fpgaprune.slices import parse_slice

# The granularity that takes strategy, reuse factor and io_type from [target].
MULTIPLIER = "multiplier"


class DataConfig(Section):
    """Where samples come from, as `source = "mine.npz"`."""

    source: str = "digits"
    """`digits`, the path of an `.npz` with x_train, y_train, x_test, y_test, or `package.module:function`."""


class TrainConfig(Section):
    """How the network is trained, or which trained model stands in for that, as `model = "mine.keras"`."""

    model: Path | None = None
    """A saved model, which skips the training: `.keras`, or what tf_keras and TF-MOT saved (`.keras`, `.h5`, a
    SavedModel folder); pruned or not."""
    epochs: int = Field(default=24, ge=1)
    """Passes over the training samples."""
    batch_size: int = Field(default=32, ge=1)
    """Samples in a training step."""
    learning_rate: float = Field(default=0.002, gt=0)
    """Of Adam at the first step; it falls as a cosine."""


class SelectConfig(Section):
    """Which elements are locked: named outright, in a mask file, zero already or in a type, then by score.

    `sparsity = 0.6` locks the six tenths of all convolution kernels whose l1 norm is least.
    """

    locks: tuple[str, ...] = ()
    """Slices that are locked whatever they score, as `conv2/kernel[:, :, 29, 13]`."""
    masks: Path | None = None
    """A mask file whose locks are added, as `fpgaprune select` writes it."""
    zeros: bool = False
    """Lock what is zero already, as in a model that was pruned elsewhere."""
    fixed: str | dict[str, str] | None = None
    """Lock what a type would round to zero: `fixed<8,1>`, or a table of globs of weight paths to types."""
    sparsity: Fraction | dict[str, Fraction] = 0.0
    """The fraction of units to lock, or a table of globs of weight paths to fractions."""
    granularity: str = "kernel"
    """A unit: `weight`, `kernel`, `filter`, `input_channel`, `n:m`, `block(4, 4)`, `multiplier(resource_unrolled, 9)`,
    or `multiplier` for that of [target]."""
    criterion: str = "l1"
    """What scores a unit: `l1`, `l2`, `taylor`, `fisher` or another (an unknown name lists them all), or
    `package.module:function`."""
    samples: int | None = Field(default=None, ge=1)
    """How many training samples a criterion sees, the first ones; all if left out."""
    batch_size: int = Field(default=32, ge=1)
    """Samples in a batch of a criterion."""
    scope: Literal["network", "layer"] = "network"
    """One threshold for the whole network, or the same share in each layer."""
    normalize: str = "none"
    """How scores of different layers are made comparable: `none`, `mean`, `max`, `l2` or `lamp`."""
    cost: str = "none"
    """`none`, or `adders(6)`: scores are divided by the adders that weights of 6 bits take."""
    paths: tuple[str, ...] = ()
    """Globs of weights to choose from; all convolution kernels if empty."""
    protect: tuple[str, ...] = ()
    """Globs of weights that stay as they are."""
    min_free: int = Field(default=1, ge=0)
    """Units of each weight that stay free at least."""
    min_free_per_output: int = Field(default=0, ge=0)
    """Units of each output channel that stay free at least."""
    coupled: bool = True
    """Whether filters whose outputs are added to one another are decided together."""
    close: bool | tuple[Literal["bias", "batch_norm", "dead_inputs"], ...] = False
    """Add the locks that follow from others: by every rule, or by those named besides the one for unread channels."""

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


class FinetuneConfig(Section):
    """How the locked network is trained on, and when its locks are set, as `epochs = 40`."""

    epochs: int = Field(default=16, ge=1)
    """Passes over the training samples; of each round, where the schedule has rounds."""
    batch_size: int = Field(default=32, ge=1)
    """Samples in a training step."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Of Adam at the first step; it falls as a cosine."""
    schedule: ScheduleConfig = OneShotConfig()
    """When the locks are set: at once, or step by step."""

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


class ExportConfig(Section):
    """How `model.onnx` is written, and whether it goes to hls4ml too, as `second_opinion = true`."""

    batch: int | None = Field(default=None, ge=1)
    """Size of the first axis; free if left out."""
    opset: int = Field(default=17, ge=13, le=18)
    """ONNX operator set."""
    second_opinion: bool = False
    """Whether the file goes to hls4ml past Keras, and must give the design that Keras gave; takes a batch that is free
    or 1."""
