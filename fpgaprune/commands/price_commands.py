"""`fpgaprune estimate`, `measure`, `compare`, `calibrate` and `parts`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fpgaprune.commands.advice_text import print_advice
from fpgaprune.commands.checks import require_checks
from fpgaprune.commands.common_options import AsJson, ClockNs, Quiet
from fpgaprune.errors import ConfigError
from fpgaprune.terminal import Cell, print_json, print_problem, show_table
from fpgaprune.watcher import Watcher

Folders = Annotated[
    list[Path], typer.Argument(metavar="RUN_DIR|PROJECT...", help="Folders with designs and vendor reports.")
]


def estimate(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN_DIR|DESIGN|PROJECT]", help="A run directory, a design.json, an hls4ml project."),
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="Part, order number, board or FILE.toml:PART; the design's own if left out.")
    ] = None,
    clock_ns: ClockNs = None,
    designs: Annotated[Path | None, typer.Option(help="Price rows of counts, one JSON object a line.")] = None,
    coefficients: Annotated[
        Path | None, typer.Option("--calibration", help="Coefficients that fpgaprune calibrate wrote.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Price a design for a part: resources, latency, interval, and whether it fits."""
    if designs is not None and (part is not None or clock_ns is not None):
        raise ConfigError("--designs prices each row for its own part and clock; leave out --part and --clock-ns")
    if (source is None) == (designs is None):
        raise ConfigError("estimate takes either one run directory, design or project, or --designs FILE.jsonl")
    from fpgaprune.estimate.coefficients import read_own_calibration

    calibrated = None if coefficients is None else read_own_calibration(coefficients)
    if designs is not None:
        _print_predictions(designs, calibrated)
        return
    from fpgaprune.advice import advise
    from fpgaprune.flow.file_kinds import require_design_source
    from fpgaprune.flow.pricing import load_designs, price, target_of

    require_design_source(Path(str(source)))
    figures = price(Path(str(source)), part, calibrated, clock_ns)
    designs_read = load_designs(Path(str(source)))
    # Of a run, what the network is now: after pruning, once that is known.
    side, design = list(designs_read.items())[-1]
    trained = designs_read.get("before") if side == "after" else None
    target = target_of(design, part, clock_ns)
    advice = advise(design, target, trained=trained, calibrated=calibrated)
    if as_json:
        print_json({**figures, "advice": advice.to_json()})
    else:
        _print_estimate(figures)
        print_advice(advice)


def measure(
    run_dir: Annotated[Path, typer.Argument(help="A run directory.")],
    family: Annotated[
        list[str] | None, typer.Option(help="xc7, xcup, ecp5, gowin or ice40; the part's own if left out.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of place and route on an ECP5.")] = 0,
    device: Annotated[
        str | None, typer.Option(help="The ECP5; the smallest that holds the network if left out.")
    ] = None,
    board: Annotated[str | None, typer.Option(help="Write a bitstream: ulx3s, or a TOML file like hw/boards.")] = None,
    target_mhz: Annotated[
        float | None, typer.Option(help="Clock that place and route aims at; the network's own if left out.")
    ] = None,
    interval: Annotated[
        int, typer.Option(help="Clocks that an image may take: the more, the smaller; as its pixels do if left out.")
    ] = 0,
    simulate: Annotated[int, typer.Option(help="Held-out samples that the Verilog is simulated on; 0 for none.")] = 360,
    timeout: Annotated[float, typer.Option(help="Most seconds for each run of a tool.")] = 3600.0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure a run's network as Verilog with open tools: its bits, clocks and resources, and the clock of an ECP5.

    A run whose flow takes its data from package.module:function runs that code: one from somebody else is a program.
    The report in the run directory shows it too. What was measured before and is unchanged is not done again. Exit
    status 1 where a check of the report fails, as that of the Verilog's bits against the emulation's.
    """
    from fpgaprune.flow.file_kinds import require_run
    from fpgaprune.flow.measured_run import measure_run, settings_of
    from fpgaprune.flow.measuring import measured_tables

    require_run(run_dir)
    asked = {"seeds": seeds, "device": device, "board": board, "target_mhz": target_mhz, "interval": interval}
    settings = settings_of(run_dir, tuple(family or ()), **asked, simulate=simulate, timeout_s=timeout)
    with Watcher(quiet=quiet or as_json) as watcher:
        run = measure_run(run_dir, settings, watcher)
    found = json.loads(run.file("measure.json").read_text())
    if as_json:
        print_json(found)
    elif not quiet:
        for title, headers, rows in measured_tables(found):
            show_table(headers, rows, title=title)
        if "left_out" in found["simulation"]:
            reason = found["simulation"]["left_out"]
            Console().print(f"simulation  left out: {reason}", highlight=False, markup=False, soft_wrap=True)
        if found["bitstream"] is not None:
            path = run_dir / found["bitstream"]["path"]
            Console().print(f"bitstream   {path}", highlight=False, markup=False, soft_wrap=True)
        Console().print(f"time        {watcher.where_the_time_went()}", highlight=False, soft_wrap=True)
    require_checks(json.loads(run.file("report.json").read_text()))


def compare(
    source: Folders,
    as_json: AsJson = False,
) -> None:
    """Put estimates beside vendor reports, stage by stage, with ratios predicted to actual."""
    from fpgaprune.flow.comparing import compare_folders, comparison_tables

    found = compare_folders(source)
    if as_json:
        print_json(found.to_json())
        return
    for title, headers, rows in comparison_tables(found):
        show_table(headers, rows, title=title)
    for note in found.notes:
        Console().print(note, highlight=False, markup=False)


def calibrate(
    source: Folders,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("calibration.toml"),
    as_json: AsJson = False,
) -> None:
    """Fit the estimates to your own vendor reports; estimate --calibration uses the result."""
    from fpgaprune.flow.calibrating import calibrate_folders

    found = calibrate_folders(source, out)
    if as_json:
        print_json(found)
        return
    rows = [
        (figure, *(None if by[way] is None else f"{by[way]:.1%}" for way in ("before", "after", "left_out")))
        for figure, by in found["errors"].items()
    ]
    title = f"median error on {len(found['designs'])} designs"
    show_table(("figure", "as shipped", "calibrated", "each left out"), rows, title=title)
    Console().print(f"{len(found['moved'])} coefficients moved; {out}", highlight=False, markup=False, soft_wrap=True)
    for note in found["notes"]:
        Console().print(note, highlight=False, markup=False, soft_wrap=True)


def parts(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PART]...", help="Names, order numbers, boards, or files of your own; all parts if left out."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the known FPGA parts with their capacities, and the boards whose name stands for their part.

    For parts and boards that are named, the source of the figures too.
    """
    from dataclasses import asdict

    from fpgaprune.target import find_part, list_boards, list_parts, named_board

    found = [find_part(name) for name in names] if names else list_parts()
    boards = [board for board in map(named_board, names) if board is not None] if names else list_boards()
    if as_json:
        homes = {board.name: find_part(board.part).name for board in list_boards()}
        print_json([{**asdict(p), "boards": [b for b, home in homes.items() if home == p.name]} for p in found])
        return
    show_table(
        ("part", "family", "LUT", "FF", "DSP", "BRAM18", "URAM"),
        [(part.name, part.family, part.lut, part.ff, part.dsp, part.bram18, part.uram) for part in found],
    )
    console = Console()
    if boards and not names:
        console.print()
        show_table(("board", "its part"), [(board.name, board.part) for board in boards])
    for part in found if names else ():
        source = f"{part.name}: {part.source} ({part.date}){'; ' + part.note if part.note else ''}"
        console.print(source, highlight=False, markup=False, soft_wrap=True)
    for board in boards if names else ():
        console.print(f"{board.name}: {board.part}; {board.source}", highlight=False, markup=False, soft_wrap=True)


def _print_predictions(designs: Path, calibrated: Any) -> None:
    from fpgaprune.estimate.rows import estimate_designs_file

    predictions, refusals = estimate_designs_file(designs, calibrated)
    for prediction in predictions:
        sys.stdout.write(json.dumps(prediction) + "\n")
    for refusal in refusals:
        print_problem("refused", f"line {refusal.line}: {refusal.reason}")
    if refusals:
        raise typer.Exit(1)


def _print_estimate(figures: dict[str, Any]) -> None:
    for side, figure in figures.items():
        rows = [_estimate_row(layer["name"], layer) for layer in figure["layers"]]
        total = {"synth": figure["total"]["synth"], "latency_cycles": figure["latency_cycles"]}
        headers = ("layer", "mult", "LUT", "FF", "DSP", "BRAM18", "cycles")
        show_table(headers, [*rows, _estimate_row("total", total)], title=side)
        part = figure["target"]["part"]
        fits = {True: f"fits {part}", False: f"does not fit {part}", None: f"cannot be judged against {part}"}
        upper = (
            ", its upper end too" if figure["fits_upper"] else ", but its upper end does not" if figure["fits"] else ""
        )
        said = f"{fits[figure['fits']]}{upper}; figures: analytic estimate of logic synthesis"
        Console().print(said, highlight=False)


def _estimate_row(name: str, layer: dict[str, Any]) -> tuple[Cell, ...]:
    kinds = layer.get("multiplications")
    left = None if kinds is None else kinds["total"] - kinds["zero"]
    resources = (layer["synth"][resource]["value"] for resource in ("lut", "ff", "dsp", "bram18"))
    return (name, left, *resources, layer["latency_cycles"])
