"""`Origin`: which network a run is of, so that a run of another network does not replace it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from fpgaprune.errors import RunError
from fpgaprune.flow.file import DataConfig, Flow, TrainConfig
from fpgaprune.flow.run import RunDirectory, digest_network
from fpgaprune.flow.task import Dataset

# The key of the manifest.
_KEY = "network"


@dataclass(frozen=True)
class Origin:
    """Where the network of a flow comes from.

    A model file that was trained again in its place stays the same network, and so does a copy of it. A network that
    the flow trains itself is the same if the flow's name and its data are.

    Attributes:
        kind: `model`, or `flow` for a network that the flow trains itself.
        source: absolute path of the model, or the source of the data.
        content: SHA-256 of the model's files, or of the samples.
        flow: name of the flow.
    """

    kind: str
    source: str
    content: str | None
    flow: str

    @classmethod
    def of(cls, config: Flow, data: Dataset) -> Self:
        """Return the origin of the network of the flow `config` with the samples `data`."""
        model = config[TrainConfig].model
        if model is None:
            return cls("flow", _absolute(config[DataConfig].source), data.digest(), config.name)
        return cls("model", str(model.resolve()), digest_network(model), config.name)

    def require_same(self, run: RunDirectory) -> None:
        """Check that the artefacts in `run`, if there are any, are of this network.

        Raises:
            RunError: they are of another one.
        """
        if run.manifest["stages"] and not self._is(known := _recorded(run)):
            raise RunError(
                f"{run.path} holds a run of {_words(known)}, and this one is of {_words(self)}; name another --out, or "
                "give --replace, in Python replace=True, to lose that run"
            )

    def record(self, run: RunDirectory) -> None:
        """Note this origin in the manifest of `run`, which is not written yet."""
        run.manifest[_KEY] = asdict(self)

    def _is(self, other: Origin) -> bool:
        if self.kind != other.kind or (self.kind == "flow" and self.flow != other.flow):
            return False
        return self.source == other.source or (self.content is not None and self.content == other.content)


def _recorded(run: RunDirectory) -> Origin:
    if run.manifest.get(_KEY) is None:
        raise RunError(f"{run.path} does not say of which network its run is; name another --out")
    return Origin(**run.manifest[_KEY])


def _words(origin: Origin) -> str:
    if origin.kind == "model":
        return origin.source
    return f"the flow {origin.flow!r}, which trains on {origin.source}"


def _absolute(source: str) -> str:
    return str(Path(source).resolve()) if source.endswith(".npz") else source
