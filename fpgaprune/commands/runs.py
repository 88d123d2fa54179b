"""`fpgaprune run`, `apply`, `verify`, `inspect` and `doctor`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fpgaprune.commands.checks import end_by_verdict, print_verdicts
from fpgaprune.commands.common_options import (
    DATA_HELP,
    GRANULARITY_HELP,
    AsJson,
    ClockNs,
    MaxLoss,
    Quiet,
    Replace,
    Sparsity,
    parse_sparsity,
    read_max_loss,
)
from fpgaprune.commands.next_step import WITH_A_NETWORK, print_next, print_next_of_run, receiver_of
from fpgaprune.commands.printed_tables import print_advice
from fpgaprune.commands.terminal import Cell, print_json, print_line, print_problem, show_table
from fpgaprune.commands.watcher import Watcher

if TYPE_CHECKING:
    from fpgaprune.flow import RunDirectory, VerifiedBitstream
    from fpgaprune.measure import LinkCheck


def run(
    flow: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FLOW.toml|NETWORK]",
            help="A flow file, or a network (.keras, .h5, .onnx) with --data, --part and --sparsity. Without it the "
            "built-in flow runs. Options override keys of the flow file.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/NAME if left out.")] = None,
    data: Annotated[str | None, typer.Option(help=f"{DATA_HELP} Key data.source.")] = None,
    part: Annotated[
        str | None, typer.Option(help="Part, order number, board or FILE.toml:PART. Key target.part.")
    ] = None,
    clock_ns: ClockNs = None,
    sparsity: Sparsity = None,
    granularity: Annotated[
        str | None, typer.Option(help=f"{GRANULARITY_HELP} Key select.granularity; n:m needs no --sparsity.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs of fine-tuning. Key finetune.epochs.")] = None,
    max_loss: MaxLoss = None,
    name: Annotated[str | None, typer.Option(help="Name of the flow; the model's file name if left out.")] = None,
    replace: Replace = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a flow, from the trained network to its report.

    Run the same command again after a stop: it skips stages whose inputs and settings are unchanged. A folder with a
    run of another network is refused, unless --replace is given.
    The result begins with two answers: whether the accuracy is kept, and whether the network fits. The exit status is
    1 if a check of the report fails, 3 if the network does not fit, 4 if both, and 0 otherwise.
    If a flow file names package.module:function, this command runs that code, so check a flow file that is not yours.
    `fpgaprune config` lists every key of a flow file.
    """
    from fpgaprune.flow import flow_from_options, kind_of, run_flow

    config = flow_from_options(
        flow,
        name,
        data=data,
        part=part,
        clock_ns=clock_ns,
        sparsity=parse_sparsity(sparsity),
        granularity=granularity,
        epochs=epochs,
        max_loss=read_max_loss(max_loss),
    )
    folder = out or Path("runs") / config.name
    with Watcher(quiet=quiet or as_json) as watcher:
        finished = run_flow(config, folder, watcher, replace=replace)
    _end(folder, finished, watcher, quiet, as_json, by_options=flow is not None and kind_of(flow) == "model")


def apply(
    run_dir: Annotated[Path, typer.Argument(help="A run folder.")],
    change: Annotated[int, typer.Argument(help="Number of the change in the report of the run.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Run folder; RUN_DIR-CHANGE beside the run if left out.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a flow again with a change that its report suggests, in a new folder beside the run.

    The new folder begins as a copy of the run, so that only the stages run that the change concerns. Its flow.toml has
    the change. The exit status is that of `fpgaprune run`.
    """
    from fpgaprune.flow import apply_change, beside_run, require_kind

    require_kind(run_dir, "run")
    folder = out or beside_run(run_dir, change)
    with Watcher(quiet=quiet or as_json) as watcher:
        finished = apply_change(run_dir, change, folder, watcher)
    _end(folder, finished, watcher, quiet, as_json)


def verify(
    run_dir: Annotated[Path, typer.Argument(help="A run folder.")],
    file: Annotated[
        Path | None, typer.Argument(help="With --bitstream: the bitstream, if it is not the one that was exported.")
    ] = None,
    bitstream: Annotated[
        bool,
        typer.Option(
            "--bitstream",
            help="Read the bitstream back too, and compare what it computes for the golden samples. RUN_DIR may "
            "also be a folder that export made for a board.",
        ),
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Check every file and every locked weight of a run again. The exit status is 1 if something is wrong."""
    from fpgaprune.errors import ConfigError, RunError
    from fpgaprune.flow import RunDirectory, is_handed_over, require_kind, verify_bitstream, verify_run
    from fpgaprune.measure import ALL_INPUTS

    if file is not None and not bitstream:
        raise ConfigError(f"{file} is given without --bitstream; add it, so that the bitstream is read back")
    links: list[LinkCheck] = []
    problems: list[str] = []
    folder = is_handed_over(run_dir)
    if folder and not bitstream:
        raise RunError(f"{run_dir} is no run; export made it: add --bitstream if that was for a board, or give the run")
    if not folder:
        require_kind(run_dir, "run")
        links, problems = verify_run(run_dir)
    found = verify_bitstream(run_dir, file) if bitstream else None
    if found is not None:
        problems += found.problems
        links += [] if found.verilog is None or found.verilog.link in [link.link for link in links] else [found.verilog]
    if as_json:
        said = {} if found is None else {"bitstream": {**found.check.to_json(), **found.link.to_json()}}
        print_json({"ok": not problems, "problems": problems, "links": [link.to_json() for link in links], **said})
    elif not quiet:
        if not folder:
            show_table(
                ("link", "weights", "locked elements", "violations", "holds"),
                [(link.link, len(link.weights), link.locked, link.violations, ALL_INPUTS) for link in links],
            )
        if found is not None:
            _print_bitstream(found)
        if not problems and any(link.locked for link in links):
            held = " or has the value that it is held at" if any(link.held for link in links) else ""
            print_line(f"every locked element is exactly zero{held}", "green")
        elif not problems and not folder:
            print_line("nothing is locked, so there is nothing to check", "yellow")
        if not problems:
            if found is not None:
                print_next("load", run_dir)
            else:
                print_next("export", run_dir, "--for", receiver_of(RunDirectory(run_dir).read_report()["target"]))
    for problem in problems:
        print_problem("violation", problem)
    if problems:
        raise typer.Exit(1)


def _print_bitstream(found: "VerifiedBitstream") -> None:
    from fpgaprune.measure import ALL_INPUTS

    for claim in found.link.claims:
        if claim.holds:
            print_line(claim.sentence(), "green")
    if found.link.left_out is not None:
        print_line(found.link.left_out, "yellow")
    if found.verilog is not None and found.verilog.locked and found.link.holds and found.check.cells is not None:
        print_line(
            f"so its memories and constants hold no locked weight {ALL_INPUTS}: {found.verilog.locked:,} locked "
            f"elements have no product in {found.verilog.link}",
            "green",
        )
    for proof in found.modules:
        if proof.holds:
            print_line(f"{proof.sentence()}, {ALL_INPUTS}", "green")
    open_ends = [proof.module for proof in found.modules if proof.holds is None]
    if open_ends:
        print_line(f"tried on samples only: {', '.join(open_ends)}")
    print_line(found.check.read_back())
    print_line(f"SHA-256 of {found.link.link}: {found.link.sha256}")


def inspect(
    model: Annotated[Path, typer.Argument(help="A network: .keras, .h5 or .onnx.")],
    out: Annotated[Path | None, typer.Option(help="Draw each convolution's kernels as PNG in this folder.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """List the layers of a model with shapes and parameters; with --out, draw the kernels of each convolution."""
    from fpgaprune.flow import inspect_model, require_kind

    require_kind(model, "model")
    found = inspect_model(model, out)
    if as_json:
        print_json(found)
    elif not quiet:
        show_table(
            ("layer", "class", "output", "parameters", "zeros", "kernels", "zero\nkernels"),
            [*(_layer_row(layer) for layer in found["layers"]), _layers_total(found["layers"])],
        )
        for path in found["heat_maps"]:
            print_line(f"heat map: {path}")
        print_next("run", model, *WITH_A_NETWORK)


def doctor(as_json: AsJson = False) -> None:
    """List the tools of each stage, which of them are installed, and the command that installs the others."""
    from fpgaprune.flow import examine, install_command, missing_extras

    found = examine()
    if as_json:
        print_json(found)
        return
    rows: list[tuple[Cell, ...]] = []
    for place, row in enumerate(found):
        if not place or found[place - 1]["stage"] != row["stage"]:
            rows.append((row["stage"], "", ""))
        rows.append((f"  {row['tool']}", row["found"] or "not found", row["unlocks"]))
    show_table(("stage and tool", "found", "needed for"), rows)
    for command, tools in missing_extras(found).items():
        print_line(f"{command} installs {', '.join(tools)}")
    if command := install_command(found):
        print_line(f"next        {command}", whole=True)
    else:
        print_next("run")


def _end(
    folder: Path, finished: "RunDirectory", watcher: Watcher, quiet: bool, as_json: bool, by_options: bool = False
) -> None:
    """Print what a run came to, and end with the exit status that says so."""
    report = finished.read_report()
    if as_json:
        print_json({"run": str(folder), "report": report})
    elif not quiet:
        _print_outcome(folder, finished, report)
        print_line(f"time        {watcher.where_the_time_went()}")
        print_next_of_run(folder, report)
    end_by_verdict(report, by_options)


def _print_outcome(folder: Path, finished: "RunDirectory", report: dict[str, Any]) -> None:
    from fpgaprune.flow import STAGES
    from fpgaprune.layout import Advice

    print_verdicts(report)
    for stage in (stage for stage in STAGES if stage.name in finished.manifest["stages"]):
        result = stage.result_in(finished)
        for line in () if result is None else stage.outcome(result):
            print_line(line.text, "yellow" if line.warning else "")
    if report.get("advice"):
        print_advice(Advice.from_json(report["advice"]), shown=1)
    print_line(f"report      {folder / 'report.html'}")


def _layer_row(layer: dict[str, Any]) -> tuple[Cell, ...]:
    kernels = layer["kernels"] or {"total": None, "zero": None}
    shape = " x ".join("?" if size is None else str(size) for size in layer["output_shape"])
    counts = (layer["parameters"], layer["zeros"], kernels["total"], kernels["zero"])
    return (layer["name"], layer["class"], shape, *counts)


def _layers_total(layers: list[dict[str, Any]]) -> tuple[Cell, ...]:
    kernels = [layer["kernels"] for layer in layers if layer["kernels"] is not None]
    return (
        f"total of {len(layers)} layers",
        None,
        None,
        *(sum(layer[count] for layer in layers) for count in ("parameters", "zeros")),
        *(sum(counts[which] for counts in kernels) for which in ("total", "zero")),
    )
