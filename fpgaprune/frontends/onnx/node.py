"""`NodeStep`: one node of an ONNX graph with what it reads, and the plan to which its layers are added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ModelImportError, shown
from fpgaprune.frontends.onnx.layer_plan import LayerPlan
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.value import Value

Given = Value | Parameter | None


@dataclass(frozen=True)
class NodeStep:
    """A node.

    Attributes:
        plan: the layers so far.
        path: the file, for messages.
        node: name of the node.
        operator: its operator.
        settings: its attributes.
        given: what it reads; None for an input that is left out.
        inputs: names of what it reads.
        outputs: names of what it gives.
        name: name for its layer.
        module: name of the module of PyTorch that it is a part of; "" if it is not known.
        opset: version of the operators.
        is_used: for each output whether anything reads it.
        is_shared: whether several nodes, or an output, read what the layer of this name gives.
        batch: number of samples that the file fixes; None if any number is allowed.
    """

    plan: LayerPlan
    path: str
    node: str
    operator: str
    settings: dict[str, Any]
    given: tuple[Given, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str
    module: str
    opset: int
    is_used: tuple[bool, ...]
    is_shared: Callable[[str], bool]
    batch: int | None

    def refuse(self, reason: str) -> NoReturn:
        """Raise the error that ends the import.

        Raises:
            ModelImportError: always; the message names the file, the node and the operator.
        """
        raise ModelImportError(f"{self.path}: node {shown(self.node)} ({self.operator}) {reason}")

    def value(self, at: int = 0) -> Value:
        """Return what the node reads at `at`, which the network computes, with the batch as its first axis.

        Raises:
            ModelImportError: it is a constant, is left out, or has its batch elsewhere.
        """
        found = self.value_of_any_batch(at)
        if found.batch:
            self.refuse(
                f"reads a tensor whose batch is axis {found.batch}; each sample stands alone, so the batch must be "
                "first: build recurrent layers with batch_first=True, and export an nn.RNN with dynamo=False"
            )
        return found

    def value_of_any_batch(self, at: int = 0) -> Value:
        """Return what the node reads at `at`, which the network computes; any of its axes may be the batch.

        Raises:
            ModelImportError: it is a constant, or is left out.
        """
        found = self.given[at] if at < len(self.given) else None
        if not isinstance(found, Value):
            self.refuse(f"has {'no' if found is None else 'a constant as'} input {at}; wanted one that is computed")
        return found

    def parameter(self, at: int) -> Parameter:
        """Return the constant that the node reads at `at`.

        Raises:
            ModelImportError: it is computed, or is left out.
        """
        found = self.given[at] if at < len(self.given) else None
        if not isinstance(found, Parameter):
            self.refuse(
                f"has {'no' if found is None else 'a computed'} input {at}; wanted a constant: export the network with "
                "its trained parameters"
            )
        return found

    def weight(self, at: int) -> Parameter:
        """Return the constant that the node reads at `at`, as float32.

        Raises:
            ModelImportError: it is computed, is left out, or holds no numbers.
        """
        found = self.parameter(at)
        if found.values.dtype.kind != "f":
            self.refuse(f"has a constant of {found.values.dtype} as input {at}; wanted float32")
        is_float32 = found.values.dtype == np.float32
        return found if is_float32 else found.with_values(found.values.astype(np.float32))

    def optional(self, at: int, key: str, default: object, *, since: int) -> Any:
        """Read a setting that is attribute `key` before opset `since`, and constant input `at` from then on."""
        if self.opset < since:
            return self.settings.get(key, default)
        if at >= len(self.given) or self.given[at] is None:
            return default
        values = self.parameter(at).values
        return values.item() if values.ndim == 0 else values.tolist()

    def before_scale(self, value: Value) -> tuple[Value, NDArray[np.float32] | None]:
        """Return what the layer of `value` multiplies, and its factor; `value` and None if that layer does more.

        A factor is one number, or one for each entry of the last axis.
        """
        before, factor = self.plan.scales.get(value.layer, (value, None))
        return (before, factor) if factor is not None and not self.is_shared(value.layer) else (value, None)

    def axis(self, axis: int, rank: int, batch: int = 0) -> int:
        """Count `axis` from the first.

        Raises:
            ModelImportError: there is no such axis, or it is `batch`, that of the batch.
        """
        found = axis + rank if axis < 0 else axis
        if not 0 <= found < rank:
            self.refuse(f"has axis {axis}; its input has {rank} axes")
        if found == batch:
            self.refuse(f"works across axis {axis}, which is the batch: each sample stands alone")
        return found

    def text(self, key: str, default: str) -> str:
        """Return the attribute `key`, which is text."""
        found = self.settings.get(key, default)
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)

    def numbers(self, key: str, count: int, default: int, least: int = 1) -> tuple[int, ...]:
        """Return the attribute `key`, `count` whole numbers of at least `least`; `default` for each if it is left out.

        Raises:
            ModelImportError: there are more or fewer, or one is out of bounds.
        """
        found = tuple(int(number) for number in self.settings.get(key, [default] * count))
        if len(found) != count or any(not least <= number < 1 << 31 for number in found):
            self.refuse(f"has {key} {list(found)}; wanted {count} numbers, each {least} at least")
        return found

    def only_first_output(self) -> None:
        """Check that only the first output is read.

        Raises:
            ModelImportError: another is read, too.
        """
        if any(self.is_used[1:]):
            self.refuse("gives a second output that is read; fpgaprune takes its first only")


# One value for the first output of a node, or one for each output.
Operator = Callable[[NodeStep], Value | tuple[Value, ...]]
