"""How long open tools will take, said before they start: laws of measured runs, at the speed of this machine now."""

from __future__ import annotations

import hashlib
import math
import os
import time
from pathlib import Path

# Where Linux says how many processes run now: the load of the last minute, beside it, outlives work that has ended.
RUNNING = Path("/proc/loadavg")
_MOMENTS, _APART_S = 10, 0.02

# Processor seconds of `reference_work` on a free core of the machine on which the laws were measured.
_REFERENCE_S = 0.0165
# Family to seconds of the tools' start, the placed LUTs of one run, its further seconds of synthesis, place and route
# on a free core, and the power of the LUTs by which they grow. Gowin: hw/synth/place_shares.csv, where the law is
# within a factor of 1.5 of each row that ended; a GW5A is taken for one of these. ECP5: 2,232, 4,572, 5,355 and 10,250
# LUTs took 47, 73, 100 and 183 s. UltraPlus: the networks of docs/measurements/boards.md on an iCEBreaker. Nexus and
# GateMate: the same file as Gowin; LUTs are those of its column `luts`, as the estimate has them.
_LAWS = {
    "gowin": (0.0, 2851, 32.0, 1.3),
    "gw5a": (0.0, 2851, 32.0, 1.3),
    "ecp5": (16.0, 7000, 105.0, 1.2),
    "ice40up": (0.0, 2200, 12.0, 1.6),
    "nexus": (12.0, 3580, 85.0, 1.2),
    "gatemate": (23.0, 6382, 170.0, 1.2),
}
# Seconds of reading a bitstream back: its start, the compiler's among them, and those for each placed LUT.
_READ_BACK = {"gowin": (4.5, 1.1e-3), "ice40up": (3.0, 4e-4), "ecp5": (3.0, 6e-4), "gatemate": (3.0, 2.5e-3)}
# Seconds of comparing a netlist with its Verilog for each placed LUT, and the most that it may take after a bitstream.
# Five networks of 3,800 to 6,000 LUTs took 8 to 13 s on a busy machine of 1.5 times the reference's seconds.
_NETLIST, MOST_NETLIST_S = 2e-3, 60.0
# Seconds of the start of yosys for one module, and seconds and power of the estimated LUTs of all modules; a second row
# for the families with small maps. The sums are processor seconds of tests/benchmarks/measure_time_rows.csv, doubled,
# for `reference_work` then took half of the reference. The power is that of larger networks: 14,000 to 36,000 LUT.
_SYNTHESIS = {"xc7": (2.84, 1.86e-3), "xcup": (2.84, 1.86e-3)}
_OTHER_SYNTHESIS, _SYNTHESIS_POWER = (1.26, 1.24e-3), 1.2
# Seconds of the simulator's build, by each LUT more, and of a LUT in one cycle of a sample.
_SIMULATOR = (2.3, 2e-4, 1e-9)


def bitstream_seconds(family: str, luts: float) -> float | None:
    """Return the seconds of synthesis, place and route on a free core of the reference; None for other families.

    Args:
        family: name of the family, as `gowin`.
        luts: LUTs that will be placed.
    """
    law = _LAWS.get(family)
    if law is None:
        return None
    start, size, seconds, power = law
    return float(start + seconds * (luts / size) ** power)


def read_back_seconds(family: str, luts: float) -> float:
    """Return the seconds of decoding and simulating a bitstream on a free core of the reference; 0 if it is not read.

    Args:
        family: name of the family, as `gowin`.
        luts: LUTs that were placed.
    """
    start, each = _READ_BACK.get(family, (0.0, 0.0))
    return start + each * luts


def netlist_seconds(family: str, luts: float) -> float:
    """Return the seconds of comparing the netlist of a bitstream with its Verilog, as `read_back_seconds` does."""
    return min(_NETLIST * luts, MOST_NETLIST_S) if family in _READ_BACK else 0.0


def luts_within(family: str, seconds: float) -> float | None:
    """Return the LUTs whose bitstream takes `seconds` by `bitstream_seconds`; None for families without a law."""
    law = _LAWS.get(family)
    if law is None:
        return None
    start, size, further, power = law
    return float(size * (max(seconds - start, 0) / further) ** (1 / power))


def synthesis_seconds(family: str, luts: float, modules: int) -> float:
    """Return the processor seconds of open synthesis of a whole design and of each of its `modules` alone.

    Args:
        family: of open synthesis, as `xc7`.
        luts: estimated LUTs of the whole design.
        modules: number of its modules that are synthesised alone.
    """
    start, each = _SYNTHESIS.get(family, _OTHER_SYNTHESIS)
    return float(start * (modules + 1) + each * luts**_SYNTHESIS_POWER)


def simulation_seconds(luts: float, interval_cycles: int, samples: int) -> float:
    """Return the processor seconds of building and running the simulator of a design of so many estimated LUTs."""
    if not samples:
        return 0.0
    build, each, step = _SIMULATOR
    return build + luts * (each + step * interval_cycles * samples)


def slowness() -> float:
    """Return how many times longer work takes here now than on a free core of the reference."""
    return processor_slowness() * waiting_for_cores()


def processor_slowness() -> float:
    """Return how many times as much processor time work takes here now as on the reference."""
    took = []
    for _ in range(3):
        started = time.process_time()
        reference_work()
        took.append(time.process_time() - started)
    return sorted(took)[1] / _REFERENCE_S


def waiting_for_cores() -> float:
    """Return how many times longer work takes by the clock than of the processor, as other work shares the cores.

    A short measurement does not see that: a process that has just begun is served first.
    """
    if not hasattr(os, "getloadavg"):
        return 1.0
    return max(1.0, (min(os.getloadavg()[0], _running_beside()) + 1) / (os.cpu_count() or 1))


def _running_beside() -> float:
    """Return how many processes run beside this one, on average over a moment; infinite where nothing tells."""
    total = 0
    for _ in range(_MOMENTS):
        try:
            total += int(RUNNING.read_text().split()[3].partition("/")[0]) - 1
        except (OSError, LookupError, ValueError):
            return math.inf
        time.sleep(_APART_S)
    return total / _MOMENTS


def reference_work() -> None:
    """Compute what the reference machine was timed with."""
    total = 0
    for number in range(120_000):
        total = (total * 31 + number) & 0xFFFFFFFF
    hashlib.sha256(b"x" * 4_000_000).digest()
