"""Writes the types, tables and strategies of a `Design` as hls4ml's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fpgaprune.design import LayerSpec, LookUp, Operation, Recurrent, Softmax
from fpgaprune.hls.layer_list import LayerList
from fpgaprune.target import Target
from fpgaprune.values import FixedType

# The types of a softmax that hls4ml reads from settings of their own.
_OF_SOFTMAX = ("inp_norm", "exp_table", "accum", "inv_inp", "inv_table")
# The type that hls4ml gives the entries of a table.
_ENTRY = FixedType(18, 8)
_DEFAULT = "fixed<16,6>"


def hls_config(layers: LayerList, target: Target) -> dict[str, Any]:
    """Return hls4ml's configuration of `layers`: every type is given, so that hls4ml chooses none."""
    import hls4ml

    backend = hls4ml.backends.get_backend(target.backend)
    return {
        "Model": {
            "Precision": {"default": _DEFAULT},
            "ReuseFactor": target.reuse_factor,
            "Strategy": target.strategy,
            "BramFactor": 1_000_000_000,
            "TraceOutput": False,
            # hls4ml would choose the types anew where it finds a quantiser.
            "BitExact": False,
        },
        "LayerName": {
            entry["name"]: _settings(entry["class_name"], layers.layers[entry["name"]], backend)
            for entry in layers.entries
        },
    }


def _settings(kind: str, layer: LayerSpec, backend: object) -> dict[str, Any]:
    settings = _defaults(kind, backend)
    precision = settings.get("Precision", {})
    precision.update(hls_precision({role: found for role, found in layer.types.items() if role in precision}))
    if "ReuseFactor" in settings:
        settings["ReuseFactor"] = layer.reuse_factor
    if layer.strategy is not None:
        settings["Strategy"] = layer.strategy
    if isinstance(layer.operation, Softmax):
        settings |= softmax_types_of(layer.types)
    # hls4ml takes its own type unless this setting is given, whatever stands among the precisions.
    if isinstance(layer.operation, LookUp | Recurrent) and layer.types["table"] != _ENTRY:
        settings["TableT"] = hls_type(layer.types["table"])
    return settings | {key: value for key, value in table_settings(layer.operation).items() if value is not None}


def _defaults(kind: str, backend: Any) -> dict[str, Any]:
    """Return hls4ml's own settings of a layer of class `kind`."""
    from hls4ml.model.attributes import TypeAttribute
    from hls4ml.model.layers import layer_map

    settings: dict[str, Any] = {}
    for attribute in backend.create_layer_class(layer_map[kind]).expected_attributes:
        if not attribute.configurable:
            continue
        if isinstance(attribute, TypeAttribute):
            default = "auto" if attribute.default is None else str(attribute.default)
            settings.setdefault("Precision", {})[attribute.name.removesuffix("_t")] = default
        elif attribute.name == "reuse_factor":
            settings[attribute.config_name] = 1
        elif attribute.default is not None:
            settings[attribute.config_name] = attribute.default
    return settings


def table_settings(operation: Operation) -> dict[str, Any]:
    """Return the sizes and the form of the tables of `operation`, by the names of hls4ml's settings."""
    match operation:
        case LookUp(table_size=size) | Recurrent(table_size=size):
            return {"TableSize": size}
        case Softmax():
            return {
                "TableSize": operation.table_size,
                "Implementation": "stable",
                "ExpTableSize": operation.exp_table_size,
                "InvTableSize": operation.inverse_table_size,
            }
    return {}


def softmax_types_of(types: Mapping[str, FixedType]) -> dict[str, str]:
    """Return the types of a softmax's tables, by the names of hls4ml's settings."""
    return {
        f"{''.join(part.title() for part in role.split('_'))}T": hls_type(types[role])
        for role in _OF_SOFTMAX
        if role in types
    }


def hls_precision(types: Mapping[str, FixedType]) -> dict[str, str]:
    """Write `types`, by role, in the words of an hls4ml configuration."""
    return {role: hls_type(kind) for role, kind in types.items()}


def hls_type(kind: FixedType) -> str:
    """Write `kind` in the words of an hls4ml configuration."""
    return f"{'' if kind.signed else 'u'}fixed<{kind.width},{kind.integer},{kind.rounding},{kind.overflow},0>"
