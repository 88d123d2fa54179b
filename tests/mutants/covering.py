"""Which test runs which lines of a package, and how long it takes."""

from __future__ import annotations

import ast
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest
from forked import run, run_tests

_RECORD_S = 900.0


class _Recorder:
    """Says to `coverage` which test runs, and keeps what each took."""

    def __init__(self, cover: coverage.Coverage) -> None:
        self.cover, self.seconds = cover, {}
        self.failed: str | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.cover.switch_context(item.nodeid)
        began = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - began
        self.cover.switch_context("")
        return result

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = report.nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = report.nodeid


def _record(root: Path, file: str) -> Mapping[str, Any]:
    began = time.process_time()
    cover = coverage.Coverage(data_file=None, include=[str(root / "fpgaprune" / "*")], config_file=False)
    recorder = _Recorder(cover)
    cover.start()
    try:
        run_tests(root, [file], [recorder])
    finally:
        cover.stop()
    data, lines = cover.get_data(), {}
    for measured in data.measured_files():
        name = Path(measured).relative_to(root).as_posix()
        by_line = data.contexts_by_lineno(measured)
        lines[name] = {line: [test for test in tests if test] for line, tests in by_line.items() if any(tests)}
    whole = time.process_time() - began
    return {"failed": recorder.failed, "seconds": recorder.seconds, "lines": lines, "whole_s": whole}


def _on_import(path: Path, line: int) -> bool:
    """Whether a line stands in the body of no function: then it runs once, whichever test comes first."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    return not any(node.body[0].lineno <= line <= (node.end_lineno or 0) for node in functions)


@dataclass(frozen=True)
class Covering:
    """For each test file: its tests' seconds, and the tests of each line of each source file."""

    root: Path
    files: Mapping[str, Mapping[str, Any]]

    def tests(self, path: str, line: int) -> list[str]:
        """The tests that run a line; those of the whole file where it runs when the file is imported."""
        return self._tests(path, None if _on_import(self.root / path, line) else {str(line)}) or self._tests(path, None)

    def _tests(self, path: str, wanted: set[str] | None) -> list[str]:
        found = {}
        for record in self.files.values():
            for line, tests in record["lines"].get(path, {}).items():
                if wanted is None or line in wanted:
                    found.update(dict.fromkeys(tests))
        return list(found)

    def seconds(self, tests: Sequence[str]) -> float:
        """What the tests took, with the load of their files."""
        chosen = set(tests)
        return sum(
            record["whole_s"] - sum(s for test, s in record["seconds"].items() if test not in chosen)
            for record in self.files.values()
            if chosen & set(record["seconds"])
        )

    def in_order(self, tests: Sequence[str]) -> list[str]:
        """The files of the tests, the quickest first."""
        chosen, spent = set(tests), {}
        for file, record in self.files.items():
            seconds = [s for test, s in record["seconds"].items() if test in chosen]
            if seconds:
                spent[file] = sum(seconds)
        return sorted(spent, key=lambda file: spent[file])


class Named:
    """Test files that are run whole, in the order of their names as given; nothing is recorded."""

    def __init__(self, files: Sequence[str], cpu_s: float) -> None:
        self.files, self.cpu_s = list(files), cpu_s

    def tests(self, path: str, line: int) -> None:
        """None stands for all."""

    def seconds(self, tests: None) -> float:
        """What was said that they take."""
        return self.cpu_s

    def in_order(self, tests: None) -> list[str]:
        """The files."""
        return self.files


def read_covering(root: Path, cache: Path, package_files: Sequence[Path], test_files: Sequence[Path]) -> Covering:
    """What the unmarked tests of `test_files` run; recorded anew for a file that changed, or whose package did.

    Raises:
        RuntimeError: a test fails without any mutant.
    """
    cache.mkdir(parents=True, exist_ok=True)
    package = b"".join(path.read_bytes() for path in sorted(package_files))
    files = {}
    for path in test_files:
        name = path.relative_to(root).as_posix()
        kept = cache / f"{hashlib.sha256(name.encode() + path.read_bytes() + package).hexdigest()[:24]}.json"
        if not kept.exists():
            outcome = run(lambda name=name: _record(root, name), _RECORD_S)
            if outcome.said is None or outcome.said["failed"]:
                failed = "it was stopped" if outcome.said is None else outcome.said["failed"]
                raise RuntimeError(f"{name} does not pass without a mutant: {failed}")
            kept.write_text(json.dumps(outcome.said))
            print(f"recorded {name}: {len(outcome.said['seconds'])} tests, {outcome.seconds:.0f} s", flush=True)
        files[name] = json.loads(kept.read_text())
    return Covering(root, files)
