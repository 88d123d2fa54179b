"""`[finetune.schedule]`: when the locks are set while the network is fine-tuned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from fpgaprune.errors import ConfigError, MaskError
from fpgaprune.flow.file.section_type import Section
from fpgaprune.select import ConstantSparsity, PolynomialDecay

Fraction = Annotated[float, Field(ge=0, le=1)]
# Defaults of a schedule: the number of its changes, and the share of the steps within which they fall.
CHANGES = 12
DONE_BY = 0.6
# If they fall within so many epochs, each is at the start of one: TensorFlow can take the steps between them at once.
_EPOCHS = 4


class OneShotConfig(Section):
    """All locks are set before the first step."""

    kind: Literal["one_shot"] = "one_shot"
    """All locks are set before the first step."""


class PolynomialConfig(Section):
    """The sparsity rises to that of `[select]`, fast at first.

    Without `frequency` the locks change about twelve times, before whole epochs if there are enough of these; without
    `end_step` the last change is at six tenths of the steps.
    """

    kind: Literal["polynomial_decay"]
    """The sparsity rises to that of [select], fast at first."""
    initial_sparsity: Fraction = 0.0
    """The sparsity at the first change."""
    begin_step: int = Field(default=0, ge=0)
    """The training step of the first change."""
    end_step: int | None = Field(default=None, ge=1)
    """The training step of the last change; six tenths of all if left out."""
    frequency: int | None = Field(default=None, ge=1)
    """Steps between two changes; if left out, as many as give about twelve changes."""
    power: float = Field(default=3, gt=0)
    """How fast the sparsity rises at first; 1 is a straight line."""
    regrow_fraction: float = Field(default=0.0, ge=0, lt=1)
    """Share of the locked units that is set free again at each change, where gradients are largest."""

    def over(self, epochs: int, steps: int, sparsity: float) -> PolynomialDecay:
        """Return the schedule for a fine-tuning of `epochs`, each of `steps`, that ends at `sparsity`.

        Raises:
            MaskError: it cannot run like this.
        """
        end = self.end_step or max(int(DONE_BY * epochs * steps), self.begin_step + 1)
        frequency = self.frequency or max(1, (end - self.begin_step) // CHANGES)
        if self.frequency is None and end - self.begin_step >= _EPOCHS * steps:
            frequency = max(frequency // steps, 1) * steps
        if self.end_step is None:
            # The last change must fall on the last step of the schedule, or the sparsity would not be reached.
            end = self.begin_step + max(1, (end - self.begin_step) // frequency) * frequency
        return PolynomialDecay(self.initial_sparsity, sparsity, self.begin_step, end, self.power, frequency)


class ConstantConfig(Section):
    """The sparsity of `[select]` from `begin_step` on; the locks are chosen anew every `frequency` steps."""

    kind: Literal["constant_sparsity"]
    """The sparsity of [select] all the time; the locks are chosen anew every `frequency` steps."""
    begin_step: int = Field(default=0, ge=0)
    """The training step of the first choice."""
    end_step: int = Field(default=-1, ge=-1)
    """The training step of the last choice; -1 for the end."""
    frequency: int = Field(default=100, ge=1)
    """Steps between two choices."""
    regrow_fraction: float = Field(default=0.0, ge=0, lt=1)
    """Share of the locked units that is set free again at each choice, where gradients are largest."""

    def over(self, epochs: int, steps: int, sparsity: float) -> ConstantSparsity:  # noqa: ARG002
        """Return the schedule for a fine-tuning that ends at `sparsity`.

        Raises:
            MaskError: it cannot run like this.
        """
        return ConstantSparsity(sparsity, self.begin_step, self.end_step, self.frequency)


class RoundsConfig(Section):
    """Rounds of selection and fine-tuning: `epochs` of `[finetune]` are those of one round."""

    kind: Literal["rounds"]
    """Rounds of selection and fine-tuning; [finetune] epochs are those of one round."""
    rounds: int = Field(default=4, ge=1)
    """Rounds that each lock the same share of what is still free."""
    rewind_to: Annotated[int, Field(ge=0)] | Path | None = None
    """Weights to which free elements are set back before each round: those after this epoch of the training (0: before
    its first step), or those in a `.keras` file. Nothing is set back if left out."""
    regrow_fraction: float = Field(default=0.0, ge=0, lt=1)
    """Share of the locked units that is set free again in each round, where gradients are largest."""

    def shares(self, sparsity: float) -> list[float]:
        """Return the sparsity of each round; `sparsity` is the last."""
        return [1 - (1 - sparsity) ** (number / self.rounds) for number in range(1, self.rounds)] + [sparsity]


ScheduleConfig = Annotated[
    OneShotConfig | PolynomialConfig | ConstantConfig | RoundsConfig, Field(discriminator="kind")
]


def check_schedule(config: ScheduleConfig, epochs: int, steps: int, sparsity: object, granularity: str) -> None:
    """Check that a fine-tuning of `epochs`, each of `steps`, under this schedule ends at the asked sparsity.

    Raises:
        ConfigError: it cannot; one line that says why.
    """
    if isinstance(config, OneShotConfig):
        return
    where = "finetune.schedule"
    if ":" in granularity and config.regrow_fraction:
        raise ConfigError(f"{where}.regrow_fraction: granularity {granularity!r} always keeps n of m; leave it out")
    if not isinstance(sparsity, float) or sparsity == 0:
        raise ConfigError(f"{where}: select.sparsity is {sparsity}; wanted one fraction above 0 for {config.kind!r}")
    if isinstance(config, RoundsConfig):
        return
    try:
        schedule = config.over(epochs, steps, sparsity)
    except MaskError as error:
        raise ConfigError(f"{where}: {error}") from error
    reached, whole = 0.0, epochs * steps
    for step in range(whole):
        due, now = schedule(step)
        reached = now if due else reached
    if reached != sparsity:
        raise ConfigError(
            f"{where} comes to sparsity {reached:.6g} in {whole} steps; wanted {sparsity:g}: let it end before step "
            f"{whole}, a whole number of times 'frequency' after 'begin_step'"
        )
