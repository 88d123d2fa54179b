"""`ProjectSettings`: how a flow makes hls4ml projects, and the facts about a project."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpgaprune.design import Design
from fpgaprune.errors import ToolError
from fpgaprune.files import make_folder
from fpgaprune.flow.run import Progress
from fpgaprune.flow.task import Dataset, at, for_keras, in_shape, samples_of
from fpgaprune.hls import HlsProject, to_hls, write_golden
from fpgaprune.lowering import (
    AnyPrecision,
    AutoPrecision,
    FoundWidths,
    Labels,
    Lowered,
    Lowering,
    Precision,
    lower,
    quantize,
    settled_types,
)
from fpgaprune.target import Target
from fpgaprune.values import FixedType

if TYPE_CHECKING:
    import keras

    from fpgaprune.flow.task import Judge

# Samples that show the ranges of values, unless the search of precision 'auto' asks for another number.
_SAMPLES = 512
# The options of a layer that types replace.
_WIDTHS = ("weight", "bias", "result", "weight_bits", "activation_bits")
Types = Mapping[str, Mapping[str, str]]
# Held-out samples that the project's own test bench runs.
_GOLDEN = 32


@dataclass(frozen=True)
class ProjectSettings:
    """How projects of a flow are made.

    Attributes:
        target: the part, and how the network is laid out on it.
        name: name of the project.
        data: samples of the flow.
        precision: as `to_hls` takes it.
        sum_bits: bits of sums in designs with the widths that a search found.
        layers: layer, or glob of layers, to its own settings.
        backend_options: options of the hls4ml backend.
    """

    target: Target
    name: str
    data: Dataset
    precision: AnyPrecision
    sum_bits: int
    layers: Mapping[str, Mapping[str, Any]]
    backend_options: Mapping[str, Any] = field(default_factory=dict)

    def project(
        self, model: keras.Model, folder: Path, judge: Callable[..., Judge], searched: Path, progress: Progress
    ) -> HlsProject:
        """Make the project of `model` in `folder`.

        `judge` gives a metric for labels that are not class numbers. The file `searched` holds the measurements of a
        search of widths; a killed search continues from it.
        """
        x, options = self._given(judge, results=searched, progress=progress.step)
        options |= {"backend_options": self.backend_options, "golden": for_keras(at(self.data.x_test, slice(_GOLDEN)))}
        project = to_hls(model, self.target, x, folder, self.precision, self.name, **options)
        searched.unlink(missing_ok=True)
        return project

    def lowered(
        self, model: keras.Model, folder: Path, judge: Callable[..., Judge], searched: Path, progress: Progress
    ) -> Lowered:
        """Lower `model` without a project, and write golden samples to `folder`; all else as for `project`."""
        x, options = self._given(judge, results=searched, progress=progress.step)
        made = lower(model, self.target, x, self.precision, self.name, **options)
        searched.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder)
        write_golden(folder, made.design, for_keras(at(self.data.x_test, slice(_GOLDEN))))
        return made

    def rounding(self, model: keras.Model, judge: Callable[..., Judge]) -> keras.Model:
        """Make a network with the model's weights that rounds as its hardware does; `judge` as for `project`."""
        x, options = self._given(judge)
        return quantize(model, self.target, x, self.precision, **options)

    def types_of(self, rounded: object) -> dict[str, dict[str, str]]:
        """Return the types of `rounded`, which was trained while it rounds, as text, by layer and role."""
        return settled_types(rounded, self._samples[0])

    def with_types(self, types: Types) -> ProjectSettings:
        """Return settings for a network that was trained under `types`: layer to role to type, or empty."""
        if not types:
            return self
        own = {name: {key: entry[key] for key in entry if key not in _WIDTHS} for name, entry in self.layers.items()}
        layers = {**own, **{layer: {**own.get(layer, {}), **kinds} for layer, kinds in types.items()}}
        return replace(self, precision=Precision(sum_bits=self.sum_bits), layers=layers)

    def without_widths(self) -> ProjectSettings:
        """Return settings for a network that rounds its data itself, from which all types follow."""
        own = {
            name: {key: value for key, value in entry.items() if key not in (*_WIDTHS, "accum")}
            for name, entry in self.layers.items()
        }
        return replace(self, precision=Precision(sum_bits=self.sum_bits), layers=own)

    def lowering(self, model: keras.Model) -> Lowering:
        """Return `model` for several designs with the samples of these settings."""
        return Lowering(model, self._samples[0])

    def design(
        self, model: keras.Model | Lowering, found: FoundWidths | None = None, types: Types | None = None
    ) -> Design:
        """Return the design of `model`, for comparison with another network.

        Args:
            model: a Keras model, or what `lowering` made of it.
            found: the widths that a search found for the other network.
            types: the types under which the other network was trained.
        """
        precision, layers = self.precision, {name: dict(entry) for name, entry in self.layers.items()}
        widths: dict[str, Mapping[str, int]] = {}
        if found is not None:
            precision = Precision(found.uniform_bits, found.uniform_bits, self.sum_bits)
            widths = {"weight_bits": found.weight_bits, "activation_bits": found.activation_bits}
        elif types and isinstance(precision, AutoPrecision):
            precision, widths = Precision(sum_bits=self.sum_bits), _widths(types)
        for role, bits in widths.items():
            for layer, width in bits.items():
                layers.setdefault(layer, {}).setdefault(role, width)
        lowering = model if isinstance(model, Lowering) else self.lowering(model)
        return lowering.design(self.target, precision, self.name, layers=layers)

    def build(
        self, project: HlsProject | Lowered, steps: Sequence[str], timeout_s: float, progress: Progress
    ) -> dict[str, Any] | None:
        """Return what the vendor's tool did in `steps`, or why it did nothing; None without steps."""
        if not steps or not isinstance(project, HlsProject):
            return None
        lines = 0

        def tell(line: str) -> None:
            nonlocal lines
            lines += 1
            progress.step(0, len(steps), line[:80])

        try:
            build = project.build(steps, timeout_s, tell)
        except ToolError as error:
            return {"left_out": str(error)}
        return {"steps": list(steps), "seconds": [run.seconds for run in build.runs], "lines": lines}

    def facts(self, project: HlsProject | Lowered) -> dict[str, Any]:
        """Return as JSON data what the zeros save, and which weights rounding sets to zero."""
        advice, free = getattr(project, "advice", None), project.free_locks
        return {
            "advice": None
            if advice is None
            else {"recommended": advice.recommended, "text": advice.text, "layers": [asdict(s) for s in advice.layers]},
            "notes": list(project.notes),
            "free_locks": {} if free is None else {path: int(mask.size - mask.sum()) for path, mask in free.items()},
        }

    def _given(self, judge: Callable[..., Judge], **more: object) -> tuple[Any, dict[str, Any]]:
        """Return samples for the ranges and the search, and what is given by name: labels or a loss, layers, `more`."""
        x, labels = self._samples
        return x, {"labels": self._lost(judge) if labels is None else labels, "layers": self.layers, **more}

    def _lost(self, judge: Callable[..., Judge]) -> Labels | None:
        """Return the function that gives the loss of a search without class numbers; None if there is no search."""
        if not isinstance(self.precision, AutoPrecision):
            return None
        _, y, weights = self.data.choosing
        some = slice(self.precision.samples)
        metric = judge(at(y, some), None if weights is None else at(weights, some))

        def lost(wanted: Any, outputs: Any) -> tuple[float, float]:
            found = metric.lost(samples_of(wanted), in_shape(outputs, samples_of(wanted)))
            return found.lost, found.lost_error

        return lost

    @property
    def _samples(self) -> tuple[Any, Any]:
        """Samples for the ranges and for the search, and their class numbers; None without, or if they have weights."""
        x, y, weights, count = self.data.x_train, self.data.y_train, None, _SAMPLES
        if isinstance(self.precision, AutoPrecision):
            (x, y, weights), count = self.data.choosing, self.precision.samples
        some = slice(count)
        return for_keras(at(x, some)), None if self.data.classes is None or weights is not None else at(y, some)


def _widths(types: Types) -> dict[str, Mapping[str, int]]:
    """Return `weight_bits` and `activation_bits` of layers that have these types."""
    bits = {
        layer: {role: FixedType.parse(kind).width for role, kind in kinds.items()} for layer, kinds in types.items()
    }
    return {
        "weight_bits": {layer: widths["weight"] for layer, widths in bits.items() if "weight" in widths},
        # The output of a layer with weights is a sum, and has the width of sums.
        "activation_bits": {layer: widths["result"] for layer, widths in bits.items() if "weight" not in widths},
    }
