"""`Study`: Optuna, which suggests knobs and learns what they brought; its journal survives a killed search."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpgaprune.errors import RunError, ToolError
from fpgaprune.files import make_folder, storage
from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.knobs import CHEAP, SPARSITIES, WIDTHS, Knobs
from fpgaprune.fit.ranking import Ranking
from fpgaprune.layout import DesignLayout

_INSTALL = "pip install 'fpgaprune[search]'"
# A network that loses so many limits more is not on a front that anyone wants.
_FRONT_LOSS = 4.0
# Attributes of a trial in the journal: its knobs in words, the keys of its outcomes, whether the descent brought it.
_KNOBS, _KEYS, _TOLD = "knobs", "keys", "told"


@dataclass(frozen=True)
class Suggested:
    """Knobs that the study suggests.

    Attributes:
        number: the trial's number in the study.
        knobs: the knobs.
    """

    number: int
    knobs: Knobs


@dataclass(frozen=True)
class Space:
    """The knobs that a study may turn, and how far.

    Attributes:
        unit: granularity.
        filters: whether whole filters may be locked first.
        widest: most bits of a weight or an activation.
        holds: whether kept weights may be powers of two.
    """

    unit: str
    filters: bool = False
    widest: int = WIDTHS[0]
    holds: bool = False


class Study:
    """Suggests knobs. Only one process may hold it; it alone writes the journal.

    A single goal is searched by TPE (Bergstra et al., Algorithms for Hyper-Parameter Optimization, 2011), a front of
    loss, share and latency by NSGA-II (Deb et al., A fast and elitist multiobjective genetic algorithm, 2002).
    """

    def __init__(self, journal: Path, name: str, space: Space, ranking: Ranking, front: bool, seed: int) -> None:
        """The study `name` in the file `journal`, which is new or an earlier search's.

        Raises:
            ToolError: Optuna is missing.
            RunError: the journal is damaged.
        """
        self._optuna = require_optuna()
        self._ranking, self._front, self._seed = ranking, front, seed
        self._begun: dict[int, Any] = {}
        self._unit = space.unit
        distributions = self._optuna.distributions
        self._space: dict[str, Any] = {
            "filters_step": distributions.IntDistribution(0, len(SPARSITIES) - 1 if space.filters else 0),
            "sparsity_step": distributions.IntDistribution(0, len(SPARSITIES) - 1),
            "weight_bits": distributions.IntDistribution(WIDTHS[-1], space.widest),
            "activation_bits": distributions.IntDistribution(WIDTHS[-1], space.widest),
            "hold": distributions.CategoricalDistribution(["", CHEAP] if space.holds else [""]),
        }
        drop_unfinished_line(journal)
        try:
            self._study = self._optuna.create_study(
                storage=self._optuna.storages.JournalStorage(_backend(journal)),
                study_name=name,
                directions=["minimize"] * (3 if front else 1),
                load_if_exists=True,
            )
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"{journal} is no journal of a search: {error}; delete it; trials that have ended are not done again"
            ) from error

    @property
    def asked(self) -> int:
        """The number of trials that the study has suggested so far; those of the descent do not count."""
        return sum(_TOLD not in trial.user_attrs and self._is_whole(trial) for trial in self._trials())

    def unfinished(self) -> list[Suggested]:
        """The trials that a killed search had begun."""
        states, found = self._optuna.trial.TrialState, []
        for trial in [trial for trial in self._trials() if trial.state == states.RUNNING]:
            if self._is_whole(trial):
                self._begun[trial.number] = self._optuna.trial.Trial(self._study, trial._trial_id)
                found.append(Suggested(trial.number, self._knobs(trial.params)))
            else:
                # The search was killed while Optuna wrote the parameters.
                self._study.tell(trial.number, state=states.FAIL)
        return found

    def ended_keys(self) -> list[str]:
        """The keys of all outcomes that the study was told, in their order."""
        ended = [trial for trial in self._trials() if trial.state.is_finished()]
        return list(dict.fromkeys(key for trial in ended for key in trial.user_attrs.get(_KEYS, [])))

    def known_before(self, number: int) -> list[str]:
        """The keys of the networks of others that the study knew before its trial `number`: the same after a kill."""
        return [
            key for trial in self._trials()[:number] if _TOLD in trial.user_attrs for key in trial.user_attrs[_KEYS]
        ]

    def ask(self) -> Suggested:
        """The next knobs to try."""
        samplers, seed = self._optuna.samplers, self._seed + len(self._trials())
        # A search that goes on after a kill suggests what it would have suggested.
        self._study.sampler = (
            samplers.NSGAIISampler(seed=seed) if self._front else samplers.TPESampler(seed=seed, multivariate=True)
        )
        trial = self._study.ask(self._space)
        knobs = self._knobs(trial.params)
        trial.set_user_attr(_KNOBS, str(knobs))
        self._begun[trial.number] = trial
        return Suggested(trial.number, knobs)

    def know(self, knobs: Knobs, point: FitPoint, key: str) -> None:
        """The study knows of a network that others suggested, unless it knows of it or cannot turn the knobs so."""
        params = {
            "filters_step": _step(knobs.filters),
            "sparsity_step": _step(knobs.sparsity),
            "weight_bits": knobs.weight_bits,
            "activation_bits": knobs.activation_bits,
            "hold": knobs.hold,
        }
        known = any(key in trial.user_attrs.get(_KEYS, []) for trial in self._trials())
        if (
            known
            or knobs.granularity != self._unit
            or knobs.narrow
            or not all(_holds(kind, params[name]) for name, kind in self._space.items())
        ):
            return
        self._study.add_trial(
            self._optuna.trial.create_trial(
                values=self._values(point),
                params=params,
                distributions=self._space,
                user_attrs={_KNOBS: str(knobs), _KEYS: [key], _TOLD: True},
                constraints=self._constraints(point),
            )
        )

    def tell(self, asked: Suggested, point: FitPoint, keys: Sequence[str], whole: bool) -> None:
        """The trial has ended with `point`; if it was not trained whole, it was hopeless after a short training.

        Args:
            asked: the trial.
            point: what the last rung brought.
            keys: the keys of the outcomes of all rungs.
            whole: whether it was trained whole.
        """
        trial = self._note(asked, self._constraints(point), {_KEYS: list(keys)})
        values = self._values(point)
        if whole or self._front:
            # NSGA-II learns nothing from a trial without values.
            self._study.tell(trial, values)
        else:
            self._end_early(trial, 1, values[0])

    def prune(self, asked: Suggested, laid: DesignLayout, reason: str) -> None:
        """The trial was hopeless by its price: nothing was trained."""
        trial = self._note(asked, self._ranking.beyond(laid), {"reason": reason})
        self._end_early(trial, 0, None if self._front else self._ranking.objective(laid))

    def refuse(self, asked: Suggested, reason: str) -> None:
        """There is no such network."""
        self._study.tell(self._note(asked, {}, {"reason": reason}), state=self._optuna.trial.TrialState.FAIL)

    def _note(self, asked: Suggested, constraints: dict[str, float], notes: dict[str, Any]) -> Any:
        """The trial with constraints and notes; a search that was killed may have written some of them."""
        trial = self._begun.pop(asked.number)
        for name, value in constraints.items():
            if name not in trial.constraints:
                trial.set_constraint(name, value)
        for name, value in notes.items():
            trial.set_user_attr(name, value)
        return trial

    def _end_early(self, trial: Any, rung: int, value: float | None) -> None:
        if value is not None and rung not in self._trials()[trial.number].intermediate_values:
            trial.report(value, rung)
        self._study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)

    def _knobs(self, params: dict[str, Any]) -> Knobs:
        sparsity, filters = (SPARSITIES[params[name]] for name in ("sparsity_step", "filters_step"))
        return Knobs(self._unit, sparsity, params["weight_bits"], params["activation_bits"], params["hold"], filters)

    def _is_whole(self, trial: Any) -> bool:
        return set(self._space) <= set(trial.params)

    def _trials(self) -> list[Any]:
        return list(self._study.get_trials(deepcopy=False))

    def _values(self, point: FitPoint) -> list[float]:
        if self._front:
            return [point.lost, point.share, math.log(max(point.latency_cycles, 1))]
        return [self._ranking.objective(point)]

    def _constraints(self, point: FitPoint) -> dict[str, float]:
        lost = self._ranking.lost_beyond(point) - (_FRONT_LOSS if self._front else 0.0)
        return {"loss": lost, **self._ranking.beyond(point)}


def drop_unfinished_line(journal: Path) -> None:
    """The file ends with a whole line; a line that a killed process had begun to write is gone.

    Raises:
        StorageError: the file cannot be changed.
    """
    make_folder(journal.parent)
    with storage(journal), open(journal, "ab+") as file:
        file.seek(0)
        text = file.read()
        file.truncate(text.rfind(b"\n") + 1)


def _backend(journal: Path) -> Any:
    """The journal as Optuna reads it, written by this process alone.

    Optuna's own locks outlive a killed process, and it waits for the disk ten times a trial. What a process has written
    survives its kill without; what a failing machine loses is known from the files of the trials.
    """
    from optuna.storages.journal import JournalFileBackend

    class OneWriter(JournalFileBackend):
        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            lines = b"".join(json.dumps(log, separators=(",", ":")).encode() + b"\n" for log in logs)
            with storage(journal), open(journal, "ab") as file:
                file.write(lines)

    return OneWriter(str(journal))


def require_optuna() -> Any:
    """Optuna, silent.

    Raises:
        ToolError: it is missing.
    """
    try:
        import optuna
        import optuna.storages.journal
    except ImportError:
        raise ToolError(f"optuna, which suggests what to try, was not found: {_INSTALL}") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _step(share: float) -> int:
    """The number of a share that a study suggests; -1 if it suggests none such."""
    return SPARSITIES.index(share) if share in SPARSITIES else -1


def _holds(kind: Any, value: Any) -> bool:
    """Whether a distribution of Optuna has `value`."""
    if hasattr(kind, "choices"):
        return value in kind.choices
    return bool(kind.low <= value <= kind.high)
