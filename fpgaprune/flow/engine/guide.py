"""The two files by which a run folder explains itself: `README.md`, and `flow.toml`, the whole flow as it ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fpgaprune.files import write_bytes
from fpgaprune.flow.engine.config import parse_config
from fpgaprune.flow.file import Flow
from fpgaprune.flow.run import CERTIFICATE, MANIFEST, RunDirectory
from fpgaprune.layout import flow_text

README, FLOW_FILE = "README.md", "flow.toml"
# Artefact to what it is, the most useful first.
MEANINGS = {
    "report.html": "the result, as a page for a browser",
    "report.json": "the same figures for a program",
    FLOW_FILE: "every setting of this run; edit it and run it again",
    "removed.keras": "the pruned network without its dead channels",
    "quantised.keras": "the pruned network, trained with the rounding of its hardware",
    "trimmed.keras": "the same network with fewer bits and weights; it rounds its data itself",
    "model.onnx": "the last network as ONNX",
    "hls": "the hls4ml project; begin with its README.md",
    "rtl": "our own Verilog, with a test bench",
    "golden": "samples and the outputs that the hardware must give for them",
    "masks.npz": "what is locked, after fine-tuning: True is free, False is locked",
    "removed_masks.npz": "the same locks for removed.keras",
    "quantised_masks.npz": "the same locks for quantised.keras",
    "trimmed_masks.npz": "these locks and all other zeros of trimmed.keras",
    "quantised_held.npz": "the values at which locked weights of quantised.keras are held",
    "finetuned.keras": "the fine-tuned network with all its channels",
    "trained.keras": "the network before pruning",
    "selection.npz": "what was chosen to be locked, before fine-tuning",
    "early.npz": "weights of an early epoch, for a schedule that goes back to them",
    "trained_outputs.npz": "outputs of the trained network on the held-out samples",
    "design.json": "the pruned network in fixed point, as every estimate and all Verilog read it",
    "design.npz": "the weights of design.json",
    "design_trained.json": "the network before pruning in fixed point",
    "design_trained.npz": "the weights of design_trained.json",
    "finetuned_types.json": "fixed-point types that were fixed before fine-tuning",
    "quantised_types.json": "fixed-point types of quantised.keras",
    "removal.json": "which channels were removed, and why",
    "estimate.json": "the estimates of each layer, and the suggested changes",
    "measure.json": "what open tools counted",
    CERTIFICATE: "the proof: every place where locked weights were compared, with SHA-256",
    MANIFEST: "settings, results, and the SHA-256 of every file",
}
# What a stage writes that did not run.
_NOTHING = "null"


def write_guide(run: RunDirectory) -> None:
    """Write `flow.toml` and `README.md` into the finished `run`."""
    config = parse_config(run.manifest["config"], str(run.file(MANIFEST)))
    write_bytes(run.file(FLOW_FILE), _flow_file(config).encode())
    write_bytes(run.file(README), "\n".join(_readme(run, config)).encode())


def _flow_file(config: Flow) -> str:
    """Return the flow file of `config`, as it runs from any folder; a key with its default is a comment."""
    dump: dict[str, Any] = {"mode": "json", "exclude_none": True}
    own = {""} | {place for place, _ in _entries(flow_text(config.model_dump(**dump, exclude_defaults=True)))}
    lines = [
        "# The whole flow as it ran. A key behind a '#' has its default: remove the '#' to change it.",
        "# What each key means: fpgaprune config",
    ]
    # Headings and empty lines have no place, and are in both.
    lines += [f"{'' if place in own else '# '}{line}" for place, line in _entries(flow_text(config.model_dump(**dump)))]
    return "\n".join(lines) + "\n"


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line of a flow file with its place, as `hls.weight_bits`; headings and empty lines have none."""
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]") + "."
        yield (f"{section}{line.split(' = ')[0]}" if " = " in line else ""), line


def _readme(run: RunDirectory, config: Flow) -> list[str]:
    report = run.read_report() if run.file("report.json").is_file() else {}
    there = [
        name
        for name in MEANINGS
        if (path := run.file(name)).is_dir() or (path.is_file() and path.read_bytes().strip() != _NOTHING.encode())
    ]
    return [
        f"# {config.name}",
        "",
        *(f"- {report['verdicts'][about]['text']}" for about in ("metric", "fit") if report),
        "",
        "`fpgaprune run` wrote this folder. Run these commands in it:",
        "",
        "```console",
        *(f"$ {command:<44} # {what}" for command, what in _commands(report)),
        "```",
        "",
        "| file | what it is |",
        "| --- | --- |",
        *(f"| [{name}]({name}) | {MEANINGS[name]} |" for name in there),
        "",
    ]


def _commands(report: Any) -> Iterator[tuple[str, str]]:
    """Yield the next three commands, and what each does."""
    yield "fpgaprune verify .", "checks every file and every locked weight again"
    if (report.get("advice") or {}).get("suggestions"):
        yield "fpgaprune apply . 1", "runs the best suggestion of report.html, in a folder beside this one"
    elif not report.get("measured"):
        yield "fpgaprune measure .", "counts the resources of our Verilog with open tools"
    else:
        yield f"fpgaprune run {FLOW_FILE} --out .", "runs again after you edited the flow"
    yield "fpgaprune export . --for BOARD", "makes a bitstream, or a project for a vendor's tool"
