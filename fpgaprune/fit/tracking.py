"""`Tracker`: hands the trials of a search to an experiment tracker that the user has: TensorBoard or MLflow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from fpgaprune.errors import ConfigError, ToolError
from fpgaprune.files import in_a_line, write_bytes
from fpgaprune.fit.folder import TENSORBOARD
from fpgaprune.fit.result import FitPoint


class Tracker(ABC):
    """Hand networks of the search in `folder` to an experiment tracker.

    Attributes:
        name: what `log_trials` calls it.
        module: what is imported of it.
    """

    name: ClassVar[str]
    module: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self._library = import_module(self.module)
        except ImportError as error:
            raise ToolError(
                f"{self.name} is not installed here ({error}); run 'pip install {self.name}', or leave out log_trials"
            ) from error

    def log_once(self, label: str, point: FitPoint) -> None:
        """Log the network of a trial, unless this search did so before it was stopped."""
        # Beside the run of the trial, like its outcome.
        marker = Path(point.folder).with_suffix(f".{self.name}")
        if not marker.exists():
            self.log(label, point)
            write_bytes(marker, b"")

    def log(self, label: str, point: FitPoint) -> None:
        """Log the knobs and the figures of a network under `label`.

        Raises:
            ToolError: the tracker does not take them.
        """
        try:
            self._send(label, _parameters(point), _figures(point))
        except Exception as error:
            # Trackers raise what their servers, disks and networks raise.
            raise ToolError(
                f"{self.name} did not take {label!r}: {in_a_line(error)}; repair it, and run the same command again: "
                "no trial is run twice"
            ) from error

    @abstractmethod
    def _send(self, label: str, parameters: Mapping[str, object], figures: Mapping[str, float]) -> None: ...


class _TensorBoard(Tracker):
    """The plugin HParams of TensorBoard: a folder of events for each network."""

    name, module = "tensorboard", "tensorboard.plugins.hparams.api"

    def _send(self, label: str, parameters: Mapping[str, object], figures: Mapping[str, float]) -> None:
        import tensorflow as tf

        writer = tf.summary.create_file_writer(str(self.folder / TENSORBOARD / label.replace(" ", "-")))
        with writer.as_default():
            self._library.hparams(dict(parameters), trial_id=label)
            for name, value in figures.items():
                tf.summary.scalar(name, value, step=0)
        writer.close()


class _MLflow(Tracker):
    """A run of MLflow for each network, where MLflow's own environment variables say."""

    name, module = "mlflow", "mlflow"

    def _send(self, label: str, parameters: Mapping[str, object], figures: Mapping[str, float]) -> None:
        tags = {"search": str(self.folder.resolve())}
        with self._library.start_run(run_name=label, nested=True, tags=tags):
            self._library.log_params(dict(parameters))
            self._library.log_metrics(dict(figures))


_TRACKERS: tuple[type[Tracker], ...] = (_TensorBoard, _MLflow)


def find_tracker(name: str, folder: Path) -> Tracker:
    """Return the experiment tracker `name` for the search in `folder`.

    Raises:
        ConfigError: there is no such tracker.
        ToolError: it is not installed.
    """
    for kind in _TRACKERS:
        if kind.name == name:
            return kind(folder)
    raise ConfigError(f"log_trials is {name!r}; wanted {' or '.join(kind.name for kind in _TRACKERS)}")


def _parameters(point: FitPoint) -> dict[str, Any]:
    """Return knob to value; layers with one bit less are words."""
    knobs = {field.name: getattr(point.knobs, field.name) for field in fields(point.knobs)}
    return {**knobs, "narrow": point.knobs.less, "epochs": point.epochs}


def _figures(point: FitPoint) -> dict[str, float]:
    """Return a dict with the metric, its loss, the cycles and each resource, counted where a tool counted it."""
    resources = point.used if point.measured is None else point.measured
    found = {
        "metric": point.value,
        "lost": point.lost,
        "lost_error": point.lost_error,
        "share_of_part": point.share,
        "latency_cycles": point.latency_cycles,
        "interval_cycles": point.interval_cycles,
        "meets_limits": point.meets_limits,
        **resources,
    }
    return {name: float(value) for name, value in found.items() if value is not None}
