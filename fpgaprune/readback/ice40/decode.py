"""`read_netlist`: the cells that a bitstream makes of an iCE40, found from its output pin backwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.functions import depends
from fpgaprune.readback.ice40.cells import Cells
from fpgaprune.readback.ice40.chip import Ice40
from fpgaprune.readback.ice40.database import Place
from fpgaprune.readback.ice40.multipliers import multiply
from fpgaprune.readback.ice40.pins import Pins
from fpgaprune.readback.netlist import ONE, OPEN, ZERO, Netlist
from fpgaprune.readback.parts import CARRY, COPY, reduced

# Where the sixteen bits of a table, and the flags of its cell, stand among the bits of a logic cell.
_TABLE = (4, 14, 15, 5, 6, 16, 17, 7, 3, 13, 12, 2, 1, 11, 10, 0)
_CARRIES, _IS_REGISTER, _RESET_TO_ONE, _RESET_AT_ONCE = 8, 9, 18, 19
# What a wire reads that nothing is led to: enables of a clock read 1, all others 0.
_ENABLES = ("cen", "RCLKE", "WCLKE")
# The ports of a multiplier: the tile above its first one, and the wire there.
_CONTROLS = {
    "CLK": (2, "lutff_global:clk"),
    "CE": (2, "lutff_global:cen"),
    "IRSTTOP": (1, "lutff_global:s_r"),
    "IRSTBOT": (0, "lutff_global:s_r"),
    "ORSTTOP": (3, "lutff_global:s_r"),
    "ORSTBOT": (2, "lutff_global:s_r"),
    "AHOLD": (2, "lutff_0:in_0"),
    "BHOLD": (1, "lutff_0:in_0"),
    "CHOLD": (3, "lutff_0:in_0"),
    "DHOLD": (0, "lutff_0:in_0"),
    "OHOLDTOP": (3, "lutff_1:in_0"),
    "OHOLDBOT": (0, "lutff_1:in_0"),
    "OLOADTOP": (3, "lutff_2:in_0"),
    "OLOADBOT": (0, "lutff_2:in_0"),
    "ADDSUBTOP": (3, "lutff_3:in_0"),
    "ADDSUBBOT": (0, "lutff_3:in_0"),
    "CI": (0, "lutff_4:in_0"),
}
_FACTORS = {"A": 2, "B": 1, "C": 3, "D": 0}
# The cells in the tiles of a multiplier hand its wires on.
_HANDED_ON = 0x30CC3


def read_netlist(chip: Ice40, package: str, inputs: Iterable[str], output: str, oscillator_mhz: float) -> Netlist:
    """Return what drives the pin `output`, back to registers, memories and the pins `inputs`.

    Cells on which the output does not depend are left out, whatever their bits are. A PLL is locked from the first
    cycle on; `oscillator_mhz` goes into it.

    Raises:
        ReadbackError: a cell that the output depends on is set in a way that fpgaprune does not decode; the message
            names the cell.
    """
    return _Walk(chip, Pins(chip, package, inputs, oscillator_mhz)).walk(output)


class _Walk:
    """The nets that are known, and the wires that wait to be decoded."""

    def __init__(self, chip: Ice40, pins: Pins) -> None:
        self._chip, self._db, self._pins, self._wiring = chip, chip.db, pins, chip.wiring()
        self._cells = Cells()
        self._net: dict[int | Place, int] = {}
        self._waiting: list[int | Place] = []
        self._outputs: dict[Place, list[int]] = {}
        self._clock: int | None = None
        self._decoders: dict[str, Callable[[int, Place], None]] = {
            "lc": self._logic,
            "io": self._pin,
            "ram": self._memory,
            "mac16": self._multiplier,
            "pll": self._lock,
        }

    def walk(self, output: str) -> Netlist:
        self._cells.netlist.output = self._value(self._pins.driven_by(output))
        while self._waiting:
            wire = self._waiting.pop()
            if isinstance(wire, Place):
                self._decoded_table(wire)
                continue
            kind, place = self._db.drivers(wire)[0]
            name = kind.rstrip("0123456789").rstrip("_")
            if name not in self._decoders:
                raise ReadbackError(
                    f"the output depends on {self._db.name(wire)}, of a cell {name}; fpgaprune does not decode that"
                )
            self._decoders[name](wire, place)
        return self._cells.netlist

    # Nets.

    def _value(self, wire: int) -> int:
        """Return the net at the beginning of a wire."""
        origin = self._wiring.source(wire)
        if self._db.name(origin).endswith("/carry_in_mux"):
            x, y = (int(part[1:]) for part in self._db.name(origin).split("/")[:2])
            return self._chip.entry(x, y, "CarryInSet")
        origin = self._pins.before_global(origin, self._wiring)
        drivers = self._db.drivers(origin)
        if not drivers:
            return OPEN if origin != wire else int(self._db.name(wire).rpartition(":")[2] in _ENABLES)
        table = self._table_before(origin)
        return self._of(origin) if table is None else self._of_table(table)

    def _table_before(self, wire: int) -> Place | None:
        """Return the place of the table that drives a wire without a register between; None if none does."""
        port = self._db.name(wire).rpartition(":")[2]
        if port not in ("out", "lout"):
            return None
        ((_, place),) = self._db.drivers(wire)
        return None if port == "out" and self._is_set(place, _IS_REGISTER) else place

    def _of(self, driven: int | Place) -> int:
        """Return the net of a wire that a cell drives, or of the table at a place; the cell will be decoded."""
        if driven not in self._net:
            self._net[driven] = self._cells.net()
            self._waiting.append(driven)
        return self._net[driven]

    def _of_table(self, place: Place) -> int:
        """Return the net of a table, or the constant that it is."""
        table, _ = self._table(place)
        return int(table > 0) if table in (0, 0xFFFF) else self._of(place)

    def _is_set(self, place: Place, bit: int) -> bool:
        return bool(self._chip.entry(place.x, place.y, f"LC_{place.z}") >> bit & 1)

    # Logic.

    def _input(self, place: Place, at: int) -> int:
        return self._db.wire(place.x, place.y, f"lutff_{place.z}:in_{at}")

    def _table(self, place: Place) -> tuple[int, list[int]]:
        """Return a table's sixteen bits, and the wires that it depends on, or 0 for those that nothing is led to."""
        bits = self._chip.entry(place.x, place.y, f"LC_{place.z}")
        table = sum((bits >> bit & 1) << at for at, bit in enumerate(_TABLE))
        wires = [self._input(place, at) for at in range(4)]
        led = [ONE + 1 if self._wiring.is_led(wire) else ZERO for wire in wires]
        return reduced(table, led)[0], wires

    def _decoded_table(self, place: Place) -> None:
        self._require_one_carry(place)
        table, wires = self._table(place)
        inputs = [self._value(one) if depends(table, at) else ZERO for at, one in enumerate(wires)]
        self._cells.table(table, inputs, f"{_named(place)}/table", self._net[place])

    def _logic(self, wire: int, place: Place) -> None:
        decode = self._carry if self._db.name(wire).endswith("cout") else self._register
        decode(wire, place, _named(place))

    def _register(self, wire: int, place: Place, where: str) -> None:
        x, y, _ = place
        reset = self._value(self._db.wire(x, y, "lutff_global:s_r"))
        if reset != ZERO and self._is_set(place, _RESET_AT_ONCE):
            raise ReadbackError(f"the register at {where} is reset without the clock; fpgaprune does not decode that")
        enable = self._value(self._db.wire(x, y, "lutff_global:cen"))
        if not self._clocked(self._db.wire(x, y, "lutff_global:clk"), (x, y), where):
            enable = ZERO
        data = self._of_table(place) if enable != ZERO else ZERO
        self._cells.register(data, enable, reset, int(self._is_set(place, _RESET_TO_ONE)), where, self._net[wire])

    def _carry(self, wire: int, place: Place, where: str) -> None:
        if not self._is_set(place, _CARRIES):
            raise ReadbackError(f"the carry of {where} is off, and the output depends on it")
        self._require_one_carry(place)
        before = f"lutff_{place.z - 1}:cout" if place.z else "carry_in_mux"
        into = self._value(self._db.wire(place.x, place.y, before))
        first, second = (self._value(self._input(place, at)) for at in (1, 2))
        self._cells.table(CARRY, (first, second, into), f"{where}/carry", self._net[wire])

    def _require_one_carry(self, place: Place) -> None:
        """Check that one carry goes into the first cell of a tile: that of the tile below, or a 1, or a 0."""
        x, y, z = place
        if not z and self._chip.entry(x, y, "CarryInSet") and self._wiring.is_led(self._db.wire(x, y, "carry_in_mux")):
            raise ReadbackError(f"two carries go into {_named(place)}; fpgaprune does not decode that")

    # Memories, multipliers, pins.

    def _memory(self, wire: int, place: Place) -> None:
        self._output(wire, place, self._decoded_memory)

    def _decoded_memory(self, place: Place) -> list[int]:
        (x, y, _), chip = place, self._chip
        where = f"X{x}/Y{y}/ram"
        content = chip.memories.get((x, y))
        cascades = any(chip.entry(x, y + 1, name) for name in chip.db.entries(x, y + 1) if "Cascade" in name)
        if content is None or cascades or not chip.is_on(x, y, "RamConfig.PowerUp"):
            raise ReadbackError(f"the memory at {where} is off or one of a cascade; fpgaprune does not decode that")
        modes = [chip.entry(x, y + 1, f"RamConfig.CBIT_{bit}") for bit in range(4)]

        def found(port: str) -> tuple[int, int, int]:
            """Return a wire, with its tile: ports stand in either of the two."""
            tile = next(at for at in (y, y + 1) if self._db.has(x, at, f"ram:{port}"))
            return self._db.wire(x, tile, f"ram:{port}"), x, tile

        def clocked(port: str) -> bool:
            clock, *tile = found(port)
            return self._clocked(clock, (tile[0], tile[1]), where)

        alive = {"R": clocked("RCLK"), "W": clocked("WCLK")}

        def value(port: str, bit: int) -> int:
            if port in ("RE", "WE") and not alive[port[0]]:
                return ZERO
            name = f"{port}_{bit}" if port in ("RADDR", "WADDR", "WDATA", "MASK") else port
            return self._value(found(name)[0])

        return self._cells.memory(bytes(content), (modes[2] + 2 * modes[3], modes[0] + 2 * modes[1]), value, where)

    def _multiplier(self, wire: int, place: Place) -> None:
        if ":O_" not in self._db.name(wire):
            raise ReadbackError(
                f"the output depends on {self._db.name(wire)}, a carry of a multiplier; fpgaprune does not decode that"
            )
        self._output(wire, place, self._decoded_multiplier)

    def _decoded_multiplier(self, place: Place) -> list[int]:
        (x, y, _), chip = place, self._chip
        where = f"X{x}/Y{y}/mac16_0"
        for tile in range(y, y + 4):
            for name in chip.db.entries(x, tile):
                wanted = _HANDED_ON if name.startswith("LC_") else 1 if name.startswith("Cascade") else None
                if wanted is not None and chip.entry(x, tile, name) != wanted:
                    raise ReadbackError(f"{name} of the multiplier at {where} is none that nextpnr sets")
        settings = chip.settings(place, "mac16_0", "IpConfig")

        def value(port: str, bit: int) -> int:
            # Registers alone ask for it.
            if port == "CE" and not self._clocked(self._db.wire(x, y + 2, "lutff_global:clk"), (x, y + 2), where):
                return ZERO
            up, name = _CONTROLS.get(port, (0, ""))
            if port in _FACTORS:
                up, name = _FACTORS[port], f"lutff_{bit % 8}:in_{1 if bit > 7 else 3}"
            return self._value(self._db.wire(x, y + up, name))

        return multiply(self._cells, settings, value, where)

    def _output(self, wire: int, place: Place, decoded: Callable[[Place], list[int]]) -> None:
        """Make one of the outputs of a cell that is decoded once."""
        if place not in self._outputs:
            self._outputs[place] = decoded(place)
        name = self._db.name(wire)
        net = self._outputs[place][int(name.rpartition("_")[2])]
        self._cells.table(COPY, (net,), name, self._net[wire])

    def _pin(self, wire: int, place: Place) -> None:  # noqa: ARG002
        self._cells.netlist.pins[self._pins.input(wire)] = self._net[wire]

    def _lock(self, wire: int, place: Place) -> None:
        """Make a 1: the netlist begins when the PLL is locked."""
        self._pins.pll_ratio(place)
        self._cells.table(0xFFFF, (), self._db.name(wire), self._net[wire])

    # The clock.

    def _clocked(self, wire: int, tile: tuple[int, int], where: str) -> bool:
        """Return whether the clock moves at `wire`; a constant, and a wire that nothing is led to, do not."""
        if not self._wiring.is_led(wire):
            return False
        origin = self._wiring.source(wire)
        table = self._table_before(self._pins.before_global(origin, self._wiring))
        if table is not None and self._of_table(table) in (ZERO, ONE):
            return False
        if self._chip.entry(*tile, "NegClk"):
            raise ReadbackError(f"{where} works at the falling edge; fpgaprune does not decode that")
        if self._clock is None:
            netlist = self._cells.netlist
            netlist.clock, netlist.factor, controls = self._pins.clock(origin, self._wiring, where)
            self._clock = origin
            if any(self._value(control) != value for control, value in controls.items()):
                raise ReadbackError("the PLL may be bypassed or reset by the design; fpgaprune does not decode that")
        if origin != self._clock:
            raise ReadbackError(
                f"{where} has another clock, {self._db.name(origin)}, than others, {self._db.name(self._clock)}"
            )
        return True


def _named(place: Place) -> str:
    """Return a logic cell as nextpnr calls it."""
    return f"X{place.x}/Y{place.y}/lc{place.z}"
