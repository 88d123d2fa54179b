"""The command line: thin. Each command reads its arguments, calls one function, and prints."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fpgaprune.commands import selecting
from fpgaprune.commands.options import AsJson, Quiet
from fpgaprune.errors import CertificateError, ConfigError, ExportError, FpgaPruneError, HlsError, ToolError
from fpgaprune.terminal import Cell, Watcher, print_json, show_table

app = typer.Typer(
    name="fpgaprune",
    help="Prune a trained Keras network kernel by kernel, prove it, and price it for a named FPGA.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# A promise that was not kept ends with 1; what a user can mend in what he gave, with 2.
_BROKEN_PROMISES = (CertificateError, ExportError, HlsError, ToolError)


def main() -> None:
    """The `fpgaprune` command: errors are one line, exit status 2 for bad input and 1 for a broken promise."""
    # A request to end must reach the tools that were started: as an exception it does.
    signal.signal(signal.SIGTERM, lambda signum, _: sys.exit(128 + signum))
    try:
        app()
    except FpgaPruneError as error:
        _print_problem("error", str(error))
        sys.exit(1 if isinstance(error, _BROKEN_PROMISES) else 2)


@app.command()
def run(
    flow: Annotated[
        Path | None, typer.Argument(metavar="[FLOW.toml]", help="The flow; built-in digits if left out.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory; runs/NAME if left out.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a flow: train, select, finetune, certify, remove, export, hls, measure, estimate, report.

    Stages whose inputs and settings are unchanged are skipped. Exit status 1 where a check of the report fails.
    """
    from fpgaprune.flow.config import read_config
    from fpgaprune.flow.runner import run_flow

    config = read_config(flow)
    folder = out or Path("runs") / config.name
    with Watcher(quiet=quiet or as_json) as watcher:
        finished = run_flow(config, folder, watcher)
    report = json.loads(finished.file("report.json").read_text())
    if as_json:
        print_json({"run": str(folder), "report": report})
    elif not quiet:
        _print_outcome(folder, finished.manifest["stages"])
    failed = [check for check in report["checks"] if check["holds"] is False]
    for check in failed:
        wanted = f"{'at least' if check['at_least'] else 'at most'} {check['limit']:g}"
        _print_problem("check fails", f"{check['name']}: {check['quantity']} {check['measured']:.4g}, wanted {wanted}")
    if failed:
        raise typer.Exit(1)


@app.command()
def verify(
    run_dir: Annotated[Path, typer.Argument(help="A run directory.")], quiet: Quiet = False, as_json: AsJson = False
) -> None:
    """Check a run's certificate again from its files alone; exit status 1 on any violation."""
    from fpgaprune.flow.verify import verify_run

    links, problems = verify_run(run_dir)
    if as_json:
        print_json({"ok": not problems, "problems": problems, "links": [link.to_json() for link in links]})
    elif not quiet:
        show_table(
            ("link", "weights", "locked elements", "violations"),
            [(link.link, len(link.weights), link.locked, link.violations) for link in links],
        )
        if not problems:
            Console().print("[green]every locked element is exactly zero[/]")
    for problem in problems:
        _print_problem("violation", problem)
    if problems:
        raise typer.Exit(1)


@app.command()
def inspect(
    model: Annotated[Path, typer.Argument(help="A .keras file.")],
    out: Annotated[Path | None, typer.Option(help="Folder for one heat map per convolution.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """List layers, shapes and parameters; draw each convolution's kernel norms as PNG."""
    from fpgaprune.flow.inspection import inspect_model

    found = inspect_model(model, out or model.parent / f"{model.stem}_kernels")
    if as_json:
        print_json(found)
    elif not quiet:
        show_table(
            ("layer", "class", "output", "parameters", "zeros", "kernels", "zero kernels"),
            [_layer_row(layer) for layer in found["layers"]],
        )
        for path in found["heat_maps"]:
            Console().print(f"heat map: {path}", soft_wrap=True)


app.command("select")(selecting.select)
app.command("sensitivity")(selecting.sensitivity)
app.command("import-tfmot")(selecting.import_tfmot)


@app.command()
def estimate(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN_DIR|DESIGN|PROJECT]", help="A run directory, a design.json, an hls4ml project."),
    ] = None,
    part: Annotated[str | None, typer.Option(help="Part or order number; the design's own if left out.")] = None,
    designs: Annotated[Path | None, typer.Option(help="Price rows of counts, one JSON object a line.")] = None,
    coefficients: Annotated[
        Path | None, typer.Option("--calibration", help="Coefficients that fpgaprune calibrate wrote.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Price a design for a part: resources, latency, interval, and whether it fits."""
    if (source is None) == (designs is None):
        raise ConfigError("estimate takes either one run directory, design or project, or --designs FILE.jsonl")
    from fpgaprune.estimate.coefficients import read_own_calibration

    calibrated = None if coefficients is None else read_own_calibration(coefficients)
    if designs is not None:
        _print_predictions(designs, calibrated)
        return
    from fpgaprune.flow.pricing import price

    figures = price(Path(str(source)), part, calibrated)
    if as_json:
        print_json(figures)
    else:
        _print_estimate(figures)


@app.command()
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
    timeout: Annotated[float, typer.Option(help="Most seconds for each run of a tool.")] = 900.0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure a run's network as Verilog with open tools: resources by layer, and the clock of an ECP5.

    The report in the run directory shows it too. What was measured before and is unchanged is not done again.
    """
    from fpgaprune.flow.measuring import measured_tables, settings_of
    from fpgaprune.flow.runner import measure_run

    settings = settings_of(run_dir, tuple(family or ()), seeds, device, board, timeout)
    with Watcher(quiet=quiet or as_json) as watcher:
        run = measure_run(run_dir, settings, watcher)
    found = json.loads(run.file("measure.json").read_text())
    if as_json:
        print_json(found)
    elif not quiet:
        for title, headers, rows in measured_tables(found):
            show_table(headers, rows, title=title)
        if found["bitstream"] is not None:
            Console().print(f"bitstream   {run_dir / found['bitstream']['path']}", highlight=False, soft_wrap=True)


@app.command()
def compare(
    source: Annotated[
        list[Path], typer.Argument(metavar="RUN_DIR|PROJECT...", help="Folders with designs and vendor reports.")
    ],
    as_json: AsJson = False,
) -> None:
    """Put estimates beside vendor reports, stage by stage, with ratios predicted to actual."""
    from fpgaprune.flow.comparing import compare_folders, comparison_table

    found = compare_folders(source)
    if as_json:
        print_json(found.to_json())
        return
    show_table(*comparison_table(found))
    for note in found.notes:
        Console().print(note, highlight=False, markup=False)


@app.command()
def calibrate(
    source: Annotated[
        list[Path], typer.Argument(metavar="RUN_DIR|PROJECT...", help="Folders with designs and vendor reports.")
    ],
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
    Console().print(f"{len(found['moved'])} coefficients moved; {out}", highlight=False, soft_wrap=True)


@app.command()
def parts(as_json: AsJson = False) -> None:
    """List the known FPGA parts and their capacities."""
    from dataclasses import asdict

    from fpgaprune.target import list_parts

    if as_json:
        print_json([asdict(part) for part in list_parts()])
        return
    show_table(
        ("part", "family", "LUT", "FF", "DSP", "BRAM18", "URAM"),
        [(part.name, part.family, part.lut, part.ff, part.dsp, part.bram18, part.uram) for part in list_parts()],
    )


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say which tools were found and which stages they unlock."""
    from fpgaprune.flow.doctor import examine

    found = examine()
    if as_json:
        print_json(found)
        return
    show_table(("tool", "found", "unlocks"), [(r["tool"], r["found"] or "not found", r["unlocks"]) for r in found])


def _print_outcome(folder: Path, stages: dict[str, Any]) -> None:
    console = Console()
    before, after = (stages[name]["results"]["accuracy"] for name in ("train", "remove"))
    console.print(f"accuracy    {before:.2%} before, {after:.2%} after", highlight=False)
    for name in ("emulation", "simulation"):
        found = stages["hls"]["results"][name]
        label = "hardware" if name == "emulation" else "compiled"
        if "left_out" in found:
            console.print(f"{label:<11} left out: {found['left_out']}", highlight=False, soft_wrap=True)
        else:
            console.print(
                f"{label:<11} {found['accuracy']:.2%}, the class Keras gives on {found['agreement']:.2%} of "
                f"{found['samples']} samples",
                highlight=False,
            )
    for side in ("before", "after"):
        figure = stages["estimate"]["results"][side]
        fits = {True: "fits", False: "does not fit", None: "cannot be judged"}[figure["fits"]]
        console.print(f"{side:<11} {fits}, {figure['latency_cycles']:,} cycles", highlight=False)
    console.print(f"report      {folder / 'report.html'}", highlight=False, soft_wrap=True)


def _print_predictions(designs: Path, calibrated: Any) -> None:
    from fpgaprune.estimate.rows import estimate_designs_file

    predictions, refusals = estimate_designs_file(designs, calibrated)
    for prediction in predictions:
        sys.stdout.write(json.dumps(prediction) + "\n")
    for refusal in refusals:
        _print_problem("refused", f"line {refusal.line}: {refusal.reason}")
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
        Console().print(f"{fits[figure['fits']]}; figures: analytic estimate of logic synthesis", highlight=False)


def _estimate_row(name: str, layer: dict[str, Any]) -> tuple[Cell, ...]:
    kinds = layer.get("multiplications")
    left = None if kinds is None else kinds["total"] - kinds["zero"]
    resources = (layer["synth"][resource]["value"] for resource in ("lut", "ff", "dsp", "bram18"))
    return (name, left, *resources, layer["latency_cycles"])


def _layer_row(layer: dict[str, Any]) -> tuple[Cell, ...]:
    kernels = layer["kernels"] or {"total": None, "zero": None}
    shape = " x ".join("?" if size is None else str(size) for size in layer["output_shape"])
    return (
        layer["name"],
        layer["class"],
        shape,
        layer["parameters"],
        layer["zeros"],
        kernels["total"],
        kernels["zero"],
    )


def _print_problem(kind: str, text: str) -> None:
    # Square brackets of slice notation are no markup.
    plain = text.replace("[", r"\[")
    Console(stderr=True).print(f"[bold red]{kind}:[/] {plain}", soft_wrap=True, highlight=False)
