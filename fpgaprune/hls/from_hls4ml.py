"""An operation from hls4ml's words: the class of a layer and its attributes, whose quirks end here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fpgaprune.design as op
from fpgaprune.design import LayerSpec, function_named
from fpgaprune.errors import DesignError, UnsupportedLayerError
from fpgaprune.values import FixedType

_ACTIVATIONS = frozenset(
    {"Activation", "ELU", "HardActivation", "LeakyReLU", "PReLU", "ParametrizedActivation", "ThresholdedReLU"}
)
_PLAIN: Mapping[str, op.Operation] = {
    "Input": op.Input(),
    "Dense": op.Dense(),
    "ApplyAlpha": op.Scale(),
    "BatchNormalization": op.Scale(),
    "Clone": op.Copy(),
    "Repack": op.Reshape(repacks=True),
    "Reshape": op.Reshape(),
}


def operation_of(
    kind: str, attributes: Mapping[str, object], rank: int, kernel: tuple[int, ...] | None = None
) -> op.Operation:
    """Return what a layer of hls4ml's class `kind` with these attributes computes.

    Args:
        kind: as `Conv2D`, `ParametrizedActivation` or `Merge`; another one is an `Unknown` of that name.
        attributes: hls4ml's names and values.
        rank: axes of the layer's output, without the batch's.
        kernel: the shape of its weights, as (KH, KW, C_in, C_out); its size is taken where the attributes lack it.

    Raises:
        DesignError: an attribute that the operation needs is missing, or has a value that hls4ml's templates ignore.
    """
    words = _Words(attributes, rank)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _ACTIVATIONS:
        return _activation(kind, words)
    if kind.startswith("GlobalPooling"):
        return op.Pooling(None, _is_largest(words), encoded=words.encoded)
    if kind.startswith("Pooling"):
        return op.Pooling(words.window("pool", (), stride=None), _is_largest(words), encoded=words.encoded)
    if "Conv" in kind and not kind.endswith(("Transpose", "3D")):
        partitions = words.get("n_partitions", None)
        return op.Convolution(
            words.window("filt", (kernel or ())[:-2], stride=1),
            depthwise=kind.startswith("Depthwise"),
            pointwise=kind.startswith("Pointwise"),
            partitions=None if partitions is None else int(partitions),
            encoded=words.encoded,
        )
    if kind.startswith("ZeroPadding"):
        return op.Pad(words.sides("pad"))
    if kind.startswith("Cropping"):
        return op.Crop(words.sides("crop"))
    make = _MAKERS.get(kind)
    return op.Unknown(kind) if make is None else make(words)


def layer_of(
    name: str,
    kind: str,
    inputs: tuple[str, ...],
    output_shape: tuple[int, ...],
    types: Mapping[str, FixedType],
    weights: Mapping[str, NDArray[np.int64]] | None = None,
    sources: Mapping[str, str] | None = None,
    attributes: Mapping[str, Any] | None = None,
    reuse_factor: int = 1,
    strategy: str | None = None,
    project_name: str = "",
) -> LayerSpec:
    """Return the layer of hls4ml's class `kind` with these `attributes`; the others are those of `LayerSpec`.

    Raises:
        DesignError: as for `operation_of`; the message names the layer.
    """
    weights = weights or {}
    kernel = weights["weight"].shape if "weight" in weights else None
    try:
        operation = operation_of(kind, attributes or {}, len(output_shape), kernel)
    except (DesignError, UnsupportedLayerError) as error:
        raise type(error)(f"layer {name!r} ({kind}): {error}") from error
    return LayerSpec(
        name, inputs, output_shape, types, weights, sources or {}, operation, reuse_factor, strategy, project_name
    )


class _Words:
    """The attributes of one layer."""

    def __init__(self, attributes: Mapping[str, Any], rank: int) -> None:
        self.attributes, self.rank, self.flat = attributes, rank, rank == 2

    def get(self, name: str, default: object) -> Any:
        """Return the attribute `name`; `default` where it is missing."""
        return self.attributes.get(name, default)

    def need(self, name: str) -> Any:
        """Return the attribute `name`."""
        if name not in self.attributes:
            raise DesignError(f"no attribute {name!r}; it has {', '.join(self.attributes)}")
        return self.attributes[name]

    def number(self, name: str) -> int:
        """Return the attribute `name` as an integer."""
        return int(self.need(name))

    def size(self, name: str) -> int | None:
        """Return the attribute `name` as an integer, None where it is missing."""
        return int(self.attributes[name]) if name in self.attributes else None

    def real(self, name: str) -> float | None:
        """Return the attribute `name` as a number, None where it is missing."""
        return float(self.attributes[name]) if name in self.attributes else None

    def axis(self) -> int:
        """Return the attribute `axis`, counted from the front, the batch's being 0."""
        axis = self.number("axis")
        return axis if axis >= 0 else axis + self.rank + 1

    @property
    def encoded(self) -> bool:
        """Whether hls4ml encodes the layer's stream."""
        return str(self.get("implementation", "")).lower() == "encoded"

    def sides(self, prefix: str) -> tuple[int, int, int, int]:
        """Read the sides (top, bottom, left, right)."""
        left, right = (int(self.get(f"{prefix}_{side}", 0)) for side in ("left", "right"))
        top, bottom = (0 if self.flat else int(self.get(f"{prefix}_{side}", 0)) for side in ("top", "bottom"))
        return top, bottom, left, right

    def window(self, prefix: str, kernel: tuple[int, ...], stride: int | None) -> op.Window:
        """Return where the windows of a convolution (`filt`) or a pooling (`pool`) lie.

        Args:
            prefix: of the attributes that hold its size.
            kernel: its size where they are missing.
            stride: the stride where it is missing; None for the size itself.
        """
        for name in ("dilation_height", "dilation_width"):
            if int(self.get(name, 1)) != 1:
                raise DesignError(f"{name} is {self.get(name, 1)}; the templates of hls4ml know no dilation")
        high, wide = ((1, *kernel) if len(kernel) == 1 else kernel) or (None, None)
        size = (1 if self.flat else self._number(f"{prefix}_height", high), self._number(f"{prefix}_width", wide))
        strides = (
            1 if self.flat else self._number("stride_height", stride or size[0]),
            self._number("stride_width", stride or size[1]),
        )
        return op.Window(size, strides, self.sides("pad"))

    def _number(self, name: str, default: int | None) -> int:
        return self.number(name) if default is None else int(self.get(name, default))


def _activation(kind: str, words: _Words) -> op.Operation:
    # A class that is named after its function may leave its name out.
    name = str(words.get("activation", kind) if kind.endswith("LU") else words.need("activation")).lower()
    function = function_named(name)
    parameter = words.real("activ_param")
    if function is None:
        return op.Map(name, parameter)
    if function.table is not None:
        return op.LookUp(function.name, int(words.get("table_size", 1024)), parameter)
    return op.Map(function.name, parameter)


def _is_largest(words: _Words) -> bool:
    return str(words.need("pool_op")).lower() == "max"


def _recurrent(cell: str, words: _Words) -> op.Operation:
    for attribute, wanted in (("static", True), ("pytorch", False), ("apply_reset_gate", "after")):
        if words.get(attribute, wanted) != wanted:
            raise UnsupportedLayerError(
                f"{attribute} is {words.need(attribute)!r}; a recurrent layer is emulated with {wanted!r} only"
            )
    function, gate = (_spelled(str(words.need(name))) for name in ("activation", "recurrent_activation"))
    sequences, size = bool(words.need("return_sequences")), int(words.get("table_size", 1024))
    return op.Recurrent(cell, words.number("n_out"), function, gate, sequences, size)


def _spelled(name: str) -> str:
    known = function_named(name)
    return name.lower() if known is None else known.name


_MAKERS = {
    "Softmax": lambda words: op.Softmax(*map(words.size, ("table_size", "exp_table_size", "inv_table_size"))),
    "GRU": lambda words: _recurrent("gru", words),
    "LSTM": lambda words: _recurrent("lstm", words),
    "Merge": lambda words: op.Merge(str(words.need("op")).lower()),
    "Concatenate": lambda words: op.Concatenate(words.axis()),
    "Transpose": lambda words: op.Transpose(tuple(int(axis) for axis in words.need("perm"))),
    **dict.fromkeys(
        ("FixedPointQuantizer", "StreamQuantizer"),
        lambda words: op.Quantise(tuple(words.need("kinds")), tuple(words.need("places"))),
    ),
    "Resize": lambda _: op.Resize(),
}
