"""Designs of a flow before anything is trained: what the flow would make, and what an edit of its keys would make."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fpgaprune.advice import OwnFlow, with_keys
from fpgaprune.design import Design, ReuseWarning
from fpgaprune.errors import NETWORK_ERRORS
from fpgaprune.flow.file import MULTIPLIER, FinetuneConfig, Flow, SelectConfig, TargetConfig
from fpgaprune.flow.stages.hls import HlsStage
from fpgaprune.flow.stages.hls_config import HlsConfig, hardware_of
from fpgaprune.flow.stages.quantise import QuantiseConfig
from fpgaprune.flow.stages.stage import StageContext
from fpgaprune.flow.task import Dataset, network_before_finetuning, start_session
from fpgaprune.layout import Settings

if TYPE_CHECKING:
    import keras

    from fpgaprune.flow.stages.hardware import ProjectSettings
    from fpgaprune.lowering import FoundWidths, Lowering


def untrained_design(config: Flow, data: Dataset, model: keras.Model) -> Design:
    """Return the design of `model` with the locks of `[select]` at zero and without the channels that they end.

    Nothing is fine-tuned: what the design takes is known, what the network would be worth is not. The weights of
    `model` are unchanged; it may be compiled anew.

    Raises:
        MaskError: the sparsity cannot be reached.
        HlsError: the network cannot become this hardware.
    """
    return hardware_of(config, data).design(network_before_finetuning(config, data, model))


# The keys of a layer that leave its numbers as they are.
_LAYOUT = {"strategy", "reuse_factor"}


def own_flow(context: StageContext) -> OwnFlow:
    """Return the flow of `context`, whose hardware is made."""
    return OwnFlow(json.loads(context.config.model_dump_json()), _Edits(context).design)


@dataclass(frozen=True)
class _Edits:
    """The hardware of a flow with other values of some keys, before anything is trained again."""

    context: StageContext
    _lowerings: dict[int | None, Lowering] = field(default_factory=dict)

    def design(self, keys: Settings) -> Design | None:
        """Return the design that the flow makes with `keys`; None if it cannot have them.

        With other locks it is that of the trained network with these locks, which is not fine-tuned.
        """
        from fpgaprune.hls import StrategyWarning

        own = self.context.config
        config = type(own).model_validate(with_keys(own.model_dump(), keys))
        with warnings.catch_warnings():
            for kind in (ReuseWarning, StrategyWarning):
                warnings.simplefilter("ignore", kind)
            try:
                return self._made(config)
            except NETWORK_ERRORS:
                return None

    def _made(self, config: Flow) -> Design:
        from fpgaprune.lowering import Precision

        context, hardware = self.context, hardware_of(config, self.context.data)
        found = None
        if context.network is not None and context.network.rounds:
            hardware = hardware.without_widths()
        elif _widths(config) == _widths(context.config):
            hardware, found = hardware.with_types(context.artefacts.types()), self._found
        elif isinstance(hardware.precision, Precision):
            # A network that is trained while it rounds may lose its largest few values.
            rounds = config[FinetuneConfig].quantised or config[QuantiseConfig].epochs > 0
            hardware = replace(hardware, precision=replace(hardware.precision, clips=rounds))
        if _locks(config) != _locks(context.config):
            return hardware.design(network_before_finetuning(config, context.data, self._trained), found)
        return hardware.design(self._latest(hardware), found)

    @cached_property
    def _trained(self) -> Any:
        start_session(self.context.config.seed)
        return self.context.model("trained.keras")

    def _latest(self, hardware: ProjectSettings) -> Lowering:
        """Return the network of the run, folded and observed once for all designs that read the same samples."""
        from fpgaprune.lowering import AutoPrecision

        samples = hardware.precision.samples if isinstance(hardware.precision, AutoPrecision) else None
        if samples not in self._lowerings:
            start_session(self.context.config.seed)
            self._lowerings[samples] = hardware.lowering(self.context.model())
        return self._lowerings[samples]

    @cached_property
    def _found(self) -> FoundWidths | None:
        """The widths that a search found for the network; None if there was none."""
        result = HlsStage().result_in(self.context.run)
        return None if result is None else result.precision


def _locks(config: Flow) -> Any:
    """Return what decides which elements are locked."""
    select = config[SelectConfig]
    return select, config[TargetConfig] if select.granularity == MULTIPLIER else None


def _widths(config: Flow) -> Any:
    """Return what decides the numbers of the hardware."""
    layers = {name: entry.model_dump(exclude=_LAYOUT) for name, entry in config[HlsConfig].layers.items()}
    kept = {name: entry for name, entry in layers.items() if any(value is not None for value in entry.values())}
    return kept, config[HlsConfig].model_dump(include={"precision", "weight_bits", "activation_bits", "sum_bits"})
