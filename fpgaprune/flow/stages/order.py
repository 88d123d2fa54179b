"""`STAGES`: the stages of the flow in order, each from a file of its own. Other code reads only this list.

A stage is a function of its artefacts, its section of the configuration and the data; it returns JSON data
for the manifest. Only stages that need TensorFlow load it, and only when they run.
"""

from __future__ import annotations

from fpgaprune.flow.stages import (
    certify,
    estimate,
    export,
    finetune,
    hls,
    measure,
    quantise,
    remove,
    report,
    select,
    train,
)

STAGES = tuple(
    module.STAGE
    for module in (train, select, finetune, certify, remove, quantise, export, hls, measure, estimate, report)
)
