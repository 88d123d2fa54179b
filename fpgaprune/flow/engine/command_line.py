"""The flow that a command line asks for: a flow file or a model, with options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fpgaprune.errors import ConfigError
from fpgaprune.files import does_not_exist
from fpgaprune.flow.engine.config import parse_config, read_config
from fpgaprune.flow.file import Flow, TrainConfig, kind_of, needed_with_model, require_kind, with_names_in_keras
from fpgaprune.frontends import is_onnx, plan_onnx
from fpgaprune.layout import joined
from fpgaprune.lowering import is_project_name
from fpgaprune.network import trained_bits

# Option to its section and key. An option that is left out changes nothing.
_KEYS = {
    "data": ("data", "source"),
    "part": ("target", "part"),
    "clock_ns": ("target", "clock_ns"),
    "sparsity": ("select", "sparsity"),
    "granularity": ("select", "granularity"),
    "epochs": ("finetune", "epochs"),
    "max_loss": ("verdict", "max_loss"),
}
_PATTERNS = {f"{section}.{key}": f"--{option.replace('_', '-')}" for option, (section, key) in _KEYS.items()}
_WITH_A_MODEL = ("data", "part", "sparsity")


def flow_from_options(source: Path | None, name: str | None = None, **options: object) -> Flow:
    """Return the flow in the file `source`, or the flow that prunes the model `source`; options change single keys.

    Example: `flow_from_options(Path("net.keras"), data="x.npz", part="zcu104", sparsity=0.6)` prunes that model.
    A model that HGQ2 saved is taken as it was trained: no sparsity is asked for, and nothing is fine-tuned.

    Args:
        source: a flow file, a saved Keras model, or None for the built-in flow.
        name: name of the flow; the default is the model's file name.
        options: the options, with names of `_KEYS`; None stands for an option that is left out.

    Raises:
        ConfigError: the file is neither, an option is missing, or a value is not allowed.
    """
    given = {option: value for option, value in options.items() if value is not None}
    document: dict[str, Any] = {}
    for option, value in given.items():
        section, key = _KEYS[option]
        document.setdefault(section, {})[key] = value
    if source is not None and kind_of(source) == "model":
        if not source.exists():
            raise ConfigError(does_not_exist(source, "model file"))
        # What cannot come in is refused first.
        has_bits = plan_onnx(source).document.is_quantised if is_onnx(source) else trained_bits(source) is not None
        if has_bits:
            # Its zeros were trained, and so were the bits of all other weights, which fine-tuning would take from them.
            document = joined({"select": {"zeros": True, "sparsity": 0.0}, "finetune": {"epochs": 0}}, document)
            given = {"sparsity": 0.0, **given}
        # A pattern n:m says its own share.
        says_share = ":" in str(given.get("granularity"))
        needed = [option for option in _WITH_A_MODEL if not (option == "sparsity" and says_share)]
        missing = [f"--{option}" for option in needed if option not in given]
        if missing:
            raise ConfigError(needed_with_model(source, missing))
        document = {**document, "name": name or name_of(source), "train": {"model": str(source)}}
        try:
            return parse_config(document, str(source))
        except ConfigError as error:
            # The network file has no keys: every one of them was an option.
            raise ConfigError(as_options(str(error)).removeprefix(f"{source}: ")) from error
    if source is not None:
        require_kind(source, "flow")
    config = read_config(source)
    model = config[TrainConfig].model
    if model is not None:
        require_kind(model, "model", "train.model: ")
    if name is not None:
        document["name"] = name
    if not document:
        return with_names_in_keras(config)
    written = config.model_dump(mode="json", exclude_unset=True)
    return with_names_in_keras(parse_config(joined(written, document), "options"))


def as_options(text: str) -> str:
    """Put the option in place of each key in `text` that has one: `--max-loss` for `verdict.max_loss`."""
    for key, option in _PATTERNS.items():
        text = re.sub(rf"(?<![\w.]){re.escape(key)}(?!\w)", option, text)
    return text


def name_of(path: Path) -> str:
    """Return a name for the flow of a model file: `my-net.v2.keras` becomes `my_net_v2`."""
    name = re.sub(r"\W+", "_", path.stem, flags=re.ASCII).strip("_")
    return name if is_project_name(name) else f"net_{name}".rstrip("_")
