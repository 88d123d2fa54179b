"""Lets Keras load models with fpgaprune's classes once both are imported, in either order.

`keras.saving.load_model` finds a class only if its module was loaded. `import fpgaprune` loads no Keras, so the modules
with our classes are loaded right after Keras, or at once if Keras is there already.

Keras's own registration cannot replace this hook: it is a call into Keras, and `import fpgaprune` would then load
TensorFlow. A file names the module of each class, but Keras imports such a module only from packages of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

# One name of each module that registers its classes, or loads those that do, when it is loaded.
_CLASSES = (
    ("fpgaprune.train", "LockedOptimizer"),
    ("fpgaprune.quantise", "ROUNDED"),
    ("fpgaprune.quantise", "RoundedChannels"),
    ("fpgaprune.lowering", "ReversedSteps"),
)


class _KerasFinder(MetaPathFinder):
    """Finds Keras once, as Python would, and imports our classes after it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != "keras":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_then_register(module: ModuleType) -> None:
            execute(module)
            _register(module)

        # The loader keeps its type, because importlib.resources checks it.
        vars(spec.loader)["exec_module"] = execute_then_register
        return spec


def register_with_keras() -> None:
    """Register our serializable classes when Keras is imported, if Keras runs on TensorFlow."""
    if "keras" in sys.modules:
        _register(sys.modules["keras"])
    elif not any(isinstance(finder, _KerasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _KerasFinder())


def _register(keras: ModuleType) -> None:
    if keras.backend.backend() == "tensorflow":
        for package, name in _CLASSES:
            # A module that is being imported just now, and so imports Keras, registers its class at its end.
            with suppress(AttributeError):
                getattr(import_module(package), name)
