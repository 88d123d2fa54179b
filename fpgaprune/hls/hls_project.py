"""`to_hls` writes a whole hls4ml project, which has a `Design`, a C simulation and a build."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from fpgaprune.backends import BACKENDS
from fpgaprune.design import Design, warn_of_moved_reuse
from fpgaprune.errors import DesignError, HlsError, shown
from fpgaprune.files import DRAFT, make_folder, storage
from fpgaprune.hls.accelerator_boards import require_board
from fpgaprune.hls.build import Build, run_build
from fpgaprune.hls.call_hls4ml import as_problem
from fpgaprune.hls.golden import GOLDEN
from fpgaprune.hls.simulate import CSimulation
from fpgaprune.hls.strategy_advice import StrategyAdvice, advise_strategy, warn_of_idle_zeros
from fpgaprune.hls.write_project import DESIGN, render, write_project
from fpgaprune.processes import OnStep
from fpgaprune.target import Target, require_target
from fpgaprune.values import Array, MaskSet, Summarised, Summary

if TYPE_CHECKING:
    import keras

    from fpgaprune.lowering import AnyPrecision, FoundWidths, Labels, LayerSettings, Samples


@dataclass(frozen=True, repr=False)
class HlsProject(Summarised):
    """A written hls4ml project.

    Attributes:
        path: the project's folder.
        design: the network that it computes.
        advice: what the zeros save, and the strategy in which they save most; None for a project that was opened.
        free_locks: a mask for each kernel in which weights that are not zero in Keras are zero in hardware. It is False
            at these weights: locking them changes nothing in hardware. None for a project that was opened.
        search: what the search of precision `auto` found; None without a search.
        notes: one sentence for each difference between the project and what was asked for, such as a layer with the
            nearest legal reuse factor; none for a project that was opened.
    """

    path: Path
    design: Design
    advice: StrategyAdvice | None = None
    free_locks: MaskSet | None = None
    search: FoundWidths | None = None
    notes: tuple[str, ...] = ()

    def _summary(self) -> Summary:
        made_for = f"{self.design.backend}, {self.design.io_type}, {self.design.clock_ns:g} ns"
        return Summary(f"HlsProject: {self.design.name} in {self.path} for {made_for}", notes=self.notes)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> HlsProject:
        """Return the project that `to_hls` wrote in folder `path`, here or on another machine.

        Raises:
            HlsError: there is no project.
        """
        folder = Path(path)
        try:
            return cls(folder, Design.load(folder / DESIGN))
        except DesignError as error:
            raise HlsError(f"{folder} is not a project that fpgaprune wrote: {error}") from error

    def compile(self, timeout_s: float = 900.0) -> CSimulation:
        """Compile the C simulation with g++.

        Raises:
            ToolTimeoutError: g++ takes longer than `timeout_s`.
            ToolError: g++ is missing or fails, or the backend needs another compiler.
        """
        return CSimulation.build(self.path, self.design, timeout_s)

    def predict(self, x: Array | Sequence[Array]) -> Any:
        """Return the outputs of the hardware for `x`, (N, ...) in the model's input shape; compiled on first use."""
        return CSimulation.open_or_build(self.path, self.design).predict(x)

    def build(
        self,
        steps: Sequence[str] = ("synth",),
        timeout_s: float = 14_400.0,
        on_line: Callable[[str], None] | None = None,
    ) -> Build:
        """Run `steps` of the vendor's tool in the project's folder; its reports are there, and no process is left.

        Args:
            steps: some of `csim`, `synth`, `cosim`, `validation`, `export`, `vsynth`, `bitfile`; most backends have
                only some of these.
            timeout_s: most wall-clock seconds for each command.
            on_line: gets each line of the tool's output soon after it was written.

        Raises:
            ToolError: the tool is missing (the message says how to point to it, and what to run elsewhere), failed, or
                ran too long; its output is in `build_*.log` in the folder.
            HlsError: a step is unknown to the backend.
        """
        return run_build(self.path, self.design, steps, timeout_s, on_line)


@overload
def to_hls(
    network: Design,
    target: Target,
    data: str | os.PathLike[str] = ...,
    *,
    backend_options: Mapping[str, Any] | None = ...,
    golden: Samples | None = ...,
) -> HlsProject: ...
@overload
def to_hls(
    network: keras.Model,
    target: Target,
    data: Samples | Mapping[str, Array] | None = ...,
    output_dir: str | os.PathLike[str] = ...,
    precision: AnyPrecision | None = ...,
    name: str = ...,
    *,
    labels: Labels | None = ...,
    layers: LayerSettings | None = ...,
    backend_options: Mapping[str, Any] | None = ...,
    golden: Samples | None = ...,
    results: str | os.PathLike[str] | None = ...,
    progress: OnStep | None = ...,
) -> HlsProject: ...
def to_hls(
    network: Design | keras.Model,
    target: Target,
    data: Any = None,
    output_dir: str | os.PathLike[str] = "hls",
    precision: AnyPrecision | None = None,
    name: str = "network",
    *,
    labels: Labels | None = None,
    layers: LayerSettings | None = None,
    backend_options: Mapping[str, Any] | None = None,
    golden: Samples | None = None,
    results: str | os.PathLike[str] | None = None,
    progress: OnStep | None = None,
) -> HlsProject:
    """Write a whole hls4ml project of `network`, at once, with the same bytes each time.

    `to_hls(design, target, "hls")` renders a `Design`, and needs neither Keras nor TensorFlow;
    `to_hls(model, target, x, "hls")` makes the design of a Keras model first, as `make_design` does.

    Args:
        network: a `Design` or a Keras model.
        target: part, clock, backend, io type, strategy, reuse; for a design, those that it was made for.
        data: for a design the project's folder. For a model samples (N, ...), or one such array for each input, in
            their order or by name, that show the range of every layer; needed unless `precision` is one type for
            everything.
        output_dir: the project's folder; an hls4ml project that is already there is replaced.
        precision: `Precision` (widths; the default), `"auto"` or `AutoPrecision` (widths searched to a stated loss), or
            one type for every weight and result, as `"fixed<16,6>"`. Accumulators are always exact.
        name: project name, a C identifier.
        labels: for the loss of `"auto"`: class numbers (N,) of `data`; or a function of Keras's outputs and the
            hardware's for the samples of `AutoPrecision`, which returns the loss of your metric and its standard error.
            Without them the loss counts samples whose class is not that of Keras.
        layers: settings of single layers, by name or glob, as
            `{"conv2": {"weight": "fixed<6,1>", "strategy": "resource", "reuse_factor": 3}, "d*": {"weight_bits": 5}}`.
        backend_options: further settings of hls4ml's backend, as `{"clock_uncertainty": "20%", "board": "pynq-z2"}`.
        golden: samples that the project's test bench runs; it compares the outputs with those of the emulation. None
            takes the first 32 of `data`.
        results: a JSON file for the measurements of the search of `"auto"`. It is written after each emulation, and
            an interrupted search continues from it if model, data and options are the same.
        progress: called with `(done, total, note)` after each emulation of the search.

    Warns:
        StrategyWarning: in the chosen strategy the zeros of some layers save nothing; with figures.
        ReuseWarning: a layer cannot have the target's reuse factor and has the nearest legal one; `notes` says so too.

    Raises:
        UnsupportedLayerError: hls4ml, or this backend, cannot convert a layer; the message names an alternative.
        HlsError: hls4ml cannot make a correct project, a reuse factor that was asked for by a layer's name is not
            possible (the nearest are named), the board has another part, a given type overflows, no widths keep the
            loss, the design was made for another target, or the folder holds something else.

    Examples:
        >>> project = fp.to_hls(fp.make_design(model, target, x), target, output_dir="hls")
        >>> (project.path / "build_prj.tcl").is_file()
        True
    """
    require_target(target)
    if target.backend not in BACKENDS:
        raise HlsError(
            f"the target has backend {target.backend!r}, which hls4ml does not have: give it one of "
            f"{', '.join(BACKENDS)}, or write Verilog with to_verilog"
        )
    if isinstance(network, Design):
        folder = Path(output_dir if data is None else data)
        _require_made_for(network, target)
        with _draft(folder) as inner:
            _write(inner, folder, network, target, backend_options or {}, golden)
        advice = advise_strategy(network, target)
        warn_of_idle_zeros(advice)
        return HlsProject(folder, network, advice)
    # A design is rendered without Keras, which a model needs.
    from fpgaprune.lowering import lower

    if isinstance(data, str | os.PathLike):
        given = shown(os.fspath(data))
        raise HlsError(f"data of a model is the path {given}; wanted samples: to_hls(model, target, x, {given})")
    folder = Path(output_dir)
    with _draft(folder) as inner:
        require_board(target, backend_options or {})
        known = None if results is None else Path(results)
        made = lower(
            network, target, data, precision, name, labels=labels, layers=layers, results=known, progress=progress
        )
        _write(inner, folder, made.design, target, backend_options or {}, _first(data) if golden is None else golden)
    warn_of_moved_reuse(made.notes)
    advice = advise_strategy(made.design, target)
    warn_of_idle_zeros(advice)
    return HlsProject(folder, made.design, advice, made.free_locks, made.search, (*made.notes, *made.table_notes))


def _require_made_for(design: Design, target: Target) -> None:
    """Check that `design` was made for `target`."""
    wanted = {
        "io_type": target.io_type,
        "backend": target.backend,
        "clock_ns": target.clock_ns,
        "part": target.order_number,
    }
    for field, asked in wanted.items():
        if getattr(design, field) != asked:
            raise HlsError(
                f"design {design.name!r} was made for {field} {getattr(design, field)}; the target has {asked}: make "
                "the design anew for that target"
            )


@contextlib.contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """Make a folder beside `folder` for the new project, which takes its place at the end of the block."""
    if folder.exists() and (
        not folder.is_dir() or (any(folder.iterdir()) and not (folder / "hls4ml_config.yml").exists())
    ):
        raise HlsError(f"{folder} holds other files; name an empty or new folder for the project")
    make_folder(folder.parent)
    with storage(folder):
        draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=DRAFT))
    try:
        inner = draft / folder.name
        yield inner
        with storage(folder):
            _put_in_place(inner, folder, draft / "replaced")
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(
    draft: Path, folder: Path, design: Design, target: Target, options: Mapping[str, object], golden: Samples | None
) -> None:
    """Write to `draft` the project that will stand in `folder`."""
    require_board(target, options)
    graph = render(design, target, draft, options)
    # hls4ml's writers raise any error, such as KeyError for a template that a board does not have.
    with as_problem(f"hls4ml cannot write the project of {design.name!r}", folder):
        write_project(draft, graph, design, golden)


def _put_in_place(made: Path, folder: Path, replaced: Path) -> None:
    """Move `made` to `folder`; if the move fails, `folder` is as before."""
    before = folder.exists()
    if before:
        folder.rename(replaced)
    try:
        made.rename(folder)
    except OSError:
        if before:
            replaced.rename(folder)
        raise


def _first(data: Samples | None) -> Samples | None:
    if isinstance(data, list | tuple):
        return [np.asarray(array)[:GOLDEN] for array in data]
    return None if data is None else np.asarray(data)[:GOLDEN]
