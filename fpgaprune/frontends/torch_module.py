"""`from_torch`: a module of PyTorch, exported to ONNX and brought in from there."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

from fpgaprune.errors import ModelImportError
from fpgaprune.files import in_a_line
from fpgaprune.frontends.loaded import LoadedNetwork
from fpgaprune.frontends.onnx.front import load_onnx


def from_torch(module: Any, example: Any, *, samples: Any = None) -> LoadedNetwork:
    """Export a trained module of PyTorch to ONNX, and load that file as `load` does.

    PyTorch is no part of fpgaprune and must be installed. Its exporter that traces the module is used; BatchNorms stay
    apart, so that the weights go back to the module.

    Args:
        module: a `torch.nn.Module`; it is exported as in `eval()`, and then is in the mode that it had.
        example: a tensor that it takes, or a tuple of several; the first axis is the batch.
        samples: as for `load`.

    Raises:
        ModelImportError: PyTorch is not installed or cannot export the module, or the file cannot come in.

    Examples:
        >>> net = fp.from_torch(module, torch.zeros(1, 3, 32, 32))  # doctest: +SKIP
    """
    try:
        import torch
    except ImportError as error:
        raise ModelImportError(
            "PyTorch is not installed here; export the module elsewhere, and load its file"
        ) from error
    inputs = tuple(example) if isinstance(example, tuple | list) else (example,)
    was_training = module.training
    with tempfile.TemporaryDirectory(prefix="fpgaprune-torch-") as name:
        path = Path(name) / f"{type(module).__name__}.onnx"
        try:
            module.eval()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # The newer exporter loads libraries that end the process beside TensorFlow, and joins BatchNorms.
                kept = torch.onnx.TrainingMode.PRESERVE
                torch.onnx.export(module, inputs, str(path), dynamo=False, training=kept)
        except Exception as error:
            # The exporter raises anything that the module's own code raises.
            raise ModelImportError(f"PyTorch cannot export {type(module).__name__}: {in_a_line(error)}") from error
        finally:
            module.train(was_training)
        return load_onnx(path, samples)
