"""The sections of a flow file that several stages read: data, train, select, finetune, verdict, target."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from fpgaprune.design import IO_TYPES, STRATEGIES
from fpgaprune.errors import shown
from fpgaprune.flow.file.finetune_schedules import Fraction, OneShotConfig, RoundsConfig, ScheduleConfig
from fpgaprune.flow.file.section_type import Flow, LossLimit, Section, one_of, read_by, require
from fpgaprune.flow.file.user_function import FORMS, is_function_name
from fpgaprune.flow.run import digest_network, digest_tree
from fpgaprune.select import CRITERIA, NORMALIZATIONS, NofM, parse_cost, parse_granularity
from fpgaprune.target import Target, find_part, require_clock, usual_clock_ns
from fpgaprune.values import FixedType, parse_slice

# A class number has fewer digits.
_DIGITS = 10
# The granularity that takes strategy, reuse factor and io_type from [target].
MULTIPLIER = "multiplier"


class DataConfig(Section):
    """The source of the samples. Example: `source = "mine.npz"`."""

    source: str = "digits"
    """`digits`, the path of an `.npz` with x_train, y_train, x_test, y_test, or `package.module:function`."""
    samples: int | None = Field(default=None, ge=1)
    """Number of samples that are read of each part, the first ones; all if left out. A data set without an end needs
    it."""
    layout: Literal["auto", "keras", "file"] = "auto"
    """Whose axes the samples for an ONNX model have: the file's, (N, C, H, W), or Keras's, (N, H, W, C); `auto` tells
    by their shapes."""


class TrainConfig(Section):
    """How the network is trained and judged, or which trained model replaces that training.

    A model that was compiled when it was saved brings its loss, its metrics and its optimizer. What is missing
    follows from the labels: class numbers, one-hot labels, yes or no, or numbers for a regression.
    """

    model: Path | None = None
    """A trained model, which is not trained again: a file of Keras 3 (`.keras`, `.h5`), an ONNX file (`.onnx`), a file
    or folder of tf_keras, or the folder of another run, whose last network is taken."""
    epochs: int = Field(default=24, ge=1)
    """Passes over the training samples."""
    batch_size: int = Field(default=32, ge=1)
    """Samples in a training step."""
    learning_rate: float | None = Field(default=None, gt=0)
    """Learning rate at the start; it falls as a cosine. The model's own if left out, 0.002 if it has none."""
    loss: str | None = None
    """A loss of Keras by name, or `file.py:function`. The model's own, or what fits the labels, if left out."""
    metric: str | None = None
    """The metric of the verdict: a metric of Keras by name, `loss`, `r2`, or `file.py:function` of labels and
    outputs."""
    mode: Literal["max", "min"] | None = None
    """Whether the metric should be high (`max`) or low (`min`). Known for Keras's metrics if left out."""
    optimizer: str | None = None
    """An optimizer of Keras by name. The model's own if left out, `adam` if it has none."""
    class_weight: dict[str, float | dict[str, float]] | None = None
    """Class number to the weight of its samples in the loss, such as `{0 = 1.0, 1 = 5.0}`; the others weigh 1. For
    several outputs with classes a table for each, as `{digit = {0 = 2.0}}`."""

    @field_validator("class_weight")
    @classmethod
    def _numbers(
        cls, weights: dict[str, float | dict[str, float]] | None
    ) -> dict[str, float | dict[str, float]] | None:
        if weights is None:  # as a manifest writes it
            return None
        tables: list[Mapping[str, Any]] = [table for table in weights.values() if isinstance(table, dict)]
        for table in tables or [weights]:
            wrong = [number for number in table if not (number.isdecimal() and len(number) < _DIGITS)]
            if wrong:
                raise ValueError(
                    f"class {shown(wrong[0])} is no number; wanted class numbers, as {{0 = 1.0, 1 = 5.0}}, or a table "
                    "for each output"
                )
            bad = [weight for weight in table.values() if not (isinstance(weight, float) and 0 <= weight < math.inf)]
            if bad or not any(table.values()):
                raise ValueError(f"a weight is {shown(bad[0] if bad else 0.0)}; wanted 0 or more, and one above 0")
        return weights


class SelectConfig(Section):
    """Which elements are locked: named slices, those of a mask file, zeros, and then the units with the lowest scores.

    `sparsity = 0.6` locks the six tenths of all convolution kernels with the smallest l1 norm.
    """

    locks: Annotated[tuple[str, ...], read_by(parse_slice)] = ()
    """Slices that are locked, whatever their scores are, such as `conv2/kernel[:, :, 29, 13]`."""
    masks: Path | None = None
    """A mask file whose locks are added, as `fpgaprune select` writes it."""
    zeros: bool = False
    """Lock the weights that are zero already, as in a model that was pruned elsewhere."""
    fixed: Annotated[str | dict[str, str] | None, read_by(FixedType.parse)] = None
    """Lock the weights that a type rounds to zero: `fixed<8,1>`, or a table of globs of weight paths to types."""
    filters: Fraction | dict[str, Fraction] = 0.0
    """The fraction of whole filters to lock first, with their biases, or a table of globs of weight paths to fractions.
    `sparsity` then counts the units of the network without them, which is also what is fine-tuned."""
    sparsity: Fraction | dict[str, Fraction] = 0.0
    """The fraction of units to lock, or a table of globs of weight paths to fractions."""
    granularity: Annotated[str, read_by(parse_granularity, MULTIPLIER)] = "kernel"
    """A unit: `weight`, `kernel`, `filter`, `input_channel`, `n:m`, `n:all`, `block(4, 4)`,
    `multiplier(resource_unrolled, 9)`, or `multiplier` for that of [target]."""
    criterion: str = "l1"
    """The score of a unit: `l1`, `l2`, `taylor`, `fisher` or another (an unknown name lists them all), or
    `package.module:function`."""
    samples: int | None = Field(default=None, ge=1)
    """Number of training samples that a criterion sees, the first ones; all if left out."""
    batch_size: int = Field(default=32, ge=1)
    """Samples in a batch of a criterion."""
    scope: Literal["network", "layer"] = "network"
    """One threshold for the whole network, or the same share in each layer."""
    normalize: Annotated[str, one_of(NORMALIZATIONS)] = "lamp"
    """How scores of different layers are made comparable: `none`, `mean`, `max`, `l2` or `lamp`."""
    cost: Annotated[str, read_by(parse_cost)] = "none"
    """`none`, or `adders(6)`: scores are divided by the adders that weights of 6 bits take."""
    paths: tuple[str, ...] = ()
    """Globs of weights to choose from; if empty, the kernels with most of the multiplications."""
    protect: tuple[str, ...] = ()
    """Globs of weights that stay as they are."""
    min_free: int = Field(default=1, ge=0)
    """Smallest number of units of each weight that stay free."""
    min_free_channels: float = Field(default=0.125, ge=0, le=1)
    """Smallest share of each layer's channels that stays alive."""
    close: bool | tuple[Literal["bias", "batch_norm", "dead_inputs"], ...] = False
    """Add the locks that follow from others: `true` for all, or a list of rules beside that for unread channels."""

    @field_validator("criterion")
    @classmethod
    def _scores(cls, name: str) -> str:
        if name not in CRITERIA and not is_function_name(name):
            raise ValueError(f"wanted one of {', '.join(CRITERIA)}, or 'package.module:function'")
        return name

    @property
    def share(self) -> float | dict[str, float]:
        """`sparsity`, or that of the pattern n:m."""
        if self.granularity == MULTIPLIER:
            return self.sparsity
        granularity = parse_granularity(self.granularity)
        return self.sparsity or (granularity.sparsity if isinstance(granularity, NofM) else 0.0)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Every glob of weight paths in this section."""
        tables = (table for table in (self.filters, self.sparsity, self.fixed) if isinstance(table, dict))
        return (*self.paths, *self.protect, *(pattern for table in tables for pattern in table))


class FinetuneConfig(Section):
    """How the locked network is fine-tuned, and when its locks are set. Example: `epochs = 40`."""

    epochs: int = Field(default=16, ge=0)
    """Passes over the training samples. 0 trains nothing, for a model that was fine-tuned before."""
    batch_size: int = Field(default=32, ge=1)
    """Samples in a training step."""
    learning_rate: float | None = Field(default=None, gt=0)
    """Learning rate at the start; it falls as a cosine. The model's own if left out, 0.001 if it has none."""
    weight_decay: float | None = Field(default=None, ge=0)
    """Share of each kernel that a step takes away, times the rate, here and in `[quantise]`; 0.1 helps where samples
    are few. The optimizer's own if left out."""
    start: Path | None = None
    """A `.keras` file of the same network, as `finetuned.keras` of another run: fine-tuning starts from its weights in
    place of the trained ones. The loss still counts from the trained network."""
    quantised: bool = False
    """The network rounds from the first step on, as its hardware does: weights are chosen for a network that rounds.
    This matters for few bits. The types are those of `[hls]`, and `[quantise]` keeps them."""
    fit: str | None = None
    """`file.py:function`, a training loop of your own: it gets the locked model and the data."""
    callbacks: str | None = None
    """`file.py:function`, which gets the run folder and returns Keras callbacks, as `keras.callbacks.TensorBoard`."""
    schedule: ScheduleConfig = OneShotConfig()
    """When the locks are set; all at the start if left out."""

    @field_validator("fit", "callbacks")
    @classmethod
    def _function(cls, name: str | None) -> str | None:
        if name is not None and not is_function_name(name):
            raise ValueError(f"wanted {FORMS}")
        return name

    @property
    def rewind_epoch(self) -> int | None:
        """The epoch of the training whose weights are needed again; None if none is."""
        return self._rewind_to if isinstance(self._rewind_to, int) else None

    @property
    def rewind_file(self) -> Path | None:
        """The file of the weights to go back to; None if there is none."""
        return self._rewind_to if isinstance(self._rewind_to, Path) else None

    @property
    def _rewind_to(self) -> int | Path | None:
        return self.schedule.rewind_to if isinstance(self.schedule, RoundsConfig) else None


class VerdictConfig(Section):
    """What a run may lose; it fails only against a limit that you name."""

    max_loss: LossLimit | None = None
    """Largest loss of the metric from the trained network to the hardware: `2 %` is two points of accuracy, or an error
    that grew by 2 %. One standard error may be added. Without it the loss is stated and not judged."""
    agreement: float | None = Field(default=None, ge=0, le=1)
    """Smallest share of held-out samples for which the hardware gives Keras's class. No limit if left out."""


class TargetConfig(Section):
    """The part, and how the network is laid out on it. Example: `part = "pynq-z2"`."""

    part: str = "xc7z020clg400-1"
    """A part, an order number or a board, as `fpgaprune parts` lists them; or `board.toml:name` of your own."""
    clock_ns: float = Field(default=None, gt=0, validate_default=True)
    """Clock period in ns. If left out, that of the oscillator of a board for which open tools make bitstreams, else
    5."""
    io_type: Literal[IO_TYPES] = "io_stream"  # type: ignore[valid-type]
    """Whether a sample is transferred at once, or one position after another."""
    strategy: Literal[STRATEGIES] = "latency"  # type: ignore[valid-type]
    """How multiplications are laid out."""
    reuse_factor: int = Field(default=1, ge=1)
    """How often one multiplier is used for each output position."""
    route: Literal["auto", "hls", "verilog"] = "auto"
    """The way to hardware: an hls4ml project, or our own Verilog without one; `auto` is `verilog` for parts of Lattice
    and Gowin, whose tools build no HLS, and for a network that hls4ml does not take; else `hls`."""

    @field_validator("part")
    @classmethod
    def _known(cls, part: str, info: ValidationInfo) -> str:
        if ".toml" in part and info.context is not None:
            part = str(Path(info.context["folder"]) / part)
        require(find_part, part)
        return part

    @field_validator("clock_ns", mode="before")
    @classmethod
    def _usual(cls, clock_ns: object, info: ValidationInfo) -> object:
        return usual_clock_ns(info.data.get("part", "")) if clock_ns is None else clock_ns

    @field_validator("clock_ns")
    @classmethod
    def _possible(cls, clock_ns: float, info: ValidationInfo) -> float:
        if "part" in info.data:
            require(partial(require_clock, clock_ns), find_part(info.data["part"]).family)
        return clock_ns

    @field_validator("route")
    @classmethod
    def _built(cls, route: str, info: ValidationInfo) -> str:
        if route == "hls" and "part" in info.data:
            part = find_part(info.data["part"])
            if not part.compiles_hls:
                raise ValueError(f"no tool of {part.vendor} builds an hls4ml project: wanted 'verilog', or 'auto'")
        return route

    @property
    def makes_project(self) -> bool:
        """Whether the way to hardware is an hls4ml project."""
        return self.route == "hls" or (self.route == "auto" and find_part(self.part).compiles_hls)

    def target(self) -> Target:
        """Return the target that these settings describe."""
        return Target.of(**self.model_dump(exclude={"route"}))


def section_json(section: Section) -> Any:
    """Return `section` as JSON data."""
    return json.loads(section.model_dump_json())


def file_digest(path: Path | None) -> str | None:
    """Return the SHA-256 of the file or folder at `path`; None if there is none."""
    return None if path is None else digest_tree(path)


def code_digest(function: str | None) -> str | None:
    """Return the SHA-256 of a user's function's file, which may change while its name stays; None without a file."""
    home = "" if function is None else function.rpartition(":")[0]
    return file_digest(Path(home)) if home.endswith(".py") else None


def judging(config: Flow) -> Any:
    """Return the settings and files that decide how outputs are judged."""
    train = config[TrainConfig]
    names = [name for name in (train.metric, train.loss) if name is not None]
    network = None if train.model is None else digest_network(train.model)
    return [network, train.metric, train.mode, train.loss, [code_digest(name) for name in names]]
