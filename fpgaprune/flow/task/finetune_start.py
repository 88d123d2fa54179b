"""`unfinetuned`: the network that a flow fine-tunes, without the channels that its locks end."""

from __future__ import annotations

from typing import Any

from fpgaprune.flow.file import Flow, SelectConfig, TargetConfig, TrainConfig
from fpgaprune.flow.task.data import Dataset


def unfinetuned(config: Flow, data: Dataset, model: Any) -> Any:
    """`model` with the locks of `[select]` at zero and without the channels that they end.

    The weights of `model` are unchanged; it may be compiled anew.

    Raises:
        MaskError: the sparsity cannot be reached.
    """
    from fpgaprune.flow.task.narrowing import locked_at_zero
    from fpgaprune.flow.task.selecting import choose_masks
    from fpgaprune.flow.task.task import read_task
    from fpgaprune.remove import apply_removal, plan_removal

    settings, target = config[SelectConfig], config[TargetConfig].target()
    task = read_task(config[TrainConfig], model, data)
    task.compile_for_scores(model)
    masks, _ = choose_masks(model, settings, task.training_data(data), config.seed, None, target, task)
    with locked_at_zero(model, masks):
        return apply_removal(model, plan_removal(model))
