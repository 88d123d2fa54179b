"""Reads the initialisers of an ONNX file by weight path, in Keras's axis order."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fpgaprune.errors import CertificateError, shown
from fpgaprune.files import LAYOUT_KEY, PARSER_ERRORS, in_a_line, parse_json, read_onnx
from fpgaprune.values import Array


def read_onnx_weights(path: Path) -> dict[str, Array]:
    """Weight path to array, transposed back to Keras's axes; exact bits.

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
