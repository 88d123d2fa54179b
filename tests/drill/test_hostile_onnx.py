"""Thousands of ONNX files with faults: each becomes a plan or ends in one line, soon, and no other file is read.

FPGAPRUNE_DRILL_FILES says how many files; 2,000 if it is not set.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from fpgaprune.errors import ModelImportError
from fpgaprune.frontends import plan_onnx

from ..unit.frontends.graphs import graph, node, numbers, small_cnn
from ..unit.frontends.test_qonnx import network
from .judging import LONGEST
from .mutations import damage

FILES = int(os.environ.get("FPGAPRUNE_DRILL_FILES", "2000"))
SEED = os.environ.get("FPGAPRUNE_DRILL_SEED", "0")
MOST_S = 5.0
# Sizes that no tensor has, and some that contradict others.
SIZES = (0, 1, 2, 3, 7, 255, -1, -(2**31), 2**31 - 1, 2**31, 2**40, 2**62)
PLACES = ("../secret.bin", "/etc/passwd", "secret.bin", "link.bin", "", ".", "a/../../secret.bin", "\0", "x" * 5000)
OPERATORS = (
    *("Conv", "Gemm", "MatMul", "Add", "Reshape", "Transpose", "Flatten", "MaxPool", "BatchNormalization", "Concat"),
    *("Pad", "Slice", "Resize", "Softmax", "Quant", "BipolarQuant", "Trunc", "Loop", "If", "Shape", "Gather", "Cast"),
    *("Expand", "ConstantOfShape", "Range", "Split", "Squeeze", "Unsqueeze", "Clip", "ReduceMean", "Nonsense", ""),
    *("GRU", "LSTM", "RNN", "Max", "LogSoftmax", "Identity"),
)
DOMAINS = ("", "ai.onnx", "qonnx.custom_op.general", "qonnx.custom_op.channels_last", "onnx.brevitas", "com.example")


def joined(path: Path) -> Path:
    """A branch, a concatenation, a transposition and a computed shape."""
    nodes = [
        node("Conv", ["x", "w"], "a", pads=[1, 1, 1, 1]),
        node("Relu", ["a"], "b"),
        node("Concat", ["a", "b"], "c", axis=1),
        node("Transpose", ["c"], "t", perm=[0, 2, 3, 1]),
        node("Shape", ["t"], "s"),
        node("Gather", ["s", "zero"], "n", axis=0),
        node("Concat", ["n", "rest"], "shape", axis=0),
        node("Reshape", ["t", "shape"], "f"),
        node("MatMul", ["f", "v"], "y"),
    ]
    constants = {"w": numbers(2, 3, 3, 3), "zero": numbers(1).astype("int64") * 0, "v": numbers(100, 4)}
    constants["rest"] = numbers(1).astype("int64") * 0 - 1
    return graph(path, nodes, constants, {"x": ("n", 3, 5, 5)}, {"y": ("n", 4)})


def recurrent(path: Path) -> Path:
    """A GRU as PyTorch writes it, whose last step is read, and a LogSoftmax at the end."""
    nodes = [
        node("Transpose", ["x"], "t", perm=[1, 0, 2]),
        node("Shape", ["t"], "s"),
        node("Gather", ["s", "second"], "n", axis=0),
        node("Concat", ["one", "n", "units"], "shape", axis=0),
        node("Expand", ["none", "shape"], "h"),
        node("GRU", ["t", "w", "r", "b", "", "h"], "states", "/rnn/GRU", hidden_size=5, linear_before_reset=1),
        node("Squeeze", ["states", "second"], "steps"),
        node("Transpose", ["steps"], "samples", perm=[1, 0, 2]),
        node("Gather", ["samples", "last"], "g", axis=1),
        node("Gemm", ["g", "v"], "z"),
        node("LogSoftmax", ["z"], "y", axis=1),
    ]
    whole = {"second": [1], "one": [1], "units": [5], "last": -1}
    constants = {name: np.array(value, np.int64) for name, value in whole.items()}
    constants |= {"w": numbers(1, 15, 4), "r": numbers(1, 15, 5), "b": numbers(1, 30), "v": numbers(5, 3)}
    constants["none"] = numbers(1, 1, 1) * 0
    return graph(path, nodes, constants, {"x": ("n", 7, 4)}, {"y": ("n", 3)})


def wired(model: Any, random: Random) -> None:
    """Another tensor, perhaps one that depends on this node."""
    one = random.choice(model.graph.node)
    names = [name for other in model.graph.node for name in (*other.input, *other.output)]
    if one.input:
        one.input[random.randrange(len(one.input))] = random.choice([*names, "", "nowhere"])


def named(model: Any, random: Random) -> None:
    one = random.choice(model.graph.node)
    if random.random() < 0.5:
        one.op_type = random.choice(OPERATORS)
    one.domain = random.choice(DOMAINS)


def outputs(model: Any, random: Random) -> None:
    one = random.choice(model.graph.node)
    name = random.choice([*one.input, "y", "x", ""])
    one.output[random.randrange(len(one.output))] = name


def sized(model: Any, random: Random) -> None:
    tensor = random.choice(model.graph.initializer)
    if tensor.dims and random.random() < 0.7:
        tensor.dims[random.randrange(len(tensor.dims))] = random.choice(SIZES)
    else:
        tensor.dims.append(random.choice(SIZES))


def typed(model: Any, random: Random) -> None:
    random.choice(model.graph.initializer).data_type = random.choice([*TensorProto.DataType.values(), 99, -1])


def valued(model: Any, random: Random) -> None:
    tensor = random.choice(model.graph.initializer)
    tensor.raw_data = random.choice((b"", b"\xff" * len(tensor.raw_data), random.randbytes(len(tensor.raw_data)), b"1"))


def elsewhere(model: Any, random: Random) -> None:
    tensor = random.choice(model.graph.initializer)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.ClearField("raw_data")
    for key, value in (
        ("location", random.choice(PLACES)),
        ("offset", random.choice(("0", "-1", "9" * 30, "x"))),
        ("length", random.choice(("4", "2147483648", "-1", "nan"))),
    ):
        if random.random() < 0.8:
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value


def shaped(model: Any, random: Random) -> None:
    value = random.choice([*model.graph.input, *model.graph.output])
    dims = value.type.tensor_type.shape.dim
    if dims:
        dims[random.randrange(len(dims))].dim_value = random.choice(SIZES)


def set_otherwise(model: Any, random: Random) -> None:
    one = random.choice(model.graph.node)
    key = random.choice([entry.name for entry in one.attribute] or ["axis", "perm", "group", "strides", "pads", "to"])
    kept = [helper.make_attribute(e.name, helper.get_attribute_value(e)) for e in one.attribute if e.name != key]
    values = (random.choice(SIZES), [random.choice(SIZES) for _ in range(random.randrange(1, 6))], 1e300, "x", [0.5])
    del one.attribute[:]
    one.attribute.extend([*kept, helper.make_attribute(key, random.choice(values))])


def repeated(model: Any, random: Random) -> None:
    model.graph.node.append(random.choice(model.graph.node))


def dropped(model: Any, random: Random) -> None:
    field = random.choice((model.graph.node, model.graph.initializer, model.graph.input, model.opset_import))
    if len(field):
        del field[random.randrange(len(field))]


def versioned(model: Any, random: Random) -> None:
    if model.opset_import:
        random.choice(model.opset_import).version = random.choice((0, 1, 6, 7, 9, 11, 13, 25, 26, -1, 2**40))


EDITS: tuple[Callable[[Any, Random], None], ...] = (
    *(wired, named, outputs, sized, typed, valued, elsewhere, shaped, set_otherwise, repeated, dropped, versioned),
)


def faulty(data: bytes, random: Random) -> bytes:
    if random.random() < 0.3:
        return damage(data, random)
    model = onnx.load_model_from_string(data)
    for _ in range(random.choice((1, 1, 2, 3))):
        try:
            random.choice(EDITS)(model, random)
        except (ValueError, TypeError, IndexError):
            continue
    return bytes(model.SerializeToString())


@pytest.mark.slow
def test_files_with_faults_end_in_one_line(tmp_path):
    folder = tmp_path / "networks"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(4096))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    sound = [small_cnn(folder / "cnn.onnx"), network(folder / "q.onnx"), network(folder / "s.onnx", scale=0.3)]
    sound += [joined(folder / "joined.onnx"), recurrent(folder / "recurrent.onnx")]
    for path in sound:
        plan_onnx(path)
    files = [path.read_bytes() for path in sound]
    own = (str(folder), sys.prefix, sys.base_prefix, str(Path(onnx.__file__).parent), str(Path(__file__).parents[2]))
    strange: set[str] = set()
    is_on = True

    def watch(event: str, details: tuple[Any, ...]) -> None:
        if is_on and event == "open" and isinstance(details[0], str | bytes):
            name = os.fsdecode(details[0])
            if not os.path.abspath(name).startswith(own):
                strange.add(name)

    sys.addaudithook(watch)
    counts: Counter[str] = Counter()
    faults: list[str] = []
    slowest = 0.0
    path = folder / "faulty.onnx"
    for number in range(FILES):
        random = Random(f"{SEED} {number}")
        path.write_bytes(faulty(random.choice(files), random))
        start = time.perf_counter()
        try:
            plan_onnx(path)
            counts["read"] += 1
        except ModelImportError as error:
            counts["refused"] += 1
            if "\n" in str(error) or len(str(error)) > LONGEST:
                faults.append(f"file {number} of seed {SEED}: {error}")
        except Exception as error:  # noqa: BLE001
            faults.append(f"file {number} of seed {SEED} ended in {type(error).__name__}: {error}")
        slowest = max(slowest, time.perf_counter() - start)
        assert slowest < MOST_S, number
    is_on = False
    assert not faults, faults[:10]
    assert not strange
    assert counts["refused"] > FILES // 4
    sys.stdout.write(f"{FILES:,} files: {dict(counts)}, the slowest took {slowest:.2f} s\n")
