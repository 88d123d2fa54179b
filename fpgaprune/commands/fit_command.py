"""`fpgaprune fit`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fpgaprune.commands.checks import end_by, print_answers
from fpgaprune.commands.common_options import DATA_HELP, AsJson, ClockNs, MaxLoss, Quiet, Replace, read_max_loss
from fpgaprune.commands.next_step import print_next, receiver_of
from fpgaprune.commands.printed_tables import print_counts
from fpgaprune.commands.terminal import print_json, print_line, show_table
from fpgaprune.commands.watcher import Watcher
from fpgaprune.errors import ConfigError

if TYPE_CHECKING:
    from fpgaprune.fit import Fit, SearchStatus


def fit(
    flow: Annotated[
        Path,
        typer.Argument(
            metavar="NETWORK|FLOW.toml",
            help="A trained network (.keras, .h5, .onnx) with --data and --part, or a flow file that names one.",
        ),
    ],
    data: Annotated[str | None, typer.Option(help=f"{DATA_HELP} Key data.source.")] = None,
    part: Annotated[
        str | None, typer.Option(help="Part, order number, board or FILE.toml:PART. Key target.part.")
    ] = None,
    clock_ns: ClockNs = None,
    max_loss: MaxLoss = None,
    share: Annotated[float, typer.Option(help="Largest share of each resource of the part, 0..1.")] = 0.8,
    latency_us: Annotated[float | None, typer.Option(help="Longest latency in microseconds.")] = None,
    interval_cycles: Annotated[int | None, typer.Option(help="Largest number of cycles between two samples.")] = None,
    samples_per_s: Annotated[float | None, typer.Option(help="Smallest number of samples a second.")] = None,
    minutes: Annotated[
        float,
        typer.Option(
            help="Minutes for the search, the final run of the best network and its open synthesis. A vendor's tool "
            "takes extra time."
        ),
    ] = 10.0,
    epochs: Annotated[
        int | None,
        typer.Option(
            help="Epochs of fine-tuning of the best network; the search chooses them if left out. Key finetune.epochs."
        ),
    ] = None,
    route: Annotated[
        str | None,
        typer.Option(
            help="hls: an hls4ml project, by its estimate; verilog: our own Verilog, which is then synthesised. "
            "auto, or left out: verilog for parts of Lattice and Gowin, for a network that hls4ml does not take, and "
            "where the untouched network fits only so; else hls."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of trials at a time, each in its own process on this machine.")
    ] = None,
    memory_gib: Annotated[float | None, typer.Option(help="Memory limit of each of these processes, in GiB.")] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Run the trials on the workers of this Dask scheduler: tcp://host:8786.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the result; runs/NAME-fit if left out.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the flow; the model's file name if left out.")] = None,
    log_trials: Annotated[
        str | None, typer.Option(help="tensorboard or mlflow: it gets the settings and figures of each trial.")
    ] = None,
    replace: Replace = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find the best network that fits a part: choose its zeros, its numbers of bits and its layout.

    Without --max-loss, half a per cent may be lost.
    The search makes everything without a limit as small as possible: first the latency, then the share of the part. A
    network that loses all of --max-loss must be a tenth smaller than one that loses nothing. If no
    network that was tried keeps every limit, the exit status is 3 if the nearest one does not fit, 1 if it breaks
    another limit, 4 if both. If you stop the search, run the same command again to continue. If a flow file names
    package.module:function, this command runs that code.
    With --json, standard error has a line of JSON for each trial: its result, the best so far, the seconds left.
    """
    from fpgaprune.fabric import family_of
    from fpgaprune.fit import Limits, WorkerOptions, fit_flow
    from fpgaprune.flow import TargetConfig, VerdictConfig, flow_from_options, kind_of
    from fpgaprune.measure import to_plain
    from fpgaprune.target import find_part

    loss = read_max_loss(max_loss)
    is_model = kind_of(flow) == "model"
    missing = [option for option, value in (("--data", data), ("--part", part)) if value is None]
    if is_model and missing and flow.exists():
        raise ConfigError(
            f"{flow} is a network, and {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing; "
            f"use 'fpgaprune fit {flow} --data DATA.npz --part PART --max-loss 0.5%'"
        )
    config = flow_from_options(
        flow,
        name,
        data=data,
        part=part,
        clock_ns=clock_ns,
        epochs=epochs,
        max_loss=loss,
        sparsity=0.0 if is_model else None,
    )
    asked = config[VerdictConfig]
    limits = Limits(asked.max_loss or Limits.max_loss, share, latency_us, interval_cycles, samples_per_s, minutes)
    options = WorkerOptions(workers, scheduler, memory_gib)
    folder = out or Path("runs") / f"{config.name}-fit"
    on_trial = _print_status if as_json and not quiet else None
    with Watcher(quiet=quiet or as_json) as watcher:
        found = fit_flow(
            config, folder, limits, watcher, route, options, on_trial, replace=replace, log_trials=log_trials
        )
    if as_json:
        print_json({"folder": str(folder), **found.to_json()})
    elif not quiet:
        _print_answer(found, folder)
        if found.meets_limits:
            print_next("export", found.best.folder, "--for", receiver_of(to_plain(config[TargetConfig].target())))
        elif found.route == "hls" and family_of(find_part(found.part)) is not None:
            given = {"--data": data, "--part": part, "--max-loss": max_loss}
            words = [word for option, value in given.items() if value is not None for word in (option, value)]
            print_next("fit", flow, *words, "--route", "verilog", "--out", f"{folder}-verilog")
        else:
            print_next("estimate", found.best.folder)
    answers = {answer.about: answer.reply == "yes" for answer in found.verdicts()}
    fits = answers.pop("fit")
    end_by(all(answers.values()), fits=fits)


def _print_status(status: "SearchStatus") -> None:
    """Print a line of JSON on standard error, for a program that waits for the result."""
    typer.echo(json.dumps(status.to_json()), err=True)


def _print_answer(found: "Fit", folder: Path) -> None:
    from fpgaprune.fit import facts, front_rows, front_title
    from fpgaprune.flow import counts_of_run

    headers, rows = front_rows(found)
    show_table(headers, rows, title=front_title(found))
    if not found.meets_limits:
        print_line("No network that was tried keeps every limit. The nearest one:", "yellow")
    print_answers(found.verdicts())
    for label, text in facts(found.best, found):
        print_line(f"{label:<12} {text}")
    for counts in counts_of_run(Path(found.best.folder)):
        print_counts(counts)
    for note in found.notes:
        print_line(f"note         {note}", "yellow")
    print_line(f"report       {folder / 'report.html'}")
