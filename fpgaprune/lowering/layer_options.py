"""Reads the options that a user gives for single layers."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from fpgaprune.design import STRATEGIES
from fpgaprune.errors import DesignError, FpgaPruneError, HlsError
from fpgaprune.values import FixedType

TYPE_ROLES = (
    *("result", "weight", "bias", "recurrent_weight", "recurrent_bias", "accum", "scale", "param"),
    *("table", "exp_table", "inv_table", "inv_inp", "inp_norm"),
)
_PLAIN = ("strategy", "reuse_factor", "weight_bits", "activation_bits", "table_size")
_LEAST = {"reuse_factor": 1, "weight_bits": 2, "activation_bits": 1, "table_size": 2}
_MOST = {"table_size": 1 << 20}


@dataclass(frozen=True)
class LayerOptions:
    """The options of one layer; an option that is None follows from the target and the precision.

    Attributes:
        strategy: one of `design.STRATEGIES`.
        reuse_factor: how often one multiplier is used per output position.
        weight_bits: width of the weights.
        activation_bits: width of the output.
        table_size: entries of the table of its activation.
        types: role to type.
    """

    strategy: str | None = None
    reuse_factor: int | None = None
    weight_bits: int | None = None
    activation_bits: int | None = None
    table_size: int | None = None
    types: Mapping[str, FixedType] | None = None

    @classmethod
    def of(cls, layer: str, options: Mapping[str, Any]) -> LayerOptions:
        """Read a mapping with the attributes above and types by role, for example `{"weight": "fixed<6,1>"}`.

        Raises:
            HlsError: an option is unknown or has an invalid value.
            DesignError: a type cannot be read.
        """
        plain = {key: options[key] for key in _PLAIN if key in options}
        roles = {key: value for key, value in options.items() if key not in plain}
        unknown = [key for key in roles if key not in TYPE_ROLES]
        if unknown:
            raise HlsError(
                f"layer {layer!r} has no option {unknown[0]!r}; wanted {', '.join(_PLAIN)}, or a type for "
                f"{', '.join(TYPE_ROLES)}"
            )
        if plain.get("strategy") not in (None, *STRATEGIES):
            raise HlsError(f"layer {layer!r} has strategy {plain['strategy']!r}; wanted one of {', '.join(STRATEGIES)}")
        for key, least in _LEAST.items():
            value, most = plain.get(key), _MOST.get(key)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and (not whole or value < least or (most is not None and value > most)):
                wanted = f"{least} or more" if most is None else f"{least} to {most:,}"
                raise HlsError(f"layer {layer!r} has {key} {value!r}; wanted a whole number, {wanted}")
        types = {role: _type(layer, role, given) for role, given in roles.items()}
        return cls(**plain, types=types)


def with_widths(options: Mapping[str, LayerOptions], widths: Mapping[tuple[str, str], int]) -> dict[str, LayerOptions]:
    """Return `options` with other widths; `widths` are by role (`weight` or `activation`) and layer."""
    found = dict(options)
    for (role, layer), bits in widths.items():
        changes: dict[str, Any] = {f"{role}_bits": bits}
        found[layer] = replace(found.get(layer, LayerOptions()), **changes)
    return found


def _type(layer: str, role: str, given: object) -> FixedType:
    try:
        return given if isinstance(given, FixedType) else FixedType.parse(str(given))
    except DesignError as error:
        raise DesignError(f"layer {layer!r}, {role}: {error}") from error


def read_options(names: Sequence[str], options: Mapping[str, Mapping[str, object]]) -> dict[str, LayerOptions]:
    """Map layer name to its options; a key of `options` may be a glob, and a later key overrides an earlier one.

    Args:
        names: the names of all layers.
        options: layer name or glob to options, for example `{"conv*": {"weight_bits": 6}}`.

    Raises:
        HlsError: a key matches no layer, or an option is unknown.
    """
    read, problems = gather_options(names, options)
    for problem in problems:
        raise problem
    return read


def gather_options(
    names: Sequence[str], options: Mapping[str, Mapping[str, object]]
) -> tuple[dict[str, LayerOptions], list[FpgaPruneError]]:
    """Read as `read_options`, but return all errors instead of raising the first."""
    merged: dict[str, dict[str, Any]] = {}
    problems: list[FpgaPruneError] = []
    for pattern, entry in options.items():
        found = [name for name in names if fnmatchcase(name, pattern)]
        if not found:
            near = difflib.get_close_matches(pattern, names, n=1)
            meant = f"did you mean {near[0]!r}? The" if near else "the"
            problems.append(
                HlsError(f"options for layer {pattern!r} fit no layer; {meant} network has {', '.join(names)}")
            )
        for name in found:
            merged.setdefault(name, {}).update(entry)
    read = {}
    for name, entry in merged.items():
        try:
            read[name] = LayerOptions.of(name, entry)
        except FpgaPruneError as error:
            problems.append(error)
    return read, problems
