"""The stage `trim`: takes bits and weights from a trained row of Dense layers, while a limit on its loss holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from fpgaprune.certify import check_keras_file
from fpgaprune.errors import ConfigError
from fpgaprune.flow.file import FinetuneConfig, Flow, LossLimit, Section, TargetConfig, judging, section_json
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.stages.quantise import QuantiseConfig
from fpgaprune.flow.stages.stage import (
    MASKS,
    NETWORK,
    TYPES,
    FlowStage,
    Known,
    NetworkFiles,
    OutcomeLine,
    ReportPart,
    StageContext,
    StageResult,
)
from fpgaprune.flow.task import Dataset, Loss, Reading, Samples, at, count_of, predict
from fpgaprune.network import save_keras
from fpgaprune.report import Check
from fpgaprune.values import MaskSet, parse_loss

if TYPE_CHECKING:
    import keras

    from fpgaprune.trim import Chain, DenseNetwork, Fabric, LossOf

_MODEL, _MASKS = "trimmed.keras", "trimmed_masks.npz"
_LINKS = {_MODEL: lambda files: check_keras_file(files.file(_MODEL), files.masks(_MASKS))}
# Samples that judge a network on the way, at most.
_JUDGED = 10_000


class TrimConfig(Section):
    """Fewer bits for single inputs and neurons, and fewer weights, after all training. Example: `max_loss = "0.5 %"`.

    The network is a row of Dense layers with ReLU, trained while it rounds (`[quantise]`).
    """

    max_loss: LossLimit | None = None
    """Most of the metric that it may lose, on the validation samples, or on the training samples if there are none.
    Left out: nothing is trimmed."""
    samples: int = Field(default=2000, ge=1)
    """Training samples on which the loss of each change is found, others in each round."""


class TrimResult(StageResult, frozen=True, kw_only=True, omit_defaults=True):
    """The network with fewer bits and weights.

    Attributes:
        metric: its metric, and its loss against the trained network.
        trimmed: its loss to trimming, on the samples that chose it.
        weights: number of weights of its Dense layers that are not zero, before and after.
        bits: bits of all inputs of its Dense layers, before and after.
        rounds: of the search.
    """

    metric: Reading
    trimmed: Loss
    weights: tuple[int, int]
    bits: tuple[int, int]
    rounds: int


class TrimStage(FlowStage[TrimResult]):
    """Takes bits and weights from a trained row of Dense layers, while a limit on its loss holds."""

    name = "trim"
    inputs = ("trained_outputs.npz", NETWORK, MASKS, TYPES)
    outputs = (_MODEL, _MASKS)
    sections: ClassVar[Mapping[str, Section]] = {"trim": TrimConfig()}
    network = NetworkFiles(_MODEL, _MASKS, rounds=True)
    may_be_left_out = True
    masks = ("trimmed_masks",)
    links = _LINKS
    result = TrimResult

    def run(self, context: StageContext) -> TrimResult | None:
        """Write the network with a type for each channel to `trimmed.keras`, and its zeros to `trimmed_masks.npz`."""
        run, data, settings = context.run, context.data, context.config[TrimConfig]
        for name in (_MODEL, _MASKS):
            run.file(name).unlink(missing_ok=True)
        if settings.max_loss is None:
            return None
        from fpgaprune.trim import DenseNetwork, trimmed

        before, types = context.model(), context.artefacts.types()
        network = DenseNetwork.read(before, types, _rows(data.x_train))
        judged = _Judged(context, network, before)
        limit = parse_loss(settings.max_loss)
        found = trimmed(
            network.chain,
            _batches(context, network),
            lambda chain: judged.loss(chain).lost <= limit,
            _fabric(context.config),
            lambda left: context.progress.step(round(100 * (1 - left)), 100, "per cent of the look-up tables trimmed"),
        )
        if found.chain is None:
            return TrimResult(
                left_out=f"no network on the way loses at most {settings.max_loss} on the samples that choose it",
                metric=context.judge(before).reading(predict(before, data.x_test), context.trained_outputs()),
                trimmed=judged.loss(network.trained),
                weights=(_weights(network.chain),) * 2,
                bits=(_bits(network.chain),) * 2,
                rounds=found.rounds,
            )
        model = network.with_chain(found.chain)
        save_keras(model, run.file(_MODEL))
        _with_zeros(context.masks(), found.chain, network).save(run.file(_MASKS))
        outputs = predict(model, data.x_test)
        return TrimResult(
            metric=context.judge(before).reading(outputs, context.trained_outputs()),
            trimmed=judged.loss(found.chain),
            weights=(_weights(network.chain), _weights(found.chain)),
            bits=(_bits(network.chain), _bits(found.chain)),
            rounds=found.rounds,
            links=context.artefacts.proven(_LINKS),
        )

    def asked(self, config: Flow) -> bool:
        return config[TrimConfig].max_loss is not None

    def settings(self, config: Flow) -> object:
        own = section_json(config[TrimConfig])
        return (
            own if config[TrimConfig].max_loss is None else [own, section_json(config[TargetConfig]), judging(config)]
        )

    def checks(self, known: Known) -> Iterator[Callable[[], Any]]:
        if known.config[TrimConfig].max_loss is not None:
            yield partial(_require_rounding, known.config)

    def foresee(self, config: Flow, _: Dataset, model: keras.Model) -> Iterator[str]:
        """Yield a line for the first layer of the network that has no place in a row of Dense layers."""
        if config[TrimConfig].max_loss is not None:
            from fpgaprune.trim import untrimmable

            for problem in islice(untrimmable(model), 1):
                yield f"trim.max_loss: {problem}; or leave [trim] out"

    def claims(self, run: RunDirectory) -> Iterator[str]:
        """Yield a line for each kernel of which a locked weight is not locked after trimming."""
        before = next((name for name in ("quantised_masks.npz", "removed_masks.npz") if run.file(name).is_file()), None)
        if before is None or not run.file(_MASKS).is_file():
            return
        locked, after = MaskSet.load(run.file(before)), MaskSet.load(run.file(_MASKS))
        for path in sorted(locked.keys()):
            if path not in after or (after[path] & ~locked[path]).any():
                yield f"{_MASKS}: the mask for {path!r} leaves out locks of {before}"

    def part(self, context: StageContext, result: TrimResult) -> ReportPart:
        if result.left_out is not None:
            return ReportPart(left_out=result.left_out)
        limit, quantity = context.config[TrimConfig].max_loss, f"{result.metric.name} lost"
        wanted = None if limit is None else parse_loss(limit)
        what = "trimming bits and weights, on the samples that chose them"
        return ReportPart(checks=[Check(what, quantity, result.trimmed.lost, wanted, about="metric")])

    def readings(self, result: TrimResult) -> dict[str, Reading]:
        return {} if result.left_out is not None else {"after": result.metric}

    def outcome(self, result: TrimResult) -> Iterator[OutcomeLine]:
        if result.left_out is not None:
            yield OutcomeLine(f"trimmed     left out: {result.left_out}")
            return
        (weights, fewer), (bits, narrower) = result.weights, result.bits
        yield OutcomeLine(
            f"trimmed     weights {weights:,} to {fewer:,}, bits between layers {bits:,} to {narrower:,}; "
            f"{result.metric.name} lost: {result.trimmed.lost:.4f}"
        )


class _Judged:
    """Loss of a trimmed network against the network before, on the samples for choices."""

    def __init__(self, context: StageContext, network: DenseNetwork, model: keras.Model) -> None:
        x, labels, weights = context.data.choosing
        some = _drawn(count_of(x), _JUDGED, context.config.seed)
        self._network, self._x = network, _rows(at(x, some))
        self._judge = context.judge_of(model, at(labels, some), None if weights is None else at(weights, some))
        self._before = self._outputs(network.trained)

    def loss(self, chain: Chain) -> Loss:
        """Return how much of the metric `chain` loses."""
        return self._judge.lost(self._before, self._outputs(chain))

    def _outputs(self, chain: Chain) -> np.ndarray:
        from fpgaprune.trim import finished

        return finished(chain.outputs(self._x), self._network.last)


def _batches(context: StageContext, network: DenseNetwork) -> Iterator[tuple[np.ndarray, LossOf]]:
    """Yield other training samples each time, and the loss of the outputs for them, without an end."""
    from fpgaprune.trim import loss_for

    data, random = context.data, np.random.default_rng(context.config.seed)
    outputs, count = network.chain.biases[-1].size, count_of(data.x_train)
    while True:
        some = np.sort(random.permutation(count)[: context.config[TrimConfig].samples])
        labels = np.asarray(at(data.y_train, some))
        yield _rows(at(data.x_train, some)), loss_for(labels, outputs, network.last)


def _rows(x: Samples) -> np.ndarray:
    return np.asarray(x, np.float32).reshape(len(x), -1)


def _drawn(count: int, most: int, seed: int) -> np.ndarray:
    """Return the numbers of at most `most` of `count` samples, in order."""
    return np.sort(np.random.default_rng(seed).permutation(count)[:most])


def _fabric(config: Flow) -> Fabric:
    from fpgaprune.trim import Fabric

    return Fabric(3, 6) if config[TargetConfig].target().part.adds_three else Fabric(2, 4)


def _with_zeros(masks: MaskSet, chain: Chain, network: DenseNetwork) -> MaskSet:
    """Return `masks` with locks for all weights that are zero after trimming."""
    import keras

    dense = [layer for layer in network.model.layers if isinstance(layer, keras.layers.Dense)]
    kept = {layer.kernel.path: kernel != 0 for layer, kernel in zip(dense, chain.kernels, strict=True)}
    return masks & MaskSet(kept)


def _weights(chain: Chain) -> int:
    return sum(int(np.count_nonzero(kernel)) for kernel in chain.kernels)


def _bits(chain: Chain) -> int:
    return sum(
        int(types.width[kernel.any(axis=1)].sum()) for types, kernel in zip(chain.types, chain.kernels, strict=True)
    )


def _require_rounding(config: Flow) -> None:
    if not (config[QuantiseConfig].epochs or config[FinetuneConfig].quantised):
        raise ConfigError(
            f"trim.max_loss is {config[TrimConfig].max_loss!r}, and the network is not trained while it rounds; wanted "
            "epochs above 0 in [quantise], or quantised = true in [finetune]"
        )


STAGE = TrimStage()
