"""`match_layers`: the row of a report that certainly belongs to a layer of a design."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from fpgaprune.design import FUNCTIONS
from fpgaprune.vendor.report import ModuleRow

# What they compute -> layer classes of hls4ml, and below, functions of their templates.
_KINDS = {
    "dense": ("Dense", "EinsumDense"),
    "conv1d": ("Conv1D",),
    "conv2d": ("Conv2D",),
    "pointwise1d": ("PointwiseConv1D",),
    "pointwise2d": ("PointwiseConv2D",),
    "depthwise": ("DepthwiseConv1D", "DepthwiseConv2D"),
    "scale": ("BatchNorm", "BatchNormalization", "ApplyAlpha"),
    "activation": ("Activation", "ParametrizedActivation", "HardActivation", "PReLU"),
    "softmax": ("Softmax",),
    "pooling": ("Pooling", "Pooling1D", "Pooling2D"),
    "global_pooling": ("GlobalPooling", "GlobalPooling1D", "GlobalPooling2D"),
    "padding": ("ZeroPadding", "ZeroPadding1D", "ZeroPadding2D"),
    "resize": ("Upsampling", "Resize"),
    "merge": ("Merge", "Concatenate"),
    "clone": ("Copy", "Clone"),
    "transpose": ("Transpose",),
}
_FUNCTIONS = (
    ("depthwise", r"depthwise_conv|depthwise_"),
    ("conv1d", r"conv_1d"),
    ("conv2d", r"conv_2d"),
    ("pointwise1d", r"pointwise_conv_1d"),
    ("pointwise2d", r"pointwise_conv_2d"),
    ("dense", r"dense"),
    ("scale", r"normalize"),
    ("softmax", r"(log_)?softmax|argmax"),
    ("global_pooling", r"global_pooling"),
    ("pooling", r"pooling[12]d"),
    ("padding", r"zeropad"),
    ("resize", r"resize"),
    ("merge", r"(add|subtract|multiply|average|maximum|minimum|concatenate)\d?"),
    ("clone", r"clone_stream"),
    ("transpose", r"transpose"),
    ("activation", "|".join(sorted(f.name for f in FUNCTIONS.values() if f.hardware)) + "|ternary|binary"),
)
_FAMILY_OF_KIND = {kind: family for family, kinds in _KINDS.items() for kind in kinds}
_FAMILY_PATTERNS = tuple((family, re.compile(rf"(nnet::)?({pattern})([_\d<]|$)")) for family, pattern in _FUNCTIONS)
# hls4ml numbers each layer and puts the number into the name of its configuration, which the tool keeps.
_CONFIG = re.compile(r"config(\d+)")
_INSTANCE = re.compile(r"^(?:grp_|call_ret\d*_|u_)?(?P<name>.+?)(?:_fu_\d+|_U\d+|_inst|_i)?$")


def match_layers(
    layers: Sequence[tuple[str, str]], rows: Iterable[ModuleRow], given: Mapping[str, str] | None = None
) -> dict[str, ModuleRow]:
    """Return the row of each layer whose row is certain.

    A row is certain if the caller names it, or if its instance or module has the layer's name. It is also certain if
    the report has as many numbered functions of a sort as the design has layers of that sort, because both are in the
    same order.

    Args:
        layers: name and class of each layer, in the design's order.
        rows: the rows of the report on the whole design.
        given: layer name -> instance or module name; it overrides every rule.
    """
    known = list(rows)
    found: dict[str, ModuleRow] = {}
    for name, _ in layers:
        wanted = (given or {}).get(name)
        same = [row for row in known if (wanted or name) in _names(row)]
        if len(same) == 1:
            found[name] = same[0]
    families: dict[str, list[str]] = {}
    for name, kind in layers:
        families.setdefault(_FAMILY_OF_KIND.get(kind, ""), []).append(name)
    for family, names in families.items():
        if _mixes_scales(names):
            continue
        ordered = _in_order(_rows_of(family, families, known))
        if ordered is not None and len(ordered) == len(names):
            for name, row in zip(names, ordered, strict=True):
                if name not in (given or {}):
                    found.setdefault(name, row)
    return found


def _mixes_scales(names: Sequence[str]) -> bool:
    """Return whether hls4ml made some of the layers, as `fc1_alpha`, the scale of `fc1`; it numbers those last."""
    made = [name.endswith("_alpha") for name in names]
    return any(made) and not all(made)


def _rows_of(family: str, families: Mapping[str, list[str]], rows: Sequence[ModuleRow]) -> list[ModuleRow]:
    """Return the rows of this kind.

    hls4ml replaces a convolution of width 1 by a pointwise one with a new number. So the numbers give the order of
    convolutions only if none or all of them were replaced.
    """
    if not family:
        return []
    own = [row for row in rows if _family_of(row) == family]
    turned = family.replace("conv", "pointwise")
    if turned != family and not own and turned not in families:
        return [row for row in rows if _family_of(row) == turned]
    return own


def _names(row: ModuleRow) -> set[str]:
    instance = _INSTANCE.match(row.name)
    return {row.name, *([instance["name"]] if instance else []), *([row.module] if row.module else [])}


def _family_of(row: ModuleRow) -> str | None:
    name = row.module or row.name
    return next((family for family, pattern in _FAMILY_PATTERNS if pattern.match(name)), None)


def _in_order(rows: Sequence[ModuleRow]) -> list[ModuleRow] | None:
    """Return the rows by layer number; None if there are several and a number is missing or stands twice."""
    if len(rows) < 2:
        return list(rows)
    numbers = [_CONFIG.search(row.module or row.name) for row in rows]
    keys = {int(match[1]): row for match, row in zip(numbers, rows, strict=True) if match}
    return [keys[key] for key in sorted(keys)] if len(keys) == len(rows) else None
