"""`fpgaprune select` and `sensitivity`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fpgaprune.commands.common_options import (
    DATA_HELP,
    GRANULARITY_HELP,
    AsJson,
    Quiet,
    Sparsity,
    by_pattern,
    parse_sparsity,
)
from fpgaprune.commands.next_step import print_next
from fpgaprune.commands.terminal import print_json, print_line, show_table
from fpgaprune.commands.watcher import Watcher

_MODEL_HELP = "A .keras, .h5 or .onnx file, of tf_keras and TF-MOT too, or a SavedModel folder."
Model = Annotated[Path, typer.Argument(help=_MODEL_HELP)]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        help="Fraction of whole filters to lock first, 0..1, or 'conv2/kernel=0.5'; --sparsity counts what is left. "
        "May be repeated."
    ),
]
Granularity = Annotated[str, typer.Option(help=GRANULARITY_HELP)]
Criterion = Annotated[
    str,
    typer.Option(
        help="l1, l2, taylor, fisher, ... (a wrong name lists all), or package.module:function (its code runs)."
    ),
]
Cost = Annotated[
    str, typer.Option(help="none, or adders(6): divide each score by the adders that weights of 6 bits take.")
]
Lock = Annotated[
    list[str] | None,
    typer.Option(
        help="A slice to lock: 'conv2/kernel[:, :, 29, 13]', of an ONNX file 'conv2.weight[13, 29]'. May be repeated."
    ),
]
Masks = Annotated[Path | None, typer.Option(help="A mask file; its locks are added.")]
Zeros = Annotated[bool, typer.Option("--zeros", help="Lock the weights that are zero already.")]
Fixed = Annotated[
    list[str] | None,
    typer.Option(help="Lock the weights that a type rounds to zero: 'fixed<8,1>', or 'conv*/kernel=fixed<8,1>'."),
]
Paths = Annotated[
    list[str] | None,
    typer.Option("--path", help="A glob of weights to choose from; if left out, those with the most multiplications."),
]
Protect = Annotated[list[str] | None, typer.Option(help="A glob of weights that are never locked.")]
MinFree = Annotated[int, typer.Option(help="Smallest number of units of each weight that stay free.")]
MinFreeChannels = Annotated[float, typer.Option(help="Smallest share of each layer's channels that stays alive.")]
Samples = Annotated[
    int | None, typer.Option(help="Number of training samples that the criterion reads; all if left out.")
]
Batch = Annotated[int, typer.Option(help="Samples in each batch that the criterion reads.")]
Seed = Annotated[int, typer.Option(help="Seed of the criterion 'random'.")]
_SHOWN = 6  # Warnings that the terminal shows: the first layers show the cause.


def select(
    model: Model,
    out: Annotated[Path, typer.Option(help="The mask file to write.")] = Path("masks.npz"),
    sparsity: Sparsity = None,
    filters: Filters = None,
    granularity: Granularity = "kernel",
    criterion: Criterion = "l1",
    scope: Annotated[
        str, typer.Option(help="network: one threshold for all layers; layer: the same sparsity in each layer.")
    ] = ("network"),
    normalize: Annotated[
        str, typer.Option(help="How scores of different layers are made comparable: lamp, mean, max, l2 or none.")
    ] = "lamp",
    cost: Cost = "none",
    lock: Lock = None,
    masks: Masks = None,
    zeros: Zeros = False,
    fixed: Fixed = None,
    path: Paths = None,
    protect: Protect = None,
    min_free: MinFree = 1,
    min_free_channels: MinFreeChannels = 0.125,
    close: Annotated[bool, typer.Option("--close", help="Add the locks that follow from other locks.")] = False,
    close_by: Annotated[
        list[str] | None,
        typer.Option(
            help="Add only the locks that follow by this rule: bias, batch_norm or dead_inputs. May be repeated."
        ),
    ] = None,
    data: Annotated[str | None, typer.Option(help=DATA_HELP)] = None,
    samples: Samples = None,
    batch_size: Batch = 32,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Choose what to lock in a saved model, and write the mask file."""
    from fpgaprune.flow import require_kind, select_masks

    require_kind(model, "model")
    settings = _section(
        locals(),
        locks=lock,
        fixed=by_pattern(fixed, "--fixed"),
        sparsity=parse_sparsity(sparsity),
        filters=parse_sparsity(filters, "--filters"),
        paths=path,
        close=close_by or close,
    )
    with Watcher(quiet=quiet or as_json) as watcher:
        watcher.stage("select", "running")
        chosen, additions, warnings = select_masks(model, settings, data, seed, watcher.step)
        watcher.stage("select", "done")
    chosen.save(out)
    counts = [(name, mask.size - int(mask.sum()), mask.size) for name, mask in chosen.items()]
    if as_json:
        weights = {name: {"locked": locked, "elements": size} for name, locked, size in counts}
        print_json({"masks": str(out), "weights": weights, "additions": additions, "warnings": warnings})
    elif not quiet:
        show_table(
            ("weight", "locked", "elements"),
            [*counts, (f"total of {len(counts)} weights", chosen.locked_count, chosen.size)],
        )
        for addition in additions:
            print_line(f"added {addition['slice']}: {addition['reason']}")
        for warning in warnings[:_SHOWN]:
            print_line(f"warning: {warning['text']}")
        if len(warnings) > _SHOWN:
            print_line(f"warning: {len(warnings) - _SHOWN} more layers; --json lists all")
        if not chosen.locked_count:
            print_line(
                "nothing is locked; give --sparsity 0.6, --filters 0.5, --lock, --masks, --zeros or --fixed", "yellow"
            )
        print_line(f"masks: {out}")
        print_next("sensitivity", model, "--masks", out, "--data", data or "DATA.npz")


def sensitivity(
    model: Model,
    data: Annotated[str, typer.Option(help=DATA_HELP)] = "digits",
    out: Annotated[Path, typer.Option(help="Folder for the table, the JSON file and the plot.")] = Path("sensitivity"),
    sparsity: Annotated[
        list[float] | None,
        typer.Option(help="A fraction to lock, 0..1. May be repeated; 0.25, 0.5, 0.75 and 0.9 if left out."),
    ] = None,
    granularity: Granularity = "kernel",
    criterion: Criterion = "l1",
    cost: Cost = "none",
    lock: Lock = None,
    masks: Masks = None,
    path: Paths = None,
    min_free: MinFree = 1,
    samples: Samples = None,
    batch_size: Batch = 32,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Prune one weight at a time and measure the accuracy, without training. An earlier measurement is continued."""
    from fpgaprune.flow import measure_sensitivity, require_kind
    from fpgaprune.select import SPARSITIES

    require_kind(model, "model")
    settings = _section(locals(), locks=lock, paths=path, sparsity=None)
    asked = tuple(sparsity or SPARSITIES)
    with Watcher(quiet=quiet or as_json) as watcher:
        watcher.stage("sensitivity", "running")
        found, files = measure_sensitivity(model, data, out, settings, asked, seed, watcher.step)
        watcher.stage("sensitivity", "done")
    if as_json:
        print_json(found.to_json())
    elif not quiet:
        sparsities = sorted({point.sparsity for point in found.points})
        shown = "{:.2%}" if 0 <= found.baseline <= 1 else "{:.4g}"
        curves = {name: dict(found.curve(name)) for name in found.paths}
        rows = [
            (name, *(shown.format(curve[s]) if s in curve else None for s in sparsities))
            for name, curve in curves.items()
        ]
        show_table(
            ("weight", *(f"at {s:g}" for s in sparsities)),
            rows,
            title=f"{found.measure}; {shown.format(found.baseline)} as it is",
        )
        for file in files.values():
            print_line(str(file))
        print_next("run", model, "--data", data, "--part", "PART", "--sparsity", "0.6")


def _section(options: Mapping[str, Any], **changed: Any) -> Any:
    """Return the `[select]` section of a command; a value of None stands for the section's own default.

    Args:
        options: the options of the command by name; those with the name of a key of the section are its values.
        changed: the values of keys that no option has under the same name.
    """
    from fpgaprune.flow import SelectConfig, parse_config

    values = {key: options.get(key) for key in SelectConfig.model_fields} | changed
    given = {key: value for key, value in values.items() if value is not None}
    return parse_config({"select": given}, "select")[SelectConfig]
