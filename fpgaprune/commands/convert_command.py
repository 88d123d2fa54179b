"""`fpgaprune convert`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fpgaprune.commands.common_options import AsJson, Quiet
from fpgaprune.commands.next_step import WITH_A_NETWORK, print_next
from fpgaprune.commands.terminal import print_json, print_line, show_table
from fpgaprune.commands.watcher import Watcher

# What else an import found, and its name.
_FACTS = {
    "wrappers": "removed wrappers",
    "left_nonzero": "locked, and not zero in the file",
    "negative_zeros": "negative zeros",
    "notes": "otherwise than in the file",
}


def convert(
    network: Annotated[
        Path,
        typer.Argument(help="An .onnx file, a .keras or .h5 file of Keras, tf_keras, HGQ2 or QKeras, or a SavedModel."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The .keras file to write; a new one with NETWORK's name if left out.")
    ] = None,
    masks: Annotated[Path | None, typer.Option(help="Write what is locked, such as the zeros, to this file.")] = None,
    weights: Annotated[
        Path | None, typer.Option(help="The file of the weights, if NETWORK is an architecture of Keras as JSON.")
    ] = None,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust", help="Read a SavedModel folder. Its program runs, so use this only for files that you trust."
        ),
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Turn a network of another library into a Keras model, and compare it with that library's own interpreter.

    The table has the name of each weight in the file. 'fpgaprune run', 'fit', 'inspect', 'select' and 'sensitivity'
    take the file as it is; convert it to use the model in Python, or to compile it with a loss of your own.
    """
    from fpgaprune.flow import convert_network, require_kind

    if weights is None:
        require_kind(network, "model")
    with Watcher(quiet=quiet or as_json) as watcher:
        watcher.stage("convert", "running")
        found, out = convert_network(network, out, masks, weights, trusted=trust)
        watcher.stage("convert", "done")
    if as_json:
        files = {"model": str(out), "masks": None if masks is None else str(masks)}
        print_json({**files, "found": found.to_json()})
    elif not quiet:
        if found.sources:
            rows = [(path, one.name, " x ".join(map(str, one.shape))) for path, one in found.sources.items()]
            show_table(("weight", "in the file", "shape in the file"), rows)
        for what, names in found.facts.items():
            if what in _FACTS and names:
                print_line(f"{_FACTS[what]}: {_listed(names)}")
        told = found.difference
        if told is not None:
            by = f"{told.absolute:.2g}" if told.relative is None else f"{told.relative:.2g} of the largest number"
            print_line(f"largest difference to {told.interpreter}: {by}, {told.samples} samples")
        print_line(f"locked: {found.masks.locked_count:,} elements of {len(found.masks)} weights")
        print_line(f"model: {out}")
        if masks is not None:
            print_line(f"masks: {masks}")
        print_next("run", out, *WITH_A_NETWORK)


def _listed(found: Any) -> str:
    return (
        ", ".join(f"{name} {count:,}" for name, count in found.items()) if isinstance(found, dict) else "; ".join(found)
    )
