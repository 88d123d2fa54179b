"""`fit` and `fit_flow`: search the best network for a part, a clock and a largest loss."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.backends import VERILOG
from fpgaprune.errors import ConfigError, FpgaPruneError, RunError
from fpgaprune.files import make_folder, write_bytes, write_npz
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.log import OnTrial, SearchStatus
from fpgaprune.fit.result import Fit
from fpgaprune.fit.route import find_route
from fpgaprune.fit.search import FitSearch
from fpgaprune.fit.tracking import Tracker, find_tracker
from fpgaprune.fit.workers import WorkerOptions
from fpgaprune.flow import Flow, Progress, Silent, TargetConfig, check_data, parse_config
from fpgaprune.network import save_keras
from fpgaprune.target import Target, require_target
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras


def fit_flow(
    config: Flow,
    out: Path,
    limits: Limits | None = None,
    progress: Progress | None = None,
    route: str | None = None,
    options: WorkerOptions | None = None,
    on_trial: OnTrial | None = None,
    *,
    replace: bool = False,
    log_trials: str | None = None,
) -> Fit:
    """Find the best network that the flow `config` can make for its part within `limits`; `out` holds the search.

    `out/best` is a whole run, `out/front.json` the result, `out/trials` a run for each trial. A search that was ended
    goes on when it is called again: no trial that has ended is run twice.

    Args:
        config: the flow: model, data, part, clock, and what else shall hold. The search sets filters, sparsity, bits,
            layout and io type.
        out: the folder; it is new, or an earlier search's.
        limits: what must hold.
        progress: learns of trials in words.
        route: `hls`, an hls4ml project by its analytic estimate; or `verilog`, our own, which is synthesised. If left
            out, that of `[target]`; `auto` is `verilog` too where the untouched network fits only so.
        options: where trials run.
        on_trial: learns of the state of the search after each trial, as data.
        replace: whether the answer of a search of another network in `out` is lost.
        log_trials: `tensorboard` or `mlflow`, which get each trial.

    Raises:
        ConfigError: the flow does not fit its data or model.
        EstimateError: the network or the part has no estimate.
        RunError: `out` holds something else or a search of another network, or is in use.
        ToolError: Dask, TensorBoard or MLflow is missing, or a scheduler is gone.
    """
    return _ended(*_prepared(config, out, limits or Limits(), progress, route, options, on_trial, replace, log_trials))


def _prepared(
    config: Flow,
    out: Path,
    limits: Limits,
    progress: Progress | None,
    route: str | None,
    options: WorkerOptions | None,
    on_trial: OnTrial | None,
    replace: bool,
    log_trials: str | None,
) -> tuple[FitSearch, Tracker | None]:
    """Return the search, and the tracker that learns of its trials; arguments and errors are those of `fit_flow`."""
    tracker = None if log_trials is None else find_tracker(log_trials, out)
    target = config[TargetConfig]
    asked = route or target.route
    way = find_route(asked, target.target(), limits.share)
    # Every run of the search makes what the route needs, and nothing else.
    settled = config.model_copy(update={"target": target.model_copy(update={"route": way.name})})
    report = partial(_report, on_trial, tracker)
    learns, free = progress or Silent(), asked == "auto"
    return FitSearch(way, settled, out, limits, learns, options or WorkerOptions(), report, replace, free), tracker


def _ended(search: FitSearch, tracker: Tracker | None) -> Fit:
    found = search.run()
    if tracker is not None:
        tracker.log("best", found.best)
    return found


def _report(on_trial: OnTrial | None, tracker: Tracker | None, status: SearchStatus) -> None:
    if tracker is not None and status.point is not None:
        tracker.log_once(f"trial {status.trial}", status.point)
    if on_trial is not None:
        on_trial(status)


def fit(
    model: keras.Model | str | Path,
    data: object,
    target: Target,
    max_loss: str = "0.5 %",
    *,
    out: str | Path,
    share: float = 0.8,
    latency_us: float | None = None,
    interval_cycles: int | None = None,
    samples_per_s: float | None = None,
    minutes: float = 10.0,
    epochs: int | None = None,
    seed: int = 0,
    route: str | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    memory_gib: float | None = None,
    replace: bool = False,
    log_trials: str | None = None,
) -> Fit:
    """Find the best network that fits `target` and loses at most `max_loss`, and write its run to `out`.

    What has no limit is minimised, in this order: latency, shares of the part and loss. The shares of all resources are
    added; a network that loses the whole of `max_loss` must be a tenth smaller than one that loses nothing.

    Args:
        model: a trained Keras model, or the path of one. It is unchanged.
        data: the path of an `.npz`, the name of a function, or a mapping with x_train, y_train, x_test, y_test and
            perhaps x_valid, y_valid, sample_weight_train and the like, each (samples, ...), or a mapping of the names
            of inputs or outputs to such arrays.
        target: part and clock. Its io type, strategy and reuse factor are where the search begins.
        max_loss: largest loss of the metric on the held-out samples: `0.5 %` is half a point of accuracy, or an error
            that grew by 0.5 %. One standard error may be added.
        out: folder for the answer, new or of an earlier search that goes on.
        share: largest share of each resource of the part, 0..1, for the upper end of the estimate.
        latency_us: longest latency in microseconds.
        interval_cycles: most cycles between two samples.
        samples_per_s: least samples a second.
        minutes: time of the whole search, the run of the best network and its open synthesis included; a vendor's tool
            takes extra time.
        epochs: of fine-tuning of the best network, at the network's own learning rate; first trials take a fourth. If
            left out, the search chooses epochs, batches and rate.
        seed: of all random numbers.
        route: `hls`, an hls4ml project by its analytic estimate; or `verilog`, our own, which is synthesised. If left
            out, `verilog` for parts of Lattice and Gowin, whose tools compile no HLS, for a network that hls4ml does
            not take, and where the untouched network fits only so; else `hls`.
        progress: learns of trials in words.
        workers: processes on this machine that run trials at the same time. A script that gives it needs
            `if __name__ == "__main__":`, as all scripts that start processes.
        scheduler: address of a scheduler of Dask, as `tcp://host:8786`, whose workers run the trials. All of them see
            `out` and the data.
        memory_gib: most memory of a worker on this machine in GiB.
        replace: whether the answer of a search of another network in `out` is lost. Without it, that is refused.
        log_trials: `tensorboard`: the hparams of each trial are in `out/tensorboard`; `mlflow`: each trial is a run
            of MLflow, where its own environment variables say.

    Raises:
        ConfigError: a limit, the model or the data are not what they should be.
        EstimateError: the network or the part has no estimate.
        RunError: `out` holds something else or a search of another network, or is in use.
        ToolError: Dask is missing (`fpgaprune[search]`), or a scheduler is gone.

    Examples:
        >>> data = {"x_train": x, "y_train": y, "x_test": x, "y_test": y}
        >>> found = fp.fit(model, data, target, "1 %", out="search", minutes=5)  # doctest: +SKIP
        >>> found.best.folder, found.front  # doctest: +SKIP
    """
    require_target(target)
    options = WorkerOptions(workers, scheduler, memory_gib)
    limits = Limits(max_loss, share, latency_us, interval_cycles, samples_per_s, minutes)
    folder = Path(out)
    with _as_before(folder):
        document: dict[str, Any] = {
            "name": "fit",
            "seed": seed,
            "data": {"source": data_source(data, folder)},
            "train": {"model": str(_model_file(model, folder, replace))},
            "target": {
                "part": target.board or target.order_number,
                "clock_ns": target.clock_ns,
                "io_type": target.io_type,
                "strategy": target.strategy,
                "reuse_factor": target.reuse_factor,
            },
            "hls": {} if target.backend == VERILOG else {"backend": target.backend},
        }
        if target.backend == VERILOG:
            document["target"]["route"] = "verilog"
        if epochs is not None:
            document["finetune"] = {"epochs": epochs}
        config = parse_config(document, "fit")
        search, tracker = _prepared(config, folder, limits, progress, route, options, None, replace, log_trials)
        _ = search.checked
    return _ended(search, tracker)


_DATA, _MODEL = "data.npz", "model.keras"


@contextmanager
def _as_before(folder: Path) -> Iterator[None]:
    """Put the data and the network in `folder` back as they were if the block ends in an error: no search begins.

    The error then says that they are in memory, because it would name files that are gone.
    """
    is_new = not folder.exists()
    with TemporaryDirectory(prefix=".before-", dir=make_folder(folder), ignore_cleanup_errors=True) as scratch:
        files = {folder / name: Path(scratch) / name for name in (_DATA, _MODEL)}
        for path, kept in files.items():
            if path.exists():
                shutil.copy2(path, kept)
        try:
            yield
        except BaseException as error:
            for path, kept in files.items():
                path.unlink(missing_ok=True)
                if kept.exists():
                    kept.replace(path)
            if is_new:
                shutil.rmtree(folder)
            if isinstance(error, FpgaPruneError):
                error.args = (_in_memory(str(error), folder),)
            raise


def _in_memory(text: str, folder: Path) -> str:
    """Return `text` with what was in memory in place of the files of `folder` that held it."""
    text = text.replace(repr(str(folder / _DATA)), "in memory")
    return text.replace(f"train.model {folder / _MODEL}", "the model in memory")


def data_source(data: object, folder: Path) -> str:
    """Return the source of `data` for a flow file; arrays in memory are written to `folder`.

    Raises:
        ConfigError: it is no path, no name and no mapping.
        DataError: the arrays do not fit each other, or hold NaN; nothing is written.
    """
    if isinstance(data, str | Path):
        return str(data)
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"data is a {type(data).__name__}; wanted a path, or a mapping with x_train, y_train, x_test and y_test"
        )
    arrays = dict(_named_arrays(data))
    check_data(str(folder / _DATA), arrays)
    write_npz(folder / _DATA, arrays)
    return str(folder / _DATA)


def _named_arrays(data: Mapping[Any, Any]) -> Iterator[tuple[str, Array]]:
    """Yield each array of `data` with its name in an `.npz`: one of several inputs or outputs as `x_train.left`."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}.{name}", np.asarray(array)) for name, array in value.items())
        elif isinstance(value, list | tuple) and value and all(hasattr(array, "shape") for array in value):
            yield from ((f"{key}.{number}", np.asarray(array)) for number, array in enumerate(value))
        elif value is not None:
            yield str(key), np.asarray(value)


def _model_file(model: object, folder: Path, replace: bool) -> Path:
    if isinstance(model, str | Path):
        return Path(model)
    path = folder / _MODEL
    with TemporaryDirectory() as scratch:
        # Only a file shows whether this is the network that the folder is of.
        draft = Path(scratch) / path.name
        save_keras(model, draft)
        content = draft.read_bytes()
    if path.exists() and path.read_bytes() != content and not replace:
        raise RunError(
            f"{folder} holds a search of another network, {path}; name another out, or give replace=True to lose "
            "that search"
        )
    return write_bytes(path, content)
