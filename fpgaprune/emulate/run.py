"""`emulate` and `trace`: they compute a whole design, batch by batch."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design, Input, LayerSpec
from fpgaprune.emulate.exact import Exact
from fpgaprune.emulate.kinds import computed, steps_of
from fpgaprune.emulate.step import Step
from fpgaprune.errors import DataError, DesignError, FpgaPruneError, require_kind
from fpgaprune.files import PARSER_ERRORS, in_a_line
from fpgaprune.values import Array, in_order, real_array

Inputs = Array | Sequence[Array] | Mapping[str, Array]

# Values of the largest layer in one batch: so few that the arrays of a layer stay in a processor's cache.
BATCH_VALUES = 1 << 19


def emulate(design: Design, x: Inputs) -> Any:
    """Compute what the hardware computes for `x`: the bits of the compiled C simulation, without a compiler.

    Args:
        design: a design for Vitis, Vivado, VivadoAccelerator, or what is known of Catapult.
        x: samples (N, ...), or one such array for each input of the design, in their order or by name; used as
            float32, as in hls4ml.

    Returns:
        float32 outputs (N, ...); a tuple of them if the design has several.

    Raises:
        UnsupportedLayerError: a layer has no emulation; nothing was computed.
        DesignError: types or attributes of a layer cannot be emulated exactly; nothing was computed.
        DataError: `x` does not fit the design's inputs.

    Examples:
        >>> outputs = fp.emulate(fp.make_design(model, target, x), x)
        >>> outputs.shape, outputs.dtype
        ((32, 3), dtype('float32'))
    """
    require_kind(design, Design, DesignError, "design", "a Design, as fp.make_design gives")
    found = _run(design, x, design.outputs)
    outputs = tuple(
        found[name].astype(np.float32).reshape(len(found[name]), *design.given_shape(name)) for name in design.outputs
    )
    return outputs[0] if len(outputs) == 1 else outputs


def trace(design: Design, x: Inputs, layers: Sequence[str] | None = None) -> dict[str, NDArray[np.float64]]:
    """Compute the output of every layer (or of `layers`) for `x`, by name, in the order of execution.

    Args:
        design: as for `emulate`.
        x: as for `emulate`.
        layers: names of the wanted layers; every layer unless given.

    Returns:
        float64 arrays (N, ...), exact if the layer's type has at most 53 bits.

    Raises:
        UnsupportedLayerError: as for `emulate`.
        DesignError: as for `emulate`, or there is no layer of that name.
        DataError: as for `emulate`.
    """
    wanted = [layer.name for layer in design.layers] if layers is None else [design[name].name for name in layers]
    return _run(design, x, wanted)


def _run(design: Design, x: Inputs, wanted: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    steps = steps_of(design)
    entries = [layer for layer in design.layers if isinstance(layer.operation, Input)]
    samples = _checked(design, entries, x)
    order = [layer.name for layer in design.layers if layer.name in set(wanted)]
    # Bounds depend on types and weights only, so a run without samples finds everything that cannot be exact.
    try:
        for name, values in _batch(entries, steps, [array[:0] for array in samples], order).items():
            if values.shape[1:] != design[name].output_shape:
                raise DesignError(
                    f"layer {name!r} gives {values.shape[1:]}; the design says {design[name].output_shape}"
                )
    except FpgaPruneError:
        raise
    except PARSER_ERRORS as error:
        # A file may hold a design whose sizes, types and inputs contradict one another.
        raise DesignError(f"design {design.name!r} contradicts itself: {in_a_line(error)}; make it anew") from error
    count = len(samples[0])
    found = {name: np.empty((count, *design[name].output_shape)) for name in order}

    def compute(rows: slice) -> None:
        for name, values in _batch(entries, steps, [array[rows] for array in samples], order).items():
            found[name][rows] = values

    # NumPy computes without Python's lock; each thread takes the next batch.
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(compute, _batches(design, count)))
    return found


def _batches(design: Design, count: int) -> Iterator[slice]:
    largest = max(math.prod(layer.output_shape) for layer in design.layers)
    size = max(1, BATCH_VALUES // largest)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _batch(
    entries: Sequence[LayerSpec], steps: Sequence[Step], samples: Sequence[NDArray[np.float32]], wanted: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    last_use = {name: place for place, step in enumerate(steps) for name in step.layer.inputs}
    alive: dict[str, Exact] = {}
    found: dict[str, NDArray[np.float64]] = {}

    def settle(name: str, value: Exact) -> None:
        alive[name] = value
        if name in wanted:
            found[name] = value.values()

    for entry, array in zip(entries, samples, strict=True):
        settle(entry.name, Exact.from_real(array, entry.types["result"]))
    for place, step in enumerate(steps):
        try:
            value = computed(step, *(alive[name] for name in step.layer.inputs))
        except DesignError as error:
            raise DesignError(f"layer {step.layer.name!r} ({step.layer.kind}): {error}") from error
        settle(step.layer.name, value)
        for name in step.layer.inputs:
            if last_use[name] == place:
                alive.pop(name, None)
    return found


def _checked(design: Design, entries: Sequence[LayerSpec], x: Inputs) -> list[NDArray[np.float32]]:
    x = in_order(x, [entry.name for entry in entries], f"design {design.name!r}")
    several = isinstance(x, list | tuple) and (len(entries) > 1 or (len(x) == 1 and isinstance(x[0], np.ndarray)))
    arrays = list(x) if several else [x]
    if len(arrays) != len(entries):
        raise DataError(
            f"design {design.name!r} has {len(entries)} inputs; got {len(arrays)} arrays: give one for each"
        )
    found = [
        real_array(array, f"samples for input {entry.name!r}") for entry, array in zip(entries, arrays, strict=True)
    ]
    samples = [array.astype(np.float32, copy=False) for array in found]
    for entry, array in zip(entries, samples, strict=True):
        if array.shape[1:] != entry.output_shape:
            raise DataError(
                f"samples for input {entry.name!r} have shape {array.shape[1:]}; wanted {entry.output_shape}"
            )
        if len(array) != len(samples[0]):
            raise DataError(
                f"input {entry.name!r} has {len(array)} samples; input {entries[0].name!r} has {len(samples[0])}"
            )
    return samples
