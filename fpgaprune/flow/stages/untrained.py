"""`untrained_design`: the hardware of a flow before anything is fine-tuned, to price what the flow would make."""

from __future__ import annotations

from typing import Any

from fpgaprune.design import Design
from fpgaprune.flow.file import Flow
from fpgaprune.flow.task import Dataset, unfinetuned


def untrained_design(config: Flow, data: Dataset, model: Any) -> Design:
    """The design of `model` with the locks of `[select]` at zero and without the channels that they end.

    Nothing is fine-tuned: what the design takes is known, what the network would be worth is not. The weights of
    `model` are unchanged; it may be compiled anew.

    Raises:
        MaskError: the sparsity cannot be reached.
        HlsError: the network cannot become this hardware.
    """
    from fpgaprune.flow.stages.hls import hardware_of

    return hardware_of(config, data).design(unfinetuned(config, data, model))
