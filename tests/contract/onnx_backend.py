"""The cases of onnx's own back-end tests, and what becomes of each at the door of ONNX."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from fpgaprune.errors import ModelImportError
from fpgaprune.frontends import FOLDED, OPERATORS, as_keras, build_model, judged, plan_onnx

KINDS = ("node", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True)
class Case:
    """A model of the back-end tests with samples and what they must become."""

    name: str
    kind: str
    operators: tuple[str, ...]
    model: Any
    samples: tuple[tuple[list[Any], list[Any]], ...]
    rtol: float
    atol: float


@cache
def cases() -> tuple[Case, ...]:
    """Every case in which an operator occurs that comes in, and none that is computed from constants only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(_cases())


def _cases() -> Iterator[Case]:
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(None):
        yield from _case(case.name, "node", case.model, case.data_sets, case.rtol, case.atol)
    for kind in KINDS[1:]:
        for case in load_model_tests(kind=kind):
            folder = Path(case.model_dir)
            model = onnx.load(folder / "model.onnx")
            sets = [
                tuple([_tensor(file) for file in sorted(data.glob(f"{side}_*.pb"))] for side in ("input", "output"))
                for data in sorted(folder.glob("test_data_set_*"))
            ]
            yield from _case(case.name, kind, model, sets, case.rtol, case.atol)


def _case(name: str, kind: str, model: Any, sets: Any, rtol: float, atol: float) -> Iterator[Case]:
    found = sorted({node.op_type for node in model.graph.node})
    known = tuple(one for one in found if one in OPERATORS)
    if known and all(one in OPERATORS or one in FOLDED for one in found):
        yield Case(name, kind, known, model, tuple((list(i), list(o)) for i, o in sets), rtol, atol)


def _tensor(file: Path) -> Any:
    return numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))


def outcome(case: Case, folder: Path) -> tuple[str, str]:
    """`passed`, `refused`, `judged` (onnxruntime told another result) or `wrong`, and why.

    A case whose weights are inputs is tried once more with its first input only, as a trained network has them.
    """
    verdict, reason = _tried(case.model, case, list(range(len(case.model.graph.input))), folder)
    inputs = [value.name for value in case.model.graph.input]
    if verdict == "refused" and len(inputs) > 1 and len(case.samples) == 1:
        values = case.samples[0][0]
        if all(isinstance(value, np.ndarray | np.generic) for value in values) and len(values) == len(inputs):
            model = onnx.ModelProto.FromString(case.model.SerializeToString())
            del model.graph.input[1:]
            for name, value in zip(inputs[1:], values[1:], strict=True):
                model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
            return _tried(model, case, [0], folder)
    return verdict, reason


def _tried(model: Any, case: Case, places: list[int], folder: Path) -> tuple[str, str]:
    path = folder / "case.onnx"
    path.write_bytes(model.SerializeToString())
    try:
        network = plan_onnx(path)
        made = build_model(network.plan, "case", str(path))
    except ModelImportError as error:
        return "refused", str(error).replace(str(path), "case.onnx")
    stored = {tensor.name for tensor in model.graph.initializer}
    computed = [at for at, value in zip(places, model.graph.input, strict=True) if value.name not in stored]
    for inputs, outputs in case.samples:
        given = [as_keras(np.asarray(inputs[at]), v) for at, v in zip(computed, network.plan.inputs, strict=True)]
        result = made(given[0] if len(given) == 1 else given, training=False)
        found = [np.asarray(one) for one in (result if isinstance(result, list | tuple) else [result])]
        for value, own, wanted in zip(network.plan.outputs, found, outputs, strict=False):
            theirs = as_keras(np.asarray(wanted), value)
            if own.shape != theirs.shape or not np.allclose(own, theirs, case.rtol, case.atol, equal_nan=True):
                caught = _judge(network, made)
                return ("judged" if caught else "wrong"), f"{np.abs(own - theirs).max()} {caught}"
    return "passed", ""


def _judge(network: Any, made: Any) -> str:
    try:
        judged(network.document, network.plan, made)
    except ModelImportError as error:
        return str(error)
    return ""
