"""Converts a folded, quantised Keras model to hls4ml's graph, and the graph to a `Design`."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import (
    Convolution,
    Dense,
    Design,
    LayerSpec,
    LookUp,
    Map,
    Operation,
    Pooling,
    Recurrent,
    Softmax,
    as_built,
    layer_of,
)
from fpgaprune.errors import FpgaPruneError, HlsError
from fpgaprune.files import is_storage_error, storage_error
from fpgaprune.firmware import stored_forms
from fpgaprune.fixed import FixedType
from fpgaprune.lowering import (
    PROJECT_NAMES,
    RECURRENT,
    TABLE,
    Types,
    free_name,
    hls_precision,
    hls_type,
    is_project_name,
    is_softmax,
    names_of,
    renamed,
    softmax_entries,
)
from fpgaprune.quantise import RoundedChannels
from fpgaprune.target import Target

# Attributes of hls4ml's layers that the Design does not take, because it has fields of its own for them.
_NOT_DATA = frozenset(
    {"name", "class_name", "module", "inputs", "outputs", "trace", "precision", "index", "strategy", "include_header"}
    | {"input_keras_tensor_names", "output_keras_tensor_names", "reuse_factor"}
)
# Class of hls4ml's layer to the roles of its weights that `quantise_weights` does not round.
_CONSTANTS: Mapping[str, tuple[str, ...]] = {"BatchNormalization": ("scale", "bias"), "PReLU": ("param",)}
_WEIGHT_ROLES = ("weight", "recurrent_weight", "bias", "recurrent_bias", "scale", "param")


def convert(
    folded: Any,
    types: Types,
    target: Target,
    output_dir: Path,
    name: str,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    backend_options: Mapping[str, Any] | None = None,
) -> Any:
    """hls4ml's graph of `folded` with exactly `types`; nothing is written yet.

    Args:
        folded: what `prepare.fold` returned.
        types: layer name to role to type.
        target: part, clock, io type, strategy, reuse.
        output_dir: the project's folder.
        name: project name, a C identifier.
        options: further entries of hls4ml's configuration by layer name, as
            `{"softmax": {"Implementation": "latency"}}`.
        backend_options: further settings of the backend, as `{"clock_uncertainty": "20%", "board": "pynq-z2"}`.

    Raises:
        HlsError: `name` is no C identifier, hls4ml cannot convert the model, or knows no such option.
    """
    if not is_project_name(name):
        raise HlsError(f"project name {name!r} is not a free C identifier; {PROJECT_NAMES}")
    import hls4ml

    import fpgaprune.hls.rounded_channels  # noqa: F401

    names = names_of(folded, name)
    back = {own: layer for layer, own in names.items()}
    with quiet(), _as_problem(f"hls4ml cannot convert model {folded.name!r} for {target.backend}"):
        model = renamed(folded, names)
        for layer in model.layers:
            if isinstance(layer, RoundedChannels):
                layer.streamed = target.io_type == "io_stream"
        config = hls4ml.utils.config_from_keras_model(model, granularity="name", backend=target.backend)
        config["Model"].update(Strategy=target.strategy, ReuseFactor=target.reuse_factor)
        for own, entry in config["LayerName"].items():
            layer = back.get(own, own)
            entry["Precision"].update(hls_precision(_known(types.get(layer, {}), entry["Precision"])))
            if "ReuseFactor" in entry:
                entry["ReuseFactor"] = target.reuse_factor
            entry.update(_tables(folded, layer, types) | dict((options or {}).get(layer, {})))
        _require_all([names[layer] for layer in types], config["LayerName"])
        graph = hls4ml.converters.convert_from_keras_model(
            model,
            hls_config=config,
            output_dir=str(output_dir),
            project_name=name,
            backend=target.backend,
            io_type=target.io_type,
            part=target.order_number,
            clock_period=target.clock_ns,
            # Every type is given; hls4ml would choose them anew where it finds a quantiser.
            bit_exact=False,
            **_backend_options(target, backend_options or {}),
        )
        _round_constants(graph)
        return graph


def _round_constants(graph: Any) -> None:
    """The scales, shifts and slopes of `graph` are numbers of their types, which hls4ml's files then hold exactly.

    hls4ml writes them unrounded, and rounds only where the hardware reads them; to the same numbers.
    """
    for node in graph.get_layers():
        for role in _CONSTANTS.get(node.class_name, ()):
            if role in node.weights:
                variable = node.weights[role]
                kind = _type(variable.type)
                variable.data = kind.to_float(kind.to_raw(np.asarray(variable.data, dtype=np.float64)))


def _tables(folded: Any, name: str, types: Types) -> dict[str, Any]:
    """The configuration of the tables of layer `name`, if they differ from hls4ml's own."""
    layer = next((layer for layer in folded.layers if layer.name == name), None)
    if layer is None or name not in types:
        return {}
    if is_softmax(layer):
        return softmax_entries(types[name])
    # hls4ml reads this type for recurrent layers only. For others it takes its own type unless the setting is given.
    table = types[name].get("table", TABLE)
    return {} if table == TABLE or isinstance(layer, RECURRENT) else {"TableT": hls_type(table)}


@contextlib.contextmanager
def _as_problem(what: str) -> Iterator[None]:
    """Within the block, an error of hls4ml becomes an `HlsError` of one line that begins with `what`."""
    try:
        yield
    except FpgaPruneError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and is_storage_error(error):
            raise storage_error(error) from error
        # hls4ml raises bare Exception or AssertionError for everything that it cannot convert.
        raise HlsError(f"{what}: {in_words(error)}") from error


def in_words(error: BaseException) -> str:
    """The message of `error` on one line, with the error's class if that says more."""
    said, kind = " ".join(str(error).split()), type(error)
    if not said:
        return f"{kind.__name__}, with no message"
    return said if kind in (Exception, AssertionError, ValueError, RuntimeError) else f"{kind.__name__}: {said}"


def _backend_options(target: Target, given: Mapping[str, Any]) -> dict[str, Any]:
    problems = option_problems(target, given)
    if problems:
        raise HlsError(problems[0])
    return {**needed_options(target.backend), **given}


def option_problems(target: Target, given: Mapping[str, Any]) -> list[str]:
    """One line for each setting in `given` that hls4ml's backend does not have."""
    if not given:
        return []
    import hls4ml

    known = inspect.signature(hls4ml.backends.get_backend(target.backend).create_initial_config).parameters
    settled = {"part", "clock_period", "io_type", "write_weights_txt", "write_tar"}
    allowed = [key for key in known if key not in settled and known[key].kind is not inspect.Parameter.VAR_KEYWORD]
    return [
        f"backend {target.backend} has no option {key!r}; wanted one of {', '.join(allowed)}"
        for key in given
        if key not in allowed
    ]


def needed_options(backend: str) -> dict[str, Any]:
    """The options that `backend` needs to make a project."""
    # Without this option hls4ml looks for SmartHLS on PATH, and writes no project if it is missing.
    return {"smarthls_path": "${SHLS_ROOT_DIR}"} if backend == "Libero" else {}


def _require_all(names: Sequence[str], entries: Mapping[str, Any]) -> None:
    missing = [layer for layer in names if layer not in entries]
    if missing:
        raise HlsError(f"hls4ml gave layer {missing[0]!r} another name; rename it: {', '.join(entries)} are its names")


def _known(types: Mapping[str, FixedType], slots: Mapping[str, Any]) -> dict[str, FixedType]:
    return {role: kind for role, kind in types.items() if role in slots}


def extract(
    graph: Any,
    raws: Mapping[str, Mapping[str, NDArray[Any]]],
    sources: Mapping[str, Mapping[str, str]],
    target: Target,
    types: Types | None = None,
    names: Mapping[str, str] | None = None,
) -> Design:
    """The `Design` that hls4ml's `graph` describes, with every type and integer weight, and the model's layer names.

    Args:
        graph: the graph from `convert`.
        raws: layer name to role to raw integers, from `quantise_weights`; the graph must hold the same.
        sources: layer name to role to Keras weight path.
        target: the target of the graph.
        types: the types given to `convert`; needed for layers of strategy `distributed_arithmetic`, because hls4ml
            does not keep their weights.
        names: layer name to its name in the project, from `names_of`; without it the names are equal.

    Raises:
        HlsError: the graph's weights are not the ones that were quantised.
    """
    with _as_problem(f"hls4ml's graph of {graph.config.get_project_name()!r} cannot be read"):
        layers, outputs = extract_layers(graph, raws, sources, types or {}, names)
    return as_built(
        Design(
            name=graph.config.get_project_name(),
            layers=layers,
            outputs=outputs,
            io_type=target.io_type,
            backend=target.backend,
            clock_ns=target.clock_ns,
            part=target.order_number,
        )
    )


def extract_layers(
    graph: Any,
    raws: Mapping[str, Mapping[str, NDArray[Any]]],
    sources: Mapping[str, Mapping[str, str]],
    types: Types,
    names: Mapping[str, str] | None = None,
) -> tuple[tuple[LayerSpec, ...], tuple[str, ...]]:
    """The layers of hls4ml's `graph`, inputs first, and the names of the layers that make its outputs.

    Args, errors: as for `extract`.
    """
    # Inputs in the order of the top function's arguments; in hls4ml's graph they are before their first use.
    entries = [graph.graph[name] for name in graph.inputs]
    others = [node for node in graph.get_layers() if node not in entries]
    back = _names_back([node.name for node in graph.get_layers()], names or {})
    layers = tuple(_layer(node, raws, sources, types, back) for node in (*entries, *others))
    return layers, tuple(back[_producer(graph, variable.name)] for variable in graph.get_output_variables())


def _names_back(nodes: Sequence[str], names: Mapping[str, str]) -> dict[str, str]:
    """The design's name of each of hls4ml's `nodes`: the model's, or hls4ml's if hls4ml added the node."""
    own = {project: layer for layer, project in names.items()}
    return {node: own[node] if node in own else free_name(node, names) for node in nodes}


def _layer(
    node: Any, raws: Mapping[str, Any], sources: Mapping[str, Any], given: Types, back: Mapping[str, str]
) -> LayerSpec:
    name = back[node.name]
    attributes = node.attributes.attributes
    types = {key.removesuffix("_t"): _type(value) for key, value in attributes.items() if _is_type(key, value)}
    # A flattened tensor or a copied stream has the type of its source, not that in the layer's attributes.
    types["result"] = _type(node.get_output_variable().type)
    if node.class_name == "Softmax" and node.attributes["inv_inp_t"].name == "model_default_t":
        # The template of softmax uses the exponentials' type there.
        types["inv_inp"] = types["exp_table"]
    weights: dict[str, NDArray[np.int64]] = {}
    for role in _WEIGHT_ROLES:
        if role in node.weights:
            variable = node.weights[role]
            types[role] = _type(variable.type)
            wanted = raws.get(name, {}).get(role)
            weights[role] = _as_keras(types[role].to_raw(_written(variable, wanted)), wanted, node, role)
        elif role in raws.get(name, {}) and attributes.get("strategy") == "distributed_arithmetic":
            types[role] = given[name][role]
            weights[role] = np.asarray(raws[name][role], dtype=np.int64)
    plain = {key: _plain(value) for key, value in attributes.items() if key not in _NOT_DATA and _is_plain(value)}
    if hasattr(node, "mask_kbi"):
        from fpgaprune.hls.rounded_channels import quantiser_words

        plain |= quantiser_words(node)
    made = layer_of(
        name=name,
        kind=node.class_name,
        # In hls4ml an input has a placeholder as its input, and a folded layer leaves an empty name.
        inputs=tuple(
            back[_producer(node.model, source)] for source in node.inputs if source and node.class_name != "Input"
        ),
        output_shape=tuple(int(size) for size in node.get_output_variable().shape),
        types=types,
        weights=weights,
        sources={role: path for role, path in sources.get(name, {}).items() if role in weights},
        attributes=plain,
        project_name=str(node.name),
        reuse_factor=int(attributes.get("reuse_factor") or 1),
        strategy=attributes.get("strategy") if "weight" in weights else None,
    )
    read = {"result", *weights, *_roles_of(made.operation)}
    return replace(made, types={role: kind for role, kind in made.types.items() if role in read})


def _roles_of(operation: Operation) -> tuple[str, ...]:
    """The types that `operation` reads, beside those of its result and its weights; hls4ml's layers have others too."""
    match operation:
        case Dense() | Convolution() | Pooling():
            return ("accum",)
        case Recurrent():
            return ("accum", "table")
        case LookUp(parameter=parameter):
            return ("table",) if parameter is None else ("table", "param")
        case Map(parameter=parameter):
            return () if parameter is None else ("param",)
        case Softmax():
            return ("accum", "exp_table", "inv_table", "inv_inp", "inp_norm")
    return ()


def _written(variable: Any, wanted: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """The values of `variable` as in the project's text files."""
    data = np.asarray(variable.data, dtype=np.float64)
    if wanted is not None:
        # hls4ml writes f decimal places, which are enough for multiples of 2**-f.
        return data
    return np.array([float(variable.precision_fmt.format(value)) for value in data.ravel()]).reshape(data.shape)


def _as_keras(found: NDArray[np.int64], wanted: NDArray[np.int64] | None, node: Any, role: str) -> NDArray[np.int64]:
    """`found` in Keras's axis order; strategy `resource` stores kernels with the outputs first."""
    if wanted is None:
        turned = role == "weight" and node.get_attr("_weights_transposed", False)
        return np.ascontiguousarray(np.moveaxis(found, 0, -1)) if turned else found
    for stored in stored_forms(wanted, int(node.get_attr("reuse_factor") or 1)):
        if found.size == stored.size and np.array_equal(found.ravel(), stored.ravel()):
            # A Dense layer on several axes has become a convolution of one point.
            shape = found.shape if found.ndim > wanted.ndim and found.shape[-1] == wanted.shape[-1] else wanted.shape
            return np.ascontiguousarray(wanted.reshape(shape))
    raise HlsError(
        f"layer {node.name!r} has other {role} integers in hls4ml's graph (shape {found.shape}) than were quantised "
        f"(shape {wanted.shape}); this version of hls4ml changes weights in an unknown way"
    )


def _producer(graph: Any, name: str) -> str:
    """The name of the layer whose output is called `name`."""
    for node in graph.get_layers():
        if name == node.name or name in node.outputs or node.get_output_variable().name == name:
            return str(node.name)
    raise HlsError(f"no layer of hls4ml's graph makes {name!r}")


def _is_type(key: str, value: Any) -> bool:
    # Softmax has types that it does not use, which are unspecified.
    return key.endswith("_t") and hasattr(getattr(value, "precision", None), "width")


def _type(named: Any) -> FixedType:
    precision = named.precision
    integer = getattr(precision, "integer", precision.width)
    rounding = getattr(precision, "rounding_mode", None) or "TRN"
    overflow = getattr(precision, "saturation_mode", None) or "WRAP"
    return FixedType(int(precision.width), int(integer), bool(precision.signed), str(rounding), str(overflow))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(item, int | float | str | bool | np.integer) for item in value)
    return isinstance(value, int | float | bool | np.integer | np.floating) or (
        isinstance(value, str) and "\n" not in value and "<" not in value
    )


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Within the block, output and warnings of hls4ml are hidden."""
    # hls4ml and its helpers print what they do, which a library must not.
    level = logging.getLogger().level
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.getLogger().setLevel(level)
