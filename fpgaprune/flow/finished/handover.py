"""`hand_over`: one folder with everything that a board, or the machine with a vendor's tool, needs of a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fpgaprune import __version__
from fpgaprune.design import Design, Input
from fpgaprune.emulate import emulate
from fpgaprune.errors import ConfigError, ReadbackError, RtlError, RunError, TargetError, ToolError, ToolTimeoutError
from fpgaprune.fabric import (
    ANSWER_BYTES,
    Bitstream,
    board_files,
    cells_file,
    digest_of_verilog,
    family_of,
    golden_bytes,
    golden_vectors,
    is_serial_board,
    list_overlays,
    list_serial_boards,
    overlay_files,
    stream_files,
    stream_form,
    vector_files,
    with_netlist,
    write_handoff,
    write_simulation,
)
from fpgaprune.files import digest_file, hardware_path, whole_folder, write_bytes, write_npz
from fpgaprune.flow.finished.board_layouts import DEADLINE_MINUTES, build_for_board
from fpgaprune.flow.finished.export_certificate import certify_export
from fpgaprune.flow.finished.handover_readme import board_readme, hls_readme, vendor_readme
from fpgaprune.flow.run import CERTIFICATE, Progress, RunDirectory, Silent, staged_counts, verilog_of
from fpgaprune.hls import GOLDEN_INPUTS, GOLDEN_OUTPUTS, accelerator_form
from fpgaprune.measure import BitstreamLink, StagedCounts
from fpgaprune.readback import Results, check_bitstream
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import Target, find_part
from fpgaprune.values import Array

# Words for what a run was made for, beside names of boards and parts.
OWN_PART = {"vivado": "AMD", "quartus": "Intel"}
HLS = "hls4ml"
# Seconds for the simulation of a bitstream that was read back.
_READ_BACK_S = 120.0
# What a Zynq board runs: the driver and a notebook.
_DRIVEN = ("network.py", "network.ipynb")
# What compiling and simulating leave in an hls4ml project.
_LEFTOVERS = shutil.ignore_patterns("*.so", "*.o", "*.log", "*_prj", "*.prj", ".Xil", "logs", "*_vivado_accelerator")


@dataclass(frozen=True)
class HandOver:
    """A folder that needs nothing else.

    Attributes:
        path: the folder.
        bitstream: what configures the board; None for a vendor's tool.
        layout: why the Verilog for the board is laid out as it is, as a sentence; None for a vendor's tool.
        speed: samples a second, and what limits them, as a sentence; None for a vendor's tool.
        counts: what the design takes, stage by stage; None for a vendor's tool.
    """

    path: Path
    bitstream: Bitstream | None = None
    layout: str | None = None
    speed: str | None = None
    counts: StagedCounts | None = None


def hand_over(
    run: Path,
    receiver: str,
    out: Path | None = None,
    *,
    interval: int | None = None,
    deadline_minutes: float = DEADLINE_MINUTES,
    progress: Progress | None = None,
) -> HandOver:
    """Make a folder of what `receiver` needs of the run, a README in the order of the commands, and a self-check.

    Args:
        run: a finished run.
        receiver: a board of `hw/boards` (a bitstream and a client), a board or an order number of AMD or Intel (our
            Verilog with scripts for Vivado or Quartus; for one of `hw/axi/overlays.toml` also a core on AXI, a block
            design and a driver for PYNQ), `vivado` or `quartus` (the same for the run's own part),
            `hls4ml` (the hls4ml project) or `vitis` (the same, if it is for Vitis).
        out: the folder to make; `RUN-for-RECEIVER` beside the run unless given.
        interval: cycles that a sample may take in our Verilog. Unless given, a vendor's part gets the Verilog that the
            run was measured with; so does a board, if its interval or its part was asked for there; else the quickest
            layout is taken for which the board has room, and a smaller one if the tools do not finish it.
        deadline_minutes: most minutes of synthesis, place and route for a board, over all layouts that are tried.
        progress: is told of the layout, and of what the tools do.

    Raises:
        RunError: there is no such run, it has no golden samples, or `out` exists.
        ConfigError: an interval is asked for an hls4ml project.
        TargetError: the receiver is unknown or does not belong to the run, or the design does not fit the board.
        ToolTimeoutError: the tools finished no layout in time; what they run is ended.
        ToolError, RtlError: as for `make_bitstream`; or the bitstream, read back, computes other bits than `emulate`.
    """
    found = RunDirectory.existing(run)
    receiver = receiver.strip()
    folder = out or run.parent / f"{run.name}-for-{receiver.lower().replace('/', '-')}"
    if folder.exists():
        raise RunError(f"{folder} exists; name a new folder with --out, or remove it")
    if not found.file("design.json").is_file():
        raise RunError(f"{run} has no design.json, so nothing can be handed over; run the flow up to its stage hls")
    design = Design.load(found.file("design.json"))
    told, named = progress or Silent(), receiver.lower()
    if is_serial_board(receiver):
        return _board(found, design, named, folder, interval, deadline_minutes, told)
    told.stage("export", "running")
    if named in (HLS, "vitis"):
        if interval is not None:
            raise ConfigError(f"an interval is for our own Verilog; {receiver!r} stands for the hls4ml project")
        made = _hls(found, design, named, folder)
    else:
        order_number = _order_number(found, receiver)
        asked = {} if interval is None else {"interval": interval}
        made = _vendor(found, verilog_of(found, design, **asked), design, order_number, receiver, folder)
    told.stage("export", "done")
    return made


def _order_number(run: RunDirectory, receiver: str) -> str:
    """Return the order number that `receiver` stands for."""
    vendor = OWN_PART.get(receiver.lower())
    try:
        target = Target.of(str(run.manifest["config"]["target"]["part"]) if vendor else receiver)
    except TargetError as error:
        words = ", ".join((*OWN_PART, HLS, "vitis", *list_serial_boards()))
        raise TargetError(f"{error}; wanted {words}, or a board or an order number of AMD or Intel") from None
    if target.part.vendor not in OWN_PART.values() or (vendor and target.part.vendor != vendor):
        raise TargetError(
            f"{receiver!r} stands for {target.part.name} of {target.part.vendor}; wanted a part of "
            f"{vendor or 'AMD or Intel'}, or one of the boards {', '.join(list_serial_boards())}"
        )
    return target.order_number


def _board(
    run: RunDirectory, design: Design, board: str, out: Path, interval: int | None, minutes: float, progress: Progress
) -> HandOver:
    x = golden_samples(run, design)
    with whole_folder(out) as draft:
        built = build_for_board(run, design, board, draft, interval=interval, minutes=minutes, progress=progress)
        project, made = built.project, built.bitstream
        speed = made.speed(built.price.latency_cycles)
        vectors = golden_vectors(project, design, x)
        write_simulation(project, vectors, draft)
        for place, text in board_files(project, board, made.pll).items():
            write_bytes(draft / "board" / place, text.encode())
        for place, text in stream_files(project).items():
            write_bytes(draft / place, text.encode())
        sent, wanted = golden_bytes(project, vectors)
        write_bytes(draft / "golden_in.bin", sent)
        write_bytes(draft / "golden_out.bin", wanted)
        line: dict[str, Any] = {
            "sent": "golden_in.bin",
            "wanted": "golden_out.bin",
            "baud": made.baud,
            "answer_bytes": ANSWER_BYTES,
        }
        results = Results.of(project.outputs[0])
        line["results"] = msgspec.to_builtins(results)
        progress.step(0, 0, "the bitstream is read back")
        link = _read_back(made, board, sent, wanted, vectors.samples, results)
        progress.step(0, 0, "its netlist is compared with the Verilog")
        link = _held(with_netlist(link, project, board, cache=run.file("synth")))
        back = link.text()
        about = {**_about(project, vectors.samples), "board": board, "bitstream": made.path.name}
        about["line"] = {**line, "in_bytes": made.in_bytes, "out_bytes": made.out_bytes}
        about["read_back"] = back
        about["stream"] = stream_form(project)
        certificate = certify_export(run, project, built.design, link)
        write_bytes(draft / CERTIFICATE, (json.dumps(certificate, indent=1, sort_keys=True) + "\n").encode())
        readme = board_readme(project, made, board, vectors.samples, run.path.name, built.layout, speed, back)
        _finish(draft, about, readme, ("check.py", "ask.py", "stream/test_stream.py"))
    progress.stage("export", "done")
    measured = run if built.design is design else None
    family = str(family_of(find_part(made.device)))
    counts = staged_counts(measured, built.price, family, built.fields, made.to_json())
    return HandOver(out, replace(made, path=out / made.path.name), built.layout, speed, counts)


def _read_back(
    made: Bitstream, board: str, sent: bytes, wanted: bytes, samples: int, results: Results
) -> BitstreamLink:
    """Return the last link of the certificate: what the bitstream computes, or why it was not read back."""
    try:
        found = check_bitstream(made.path, board, sent, wanted, samples, results, timeout_s=_READ_BACK_S)
    except (ReadbackError, ToolError) as error:
        late = f"it took more than {_READ_BACK_S:g} s; fpgaprune verify --bitstream takes the time that it needs"
        reason = late if isinstance(error, ToolTimeoutError) else str(error).replace(str(made.path), made.path.name)
        cells = cells_file(made.path)
        cells_sha256 = digest_file(cells) if cells.is_file() else ""
        return BitstreamLink(made.path.name, board, digest_file(made.path), (), reason, cells_sha256)
    return _held(found.link(made.path.name, board))


def _held(link: BitstreamLink) -> BitstreamLink:
    """Return the link of a bitstream, every claim of which must hold."""
    said = "; ".join(claim.sentence() for claim in link.claims if not claim.holds)
    if said:
        raise RtlError(f"{link.link} is wrong, and nothing is handed over: {said}; try another seed")
    return link


def _vendor(
    run: RunDirectory, project: VerilogProject, design: Design, order_number: str, receiver: str, out: Path
) -> HandOver:
    x = golden_samples(run, design)
    with whole_folder(out) as draft:
        vectors = golden_vectors(project, design, x)
        handoff = write_handoff(project, order_number, vectors, draft)
        about = {**_about(project, vectors.samples), "part": order_number}
        scripts = ["check.py"]
        overlay = receiver.lower() in list_overlays()
        if overlay:
            texts, about["axi"] = overlay_files(project, receiver.lower(), order_number)
            for name, text in texts.items():
                write_bytes(draft / name, text.encode())
            scripts += _DRIVEN
            _write_golden(draft, design, x)
        readme = vendor_readme(project, handoff, receiver, vectors.samples, run.path.name, overlay=overlay)
        _finish(draft, about, readme, scripts)
    return HandOver(out)


def _hls(run: RunDirectory, design: Design, receiver: str, out: Path) -> HandOver:
    project = run.file("hls")
    if not project.is_dir():
        raise RunError(
            f"{run.path} has no hls4ml project; run the flow up to its stage hls, with target.route 'hls' for one, or "
            "export it --for a board, as our Verilog"
        )
    if receiver == "vitis" and design.backend != "Vitis":
        raise TargetError(
            f"the hls4ml project of {run.path} is for {design.backend}, not Vitis; export it --for {HLS}, or run the "
            "flow with backend 'Vitis'"
        )
    with whole_folder(out) as draft:
        shutil.copytree(project, draft / "project", ignore=_LEFTOVERS)
        about: dict[str, Any] = {
            "project": "project",
            "name": design.name,
            "samples": len(_golden_rows(run)),
            "inputs": f"project/{GOLDEN_INPUTS}",
            "outputs": f"project/{GOLDEN_OUTPUTS}",
        }
        scripts = ["check.py"]
        options = run.manifest["config"].get("hls", {}).get("backend_options", {})
        accelerator = accelerator_form(design, project, options)
        if accelerator is not None:
            about["accelerator"] = accelerator
            scripts += ["accelerator.py", *_DRIVEN]
            _write_golden(draft, design, golden_samples(run, design))
        _finish(draft, about, hls_readme(design, run.path.name, accelerator=accelerator is not None), scripts)
    return HandOver(out)


def _write_golden(draft: Path, design: Design, x: list[Array]) -> None:
    """Write the golden samples and their emulated outputs to `golden.npz`, as real numbers."""
    write_npz(draft / "golden.npz", {"x": x[0], "y": emulate(design, x[0])})


def _about(project: VerilogProject, samples: int) -> dict[str, Any]:
    bench = ["testbench.v", *vector_files(project)]
    return {"digest": digest_of_verilog(project), "files": list(project.files), "bench": bench, "samples": samples}


def _finish(draft: Path, about: Mapping[str, object], readme: str, scripts: Iterable[str]) -> None:
    """Complete the folder: scripts, README, what they read, and last the digest of every file."""
    for script in scripts:
        write_bytes(draft / script, hardware_path("handover", Path(script).name).read_bytes())
    told = {"fpgaprune": __version__, **about}
    write_bytes(draft / "handover.json", (json.dumps(told, indent=1, sort_keys=True) + "\n").encode())
    write_bytes(draft / "README.md", readme.encode())
    files = sorted(path for path in draft.rglob("*") if path.is_file())
    sums = "".join(f"{digest_file(path)}  {path.relative_to(draft).as_posix()}\n" for path in files)
    write_bytes(draft / "SHA256SUMS", sums.encode())


def _golden_rows(run: RunDirectory) -> NDArray[np.float32]:
    """Return the golden samples of the run's hls4ml project, one row of numbers for each."""
    project = run.file("hls")
    path = (project if project.is_dir() else run.file("golden")) / GOLDEN_INPUTS
    try:
        rows = np.array([line.split() for line in path.read_text().splitlines()], dtype=np.float32)
    except (OSError, ValueError) as error:
        raise RunError(f"{path} holds no golden samples ({error}); run the flow's stage hls again") from None
    if rows.ndim != 2:
        raise RunError(f"{path} holds no golden samples; run the flow's stage hls again")
    return rows


def golden_samples(run: RunDirectory, design: Design) -> list[Array]:
    """Return the golden samples (N, ...), an array for each input of the design.

    Raises:
        RunError: the run has none, or they do not fit the design.
    """
    rows = _golden_rows(run)
    shapes = [layer.output_shape for layer in design.layers if isinstance(layer.operation, Input)]
    sizes = [int(np.prod(shape)) for shape in shapes]
    if sum(sizes) != rows.shape[1]:
        raise RunError(f"{run.path}: a golden sample has {rows.shape[1]} numbers; the design takes {sum(sizes)}")
    parts = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
    return [part.reshape(len(rows), *shape) for part, shape in zip(parts, shapes, strict=True)]
