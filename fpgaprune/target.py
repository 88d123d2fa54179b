"""`Part` and `Target`: what the hardware offers and how the network is to be put on it, read from `hw/`."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from fpgaprune.design import IO_TYPES, STRATEGIES
from fpgaprune.errors import TargetError


@dataclass(frozen=True)
class Part:
    """An FPGA device and its capacities; a figure that is not published is None.

    Attributes:
        name: device name without package and speed grade, as `xc7z020`.
        family: marketing family, as `Zynq-7000`.
        vendor: `AMD`, `Intel`, `Lattice`, `Gowin`, `Microchip`.
        lut: look-up tables. ff: flip-flops. dsp: DSP slices.
        bram18: 18 Kb block RAMs (a 36 Kb tile counts two). uram: 288 Kb UltraRAMs.
        source: manual and revision that the figures were read from. date: of that revision, ISO 8601.
    """

    name: str
    family: str
    vendor: str
    lut: int | None
    ff: int | None
    dsp: int | None
    bram18: int | None
    uram: int | None
    source: str
    date: str


@dataclass(frozen=True)
class Target:
    """A part plus how to use it.

    Attributes:
        part: the device.
        order_number: what the vendor tool is told, as `xc7z020clg400-1`; the part's name where only that is known.
        clock_ns: clock period in ns.
        io_type: `io_parallel` (everything at once) or `io_stream` (one position per transfer).
        strategy: how multiplications are laid out, one of `design.STRATEGIES`.
        reuse_factor: times one multiplier is used per output position.
        backend: hls4ml backend.
    """

    part: Part
    order_number: str
    clock_ns: float = 5.0
    io_type: str = "io_stream"
    strategy: str = "latency"
    reuse_factor: int = 1
    backend: str = "Vitis"

    def __post_init__(self) -> None:
        if self.io_type not in IO_TYPES:
            raise TargetError(f"target io_type is {self.io_type!r}; wanted one of {', '.join(IO_TYPES)}")
        if self.strategy not in STRATEGIES:
            raise TargetError(f"target strategy is {self.strategy!r}; wanted one of {', '.join(STRATEGIES)}")
        if not self.clock_ns > 0:
            raise TargetError(f"target clock period is {self.clock_ns} ns; wanted more than 0")
        if self.reuse_factor < 1:
            raise TargetError(f"target reuse factor is {self.reuse_factor}; wanted 1 or more")

    @classmethod
    def of(
        cls,
        part: str,
        *,
        clock_ns: float = 5.0,
        io_type: str = "io_stream",
        strategy: str = "latency",
        reuse_factor: int = 1,
        backend: str = "Vitis",
    ) -> Target:
        """The target for the part named `part` (device name or full order number).

        Raises:
            TargetError: the part is unknown (the message lists the nearest), or an option is not allowed.
        """
        return cls(find_part(part), part.lower(), clock_ns, io_type, strategy, reuse_factor, backend)


def hardware_path(*names: str) -> Path:
    """A file or folder of `hw/`, from a checkout and from an installed wheel alike."""
    package = Path(str(resources.files("fpgaprune")))
    # The wheel carries hw/ inside the package; a checkout has it beside the package.
    home = next((h for h in (package / "hw", package.parent / "hw") if h.is_dir()), None)
    if home is None:
        raise TargetError(f"the hardware data folder 'hw' is missing beside {package}; install fpgaprune again")
    return home.joinpath(*names)


@cache
def list_parts() -> tuple[Part, ...]:
    """Every known part, sorted by family file and size."""
    return tuple(part for path in sorted(hardware_path("parts").glob("*.toml")) for part in read_parts(path))


def read_parts(path: Path) -> tuple[Part, ...]:
    """The parts that a TOML file of the form of `hw/parts/*.toml` holds.

    Raises:
        TargetError: the file is not of that form.
    """
    try:
        document = tomllib.loads(path.read_text())
        shared = {key: document[key] for key in ("family", "vendor", "source", "date")}
        return tuple(Part(**{**shared, **row}) for row in document["part"])
    except FileNotFoundError as error:
        raise TargetError(f"parts file {path} does not exist") from error
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise TargetError(f"parts file {path} is malformed: {error}; see hw/parts for the form") from error


def find_part(name: str) -> Part:
    """The part that `name` means: a device name or a full order number such as `xc7a100tcsg324-1`.

    Raises:
        TargetError: unknown; the message lists the nearest names.
    """
    wanted = name.lower().strip()
    by_length = sorted(list_parts(), key=lambda part: -len(part.name))
    for part in by_length:
        rest = wanted.removeprefix(part.name)
        # What follows a device name is '-speed' or a package code; a digit would be another device.
        if wanted.startswith(part.name) and (not rest or not rest[0].isdigit()):
            return part
    near = difflib.get_close_matches(wanted, [part.name for part in list_parts()], n=4, cutoff=0.4)
    hint = f"nearest: {', '.join(near)}" if near else "see 'fpgaprune parts'"
    raise TargetError(f"part {name!r} is unknown; {hint}")
