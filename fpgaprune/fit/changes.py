"""What a search did to each layer of its best network: locked, narrowed, folded; and why."""

from __future__ import annotations

from pathlib import Path

from fpgaprune.design import Design, LayerSpec
from fpgaprune.fit.answer import Fit
from fpgaprune.fit.knobs import Knobs
from fpgaprune.flow import RunDirectory
from fpgaprune.masks import MaskSet
from fpgaprune.report import LayerChange

_WORDS = {"sparsity": "zeros", "weight_bits": "bits of weights", "activation_bits": "bits of activations"}
_WORDS["filters"] = "filters"
_WORDS["hold"] = "powers of two"


def layer_changes(folder: Path) -> list[LayerChange]:
    """One entry for each layer with weights in the run in `folder`, in the order of the network."""
    run = RunDirectory.existing(folder)
    masks, design = MaskSet.load(run.file("masks.npz")), Design.load(run.file("design.json"))
    made = {layer.sources["weight"]: layer for layer in design.layers if "weight" in layer.sources}
    found = []
    for layer in run.read_json("report.json")["layers"]:
        path = f"{layer['name']}/kernel"
        spec = made.get(path)
        mask = masks.get(path)
        found.append(
            LayerChange(
                layer["name"],
                0.0 if mask is None else float(1 - mask.mean()),
                tuple(layer["channels_before"]),
                None if layer["channels_after"] is None else tuple(layer["channels_after"]),
                None if spec is None else spec.types["weight"].width,
                None if spec is None else _handed_on(design, spec).types["result"].width,
                None if spec is None or spec.strategy is None else f"{spec.strategy}, reuse {spec.reuse_factor}",
            )
        )
    return found


def reasons(answer: Fit) -> list[str]:
    """Sentences on why the best network has these locks, bits and layout."""
    asked = answer.best.settings
    said = []
    knobs = Knobs.of(asked)
    if locked := knobs.locked:
        config = RunDirectory.existing(Path(answer.best.folder)).manifest["config"]["select"]
        said.append(f"Locked: {locked}, those with the lowest score ({config['criterion']}).")
    if less := knobs.less:
        said.append(f"A bit less: {less}; without it the outputs move least for what the hardware saves.")
    if answer.rates:
        rates = sorted(answer.rates.items(), key=lambda rate: rate[1])
        words = ", ".join(f"{_WORDS.get(name, name)} {100 * rate:.2f} %" for name, rate in rates)
        said.append(
            f"Turned: the knob that lost least for each halving of the price. When it was last turned: {words}."
        )
    said.append(
        "Layout: the fastest whose price keeps to the share of the part."
        if answer.limits["latency_us"] is None
        else "Layout: the smallest that is fast enough."
    )
    return said


def _handed_on(design: Design, layer: LayerSpec) -> LayerSpec:
    """The layer whose result the next layer with weights reads: an activation, a pool or `layer` itself."""
    while True:
        readers = [one for one in design.layers if layer.name in one.inputs]
        if len(readers) != 1 or readers[0].weights or len(readers[0].inputs) != 1:
            return layer
        layer = readers[0]
