"""`KnownLosses` keeps the measurements of a search of widths on disk, so that a killed search repeats none."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from fpgaprune.errors import HlsError
from fpgaprune.files import read_json, write_bytes
from fpgaprune.values import Array

_FORMAT = 1
_ADVICE = "delete it or name another file"
# A measurement is a loss and its standard error.
_FIGURES = 2


class KnownLosses:
    """Maps the widths that a search tried to their losses; a JSON file holds them if one is named."""

    def __init__(self, path: str | os.PathLike[str] | None, question: str) -> None:
        """Read the losses in the file at `path`; losses of another `question` are ignored.

        Raises:
            HlsError: the file does not hold the losses of a search.
        """
        self._path = None if path is None else Path(path)
        self._question = question
        self._losses: dict[str, list[float]] = {}
        if self._path is not None and self._path.exists():
            self._losses = _read(self._path, question)

    def get(self, widths: Mapping[tuple[str, str], int]) -> tuple[float, float] | None:
        """Return the loss and its standard error with these widths; None if they were not measured."""
        found = self._losses.get(_name(widths))
        return None if found is None else (found[0], found[1])

    def add(self, widths: Mapping[tuple[str, str], int], loss: float, error: float) -> None:
        """Record the loss of `widths`, by role and layer, in memory and in the file."""
        self._losses[_name(widths)] = [loss, error]
        if self._path is not None:
            content = {"format": _FORMAT, "question": self._question, "losses": self._losses}
            write_bytes(self._path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())


def question_of(texts: Iterable[str], arrays: Iterable[Array]) -> str:
    """Return a digest of everything that the losses of a search depend on.

    Args:
        texts: options, versions and names.
        arrays: weights, samples, labels.
    """
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{len(text)}\0{text}\0".encode())
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _name(widths: Mapping[tuple[str, str], int]) -> str:
    return json.dumps(sorted([*place, bits] for place, bits in widths.items()))


def _read(path: Path, question: str) -> dict[str, list[float]]:
    try:
        known = read_json(path, HlsError, "the losses of a search", _ADVICE)
        if known["format"] != _FORMAT:
            raise ValueError(f"its format is not {_FORMAT}")
        losses = {str(name): [float(figure) for figure in figures] for name, figures in known["losses"].items()}
        if any(len(figures) != _FIGURES for figures in losses.values()):
            raise ValueError("a loss has not its two figures")
        return losses if known["question"] == question else {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HlsError(f"{path} is not the losses of a search: {error}; {_ADVICE}") from error
