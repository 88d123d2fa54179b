"""`build_for_board`: the bitstream of a run for a board, in the first layout that the tools bring to an end."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpgaprune.design import Design, Input
from fpgaprune.errors import ConfigError, RtlError, TargetError, ToolError, ToolExitError, ToolTimeoutError
from fpgaprune.estimate import verilog_price
from fpgaprune.fabric import (
    Bitstream,
    bitstream_ending,
    board_pll,
    core_share,
    crowding,
    family_of,
    find_board_router,
    find_board_tools,
    make_bitstream,
    priced_as,
    processor_slowness,
    waiting_for_cores,
)
from fpgaprune.flow.run import Progress, RunDirectory, layout_was_asked_for, measured_fields, verilog_of
from fpgaprune.layout import (
    DesignLayout,
    bitstream_seconds_on,
    board_design,
    larger_board,
    layouts_for_board,
    named_on,
)
from fpgaprune.measure import VerilogPrice
from fpgaprune.processes import countdown
from fpgaprune.report import NO_BREAK, seconds_text
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import find_part

# Minutes of processor time that the tools may take for all layouts together, unless said.
DEADLINE_MINUTES = 5.0
# Of the first half of the deadline's time, a layout gets this share of what is left; later ones get all of it.
_FIRST = 0.6
_NO_PLACE = "place and route found no place for all of it"


@dataclass(frozen=True)
class BoardBuild:
    """Bitstream of a run for a board, with the layout that was taken.

    Attributes:
        design: the network, as the board takes its samples.
        project: the Verilog of it.
        bitstream: the bitstream made of it.
        layout: why the Verilog is laid out as it is, as a sentence.
        fields: fields of `VerilogLayout` that make it.
        price: the estimate of this layout.
    """

    design: Design
    project: VerilogProject
    bitstream: Bitstream
    layout: str
    fields: Mapping[str, Any]
    price: VerilogPrice


@dataclass(frozen=True)
class _Layout:
    name: str
    why: str
    design: Design
    fields: dict[str, Any]
    seconds: tuple[float, float] | None = None
    placements: float = 1.0
    was_measured: bool = False


def build_for_board(
    run: RunDirectory,
    design: Design,
    board: str,
    folder: Path,
    *,
    interval: int | None,
    minutes: float,
    progress: Progress,
) -> BoardBuild:
    """Write a bitstream into `folder`: of the quickest layout, or of the next smaller one that the tools finish.

    Args:
        run: a run that was measured with an interval or a part keeps that layout if the tools finish it.
        design: what is to be computed.
        board: a board of `hw/boards`.
        folder: gets the bitstream, named after the project.
        interval: cycles for each sample; chosen unless given. With it, there is no second layout.
        minutes: most minutes of synthesis, place and route, for all layouts together: of processor time, and three
            times as many by the clock.
        progress: is told of each layout, of what the tools do, and why a layout was given up.

    Raises:
        ConfigError: `minutes` is not above 0.
        ToolTimeoutError, ToolError, TargetError: no layout was finished; the message says what was tried, why each one
            was given up, and what to do.
        RtlError: as for `make_bitstream`.
    """
    if not minutes > 0:
        raise ConfigError(f"the deadline is {minutes:g} minutes; wanted a number above 0")
    inputs = sum(isinstance(layer.operation, Input) for layer in design.layers)
    if inputs != 1 or len(design.outputs) != 1:
        raise TargetError(
            f"{design.name} has {inputs} inputs and {len(design.outputs)} outputs; a board's serial line "
            f"carries one of each: 'fpgaprune measure {run.path}' writes its Verilog, with a stream for each, to "
            f"{run.path / 'rtl'}"
        )
    find_board_tools(board)  # Raises before minutes are spent.
    layouts = _layouts(run, design, board, interval, minutes)
    whole = countdown(60 * minutes)
    progress.stage("layout", "running")
    given_up: list[str] = []
    laid: _Layout | None = next(layouts)
    while laid is not None:
        following = next(layouts, None)
        # The next layout, which is smaller, has to come to an end too.
        first = following is not None and whole() > 30 * minutes
        given = _FIRST * whole() if first else whole()
        slow = processor_slowness()
        progress.stage("layout", "done", f"{laid.why}{_wait(laid, slow, minutes)}")
        expected = 0.0 if laid.seconds is None else slow * laid.seconds[0]
        # The layout of the measurement was asked for, so it is tried whatever is expected of it.
        skips = following is not None and not laid.was_measured
        if following is not None and skips and expected > given:
            given_up.append(f"{laid.name}: its bitstream takes about {_words(expected)}, and it has {_words(given)}")
            laid = _next(following, given_up, progress)
            continue
        progress.stage("export", "running")
        progress.step(0, 0, "Verilog")
        project = verilog_of(run, laid.design, **laid.fields)
        output = folder / f"{project.name}{bitstream_ending(board)}"

        def tell(done: int, total: int, note: str) -> None:
            progress.step(done, total, f"{note}; {minutes:g} min of processor time at most")

        left, failed = countdown(given), "synthesis failed"
        tools: dict[str, Any] = {"cache": run.file("synth"), "on_step": tell}
        try:
            full = crowding(project, board, timeout_s=left(), **tools)
            failed = _NO_PLACE
            if not full or not skips:
                made = make_bitstream(project, board, output, timeout_s=left(), advise=False, **tools)
                fields = laid.fields or measured_fields(run) or {"interval": 0}
                family = str(family_of(find_part(made.device)))
                price = verilog_price(laid.design, priced_as(family), **fields)
                made = with_faster_clock(made, price.latency_cycles, project, board, whole, tools, progress)
                return BoardBuild(laid.design, project, made, laid.why, fields, price)
            said = f"place and route may take long, for synthesis counts {full}"
        except ToolTimeoutError as error:
            last: ToolError | TargetError = error
            time = f"{_FIRST * minutes:g} min" if first else f"{'the rest of ' * bool(given_up)}{minutes:g} min"
            said = (
                f"not synthesised, placed and routed within {time} of processor time, or three times that by the clock"
            )
        except ToolExitError as error:
            last, said = error, f"{failed} ({error})"
        except TargetError as error:
            last, said = error, str(error).split(";")[0]
        given_up.append(f"{laid.name}: {said}")
        laid = None if following is None or whole() <= 1 else _next(following, given_up, progress)
    raise _unfinished(last, design, board, given_up, minutes)


def _layouts(run: RunDirectory, design: Design, board: str, interval: int | None, minutes: float) -> Iterator[_Layout]:
    measured, fed = None, board_design(design)
    if interval is None and layout_was_asked_for(run):
        measured = _measured_layout(run, design, board)
        seconds, placements = bitstream_seconds_on(measured, board), _placements(design, measured.latency_cycles, board)
        name, why = "the layout of the measurement", "as the run was measured"
        yield _Layout(name, why, design, {}, seconds, placements, was_measured=True)
    for laid, why in layouts_for_board(fed, board, interval, minutes, before=measured):
        # The Verilog of a measurement for which no layout was asked is the usual one, for the network's own samples.
        fields = dict(laid.fields) or ({} if fed is design and measured is None else {"interval": 0})
        seconds, placements = bitstream_seconds_on(laid, board), _placements(fed, laid.latency_cycles, board)
        yield _Layout(named_on(laid, board), why, fed, fields, seconds, placements)


def _measured_layout(run: RunDirectory, design: Design, board: str) -> DesignLayout:
    """Estimate the layout that the run was measured in on the FPGA of `board`."""
    place, router, _ = find_board_router(board)
    fields = measured_fields(run) or {}
    price = verilog_price(design, priced_as(router.family), **fields)
    return DesignLayout.of_verilog(price, find_part(place.device), fields=fields)


def _next(following: _Layout, given_up: list[str], progress: Progress) -> _Layout:
    """Say why the last layout was given up, and go to the smaller one."""
    progress.stage("export", "warning", f"{given_up[-1]}; next, smaller: {following.name}")
    progress.stage("layout", "running")
    return following


def _wait(laid: _Layout, slow: float, minutes: float) -> str:
    """Return how long the export is expected to take, at the speed that this machine has now."""
    if laid.seconds is None:
        return f"; its tools may take {minutes:g} min"
    made, read = laid.seconds
    late = f", and its tools may take {minutes:g} min" if slow * made > 60 * minutes else ""
    return f"; its export takes about {_words(slow * waiting_for_cores() * (laid.placements * made + read))}{late}"


def _words(seconds: float) -> str:
    return seconds_text(max(1, round(seconds))).replace(".0", "").replace(NO_BREAK, " ")


def _unfinished(
    last: ToolError | TargetError, design: Design, board: str, given_up: list[str], minutes: float
) -> ToolError | TargetError:
    """Return the error of a design of which no layout was finished, as one line: what was tried, and what to do."""
    late = isinstance(last, ToolTimeoutError)
    kind = TargetError if isinstance(last, TargetError) else ToolTimeoutError if late else ToolError
    # A network that had too little time may well have room: a larger FPGA would not be the answer.
    other = (
        f", or give it more time with --deadline-minutes {3 * minutes:g}"
        if late
        else f"; {larger_board(board_design(design), board)}"
    )
    return kind(f"{design.name} has no bitstream for {board}: {'; '.join(given_up)}. Prune more, use fewer bits{other}")


def _placements(design: Design, latency_cycles: int, board: str) -> float:
    """Return how many times the time of a bitstream is spent: nearly twice where a faster clock is likely to pay."""
    place, router, _ = find_board_router(board)
    ends = [layer for layer in design.layers if isinstance(layer.operation, Input) or layer.name in design.outputs]
    # A beat has the values of the last axis, in whole bytes.
    sizes = [
        math.prod(layer.output_shape[:-1]) * math.ceil(layer.output_shape[-1] * layer.types["result"].width / 8)
        for layer in ends
    ]
    pays = core_share(sum(sizes), place.baud, latency_cycles, place.clock_mhz) >= _SHARE
    return _TWICE if pays and router.devices.pll is not None else 1.0


# A faster clock is worth another place and route if the network takes this share of a sample's time, and if the clock
# becomes so many times as fast.
_SHARE, _FASTER = 0.3, 1.3
# The network is not synthesised again for another clock.
_TWICE = 1.8
# The other place and route may reach less: the clock asked for is this much of what was reached.
_REACHED = 0.9


def with_faster_clock(
    made: Bitstream,
    latency_cycles: int,
    project: VerilogProject,
    board: str | os.PathLike[str],
    left: Callable[[], float],
    tools: dict[str, Any],
    progress: Progress,
) -> Bitstream:
    """Return `made`, or the same design with a faster clock if that pays and the tools bring it to an end in time.

    Args:
        made: the bitstream at the clock of the board's oscillator; its file is overwritten only by a faster one.
        latency_cycles: cycles of a sample in the network.
        project: the Verilog.
        board: a board of `hw/boards`.
        left: the seconds that are left.
        tools: further arguments of `make_bitstream`.
        progress: is told which clock is tried, and why it was given up.
    """
    if made.core_share(latency_cycles) < _SHARE:
        return made
    pll = board_pll(board, _REACHED * made.fmax_mhz)
    if pll is None or pll.clock_mhz < _FASTER * made.clock_mhz:
        return made
    clocks = f"{pll.clock_mhz:g} MHz from the PLL instead of {made.clock_mhz:g} MHz"
    progress.step(0, 0, clocks)
    try:
        return make_bitstream(project, board, made.path, timeout_s=left(), advise=False, pll=pll, **tools)
    except (ToolError, TargetError, RtlError) as error:
        progress.stage("export", "warning", f"no clock of {clocks}: {error}")
        return made
