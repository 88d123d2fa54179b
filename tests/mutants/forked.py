"""Tests of a changed package, run in a process that has loaded the large libraries before it forked.

TensorFlow takes as long to load as many of the tests that need it. It is loaded once, in a process that computes
nothing and has no thread; each run is a child of that process, which loads only the package and its tests.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# More than any test needs; a mutant that asks for all memory is stopped.
_MEMORY_BYTES = 48 * 2**30


def load(libraries: Sequence[str]) -> None:
    """Import what the tests need and no mutant changes."""
    for name in libraries:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


class _Changed(importlib.abc.MetaPathFinder):
    """Finds one module as changed text, all others as they are."""

    def __init__(self, root: Path, path: str, text: str) -> None:
        parts = Path(path).with_suffix("").parts
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self.file, self.text = root / path, text

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        loader = _Loader(name, str(self.file), self.text)
        folder = [str(self.file.parent)] if self.file.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(name, self.file, loader=loader, submodule_search_locations=folder)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> Any:
        return compile(self._text, self.path, "exec", dont_inherit=True)


def change(root: Path, path: str, text: str) -> None:
    """From now on, this process imports `text` in place of the file."""
    sys.meta_path.insert(0, _Changed(root, path, text))


@dataclass(frozen=True)
class Outcome:
    """How a child ended: what it said as JSON, None where it was stopped, and its seconds of wall time."""

    said: Mapping[str, Any] | None
    seconds: float


def run(work: Callable[[], Mapping[str, Any]], cpu_s: float) -> Outcome:
    """What `work` returns in a child that may take `cpu_s` seconds of processor time, and twelve times that in all."""
    began = time.monotonic()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _child(work, write, cpu_s)
    os.close(write)
    said = _read(read, began + 12 * cpu_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return Outcome(json.loads(said) if said else None, time.monotonic() - began)


def _read(pipe: int, until: float) -> bytes:
    import select

    said = b""
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([pipe], [], [], left)
        if not ready:
            said = b""
            break
        more = os.read(pipe, 1 << 16)
        if not more:
            break
        said += more
    os.close(pipe)
    return said


def _child(work: Callable[[], Mapping[str, Any]], write: int, cpu_s: float) -> None:
    os.setpgid(0, 0)
    os.set_inheritable(write, False)
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 2))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    try:
        said = json.dumps(work()).encode()
    except BaseException:  # noqa: BLE001 whatever a mutant raises, the child ends here and says it
        said = json.dumps({"failed": traceback.format_exc()}).encode()
    while said:
        said = said[os.write(write, said) :]
    os._exit(0)


class Chosen:
    """Runs the chosen tests of those that are collected, up to the first that fails."""

    def __init__(self, wanted: Sequence[str] | None) -> None:
        self.wanted = None if wanted is None else set(wanted)
        self.failed: str | None = None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.wanted is not None:
            items[:] = [item for item in items if item.nodeid in self.wanted]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid


def run_tests(root: Path, files: Sequence[str], plugins: Sequence[object]) -> int:
    """Pytest's exit code for the unmarked tests of `files`; property tests draw the same examples each time."""
    from hypothesis import settings

    settings.register_profile("mutants", database=None, derandomize=True)
    settings.load_profile("mutants")
    os.chdir(root)
    quiet = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(root), "--no-header", "--tb=no"]
    # Hypothesis, which is a plugin of pytest, is loaded before pytest.
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*quiet, "-m", "not slow and not flow", *files], plugins=list(plugins)))
