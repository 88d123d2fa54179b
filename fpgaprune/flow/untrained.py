"""`untrained_design`: the hardware of a flow before anything is fine-tuned, to price what the flow would make."""

from __future__ import annotations

from typing import Any

from fpgaprune.design import Design
from fpgaprune.flow.data import Dataset
from fpgaprune.flow.section import Flow
from fpgaprune.flow.sections import SelectConfig, TargetConfig, TrainConfig


def untrained_design(config: Flow, data: Dataset, model: Any) -> Design:
    """The design of `model` with the locks of `[select]` at zero and without the channels that they end.

    Nothing is fine-tuned: what the design takes is known, what the network would be worth is not. The weights of
    `model` are unchanged; it may be compiled anew.

    Raises:
        MaskError: the sparsity cannot be reached.
        HlsError: the network cannot become this hardware.
    """
    from fpgaprune.flow.narrowing import locked_at_zero
    from fpgaprune.flow.selecting import choose_masks
    from fpgaprune.flow.stages.hls import hardware_of
    from fpgaprune.flow.task import read_task
    from fpgaprune.remove import apply_removal, plan_removal

    settings, target = config[SelectConfig], config[TargetConfig].target()
    task = read_task(config[TrainConfig], model, data)
    task.compile_for_scores(model)
    masks, _ = choose_masks(model, settings, task.training_data(data), config.seed, None, target, task)
    with locked_at_zero(model, masks):
        small = apply_removal(model, plan_removal(model))
    return hardware_of(config, data).design(small)
