"""`fpgaprune estimate`, `measure`, `compare`, `calibrate` and `parts`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from fpgaprune.commands.board_commands import print_bitstream
from fpgaprune.commands.checks import end_by_verdict, print_verdicts
from fpgaprune.commands.common_options import SERIAL_BOARDS, AsJson, Quiet, one_of
from fpgaprune.commands.next_step import print_next, receiver_of
from fpgaprune.commands.printed_tables import print_advice, print_counts, print_table
from fpgaprune.commands.terminal import Cell, print_json, print_line, print_problem, show_table
from fpgaprune.commands.watcher import Watcher
from fpgaprune.errors import ConfigError
from fpgaprune.files import shipped_names

if TYPE_CHECKING:
    from fpgaprune.measure import Estimate, LayerEstimate

_T = TypeVar("_T")
# The two networks of a run, in the order in which they are shown: the pruned one becomes hardware.
_TITLES = {"after": "the pruned network", "before": "before: the trained network, nothing locked"}
Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN_DIR|PROJECT...", help="Run folders, or hls4ml projects with reports of a vendor's tool."
    ),
]


def estimate(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN_DIR|DESIGN|PROJECT]", help="A run folder, a design.json or an hls4ml project."),
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="Part, order number, board or FILE.toml:PART; the design's own if left out.")
    ] = None,
    clock_ns: Annotated[float | None, typer.Option(help="Clock period in ns; the design's own if left out.")] = None,
    designs: Annotated[
        Path | None, typer.Option(help="A file of designs that are known by counts only, one JSON object on each line.")
    ] = None,
    coefficients: Annotated[
        Path | None, typer.Option("--calibration", help="The file that fpgaprune calibrate wrote.")
    ] = None,
    verilog: Annotated[
        bool,
        typer.Option(
            "--verilog",
            help="Estimate fpgaprune's own Verilog, as open synthesis will count it; so is a design made for it.",
        ),
    ] = False,
    family: Annotated[
        str | None, typer.Option(help="With --verilog: xc7, xcup, ecp5, nexus or gowin; that of the part if left out.")
    ] = None,
    interval: Annotated[
        int | None,
        typer.Option(
            help="With --verilog: cycles for each sample; the number of pixels if 0. If left out: the layout of the "
            "run's answer, as measured, as asked for, or as chosen for the part."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate what a design takes on a part: resources, latency, interval, and whether it fits."""
    from fpgaprune.backends import VERILOG
    from fpgaprune.estimate import read_own_calibration
    from fpgaprune.flow import advice_on, kind_of, load_designs, price, require_kind
    from fpgaprune.layout import FLOW

    if source is not None:
        require_kind(source, "design")
    if source is not None and designs is None and not verilog:
        verilog = all(design.backend == VERILOG for design in load_designs(source).values())
    if verilog:
        if source is None or designs is not None or coefficients is not None or clock_ns is not None:
            raise ConfigError(
                "--verilog takes one run folder, design or project, and no clock; leave out the other options"
            )
        _print_verilog(source, part, family, interval, as_json)
        return
    if family is not None or interval is not None:
        raise ConfigError("--family and --interval belong to --verilog; give it too")

    if designs is not None and (part is not None or clock_ns is not None):
        raise ConfigError("--designs prices each row for its own part and clock; leave out --part and --clock-ns")
    calibrated = None if coefficients is None else read_own_calibration(coefficients)
    if source is None and designs is not None:
        _print_predictions(designs, calibrated)
        return
    if source is None or designs is not None:
        raise ConfigError("estimate takes either one run folder, design or project, or --designs FILE.jsonl")
    priced = price(source, part, calibrated, clock_ns)
    advice = advice_on(source, part, calibrated, clock_ns)
    if as_json:
        figures = {side: made.to_json() for side, made in priced.items()}
        print_json({**figures, "advice": advice.to_json()})
    else:
        _print_estimate(priced)
        print_advice(advice)
        if kind_of(source) == "run":
            fits = advice.needed and any(one.place == FLOW for one in advice.suggestions)
            print_next("apply", source, "1") if fits else print_next("verify", source)


def measure(
    run_dir: Annotated[Path, typer.Argument(help="A run folder.")],
    family: Annotated[
        list[str] | None,
        typer.Option(help=f"{one_of(shipped_names('synth', '.toml'))}; that of the part if left out. May be repeated."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="Number of runs of place and route on an ECP5, each with its own seed.")
    ] = 0,
    device: Annotated[
        str | None, typer.Option(help="The ECP5 device; if left out, the smallest that holds the network.")
    ] = None,
    board: Annotated[
        str | None, typer.Option(help=f"Write a bitstream for {one_of((*SERIAL_BOARDS, 'a TOML file like theirs'))}.")
    ] = None,
    target_mhz: Annotated[
        float | None, typer.Option(help="Clock that place and route aims at, in MHz; that of the flow if left out.")
    ] = None,
    interval: Annotated[
        int | None,
        typer.Option(help="Cycles for each sample. More cycles give a smaller design. If 0, the number of pixels."),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            help="Choose a layout for each layer so that the network fits this part with the fewest cycles. Without "
            "it, --family and --interval the layout is that of the run's answer."
        ),
    ] = None,
    simulate: Annotated[int, typer.Option(help="Number of held-out samples to simulate; 0 for none.")] = 360,
    timeout: Annotated[float, typer.Option(help="Time limit for each run of a tool, in seconds.")] = 3600.0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure the network of a run with open tools: write Verilog, simulate it, synthesise it, place and route it.

    It measures cycles and resources, and with --seeds the clock on an ECP5. The report in the run folder then shows
    the result, and the counted figures lead its verdict. A measurement is not repeated if nothing changed. The exit
    status is 1 if a check of the report fails, for example if the Verilog gives other bits than the emulation, 3 if
    this Verilog does not fit, 4 if both. If the flow file of the run names
    package.module:function, this command runs that code, so check a flow file that is not yours.
    """
    from fpgaprune.flow import counts_of_run, measure_run, require_kind, settings_of
    from fpgaprune.measure import Measured
    from fpgaprune.report import measured_tables

    require_kind(run_dir, "run")
    asked: dict[str, Any] = {"seeds": seeds, "device": device, "board": board, "target_mhz": target_mhz}
    laid: dict[str, Any] = {"interval": interval, "part": part}
    settings = settings_of(run_dir, tuple(family or ()), **asked, **laid, simulate=simulate, timeout_s=timeout)
    with Watcher(quiet=quiet or as_json) as watcher:
        run = measure_run(run_dir, settings, watcher)
    found, report = json.loads(run.file("measure.json").read_text()), run.read_report()
    if as_json:
        print_json(found)
    elif not quiet:
        print_verdicts(report, "measured")
        measured = Measured.from_json(found)
        for table in measured_tables(measured):
            print_table(table)
        for counts in counts_of_run(run_dir):
            print_counts(counts)
        if reason := measured.simulation.left_out:
            print_line(f"simulation  left out: {reason}")
        if measured.bitstream is not None:
            print_bitstream(run_dir, measured.bitstream)
        print_line(f"time        {watcher.where_the_time_went()}")
        print_next("export", run_dir, "--for", receiver_of(report["target"]))
    end_by_verdict(report, about="measured")


def compare(source: Folders, as_json: AsJson = False) -> None:
    """Compare runs with one another, and estimates with vendor reports of the same stage.

    Two runs or more are shown side by side: the metric, the locks, LUT, FF, DSP and BRAM of each stage, latency and
    interval, and the settings that differ. Where a vendor's tool left reports, the ratios estimate / report follow.
    """
    from fpgaprune.flow import compare_folders, compare_runs, comparison_tables, has_reports, kind_of

    together = len(source) > 1 and all(kind_of(one) == "run" for one in source)
    runs = compare_runs(source) if together else None
    reported = [one for one in source if has_reports(one)] if together else source
    found = compare_folders(reported) if reported else None
    if as_json:
        reports = {} if found is None else found.to_json()
        print_json(reports if runs is None else {**reports, "runs": runs.to_json()})
        return
    if runs is not None:
        show_table(*runs.table())
    if found is None:
        print_next("verify", source[-1])
        return
    for title, headers, rows in comparison_tables(found):
        show_table(headers, rows, title=title)
    for note in found.notes:
        print_line(note)
    print_next("calibrate", *reported)


def calibrate(
    source: Folders,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("calibration.toml"),
    as_json: AsJson = False,
) -> None:
    """Fit the estimates to your own vendor reports. Use the result with estimate --calibration."""
    from fpgaprune.flow import calibrate_folders

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
    print_line(f"{len(found['moved'])} coefficients changed; written to {out}")
    for note in found["notes"]:
        print_line(note)
    print_next("estimate", source[0], "--calibration", out)


def parts(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PART]...", help="Parts, order numbers, boards or files of your own. If left out, all parts."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the known FPGA parts with their capacities, and the boards with their parts.

    If you name parts or boards, it prints the source of the figures too.
    """
    from dataclasses import asdict

    from fpgaprune.measure import LABELS
    from fpgaprune.target import CAPACITIES, find_part, list_boards, list_parts, named_board

    found = [find_part(name) for name in names] if names else list_parts()
    boards = [board for board in map(named_board, names) if board is not None] if names else list_boards()
    if as_json:
        homes = {board.name: find_part(board.part).name for board in list_boards()}
        print_json([{**asdict(p), "boards": [b for b, home in homes.items() if home == p.name]} for p in found])
        return
    show_table(
        ("part", "family", *(LABELS[name] for name in CAPACITIES)),
        [(part.name, part.family, *(getattr(part, name) for name in CAPACITIES)) for part in found],
    )
    if boards and not names:
        print_line("")
        show_table(("board", "its part"), [(board.name, board.part) for board in boards])
    for part in found if names else ():
        print_line(f"{part.name}: {part.source} ({part.date}){'; ' + part.note if part.note else ''}")
    for board in boards if names else ():
        print_line(f"{board.name}: {board.part}; {board.source}")
    named = names[0] if names else "PART"
    print_next("run", "NETWORK.keras", "--data", "DATA.npz", "--part", named, "--sparsity", "0.6")


def _print_verilog(source: Path, part: str | None, family: str | None, interval: int | None, as_json: bool) -> None:
    from fpgaprune.flow import load_designs, price_verilog
    from fpgaprune.measure import ANALYTIC_OPEN_SYNTH, LABELS, OF_VERILOG, occupancy_of
    from fpgaprune.target import find_part

    priced, designs = price_verilog(source, part, family, interval), load_designs(source)
    if as_json:
        print_json({side: made.to_json() for side, (made, _) in priced.items()})
        return
    for title, (side, made, counts) in _in_order({side: (side, *both) for side, both in priced.items()}):
        names = [name for name in OF_VERILOG if made.resources[name] is not None]
        headers = ("layer", "adders", *(LABELS[name] for name in names), "ready")
        rows: list[tuple[Cell, ...]] = [
            (
                layer.layer or "between layers",
                layer.adders,
                *(None if (count := layer.resources[name]) is None else count.value for name in names),
                layer.ready_cycles,
            )
            for layer in made.layers
        ]
        show_table(headers, rows, title=f"{title}, estimated ({ANALYTIC_OPEN_SYNTH})")
        print_counts(counts)
        order_number = part or designs[side].part
        if family is None and order_number is not None:
            print_line(occupancy_of(made.resources, find_part(order_number)).words)


def _in_order(sides: "dict[str, _T]") -> "list[tuple[str, _T]]":
    """Return the title and the entry of each of `sides`; of a run, the pruned network is first."""
    return [(_TITLES.get(side, side), sides[side]) for side in sorted(sides, key=lambda side: side == "before")]


def _print_predictions(designs: Path, calibrated: Any) -> None:
    from fpgaprune.estimate import estimate_designs_file

    predictions, refusals = estimate_designs_file(designs, calibrated)
    for prediction in predictions:
        sys.stdout.write(json.dumps(prediction) + "\n")
    for refusal in refusals:
        print_problem("refused", f"line {refusal.line}: {refusal.reason}")
    if refusals:
        raise typer.Exit(1)


def _print_estimate(priced: "dict[str, Estimate]") -> None:
    from fpgaprune.measure import ANALYTIC_SYNTH, ESTIMATED, LABELS

    def row(name: str, one: "Estimate | LayerEstimate") -> tuple[Cell, ...]:
        kinds = getattr(one, "multiplications", None)
        counts = [one.at(ANALYTIC_SYNTH).figure(resource) for resource in ESTIMATED]
        used = (None if count is None else count.value for count in counts)
        return (name, None if kinds is None else kinds.nonzero, *used, one.latency_cycles)

    headers = ("layer", "mult", *(LABELS[name] for name in ESTIMATED), "cycles")
    for title, made in _in_order(priced):
        rows = [*(row(layer.name, layer) for layer in made.layers), row("total", made)]
        show_table(headers, rows, title=title)
        part = made.target.part.name
        fits = {True: f"fits {part}", False: f"does not fit {part}", None: f"cannot be judged against {part}"}
        upper = ", also by its upper end" if made.fits_upper else ", but not by its upper end" if made.fits else ""
        print_line(f"{fits[made.fits]}{upper}; figures: analytic estimate for {ANALYTIC_SYNTH.words}")
        if not made.target.part.compiles_hls:
            maker = made.target.part.vendor
            print_line(f"no tool of {maker} builds an hls4ml project; --verilog estimates our Verilog", "yellow")
        left_out = [f"{layer.name} ({layer.kind})" for layer in made.layers if layer.at(ANALYTIC_SYNTH).unknown]
        if left_out:
            print_line(f"left out, because the estimate has no model of them: {', '.join(left_out)}")
