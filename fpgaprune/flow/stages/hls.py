"""The stage `hls`: the network as an hls4ml project, emulated and simulated."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from msgspec import Struct, structs

from fpgaprune.certify import check_design, check_firmware
from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import ToolError, UnsupportedLayerError
from fpgaprune.flow.file import Flow, Section, TargetConfig, VerdictConfig, judging, section_json
from fpgaprune.flow.stages.hls_config import HlsConfig, hardware_of
from fpgaprune.flow.stages.requirements import Row, package, program, row
from fpgaprune.flow.stages.stage import (
    HELD,
    MASKS,
    NETWORK,
    TYPES,
    Artefacts,
    FlowStage,
    OutcomeLine,
    ReportPart,
    StageContext,
    StageResult,
)
from fpgaprune.flow.stages.verilog_measurements import OTHER_BITS
from fpgaprune.flow.task import Dataset, Loss, Reading, Samples, arrays_of, at, count_of, for_keras, in_shape, predict
from fpgaprune.lowering import FoundWidths
from fpgaprune.measure import LinkCheck
from fpgaprune.report import Check, loss_unit
from fpgaprune.values import parse_loss, uncomputed_names
from fpgaprune.vendor import TOOLS, find_tools

if TYPE_CHECKING:
    import keras

    from fpgaprune.flow.task import Judge

# Most seconds for g++, and the samples that its program runs however slow it is.
COMPILE_S = 600.0
FEWEST_SIMULATED = 8


def _link(files: Artefacts, *held: Any) -> LinkCheck | None:
    # A run without a project has golden samples instead; a project that is gone is an error.
    if files.file("golden").is_dir():
        return None
    return check_firmware(files.file("hls"), Design.load(files.file("design.json")), *(held or (files.masks(),)))


def _design_link(files: Artefacts, *held: Any) -> LinkCheck | None:
    if not files.file("golden").is_dir():
        return None
    return check_design(Design.load(files.file("design.json")), *(held or (files.masks(),)))


def _of_held(link: Callable[..., LinkCheck | None]) -> Callable[[Artefacts], LinkCheck | None]:
    """Make `link` check the weights that are held at values, where some are."""

    def read(files: Artefacts) -> LinkCheck | None:
        held = files.held()
        return None if held is None else link(files, held.masks, held.values)

    return read


# A run has the first two, or without a project the others.
_LINKS = {
    "hls/firmware": _link,
    "hls/firmware, held values": _of_held(_link),
    "design.json": _design_link,
    "design.json, held values": _of_held(_design_link),
}


class Compared:
    """Outputs of the hardware beside those of Keras: an `Agreement`, or `NotCompared`."""

    __slots__ = ()

    @staticmethod
    def from_json(plain: Mapping[str, object]) -> Compared:
        """Return the comparison that `plain` describes."""
        if "left_out" in plain:
            return msgspec.convert(plain, NotCompared)
        return msgspec.convert(plain, Agreement)


class NotCompared(Struct, Compared, frozen=True):
    """No outputs were compared.

    Attributes:
        left_out: the reason.
    """

    left_out: str


class Agreement(Reading, Compared, frozen=True, kw_only=True, omit_defaults=True):
    """The metric of the hardware, and its loss against Keras with the same weights.

    Attributes:
        agreement: share of the samples for which a classifier gives the class that Keras gives; None for others.
        of_trained: its loss against the trained network; None if that was not compared.
        asked: how many samples were to be simulated; None for an emulation.
        seconds: wall-clock time of a simulation.
        outputs_unlike_emulation: output values of a simulation with other bits than the emulation's.
    """

    agreement: float | None = None
    of_trained: Loss | None = None
    asked: int | None = None
    seconds: float | None = None
    outputs_unlike_emulation: int | None = None


class HlsResult(StageResult, frozen=True, kw_only=True, omit_defaults=True):
    """The project and what its hardware computes.

    Attributes:
        advice: what the zeros save and in which strategy they would save more, as JSON data; None without a project.
        notes: what is worth knowing of the project.
        free_locks: weight path to the number of weights that rounding sets to zero though they are not locked.
        precision: the widths that a search found; None if there was none.
        emulation: the outputs of the emulation beside those of Keras.
        simulation: the outputs of the C simulation beside those of Keras.
        build: what the vendor's tool did, as JSON data; None if it was not asked.
    """

    advice: Mapping[str, object] | None
    notes: tuple[str, ...]
    free_locks: Mapping[str, int]
    precision: FoundWidths | None
    emulation: Compared
    simulation: Compared
    build: Mapping[str, object] | None


def _emulated(context: StageContext, project: Any, model: keras.Model, wanted: Samples) -> Compared:
    """Return what the hardware computes for every held-out sample, by emulation: this needs no compiler."""
    x = context.data.x_test
    try:
        outputs = emulate(project.design, for_keras(x))
    except UnsupportedLayerError as error:
        return NotCompared(str(error))
    judge, trained = context.judge(model), context.trained_outputs()
    found = _agreement(context, judge, outputs, wanted)
    return structs.replace(found, of_trained=judge.lost(trained, in_shape(outputs, trained)))


def _simulated(context: StageContext, project: Any, model: keras.Model, wanted: Samples) -> Compared:
    """Compare the C simulation with the emulation, for as many held-out samples as the time allows."""
    settings = context.config[HlsConfig]
    if not context.config[TargetConfig].makes_project:
        return NotCompared("the network becomes our Verilog (target.route), which [measure] simulates")
    if not settings.simulate:
        return NotCompared("the flow does not ask for it (simulate above 0 in [hls])")
    x = at(context.data.x_test, slice(settings.simulate))
    try:
        ran = project.compile(COMPILE_S).run(
            for_keras(x),
            settings.simulate_s,
            FEWEST_SIMULATED,
            lambda done: context.progress.step(done, count_of(x), "C simulation"),
        )
    except ToolError as error:
        return NotCompared(str(error))
    some = slice(ran.samples)
    x = at(context.data.x_test, some)
    found = _agreement(context, context.judge(model, some), ran.outputs, at(wanted, some))
    found = structs.replace(found, asked=ran.asked, seconds=ran.seconds)
    try:
        emulated = arrays_of(emulate(project.design, for_keras(x)))
    except UnsupportedLayerError:
        return found
    different = sum(int((a != b).sum()) for a, b in zip(arrays_of(ran.outputs), emulated, strict=True))
    return structs.replace(found, outputs_unlike_emulation=different)


def _agreement(context: StageContext, judge: Judge, outputs: Samples, wanted: Samples) -> Agreement:
    """Return the hardware's metric and loss; for a classifier also how often it gives the class that Keras gives."""
    outputs = in_shape(outputs, wanted)
    found = Agreement(**structs.asdict(judge.reading(outputs, wanted)))
    if context.data.classes is None or isinstance(outputs, tuple) or outputs.shape[-1] < 2:
        return found
    same = outputs.argmax(axis=-1) == np.asarray(wanted).argmax(axis=-1)
    return structs.replace(found, agreement=float(same.mean()))


def _compared(name: str, found: Compared, config: Flow, searched: FoundWidths | None) -> list[Check]:
    against = f"{name} against Keras"
    if not isinstance(found, Agreement):
        return [Check(against, "outputs", left_out=_reason(found))]
    samples, metric = found.samples, found.name
    checks = []
    if found.agreement is not None:
        advice = "give more bits (hls.weight_bits, hls.activation_bits), or lower the limit (verdict.agreement)"
        limit = config[VerdictConfig].agreement
        same = Check(against, "same class", found.agreement, limit, True, samples, advice=advice, about="metric")
        checks.append(same)
    if searched and found.lost is not None:
        # The search did not see these samples, so that their standard error is taken off.
        checks.append(
            Check(
                against,
                f"{metric} lost, less one standard error, by widths searched on {searched.on}",
                found.lost - (found.lost_error or 0.0),
                parse_loss(config[HlsConfig].max_loss),
                samples=samples,
                unit=loss_unit(found),
                advice="let the search lose less (hls.max_loss), or give it other samples (x_valid, y_valid)",
                about="metric",
            )
        )
    else:
        checks.append(
            Check(against, f"{metric} lost", found.lost, samples=samples, unit=loss_unit(found), about="metric")
        )
    if found.outputs_unlike_emulation is not None:
        different = found.outputs_unlike_emulation
        checks.append(Check(f"{name} against emulation", OTHER_BITS, different, 0, samples=samples))
    return checks


def _searched(found: FoundWidths | None, data: Dataset) -> FoundWidths | None:
    on = "training samples" if data.x_valid is None else "validation samples"
    return None if found is None else replace(found, on=on)


def _reason(found: Compared) -> str | None:
    return found.left_out if isinstance(found, NotCompared) else None


class HlsStage(FlowStage[HlsResult]):
    """Makes the network an hls4ml project, emulates and simulates it."""

    name = "hls"
    inputs = ("trained.keras", "trained_outputs.npz", NETWORK, MASKS, TYPES, HELD)
    outputs = ("hls", "golden", "design.json", "design.npz", "design_trained.json", "design_trained.npz")
    sections: ClassVar[Mapping[str, Section]] = {"hls": HlsConfig(weight_bits=6, activation_bits=8, simulate=360)}
    links = _LINKS
    packages = ("hls4ml",)
    result = HlsResult

    def run(self, context: StageContext) -> HlsResult:
        """Write the design to `design.json`, and an hls4ml project of it, whose weights hold the locks, to `hls/`.

        Where the way to hardware is our Verilog, there is no project, and `golden/` holds its golden samples.
        """
        from fpgaprune.hls import HlsProject

        run, settings = context.run, context.config[HlsConfig]
        projects = context.config[TargetConfig].makes_project
        hardware, model = hardware_of(context.config, context.data), context.model()
        types = context.artefacts.types()
        judge, searched = partial(context.judge_of, model), run.file("hls.search.json")
        kept, gone = ("hls", "golden") if projects else ("golden", "hls")
        shutil.rmtree(run.file(gone), ignore_errors=True)
        rounds = context.network is not None and context.network.rounds
        typed = hardware.without_widths() if rounds else hardware.with_types(types)
        make = typed.project if projects else typed.lowered
        project = make(model, run.file(kept), judge, searched, context.progress)
        # The trained network gets the same widths, so that the two can be compared.
        before = hardware.design(context.model("trained.keras"), project.search, types)
        before.save(run.file("design_trained.json"))
        project.design.save(run.file("design.json"))
        wanted = predict(model, context.data.x_test)
        steps = settings.build if isinstance(project, HlsProject) else ()
        return HlsResult(
            **hardware.facts(project),
            precision=_searched(project.search, context.data),
            emulation=_emulated(context, project, model, wanted),
            simulation=_simulated(context, project, model, wanted),
            build=hardware.build(project, steps, settings.build_timeout_s, context.progress),
            links=context.artefacts.proven(_LINKS),
        )

    def settings(self, config: Flow) -> object:
        settings = config[HlsConfig]
        return [
            *(config.name, section_json(settings), section_json(config[TargetConfig]), judging(config)),
            # If a compiler or a vendor's tool was installed since, the stage can do what it left out.
            *(shutil.which("g++") is not None, sorted(find_tools()) if settings.build else []),
        ]

    def foresee(self, config: Flow, data: Dataset, model: keras.Model) -> Iterator[str]:
        """Yield the problems that hls4ml would have with the network under `[hls]` and `[target]`, line by line."""
        from fpgaprune.hls import check_model

        settings, hardware = config[HlsConfig], hardware_of(config, data)
        precision = None if settings.precision == "widths" else settings.precision
        check = check_model(
            model,
            hardware.target,
            precision,
            name=config.name,
            layers=hardware.layers,
            backend_options=settings.backend_options,
        )
        yield from (*uncomputed_names(model), *check.problems)

    def part(self, context: StageContext, result: HlsResult) -> ReportPart:
        sides = (("emulation", result.emulation), ("C simulation", result.simulation))
        searched = result.precision
        return ReportPart(
            checks=[check for name, found in sides for check in _compared(name, found, context.config, searched)]
        )

    def readings(self, result: HlsResult) -> dict[str, Reading]:
        """Return the metric of the hardware, with its loss against the trained network."""
        # If the hardware cannot be emulated, the checks show its C simulation on fewer samples.
        found = result.emulation
        if not isinstance(found, Agreement) or found.of_trained is None:
            return {}
        return {"hardware": structs.replace(found, **structs.asdict(found.of_trained))}

    def outcome(self, result: HlsResult) -> Iterator[OutcomeLine]:
        for label, found in (("hardware", result.emulation), ("compiled", result.simulation)):
            if not isinstance(found, Agreement):
                yield OutcomeLine(f"{label:<11} left out: {_reason(found)}")
            elif found.agreement is not None:
                same = f"{100 * found.agreement:.2f} % of {found.samples:,} samples"
                yield OutcomeLine(f"{label:<11} gives the same class as Keras for {same}")

    def needs(self) -> Iterator[Row]:
        yield package("hls", "hls4ml", "the hls4ml project")
        yield package("hls", "da4ml", "the strategy distributed_arithmetic", "distributed-arithmetic")
        yield program("hls", "g++", "the C simulation", "your system's package g++")
        vendor = find_tools()
        for name, (product, advice) in TOOLS.items():
            path = vendor.get(name)
            yield row("hls, [hls] build", name, None if path is None else str(path), product, advice)


STAGE = HlsStage()
