"""`SearchOptions`: how widely to search, and on which machines."""

from __future__ import annotations

from dataclasses import dataclass

from fpgaprune.errors import ConfigError


@dataclass(frozen=True)
class SearchOptions:
    """What a search does beside its descent. Without any of it, there is the descent alone, in one process.

    Attributes:
        trials: most networks to suggest after the descent; as many as there is time for if None.
        workers: processes on this machine that do trials at the same time.
        scheduler: address of a scheduler of Dask, as `tcp://host:8786`, whose workers do the trials.
        front: whether the whole front of loss, share and latency is wanted, not only the best network.
        memory_gib: most memory of a worker on this machine in GiB; its part of what there is if None.
    """

    trials: int | None = None
    workers: int | None = None
    scheduler: str | None = None
    front: bool = False
    memory_gib: float | None = None

    def __post_init__(self) -> None:
        for name in ("trials", "workers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}; wanted 1 or more, or nothing")
        if self.memory_gib is not None and not 0 < self.memory_gib < float("inf"):
            raise ConfigError(f"memory_gib is {self.memory_gib}; wanted a number above 0")
        if self.workers is not None and self.scheduler is not None:
            raise ConfigError(
                f"workers is {self.workers} and scheduler is {self.scheduler}; wanted one of them: "
                "a scheduler has workers of its own"
            )
        if self.memory_gib is not None and self.workers is None:
            raise ConfigError("memory_gib bounds workers on this machine; name their number with workers")

    @property
    def searches(self) -> bool:
        """Whether a study goes on where the descent ends."""
        return self.front or any(value is not None for value in (self.trials, self.workers, self.scheduler))
