"""The stage `measure`: the network as Verilog, through open tools."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

from msgspec import structs
from pydantic import Field, ValidationInfo, field_validator

from fpgaprune.design import Design, VerilogLayout
from fpgaprune.errors import (
    CertificateError,
    DesignError,
    EstimateError,
    RtlError,
    TargetError,
    ToolError,
    UnsupportedLayerError,
)
from fpgaprune.estimate import verilog_price
from fpgaprune.fabric import (
    OPEN_TOOLS,
    family_of,
    find_board,
    find_board_router,
    find_family,
    find_router,
    priced_as,
    versions_found,
)
from fpgaprune.flow.file import Flow, Section, TargetConfig, read_by, require, section_json
from fpgaprune.flow.run import RunDirectory, counts_of_run, differences, digest_tree, operands_for
from fpgaprune.flow.stages.requirements import Row, loader, open_tool, package, simulator
from fpgaprune.flow.stages.stage import MASKS, Artefacts, FlowStage, ReportPart, StageContext, StageResult
from fpgaprune.flow.stages.verilog_measurements import (
    bitstream_link,
    expected_seconds,
    measure_project,
    simulate_verilog,
    verilog_checks,
)
from fpgaprune.flow.task import at, count_of, for_keras
from fpgaprune.layout import choose_layout
from fpgaprune.measure import ROUTE_ECP5, BitstreamLink, ChosenLayout, LinkCheck, Measured, Occupancy
from fpgaprune.report import NO_BREAK, LinkSummary, seconds_text
from fpgaprune.rtl import VERILOG_LINK, LayerProof, VerilogProject, check_verilog, prove_project
from fpgaprune.target import find_part, require_clock


class MeasureConfig(Section):
    """What open tools measure of the network as Verilog: nothing without families, seeds or a board."""

    families: Annotated[tuple[str, ...], read_by(find_family)] = ()
    """Families of FPGAs to synthesise for: `xc7`, `xcup`, `ecp5`, `gowin`, `gw5a`, `ice40`, `ice40up` or `nexus`."""
    seeds: int = Field(default=0, ge=0, le=100)
    """Runs of place and route on an ECP5, each with a seed of its own."""
    device: str | None = None
    """The ECP5 device; if left out, the smallest that holds the network."""
    board: str | None = None
    """Write a bitstream for it: a board of hw/boards, as `ulx3s` or `tang-nano-20k`, or a TOML file."""
    target_mhz: float | None = Field(default=None, gt=0)
    """Clock for place and route to aim at; the network's own if left out."""
    interval: int = Field(default=0, ge=0)
    """Cycles for each sample: more cycles give a smaller design; 0 means one for each position of the sample."""
    part: Annotated[str | None, read_by(find_part)] = None
    """Lay each layer out so that the network fits this part: with the fewest cycles, or with `interval`."""
    share: float = Field(default=0.8, gt=0, le=1)
    """Of each resource of `part`, the share that the layout may take by its price."""
    simulate: int = Field(default=360, ge=0)
    """Held-out samples that Verilator runs; 0 for none."""
    timeout_s: float = Field(default=3600.0, gt=0)
    """Most seconds for each run of a tool."""

    @field_validator("target_mhz")
    @classmethod
    def _possible(cls, target_mhz: float | None) -> float | None:
        if target_mhz is not None:
            # Place and route with seeds is on an ECP5.
            require(partial(require_clock, 1e3 / target_mhz), "ECP5")
        return target_mhz

    @field_validator("device")
    @classmethod
    def _device(cls, device: str | None) -> str | None:
        return device if device is None else str(require(find_router("ecp5").devices.find, device).name)

    @field_validator("board")
    @classmethod
    def _board(cls, board: str | None) -> str | None:
        # The folder of a TOML file is not known yet.
        if board is not None and not board.endswith(".toml"):
            require(find_board, board)
        return board

    @field_validator("part")
    @classmethod
    def _counted_too(cls, part: str | None, info: ValidationInfo) -> str | None:
        own = None if part is None else family_of(find_part(part))
        families = info.data.get("families") or ()
        if own is not None and families and not {own, priced_as(own)} & set(families):
            raise ValueError(
                f"the layout is for {part}, of family {own}, and synthesis counts for {', '.join(families)}; "
                f"name {own} among the families too, or another part"
            )
        return part

    @property
    def asks(self) -> bool:
        """Whether anything is to be measured."""
        return bool(self.families or self.seeds or self.board)


def _link(files: Artefacts) -> LinkCheck:
    return check_verilog(VerilogProject.load(files.file("rtl")), Design.load(files.file("design.json")), files.masks())


_LINKS = {VERILOG_LINK: _link}


def _chosen(design: Design, settings: MeasureConfig) -> ChosenLayout | None:
    """Return the layout for the part that the settings name; None if they name none."""
    if settings.part is None:
        return None
    return choose_layout(
        design,
        find_part(settings.part),
        share=settings.share,
        interval=settings.interval or None,
        layout=VerilogLayout(**operands_for(settings.families, settings.seeds or settings.board)),
        faster=True,
    )


def _elsewhere(measured: Measured | None, config: Flow) -> Occupancy | None:
    """Return what the measured design takes of the part that `[measure]` names, if that is not the run's part."""
    wanted = config[MeasureConfig].part
    if measured is None or wanted is None:
        return None
    part = find_part(wanted)
    return None if part == config[TargetConfig].target().part else measured.counted_on(part, family_of(part))


def _say_how_long(context: StageContext, project: VerilogProject, design: Design, fields: Mapping[str, Any]) -> None:
    """Tell the progress how long the tools will take, by the estimate of the design and the speed of this machine."""
    settings = context.config[MeasureConfig]
    families = [*settings.families, *([ROUTE_ECP5.family] if settings.seeds and not settings.families else [])]
    prices = {}
    for family in families:
        # A family without an estimate has no law.
        with contextlib.suppress(EstimateError):
            prices[family] = verilog_price(design, priced_as(family), **fields)
    samples = min(settings.simulate, count_of(context.data.x_test))
    seconds, known = expected_seconds(project, prices, samples, settings.seeds, settings.board)
    if prices:
        said = seconds_text(max(1, round(seconds))).replace(".0", "").replace(NO_BREAK, " ")
        more = "" if known else "; place and route is not in it"
        context.progress.stage("time", "said", f"about {said}{more}; what was measured before is not measured again")


def _proven(files: Artefacts) -> MeasureResult:
    try:
        link = _link(files)
    except CertificateError as error:
        # The products cannot be read back from this Verilog, so the certificate claims nothing of it.
        return MeasureResult(not_read=str(error))
    return MeasureResult(links=files.proven({}, link))


def _measured(run: RunDirectory) -> Mapping[str, Any] | None:
    """Read `measure.json`; None if nothing was measured, or if it cannot be read, which `verify` has said."""
    try:
        measured = json.loads(run.file("measure.json").read_text())
    except (OSError, ValueError):
        return None
    return measured if isinstance(measured, dict) else None


def _made(run: RunDirectory) -> dict[str, Any] | None:
    made = (_measured(run) or {}).get("bitstream")
    return made if isinstance(made, dict) and {"path", "sha256"} <= made.keys() else None


def _summary(modules: Sequence[LayerProof]) -> list[LinkSummary]:
    """Return one row for the modules that are proven for all inputs; none if none is."""
    decided = [module for module in modules if module.holds is not None]
    if not decided:
        return []
    link = f"{VERILOG_LINK}: {len(decided)} of {len(modules)} modules compute their layer"
    return [LinkSummary(link, violations=sum(module.holds is False for module in decided))]


def _other_verilog(run: RunDirectory) -> Iterator[str]:
    """Yield a line for each module of the measured Verilog that does not compute its layer, or cannot be read."""
    if _measured(run) is None or not run.file("rtl").is_dir():
        return
    try:
        proofs = prove_project(VerilogProject.load(run.file("rtl")), Design.load(run.file("design.json")))
    except (RtlError, DesignError, CertificateError) as error:
        yield str(error)
        return
    yield from (proof.sentence() for proof in proofs if proof.holds is False)


def _tools(settings: MeasureConfig) -> list[str]:
    """Return the tools for place and route, and those of the board's family where that is another one."""
    families = [ROUTE_ECP5.family]
    if settings.board is not None:
        with contextlib.suppress(TargetError):  # the stage itself says that a board's file is missing
            families.append(find_board_router(settings.board)[1].family)
    return [line for family in dict.fromkeys(families) for line in versions_found(family)]


class MeasureResult(StageResult, frozen=True, kw_only=True, omit_defaults=True):
    """The link of the Verilog; `measure.json` holds the measurements.

    Attributes:
        not_read: why the products of the Verilog could not be read back; None if they could.
        bitstream: the last link of the certificate; None if no bitstream was read back.
        modules: which modules of the Verilog compute their layer for all inputs.
    """

    not_read: str | None = None
    bitstream: BitstreamLink | None = None
    modules: tuple[LayerProof, ...] = ()


class MeasureStage(FlowStage[MeasureResult]):
    """Measures the network as Verilog with open tools."""

    name = "measure"
    inputs = ("design.json", "design.npz", MASKS)
    outputs = ("measure.json", "rtl")
    sections: ClassVar[Mapping[str, Section]] = {"measure": MeasureConfig()}
    needs_keras = False
    may_be_left_out = True
    links = _LINKS
    reported = ("measure.json",)
    folders = ("rtl", "synth")
    result = MeasureResult

    def run(self, context: StageContext) -> MeasureResult:
        """Write what open tools measure of the network as Verilog to `measure.json`, if the flow asks for it.

        The Verilog is the last link of the certificate: it holds no product of a locked weight.
        """
        run, settings = context.run, context.config[MeasureConfig]
        if not settings.asks:
            run.write_json("measure.json", None)
            return MeasureResult(left_out="the flow does not ask for it (families, seeds or a board in [measure])")
        from fpgaprune.rtl import to_verilog

        design, part = Design.load(run.file("design.json")), context.config[TargetConfig].target().part
        proven = MeasureResult()
        try:
            chosen = _chosen(design, settings)
            fields = {"interval": settings.interval} if chosen is None else chosen.settings
            fields = {**fields, **operands_for(settings.families, settings.seeds or settings.board)}
            project = to_verilog(design, run.file("rtl"), **fields)
            proven = structs.replace(_proven(context.artefacts), modules=tuple(prove_project(project, design)))
            _say_how_long(context, project, design, fields)
            some = for_keras(at(context.data.x_test, slice(settings.simulate)))
            simulation = simulate_verilog(project, design, some, settings.timeout_s, context.progress.step)
            found = measure_project(
                project,
                design,
                part,
                run.path,
                context.progress.step,
                simulation,
                x=some,
                **settings.model_dump(exclude={"interval", "part", "share", "simulate"}),
            )
        except (EstimateError, ToolError, RtlError, TargetError, UnsupportedLayerError) as error:
            run.write_json("measure.json", None)
            return structs.replace(proven, left_out=str(error))
        run.write_json("measure.json", structs.replace(found, layout=chosen).to_json())
        return structs.replace(proven, bitstream=bitstream_link(found))

    def asked(self, config: Flow) -> bool:
        return config[MeasureConfig].asks

    def settings(self, config: Flow) -> object:
        settings = config[MeasureConfig]
        # If a tool was installed since, the stage can do what it left out.
        return [section_json(settings), config[TargetConfig].part, *(_tools(settings) if settings.asks else ())]

    def claims(self, run: RunDirectory) -> Iterator[str]:
        """Yield faults of the Verilog and of the bitstream: other layers, or another digest than `measure.json` has."""
        yield from _other_verilog(run)
        made = _made(run)
        if made is None:
            return
        path = run.file(str(made["path"]))
        yield from differences(path.name, made["sha256"], digest_tree(path))

    def part(self, context: StageContext, result: MeasureResult) -> ReportPart:
        content = context.run.read_json("measure.json")
        measured = None if content is None else Measured.from_json(content)
        links = [] if result.not_read is None else [LinkSummary(VERILOG_LINK, left_out=result.not_read)]
        links += _summary(result.modules)
        links += [] if result.bitstream is None else LinkSummary.of_bitstream(result.bitstream)
        left_out = result.left_out if context.config[MeasureConfig].asks else None
        shown = {
            "measured": measured,
            "counts": tuple(counts_of_run(context.run.path)),
            "counted_elsewhere": _elsewhere(measured, context.config),
        }
        return ReportPart(shown, verilog_checks(measured), links, left_out)

    def needs(self) -> Iterator[Row]:
        yield package("measure", "da4ml", "Verilog with fewer adders", "rtl")
        yield package("measure", "mtkahypar", "floorplans for place and route", "rtl")
        yield simulator("measure", "simulation of the Verilog, with g++", "rtl")
        yield from (open_tool("measure", tool) for tool in OPEN_TOOLS)
        yield loader("measure")
        yield package("measure", "pyserial", "asking a network on a board", "boards")


STAGE = MeasureStage()
