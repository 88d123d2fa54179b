"""`layer_reports`: kernels, channels and parameters of each layer, from its weights before and after removal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fpgaprune.report.contents import LayerReport, count_kernels
from fpgaprune.values import Array, MaskSet, by_weight_path

Arrays = Mapping[str, Array]


def layer_reports(
    before: Arrays,
    after: Arrays,
    masks: MaskSet,
    kept: Mapping[str, Sequence[NDArray[np.intp]]],
    transposed: Collection[str] = (),
) -> tuple[LayerReport, ...]:
    """Return one report for each kernel, in the order of `before`; a layer with several kernels has several.

    Args:
        before: array by weight path, of the whole network.
        after: array by weight path, of the network after removal.
        masks: the locks, True = free.
        kept: the kept indices of each axis by weight path. A weight without an entry is whole, or left the network.
        transposed: names of transposed convolutions, whose kernels have the outputs before the inputs.
    """
    masks = MaskSet(by_weight_path(masks, before))
    return tuple(_layer(path, before, after, masks, kept, transposed) for path in before if path.endswith("kernel"))


def in_names_of(rounded: Arrays, before: Arrays) -> dict[str, Array]:
    """Return `before` by the weight paths of `rounded`, the same network as it is trained while it rounds.

    There a separable convolution is a layer for each of its two kernels, and a dilated, grouped or transposed one is a
    plain one, whose kernel counts.
    """
    paths = {(path.partition("/")[0], path.rpartition("/")[2]): path for path in rounded}
    found = {}
    for path, array in before.items():
        layer, name = path.partition("/")[0], path.rpartition("/")[2]
        if name in ("depthwise_kernel", "pointwise_kernel"):
            layer, name = f"{layer}_depthwise" if name == "depthwise_kernel" else layer, "kernel"
        own = path if path in rounded else paths.get((layer, name), path)
        found[own] = rounded[own] if own in rounded and rounded[own].shape != array.shape else array
    return found


def kernel_path(name: str, paths: Collection[str]) -> str:
    """Return the path of the kernel that the report `name` is about: `dense/kernel`, `separable/pointwise_kernel`."""
    return f"{name}/kernel" if f"{name}/kernel" in paths else f"{name}_kernel"


def _layer(
    path: str,
    before: Arrays,
    after: Arrays,
    masks: MaskSet,
    kept: Mapping[str, Sequence[NDArray[np.intp]]],
    transposed: Collection[str],
) -> LayerReport:
    name = path.removesuffix("kernel").rstrip("/_")
    kernel = before[path]
    is_transposed = name.rpartition("/")[2] in transposed
    ends = (-1, -2) if is_transposed else (-2, -1)
    inputs, outputs = (kernel.shape[axis] for axis in ends)
    is_convolution = kernel.ndim > 2
    free = masks[path] if path in masks else np.ones(kernel.shape, dtype=bool)
    units = np.asarray(free.any(axis=tuple(range(kernel.ndim - 2))))
    units = units.T if is_transposed else units
    axes = kept.get(path)
    stays = path in after
    removed_inputs = _removed(inputs, axes[ends[0]] if axes else None, stays)
    removed_outputs = _removed(outputs, axes[ends[1]] if axes else None, stays)
    in_network, locked, removed = count_kernels(units, removed_inputs, removed_outputs)
    return LayerReport(
        name=name,
        kind=f"Conv{kernel.ndim - 2}D{'Transpose' if is_transposed else ''}" if is_convolution else "Dense",
        kernels_kept=in_network,
        kernels_locked=locked,
        channels_before=(inputs, outputs),
        channels_after=(after[path].shape[ends[0]], after[path].shape[ends[1]]) if stays else None,
        parameters_before=_parameters(before, path),
        parameters_after=_parameters(after, path),
        mask=units if is_convolution else None,
        removed_inputs=removed_inputs,
        removed_outputs=removed_outputs,
        kernels_removed=removed,
    )


def _parameters(arrays: Arrays, kernel: str) -> int:
    """Count a layer's weights; of several kernels the last one's are all but the other kernels'."""
    layer = kernel.rpartition("/")[0]
    sizes = {path: array.size for path, array in arrays.items() if path.rpartition("/")[0] == layer}
    kernels = [path for path in sizes if path.endswith("kernel")]
    if [kernel] != kernels[-1:]:
        return sizes.get(kernel, 0)
    return sum(sizes.values()) - sum(sizes[path] for path in kernels[:-1])


def _removed(size: int, kept: NDArray[np.intp] | None, stays: bool) -> tuple[int, ...]:
    if kept is None:
        return () if stays else tuple(range(size))
    return tuple(int(index) for index in np.setdiff1d(np.arange(size), kept))
