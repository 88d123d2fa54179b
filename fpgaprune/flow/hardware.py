"""What `[hls]` and `[target]` of a flow ask of the hls4ml project, and what is known of it when it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpgaprune.design import Design
from fpgaprune.errors import ToolError
from fpgaprune.flow.config import FlowConfig
from fpgaprune.flow.data import Dataset
from fpgaprune.flow.hardware_sections import HlsConfig
from fpgaprune.flow.progress import Progress
from fpgaprune.flow.samples import Samples, at, for_keras, in_shape, samples_of
from fpgaprune.hls.hls_project import HlsProject, make_design, to_hls
from fpgaprune.hls.precision import Precision
from fpgaprune.hls.width_search import AutoPrecision, FoundWidths
from fpgaprune.target import Target

if TYPE_CHECKING:
    from fpgaprune.flow.metric import Judge

# Samples that show the ranges; the search of precision 'auto' measures its loss on as many as it asks for.
_SAMPLES = 512
# Held-out samples that the project's own test bench runs.
_GOLDEN = 32


@dataclass(frozen=True)
class Hardware:
    """How projects of a flow are made.

    Attributes:
        settings: the section `[hls]`. target: what it and `[target]` say. name: of the project. data: of the flow.
    """

    settings: HlsConfig
    target: Target
    name: str
    data: Dataset

    @classmethod
    def of(cls, config: FlowConfig, data: Dataset) -> Hardware:
        """How the flow `config` asks for them."""
        return cls(config.hls, replace(config.target.target(), backend=config.hls.backend), config.name, data)

    def project(
        self, model: Any, folder: Path, judge: Callable[[Samples], Judge], searched: Path, progress: Progress
    ) -> HlsProject:
        """`folder` is the project of `model`.

        Args:
            model: a Keras model.
            folder: where the project is to stand.
            judge: gives a metric for labels that are no class numbers.
            searched: holds what a search of widths has measured, while it runs; one that was killed goes on from it.
            progress: told of the search.
        """
        x, y = self._samples
        if y is None and self.settings.precision == "auto":
            metric = judge(at(self.data.choosing[1], slice(AutoPrecision().samples)))

            def lost(wanted: Any, outputs: Any) -> tuple[float, float]:
                found = metric.lost(samples_of(wanted), in_shape(outputs, samples_of(wanted)))
                return found["lost"], found["lost_error"]

            y = lost
        project = to_hls(
            model,
            self.target,
            x,
            folder,
            self._precision(),
            self.name,
            labels=y,
            layers=self.layers,
            backend_options=self.settings.backend_options,
            golden=for_keras(at(self.data.x_test, slice(_GOLDEN))),
            results=searched,
            progress=progress.step,
        )
        searched.unlink(missing_ok=True)
        return project

    def design(self, model: Any, found: FoundWidths | None = None) -> Design:
        """The design of `model`, for comparison; with the widths that a search found for another network."""
        precision, layers = self._precision(), self.layers
        if found is not None:
            bits = found.uniform_bits
            precision = Precision(bits, bits, self.settings.sum_bits)
            for role, widths in (("weight_bits", found.weight_bits), ("activation_bits", found.activation_bits)):
                for layer, width in widths.items():
                    layers.setdefault(layer, {}).setdefault(role, width)
        return make_design(model, self.target, self._samples[0], precision, self.name, layers=layers)

    def build(self, project: HlsProject, progress: Progress) -> dict[str, Any] | None:
        """What the vendor's tool did, or why it did nothing; None where nothing was asked of it."""
        if not self.settings.build:
            return None
        lines = 0

        def tell(line: str) -> None:
            nonlocal lines
            lines += 1
            progress.step(0, len(self.settings.build), line[:80])

        try:
            build = project.build(self.settings.build, self.settings.build_timeout_s, tell)
        except ToolError as error:
            return {"left_out": str(error)}
        return {"steps": list(self.settings.build), "seconds": [run.seconds for run in build.runs], "lines": lines}

    def facts(self, project: HlsProject) -> dict[str, Any]:
        """What the zeros save, which weights rounding has freed, and what the search found, as JSON data."""
        advice, free = project.advice, project.free_locks
        return {
            "advice": None
            if advice is None
            else {"recommended": advice.recommended, "text": advice.text, "layers": [asdict(s) for s in advice.layers]},
            "notes": list(project.notes),
            "free_locks": {} if free is None else {path: int(mask.size - mask.sum()) for path, mask in free.items()},
            "precision": None
            if project.search is None
            else {
                **asdict(project.search),
                "on": "training samples" if self.data.x_valid is None else "validation samples",
            },
        }

    @property
    def _samples(self) -> tuple[Any, Any]:
        """Samples for the ranges and for the search, and their class numbers; None where labels are no classes."""
        x, y, count = self.data.x_train, self.data.y_train, _SAMPLES
        if self.settings.precision == "auto":
            (x, y), count = self.data.choosing, AutoPrecision().samples
        some = slice(count)
        return for_keras(at(x, some)), None if self.data.classes is None else at(y, some)

    def _precision(self) -> Any:
        settings = self.settings
        if settings.precision == "auto":
            return AutoPrecision(max_loss=settings.max_loss, sum_bits=settings.sum_bits)
        if settings.precision == "widths":
            return Precision(settings.weight_bits, settings.activation_bits, settings.sum_bits)
        return settings.precision

    @property
    def layers(self) -> dict[str, dict[str, Any]]:
        """What single layers, or those that a glob fits, have instead."""
        return {name: entry.model_dump(exclude_none=True) for name, entry in self.settings.layers.items()}
