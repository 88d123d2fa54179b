"""The ways of the hardware benchmark: what each makes of the same trained network, kept in files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mnist_designs import CALIBRATION, highest_power, power_of_two
from mnist_network import (
    BATCH,
    CONVS,
    RATE,
    SEED,
    Arrays,
    compiled,
    get_weights,
    initial_weights,
    keras_accuracy,
    network,
    saved,
    set_weights,
)

if TYPE_CHECKING:
    from fpgaprune.fixed import FixedType

HERE = Path(__file__).parent
# Exponents that a layer may use: from its largest weight down.
POWERS = 5


@dataclass(frozen=True)
class Recipe:
    """How far fpgaprune goes: each entry is a round with one pass of fine-tuning; dead channels leave after each kind.

    Attributes:
        filters, kernels, weights: share of those of both convolutions that is locked after each round, of what the
            rounds before have left of the network.
        powers: share of the kept weights held at powers of two after each round.
        bits: of the image and of what the ReLUs hand on, in the rounds of `powers`; what is not named is not rounded.
    """

    filters: tuple[float, ...] = ()
    kernels: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    powers: tuple[float, ...] = ()
    bits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """How long everything is trained, and on how much.

    Attributes:
        samples: training images. held_out: of those, that no training sees.
        base_epochs: passes of the network that every way begins with.
        recipes: of fpgaprune, by name. loss: accuracy that precision `auto` may lose, a fraction.
        more_epochs: of training after that, for TF-MOT and for the network that is not pruned.
        tfmot: name to what TF-MOT prunes of each convolution.
        hgq: name to what `mnist_hgq` reads as its job, but the seed. passes: of those, by name, which are measured.
    """

    samples: int
    held_out: int
    base_epochs: int
    recipes: dict[str, Recipe]
    loss: float
    more_epochs: int
    tfmot: dict[str, dict[str, float]]
    hgq: dict[str, dict[str, Any]]
    passes: dict[str, tuple[int, ...]]


LONG = Recipe((0.5,), (0.5,), (0.6, 0.7, 0.8, 0.8, 0.8), (0.5, 0.75, 0.9, 1.0, 1.0))
# As many passes: the last six with few bits for what is read, for which the kept weights make up.
BITS = Recipe(
    *((0.5,), (0.5,), (0.6, 0.7, 0.8, 0.8), (0.3, 0.6, 0.8, 0.95, 1.0, 1.0)), {"image": 3, "relu1": 3, "relu2": 4}
)
# Fraction bits that HGQ2 leaves in what a layer reads. One number stands for all values there, so its price is soon
# above that of any weight: left alone it is at one bit before the weights are.
LEAST = {"conv1": 1, "conv2": 0, "out": 0}
FULL = Plan(
    60_000,
    5_000,
    6,
    {
        "slim-long": LONG,
        "bits": BITS,
        "bits-few": replace(BITS, weights=(0.4, 0.5, 0.6, 0.6), bits={"image": 2, "relu1": 2, "relu2": 4}),
        "bits-wide": replace(BITS, filters=(0.25,), weights=(0.5, 0.6, 0.7, 0.7)),
    },
    0.002,
    4,
    {"96": {"conv1": 0.5, "conv2": 0.96}},
    {
        "slow": {"prices": np.geomspace(1e-7, 1e-5, 12).tolist() + [1e-5] * 4, "rate": 3e-3, "level": 12},
        "fast": {"prices": np.geomspace(1e-6, 1e-5, 4).tolist() + [1e-5] * 4, "rate": 3e-3, "level": 4, "least": LEAST},
    },
    {"slow": (15,), "fast": (7,)},
)
SMALL = Plan(
    2_000,
    400,
    2,
    {
        "slim": Recipe((0.5,), (0.5,), (0.8,), (0.5, 1.0)),
        "slim-bits": Recipe((0.5,), (), (0.8,), (1.0,), {"image": 2, "relu1": 2, "relu2": 3}),
        "kernels": Recipe(kernels=(0.9,)),
    },
    0.02,
    2,
    {"90": {"conv1": 0.5, "conv2": 0.9}},
    {"low": {"prices": [1e-6, 1e-5], "rate": 3e-3, "level": 1}},
    {"low": (1,)},
)


def base(folder: Path, data: Arrays, plan: Plan) -> Arrays:
    """Weights of the trained network, by path."""
    return _trained(folder / "base.npz", data, initial_weights(SEED), plan.base_epochs)


def trained_on(folder: Path, data: Arrays, weights: Arrays, plan: Plan) -> Arrays:
    """Weights of the same network trained on as long as the others, nothing locked."""
    return _trained(folder / "longer.npz", data, weights, plan.more_epochs)


def _trained(place: Path, data: Arrays, begin: Arrays, epochs: int) -> Arrays:
    if place.is_file():
        return dict(np.load(place))
    import keras

    keras.utils.set_random_seed(SEED)
    model = network(keras)
    set_weights(model, begin)
    compiled(keras, model, len(data["x"]), epochs)
    model.fit(data["x"], data["y"], batch_size=BATCH, epochs=epochs, verbose=0)
    return saved(place, get_weights(model))


def prune(folder: Path, data: Arrays, weights: Arrays, recipe: Recipe, name: str) -> Path:
    """The Keras file of what fpgaprune makes of the network: public functions only, one pass a round."""
    place = folder / f"{name}.keras"
    if place.is_file():
        return place
    import keras

    import fpgaprune as fp

    keras.utils.set_random_seed(SEED)
    model = network(keras)
    set_weights(model, weights)

    def train(trained: Any, masks: Any, values: Any = "zero") -> None:
        fp.finetune(trained, masks, data["x"], data["y"], batch_size=BATCH, values=values)

    def closed(trained: Any, masks: Any) -> None:
        train(trained, fp.close(masks, trained).masks)

    for granularity, shares in (("filter", recipe.filters), ("kernel", recipe.kernels), ("weight", recipe.weights)):
        if shares:
            compiled(keras, model, len(data["x"]), len(shares))
            scope = "layer" if granularity == "filter" else "network"
            fp.prune_rounds(model, shares, closed, granularity=granularity, scope=scope)
            model = fp.apply_removal(model, fp.plan_removal(model))
    place.parent.mkdir(parents=True, exist_ok=True)
    trained = model
    if recipe.powers:
        from mnist_rounded import narrow_types, rounded

        kinds = narrow_types(model, data["x"][:CALIBRATION], recipe.bits)
        place.with_suffix(".json").write_text(json.dumps({name: str(kind) for name, kind in kinds.items()}))
        trained = rounded(model, kinds)
        compiled(keras, trained, len(data["x"]), len(recipe.powers), RATE if recipe.bits else RATE / 2)
        reads = {path: kinds.get(layer) for path, layer in zip(CONVS, ("image", "relu1"), strict=True)}
        _hold_powers(trained, recipe.powers, train, reads)
    model.save(place)
    print(name, f"{keras_accuracy(trained, data):.2f}", kept(model), flush=True)
    return place


def _hold_powers(
    model: Any, shares: Sequence[float], train: Callable[..., None], reads: Mapping[str, FixedType | None]
) -> None:
    """The kept weights of the convolutions are powers of two, the largest first, while the others make up for them.

    Where it is known what a convolution reads, its biases are held in the last round too, at numbers to which sums of
    its products come: that is where the hardware rounds them.

    Source: Zhou et al., "Incremental Network Quantization", 2017; the lock holds any value.
    """
    import fpgaprune as fp

    for number, share in enumerate(shares, 1):
        arrays = fp.weight_arrays(model)
        values, masks = {}, {}
        for path in CONVS:
            array = arrays[path]
            highest = highest_power(array)
            sizes = np.abs(array)
            count = round(share * np.count_nonzero(array))
            # Powers of two of an earlier round stay what they are: they are the largest.
            order = np.argsort(-sizes, axis=None, kind="stable")[:count]
            held = np.zeros(array.size, bool)
            held[order] = True
            held = held.reshape(array.shape)
            values[path] = np.where(held, power_of_two(array, highest - POWERS + 1, highest), array)
            masks[path] = ~held & (array != 0)
            kind, bias = reads[path], path.replace("kernel", "bias")
            if kind is not None and number == len(shares):
                sizes = np.abs(values[path])
                unit = float(sizes[sizes > 0].min()) * kind.lsb
                values[bias] = np.round(arrays[bias] / unit) * np.float32(unit)
                masks[bias] = np.zeros(values[bias].shape, bool)
        train(model, fp.MaskSet(masks), values)


def kept(model: Any) -> dict[str, int]:
    """Weights that are not zero, by convolution."""
    import fpgaprune as fp

    return {path: int(np.count_nonzero(fp.weight_arrays(model)[path])) for path in CONVS}


def given_types(model: Any, place: Path) -> dict[str, dict[str, str]]:
    """The types that training has settled, as `make_design` takes them: of powers of two, and of what was rounded.

    Args:
        model: as `prune` keeps it. place: where.
    """
    import fpgaprune as fp

    found = {name: {"result": str(kind)} for name, kind in rounded_types(place).items()}
    for path in CONVS:
        sizes = np.abs(fp.weight_arrays(model)[path])
        exponents = np.log2(sizes[sizes > 0])
        lowest, highest = int(exponents.min()), int(exponents.max())
        found[path.split("/")[0]] = {"weight": f"fixed<{highest - lowest + 2},{highest + 2}>"}
    return found


def rounded_types(place: Path) -> dict[str, Any]:
    """Of what was rounded in training, by layer; `place` is where `prune` keeps the model."""
    from fpgaprune.fixed import FixedType

    return {name: FixedType.parse(text) for name, text in json.loads(place.with_suffix(".json").read_text()).items()}


def tfmot(folder: Path, data: Arrays, weights: Arrays, plan: Plan, name: str) -> Arrays:
    """Weights that TF-MOT pruned in a process of its own, by path."""
    place = folder / f"tfmot-{name}"
    if not (place / "pruned.npz").is_file():
        _prepare(place, {"seed": SEED, "epochs": plan.more_epochs, "sparsities": plan.tfmot[name]}, data, weights)
        _run([sys.executable, str(HERE / "mnist_tfmot.py"), str(place)], TF_USE_LEGACY_KERAS="1")
    return dict(np.load(place / "pruned.npz"))


def hgq_checkpoints(folder: Path, data: Arrays, weights: Arrays, plan: Plan, python: str, name: str) -> list[Path]:
    """What HGQ2 had trained after each pass; `python` is the interpreter that has it."""
    place = folder / f"hgq-{name}"
    job = {"seed": SEED, **plan.hgq[name]}
    _prepare(place, job, data, weights)
    _run([python, str(HERE / "mnist_hgq.py"), str(place)])
    return [place / f"pass{number}.npz" for number in range(len(job["prices"]))]


def _prepare(place: Path, job: dict[str, Any], data: Arrays, weights: Arrays) -> None:
    place.mkdir(parents=True, exist_ok=True)
    if not (place.parent / "data.npz").is_file():
        saved(place.parent / "data.npz", data)
    saved(place / "weights.npz", weights)
    (place / "job.json").write_text(json.dumps(job))


def _run(command: list[str], **environment: str) -> None:
    subprocess.run(command, check=True, env={**os.environ, **environment}, cwd=HERE)
