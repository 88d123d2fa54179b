"""The front end of Keras 3: `.keras` and `.h5` files, whose code is not run."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from fpgaprune.errors import ConfigError
from fpgaprune.files import bounded_memory, check_names, in_a_line, read_configuration, read_weights, require_layers

FORMAT = "Keras 3"
# Loading a network may take this many bytes, plus this many times the size of its file.
_MAX_BYTES, _MAX_GROWTH = 1 << 32, 20


def load_keras(path: Path) -> Any:
    """The model that Keras 3 saved at `path`, uncompiled, because the file cannot hold a user's own loss function.

    No code in the file is run, and sizes that the file only declares do not fill the memory.

    Raises:
        ConfigError: the file is damaged, holds code, or Keras cannot build it.
    """
    document = read_configuration(path, ConfigError).document
    import keras

    try:
        require_layers(document)
        # Its compilation is not read.
        check_names({**document, "compile_config": None}, keras.saving.get_custom_objects().keys())
    except ValueError as error:
        raise ConfigError(f"{path} is refused: {error}") from error
    read_weights(path, ConfigError)
    try:
        with bounded_memory(_MAX_BYTES + _MAX_GROWTH * path.stat().st_size), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = keras.saving.load_model(path, compile=False)
    except Exception as error:
        # A layer may raise anything if its settings were not written by Keras.
        said = in_a_line(error, after="Exception encountered: ")
        raise ConfigError(f"{path} is no Keras model: {said}") from error
    if not isinstance(model, keras.Model):
        raise ConfigError(f"{path} is no Keras model: it holds a {type(model).__name__}; save the whole model")
    return model
