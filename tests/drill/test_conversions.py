"""Whatever Keras model comes: its design gives what Keras gives within a bound, or it is refused in one line.

python tests/drill/test_conversions.py 1500        # so many cases, drawn at random, with their counts
python tests/drill/test_conversions.py 200 Verilog   # of one backend
"""

from __future__ import annotations

import collections
import sys
import warnings
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import fpgaprune as fp
from fpgaprune.backends import AP_BACKENDS, BACKENDS, OURS
from fpgaprune.design import IO_TYPES
from fpgaprune.errors import FpgaPruneError
from fpgaprune.lowering import Precision, fold, make_design, observe
from fpgaprune.network import producer

if __name__ == "__main__":
    from conversion_bounds import Bounds
    from conversion_models import MODELS, trained
else:
    from .conversion_bounds import Bounds
    from .conversion_models import MODELS, trained

_BITS = Precision(16, 16, 16)
_OUTCOMES = ("within bound", "refused", "written, not emulated", "silently wrong", "traceback")
_PART = "xc7z020clg400-1"


@dataclass(frozen=True)
class Case:
    """One conversion."""

    backend: str
    io_type: str
    strategy: str
    model: str

    def __str__(self) -> str:
        return f"{self.backend}-{self.io_type}-{self.strategy}-{self.model}"


ALL = [
    Case(backend.name, io_type, strategy, model)
    for backend in (*BACKENDS.values(), OURS)
    for io_type, strategy, model in product(IO_TYPES, backend.strategies, MODELS)
    if io_type in backend.io_types
]


def outcome(case: Case, seed: int = 1) -> tuple[str, str]:
    """One of `_OUTCOMES`, and what is to say of it."""
    try:
        model, x = trained(case.model, seed)
    except (ValueError, TypeError) as error:
        return "refused", f"Keras cannot build it: {error}"
    target = replace(
        fp.Target.of(_PART, io_type=case.io_type, strategy=case.strategy, reuse_factor=1), backend=case.backend
    )
    given: Any = x if len(x) > 1 else x[0]
    try:
        design = make_design(model, target, given, _BITS)
    except FpgaPruneError as error:
        return _refusal(error, model, case.backend)
    except Exception as error:  # noqa: BLE001  whatever comes is what is looked for
        return "traceback", f"make_design: {type(error).__name__}: {error}"
    try:
        got = fp.emulate(design, given)
    except FpgaPruneError as error:
        if case.backend not in AP_BACKENDS:
            return "written, not emulated", str(error)
        return "silently wrong", f"accepted, but not emulated: {error}"
    except Exception as error:  # noqa: BLE001
        return "traceback", f"emulate: {type(error).__name__}: {error}"
    return _compared(model, design, x, got)


def _computed(model: Any, x: Any) -> Any:
    """Return what Keras computes. Without oneDNN, only compiled: TensorFlow turns it off on some processors."""
    try:
        return model(x, training=False)
    except tf.errors.UnimplementedError:
        return tf.function(model, jit_compile=True)(x, training=False)


def _refusal(error: FpgaPruneError, model: Any, backend: str) -> tuple[str, str]:
    said = str(error)
    if backend == OURS.name and "hls4ml" in said:
        return "traceback", f"the refusal of our Verilog speaks of hls4ml: {said}"
    # Operations that are no layers have names, too.
    own = getattr(model, "operations", model.layers)
    own = [*own, *(half for layer in model.layers for half in _directions(layer))]
    names = [operation.name for operation in own] + ["a project for io_parallel", "model 'drilled' has no layer"]
    if "\n" in said or not any(name in said for name in names):
        return "traceback", f"the refusal is no line that names a layer: {said}"
    return "refused", said


def _directions(layer: Any) -> list[Any]:
    """The two layers of a `Bidirectional`."""
    return [layer.forward_layer, layer.backward_layer] if isinstance(layer, keras.layers.Bidirectional) else []


def _compared(model: Any, design: Any, x: list[np.ndarray], got: Any) -> tuple[str, str]:
    folded = fold(model)
    bounds = Bounds(folded, design, observe(folded, x)).found
    wanted = _computed(model, x if len(x) > 1 else x[0])
    pairs = zip(keras.tree.flatten(wanted), got if isinstance(got, tuple) else (got,), folded.outputs, strict=True)
    said = []
    for want, value, tensor in pairs:
        reference = np.asarray(want)
        if reference.size != value.size:
            return "silently wrong", f"shape {value.shape}, Keras gives {reference.shape}"
        bound = bounds[producer(tensor).name]
        off = float(np.abs(reference.reshape(value.shape) - value).max())
        said.append(f"off by {off:.3g} of {np.abs(reference).max():.3g}, bound {bound:.3g}")
        if not off <= bound:
            return "silently wrong", said[-1]
    return "within bound", "; ".join(said)


def counts(cases: list[Case], told: Any = None) -> dict[str, list[tuple[Case, str]]]:
    """Outcome to the cases that had it, each with what is to say."""
    found: dict[str, list[tuple[Case, str]]] = {name: [] for name in _OUTCOMES}
    for case in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            what, said = outcome(case)
        found[what].append((case, said))
        if told is not None:
            told(f"{what}: {case}: {said}\n")
    return found


def lines(found: dict[str, list[tuple[Case, str]]]) -> list[str]:
    total = sum(map(len, found.values()))
    return [f"{total} conversions", *(f"  {len(cases):5} {what}" for what, cases in found.items())]


def drawn(count: int, seed: int, backends: list[str] | None = None) -> list[Case]:
    """So many cases of `ALL` (of some backends), every model among them where there are enough."""
    pool = [case for case in ALL if not backends or case.backend in backends]
    pool = [pool[place] for place in np.random.default_rng(seed).permutation(len(pool))]
    by_model = collections.defaultdict(list)
    for case in pool:
        by_model[case.model].append(case)
    rounds = [case for row in zip(*(cases for cases in by_model.values()), strict=False) for case in row]
    return rounds[:count]


def require_nothing_wrong(found: dict[str, list[tuple[Case, str]]]) -> None:
    sys.stdout.write("\n".join(lines(found)) + "\n")
    wrong = [f"{case}: {said}" for what in ("silently wrong", "traceback") for case, said in found[what]]
    assert not wrong, "\n".join(wrong)


# A few of each family, in the run of every day; the families are those of `conversion_models`.
_SLICE = 24


def test_a_random_slice_is_within_its_bounds_or_refused():
    usual = [case for case in ALL if case.strategy != "distributed_arithmetic"]
    chosen = np.random.default_rng(0).choice(len(usual), _SLICE, replace=False)
    require_nothing_wrong(counts([usual[place] for place in chosen]))


@pytest.mark.parametrize("said", ["layer 'layer0' is wrong in hls4ml", "wrong", "layer 'layer0':\nwrong"])
def test_a_refusal_of_our_verilog_names_a_layer_in_one_line_and_not_hls4ml(said):
    model, _ = trained("conv3d", 1)
    assert _refusal(FpgaPruneError(said), model, OURS.name)[0] == "traceback"


@pytest.mark.slow
@pytest.mark.parametrize("backend", [*BACKENDS, OURS.name])
def test_every_conversion_is_within_its_bounds_or_refused(backend):
    require_nothing_wrong(counts([case for case in ALL if case.backend == backend]))


if __name__ == "__main__":
    chosen = drawn(int(sys.argv[1]), 0, sys.argv[2:])
    results = counts(chosen, sys.stderr.write)
    sys.stdout.write("\n".join(lines(results)) + "\n")
