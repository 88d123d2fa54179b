"""`STAGES`: the stages of the flow in order. Each is one file here, and everything else goes through this list.

A stage is a function of its artefacts, its section of the configuration and the data; what it returns
is JSON data for the manifest. TensorFlow is loaded only by the stages that need it, when they run.
"""

from __future__ import annotations

from fpgaprune.flow.stages import (
    certify,
    estimate,
    export,
    finetune,
    hls,
    measure,
    opinion,
    quantise,
    remove,
    report,
    select,
    train,
)

STAGES = tuple(
    module.STAGE
    for module in (train, select, finetune, certify, remove, quantise, export, hls, opinion, measure, estimate, report)
)
