"""`certify` compares the locked elements of a model, a file or a project with zero, or with the values they hold."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from fpgaprune.certify.firmware_weights import (
    as_numbers,
    by_path,
    count_firmware,
    count_integers,
    read_firmware_weights,
)
from fpgaprune.design import Design
from fpgaprune.errors import CertificateError, shown
from fpgaprune.files import LAYOUT_KEY, PARSER_ERRORS, in_a_line, parse_json, read_configuration, read_onnx
from fpgaprune.measure import LayerCounts, LinkCheck, LockCertificate, check_link
from fpgaprune.network import read_keras_weights
from fpgaprune.values import Array, MaskSet, by_weight_path, gathered, named_weights

if TYPE_CHECKING:
    import keras


Values = Mapping[str, Array]


@runtime_checkable
class Project(Protocol):
    """A hardware project that has been written."""

    @property
    def path(self) -> Path:
        """The project's folder."""

    @property
    def design(self) -> Design:
        """The network that the project computes."""


def certify(
    subject: keras.Model | str | os.PathLike[str] | Project, masks: MaskSet, values: Values | None = None
) -> LockCertificate:
    """Compare every locked element of `subject` with zero; `.require()` of the result raises if one differs.

    Args:
        subject: a Keras model, the path of a `.keras`, `.h5` or `.onnx` file, or a project from `to_hls`.
        masks: True = free, False = locked. For a model and a `.keras` file, Keras's own paths work too; an ONNX file
            and a project need weight paths (`masks.fitted(model)`).
        values: weight path to an array with which locked elements are compared instead of zero, for example
            `certify(model, held.masks, held.values)`. A project must have their exact values.

    Raises:
        CertificateError: the file cannot be read, or a masked weight is missing from it; or the model computes with
            something else than the weight, as after `enable_lora` or Keras's `quantize`.

    Examples:
        >>> masks = fp.select(model, 0.5)
        >>> fp.certify(model, masks).ok
        False
        >>> _ = fp.finetune(model, masks, x, y)
        >>> fp.certify(model, masks).require().ok
        True
    """
    masks = MaskSet(masks)
    if isinstance(subject, str | os.PathLike):
        path = Path(subject)
        checks = {".keras": check_keras_file, ".h5": check_keras_file, ".onnx": check_onnx_file}
        if path.suffix not in checks:
            raise CertificateError(
                f"{path} is no .keras, .h5 or .onnx file; to certify a project, pass the object from to_hls"
            )
        return LockCertificate((checks[path.suffix](path, masks, values),))
    if isinstance(subject, Project):
        return LockCertificate((check_firmware(subject.path, subject.design, masks, values),))
    return LockCertificate((check_model(subject, masks, values),))


def check_model(model: object, masks: MaskSet, values: Values | None = None) -> LinkCheck:
    """Return the link `memory`: the variables of a live Keras model, which are what it computes with.

    Raises:
        CertificateError: the model computes with something else, as after `enable_lora`, or a weight is missing.
    """
    # Commands that read no model start faster without it.
    from fpgaprune.network import require_in_use, require_whole

    weights = named_weights(model)
    masks = MaskSet(by_weight_path(masks, weights))
    arrays = {path: weights[path].numpy() for path in masks if path in weights}
    require_whole(model, arrays, CertificateError)
    link = check_link("memory", arrays, masks, values=_named_as(weights, values))
    require_in_use(model, masks, CertificateError, arrays, stays=False)
    return link


def check_keras_file(path: Path, masks: MaskSet, values: Values | None = None) -> LinkCheck:
    """Return the link of a `.keras` or `.h5` file, read without Keras."""
    arrays = read_keras_weights(path)
    masks = MaskSet(by_weight_path(masks, arrays))
    for layer, reason in read_parted(path).items():
        for masked in masks:
            if masked.startswith(f"{layer}/"):
                raise CertificateError(f"{path.name}: weight {masked!r} is not what its layer computes with: {reason}")
    return check_link(path.name, arrays, masks, values=_named_as(arrays, values))


def check_onnx_file(path: Path, masks: MaskSet, values: Values | None = None) -> LinkCheck:
    """Return the link of an ONNX file that `export_onnx` wrote."""
    arrays = read_onnx_weights(path)
    reasons = {p: "merged into another initialiser by the exporter" for p in masks if p not in arrays}
    _require_kernels(path.name, reasons, masks, arrays)
    return check_link(path.name, arrays, masks, reasons, values)


def check_firmware(folder: Path, design: Design, masks: MaskSet, values: Values | None = None) -> LinkCheck:
    """Return the link of an hls4ml project: the integers that synthesis reads, checked and counted.

    Raises:
        CertificateError: a weight file is missing, its integers are not those of `design`, or a size in the files is
            not that of the design, so that removed channels would still be there.
    """
    arrays, layers = read_firmware_weights(folder, design), count_firmware(folder, design)
    return _hardware_link(f"{folder.name}/firmware", arrays, layers, design, masks, values)


def check_design(design: Design, masks: MaskSet, values: Values | None = None) -> LinkCheck:
    """Return the link of a design: the integers that our Verilog is made of, checked and counted.

    Raises:
        CertificateError: a locked weight of several axes belongs to no layer of the design.
    """
    integers = {(layer.name, role): raw for layer in design.layers for role, raw in layer.weights.items()}
    return _hardware_link(
        "design.json", by_path(integers, design), count_integers(integers, design), design, masks, values
    )


def _hardware_link(
    name: str,
    arrays: Mapping[str, Array],
    layers: tuple[LayerCounts, ...],
    design: Design,
    masks: MaskSet,
    values: Values | None,
) -> LinkCheck:
    reasons = {p: "folded with BatchNorm into the layer's bias" for p in masks if p not in arrays}
    _require_kernels(name, reasons, masks, arrays)
    if values is not None:
        arrays = as_numbers(arrays, design)
    # A dilated, grouped or transposed convolution is a plain one in hardware.
    phases = {path: layer.phases for layer in design.layers for path in layer.sources.values()}
    arrays = {
        path: gathered(array, masks[path].shape, phases[path]) if path in masks else array
        for path, array in arrays.items()
    }
    link = check_link(name, arrays, masks, reasons, values)
    return replace(link, layers=layers)


def _named_as(weights: Mapping[str, object], values: Values | None) -> Values | None:
    return None if values is None else by_weight_path(values, weights)


def _require_kernels(link: str, missing: Iterable[str], masks: MaskSet, known: Iterable[str]) -> None:
    # A kernel must be in the file: only vectors (biases, BatchNorm) may be merged into another array.
    for path in missing:
        for other in known:
            front = path.removesuffix(f"/{other}")
            if front != path and not any(name.startswith(f"{front}/") for name in known):
                raise CertificateError(
                    f"{link}: {path!r} is not a weight path, but {other!r} is; give the masks the model's names with "
                    "masks.fitted(model)"
                )
        if masks[path].ndim > 1:
            raise CertificateError(f"{link}: weight {path!r} is locked but missing from it")


def read_parted(path: Path) -> dict[str, str]:
    """Return the path of each layer that computes with something else than the kernel in the file, to the reason.

    LoRA is merged into the kernel of a `.keras` file, and stands beside it in an `.h5` file.

    Raises:
        CertificateError: the file is missing, or is no `.keras` or `.h5` file.
    """
    config = read_configuration(path, CertificateError).document["config"]
    return dict(_parted(config.get("layers", []), "", merged=zipfile.is_zipfile(path)))


def _parted(layers: Any, nested: str, merged: bool) -> Iterator[tuple[str, str]]:
    for layer in layers:
        config = layer["config"]
        path = f"{nested}{config.get('name')}"
        inside = [config["layer"]] if isinstance(config.get("layer"), Mapping) else config.get("layers", [])
        yield from _parted([one for one in inside if isinstance(one.get("config"), Mapping)], f"{path}/", merged)
        policy = config.get("dtype")
        settings = policy.get("config") if isinstance(policy, Mapping) else None
        # Only the policies of quantised layers have a mode.
        if isinstance(settings, Mapping) and settings.get("mode"):
            mode = str(settings["mode"]).partition("/")[0]
            yield (
                path,
                f"Keras's quantize({mode!r}) has made other numbers of it; certify the file from before quantize()",
            )
        elif config.get("lora_rank") and not merged:
            yield path, "LoRA adds to it; save the model as .keras, which merges the two"


def read_onnx_weights(path: Path) -> dict[str, Array]:
    """Read the arrays by weight path, transposed back to Keras's axes; exact bits.

    For each weight path, the file's metadata under `fpgaprune.layout` names the initialiser, the shape in Keras, and
    the permutation from Keras's axes to those of the initialiser.

    Raises:
        CertificateError: the file is missing, is not ONNX, or was not written by `export_onnx`.
    """
    from onnx import numpy_helper

    model = read_onnx(path, CertificateError)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    if LAYOUT_KEY not in metadata:
        raise CertificateError(f"{path} has no metadata {LAYOUT_KEY!r}; write it with fpgaprune's export_onnx")
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    weights: dict[str, Array] = {}
    try:
        for weight, place in parse_json(metadata[LAYOUT_KEY]).items():
            if place["initializer"] not in stored:
                raise CertificateError(f"{path} has no initialiser {shown(place['initializer'])} for {shown(weight)}")
            order = place["permutation"]
            array = stored[place["initializer"]].reshape([place["shape"][axis] for axis in order])
            weights[weight] = np.transpose(array, np.argsort(order))
    except CertificateError:
        raise
    except PARSER_ERRORS as error:
        raise CertificateError(f"{path} has damaged metadata {LAYOUT_KEY!r}: {in_a_line(error)}") from error
    return weights
