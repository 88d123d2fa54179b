"""Masks from a `[select]` section, and the sensitivity of a saved model: selection as a user asks for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fpgaprune.errors import ConfigError
from fpgaprune.flow.config import SelectConfig
from fpgaprune.masks import MaskSet

Told = Callable[[int, int, str], None]


def choose_masks(
    model: Any, settings: SelectConfig, data: tuple[Any, Any] | None, seed: int, told: Told | None = None
) -> tuple[MaskSet, list[dict[str, Any]]]:
    """The locks that `settings` describe for `model`, and those that were added because they follow from others.

    Args:
        model: a Keras model; compiled, where the criterion reads data.
        settings: the section.
        data: samples and labels, for criteria that need them.
        seed: for the criterion `random`.
        told: of progress.

    Raises:
        MaskError: a slice or a mask does not fit, or a sparsity cannot be reached.
    """
    from fpgaprune.select.choose import select
    from fpgaprune.select.closure import close
    from fpgaprune.select.criteria import CRITERIA
    from fpgaprune.select.explicit import from_zeros
    from fpgaprune.select.protection import Protection

    masks = MaskSet.from_slices(model, settings.locks)
    if settings.masks is not None:
        given = MaskSet.load(settings.masks)
        given.check_fits(model)
        masks = masks & given
    if settings.zeros:
        masks = masks & from_zeros(model)
    names_its_own = ":" in settings.granularity
    if settings.sparsity or names_its_own:
        masks = select(
            model,
            None if names_its_own else settings.sparsity,
            settings.granularity,
            settings.criterion,
            settings.scope,
            settings.paths,
            masks,
            data=data if CRITERIA[settings.criterion].needs_data else None,
            seed=seed,
            normalize=settings.normalize,
            protect=Protection(settings.protect, settings.min_free, settings.min_free_per_output),
            progress=told,
        )
    if not settings.close:
        return masks, []
    closed = close(masks, model)
    return closed.masks, closed.to_json()


def select_masks(
    model_path: Path, settings: SelectConfig, source: str | None, told: Told
) -> tuple[MaskSet, list[dict[str, Any]]]:
    """`choose_masks` for the model in a `.keras` file, with data named as in a flow.

    Raises:
        ConfigError: the model cannot be read.
        DataError: the data cannot be read.
        MaskError: as `choose_masks`.
    """
    from fpgaprune.flow.data import load_data
    from fpgaprune.flow.stages import compile_classifier

    data = load_data(source) if source is not None else None
    model = load_saved_model(model_path)
    compile_classifier(model, learning_rate=0.001, steps=1)
    samples = None if data is None else (data.x_train, data.y_train)
    return choose_masks(model, settings, samples, 0, told)


def measure_sensitivity(
    model_path: Path, source: str, folder: Path, options: dict[str, Any], told: Told
) -> tuple[Any, dict[str, Path]]:
    """Accuracy of the saved model against the sparsity of each weight alone; table, JSON and plot are in `folder`.

    Args:
        model_path: a `.keras` file.
        source: of the data, as in a flow.
        folder: where the results go; an interrupted measurement goes on from what is there.
        options: of `fpgaprune.select.sensitivity.sensitivity`.
        told: of progress.

    Raises:
        ConfigError: the model cannot be read.
        DataError: the data cannot be read, or do not fit the model.
        MaskError: an option is not allowed.
    """
    from fpgaprune.files import write_bytes
    from fpgaprune.flow.data import load_data
    from fpgaprune.flow.stages import accuracy, compile_classifier
    from fpgaprune.select.sensitivity import sensitivity

    data = load_data(source)
    model = load_saved_model(model_path)
    compile_classifier(model, learning_rate=0.001, steps=1)
    folder.mkdir(parents=True, exist_ok=True)
    files = {kind: folder / f"sensitivity.{kind}" for kind in ("json", "md", "svg")}
    found = sensitivity(
        model,
        lambda current: accuracy(current, data),
        results=files["json"],
        progress=told,
        data=(data.x_train, data.y_train),
        **options,
    )
    write_bytes(files["md"], found.to_markdown().encode())
    found.save_plot(files["svg"])
    return found, files


def load_saved_model(path: Path) -> Any:
    """The Keras model in the file at `path`, uncompiled, in a quiet and deterministic session.

    Raises:
        ConfigError: there is no such file, or it holds no Keras model.
    """
    if not path.is_file():
        raise ConfigError(f"model file {path} does not exist")
    from fpgaprune.flow.session import start_session

    start_session(seed=0)
    import keras

    try:
        return keras.saving.load_model(path, compile=False)
    except (ValueError, OSError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is no Keras model: {str(error).splitlines()[0]}") from error
