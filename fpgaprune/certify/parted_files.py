"""Finds the layers of a saved model that compute with something else than the kernel in the file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fpgaprune.errors import CertificateError
from fpgaprune.files import read_configuration


def read_parted(path: Path) -> dict[str, str]:
    """The path of each layer that computes with something else than the kernel in the file, to the reason.

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
