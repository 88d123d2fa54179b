"""`with_bits`: masks that also lock the bits of every locked weight in a network of HGQ2's layers.

HGQ2's price counts the bits of a weight and not its value: a weight that is locked at zero costs as much as before,
until its bits are zero too.

Source: Sun, Que, Årrestad and others, "HGQ: High Granularity Quantization for Real-time Neural Networks on FPGAs",
2024, section III (EBOPs); HGQ2 0.2.0, `hgq/quantizer/internal/fixed_point_quantizer.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fpgaprune.errors import MaskError
from fpgaprune.quantise.hgq import is_hgq
from fpgaprune.values import Mask, MaskSet, named_weights


def with_bits(model: Any, masks: MaskSet) -> MaskSet:
    """`masks`, and masks for the bits of every kernel that they lock: a locked weight then has no bits and no price.

    Lock the result as any masks: `fp.finetune(model, with_bits(model, masks), ...)`. Where several weights share
    their bits, the bits are locked if all of these weights are.

    Args:
        model: a built Keras model with layers of HGQ2's.
        masks: by weight path; masks of other weights than HGQ2's kernels stay as they are.

    Raises:
        MaskError: the masks do not fit the model, lock no kernel of a layer of HGQ2's, or lock one whose quantiser has
            no number of bits that can be zero.
    """
    fitted = masks.fitted(model)
    weights = named_weights(model)
    paths = {id(variable): path for path, variable in weights.items()}
    kernels = {paths[id(layer.kernel)]: layer for layer in model.layers if is_hgq(layer) and hasattr(layer, "kq")}
    locked = [path for path in kernels if path in fitted and not fitted[path].all()]
    if not locked:
        known = f"its kernels are {', '.join(kernels)}" if kernels else "it has no layer of HGQ2's with a kernel"
        raise MaskError(f"the masks lock no kernel of HGQ2's in model {model.name!r}; {known}")
    bits: dict[str, Mask] = {}
    for path in locked:
        variable = _bits_of(kernels[path].kq, path)
        bits[paths[id(variable)]] = _shared(fitted[path], tuple(variable.shape))
    return fitted & MaskSet(bits)


def _bits_of(quantizer: Any, path: str) -> Any:
    """The variable with the number of bits of each weight in `path`."""
    inner = quantizer.quantizer
    if quantizer.q_type != "kbi" or inner.overflow_mode == "SAT":
        found = f"{quantizer.q_type!r} with {getattr(inner, 'overflow_mode', 'no overflow')}"
        raise MaskError(
            f"the quantiser of {path!r} is {found}, which has a price even without bits; wanted 'kbi' with SAT_SYM or "
            "WRAP: train with QuantizerConfigScope(place='weight', default_q_type='kbi', overflow_mode='SAT_SYM')"
        )
    return next(variable for variable in inner.weights if variable.name == "b")


def _shared(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """Whether bits of `shape` stay free: where a weight that has them is."""
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return np.asarray(mask.any(axis=axes, keepdims=True))
