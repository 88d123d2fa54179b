"""`read_netlist`: the cells that a bitstream makes of a GateMate, found from its output pin backwards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.gatemate.blocks import OF_RAM, Choice, Rams, is_ram
from fpgaprune.readback.gatemate.cells import MADE, Cpe
from fpgaprune.readback.gatemate.chip import GateMate
from fpgaprune.readback.gatemate.database import Wire
from fpgaprune.readback.gatemate.pins import Pins
from fpgaprune.readback.netlist import OPEN, ZERO, Netlist
from fpgaprune.readback.parts import COPY, INVERSE, Parts

# A cell's output: kind, tile, signal.
Cell = tuple[str, int, str]
# What drives a wire: a cell or the net of a constant or `OPEN`, and whether it is inverted on the way.
Origin = tuple[Cell | int, bool]
_OF_CPE = re.compile(r"CPE\.((?:COMBOUT|CPOUT|DOUT)[12]|COMPOUT)_int")
# A logic cell, its two registers, and their names in nextpnr.
_HALVES = {"1": "L", "2": "U"}
_NEVER, _INVERTED, _PLAIN, _ALWAYS = 0, 1, 2, 3


def read_netlist(chip: GateMate, package: str, inputs: Iterable[str], output: str) -> Netlist:
    """Return what drives the pin `output`, back to registers, memories and the pins `inputs`.

    Cells on which the output does not depend are left out, whatever their settings are.

    Raises:
        ReadbackError: a cell that the output depends on is set in a way that fpgaprune does not decode; the message
            names the cell.
    """
    return _Walk(chip, Pins(chip, package, inputs)).walk(output)


class _Walk:
    """The nets that are known, and the cells that wait to be decoded."""

    def __init__(self, chip: GateMate, pins: Pins) -> None:
        self._chip, self._db, self._pins = chip, chip.db, pins
        self._parts, self._rams = Parts(), Rams(chip)
        self._net: dict[Cell, int] = {}
        self._inverse: dict[int, int] = {}
        self._origins: dict[Wire, Origin] = {}
        self._waiting: list[Cell] = []
        self._memories: dict[tuple[int, str], dict[str, Choice]] = {}
        self._decoders: dict[str, Callable[[Cell], None]] = {
            "cpe": self._table,
            "register": self._register,
            "pin": self._pin,
            "block": self._block,
        }

    def walk(self, output: str) -> Netlist:
        self._parts.netlist.output = self._value(self._pins.driven_by(output))
        while self._waiting:
            cell = self._waiting.pop()
            self._decoders[cell[0]](cell)
        return self._parts.netlist

    # Nets.

    def _value(self, wire: Wire) -> int:
        """Return the net at the beginning of a wire, or its inverse."""
        origin, inverted = self._origin(wire)
        return self._inverted(self._of(origin)) if inverted else self._of(origin)

    def _inverted(self, net: int) -> int:
        if net not in self._inverse:
            self._inverse[net] = self._parts.table(INVERSE, (net,), f"net {net} inverted")
        return self._inverse[net]

    def _of(self, origin: Cell | int) -> int:
        """Return the net of a cell, which will be decoded; a number stands for itself."""
        if isinstance(origin, int):
            return origin
        if origin[0] not in self._decoders:
            raise ReadbackError(f"the output depends on {self._place(origin)}; wanted a clock to do so")
        if origin not in self._net:
            self._net[origin] = self._parts.net()
            self._waiting.append(origin)
        return self._net[origin]

    def _origin(self, wire: Wire) -> Origin:
        """Return the cell that drives a wire, or the net of a constant, or `OPEN`; and whether it is inverted."""
        if wire not in self._origins:
            self._origins[wire] = self._found(wire)
        return self._origins[wire]

    def _found(self, wire: Wire) -> Origin:
        seen: set[Wire] = set()
        inverted = False
        while True:
            if wire in seen:
                raise ReadbackError(f"the switches at {self._named(wire)} lead in a circle; nothing drives that wire")
            seen.add(wire)
            cell = self._driver(wire)
            if isinstance(cell, Wire):
                wire = cell
                continue
            if cell is not None:
                return cell, inverted
            before = self._chip.before(wire)
            if before is None:
                if self._db.node(wire).outputs:
                    raise ReadbackError(
                        f"the output depends on {self._named(wire)}; fpgaprune does not decode that cell"
                    )
                return OPEN, False
            wire, inverts = before
            inverted ^= inverts

    def _driver(self, wire: Wire) -> Cell | int | Wire | None:
        """Return what drives a wire; None if no cell does, but maybe a way."""
        found = (self._cell_at(one) for one in self._db.node(wire).outputs)
        return next((one for one in found if one is not None), None)

    def _cell_at(self, wire: Wire) -> Cell | int | Wire | None:
        """Return the cell or the constant that drives a wire, or the wire that a cell leads to it."""
        tile, name = wire.tile, self._db.name(wire)
        kind, _, port = name.partition(".")
        if kind == "CPE":
            return self._logic_at(tile, name, port)
        if kind == "IOSEL" and port in ("IN1", "IN2"):
            return "pin", tile, name
        if kind == "GLBOUT" and port in ("GLB0", "GLB1", "GLB2", "GLB3"):
            return "clock", tile, name
        found = OF_RAM.fullmatch(name)
        if found is not None and is_ram(self._db, tile):
            return "block", tile, name
        return None

    def _logic_at(self, tile: int, name: str, port: str) -> Cell | int | Wire | None:
        found = _OF_CPE.fullmatch(name)
        if found is not None:
            signal = found[1]
            return ("register" if signal.startswith("DOUT") else "cpe"), tile, signal
        if port in ("OUT1", "OUT2") and self._set(tile, f"C_RAM_I{port[3]}"):
            return self._wire(tile, f"RAM_I{port[3]}")
        if port in ("RAM_O1", "RAM_O2"):
            return self._wire(tile, f"OUT{port[5]}_int") if self._set(tile, f"C_RAM_O{port[5]}") else OPEN
        if port in MADE.get(self._set(tile, "C_FUNCTION"), ()):
            made = {"COUTX": "C_CX_I", "POUTX": "C_PX_I", "COUTY1": "C_CY1_I", "COUTY2": "C_CY2_I"}[port]
            if self._set(tile, made):
                raise ReadbackError(
                    f"the logic cell at {self._db.place(tile)} has {made} beside C_FUNCTION; fpgaprune does not decode "
                    "that"
                )
            return "cpe", tile, port
        return None

    def _wire(self, tile: int, port: str) -> Wire:
        found = self._db.named(tile, f"CPE.{port}")
        if found is None:
            raise ReadbackError(f"there is no CPE.{port} at {self._db.place(tile)}")
        return found

    def _set(self, tile: int, name: str) -> int:
        return self._chip.setting(tile, f"CPE.{name}")

    # Logic.

    def _table(self, cell: Cell) -> None:
        _, tile, signal = cell

        def wire(name: str) -> int:
            found = self._db.named(tile, f"CPE.{name}")
            # The cell's own signals have no wires, or such that lead out of it.
            if found is None or name in MADE.get(self._set(tile, "C_FUNCTION"), ()):
                return self._of(("cpe", tile, name))
            return self._value(found)

        cpe = Cpe(self._parts, lambda name: self._set(tile, name), wire, self._db.place(tile))
        cpe.make(signal, self._net[cell])

    def _register(self, cell: Cell) -> None:
        _, tile, signal = cell
        half = signal[-1]
        place = f"{self._db.place(tile)}/CPE_FF_{_HALVES[half]}"
        for name, wanted in {"C_CPE_RES": _ALWAYS, "C_CPE_SET": _ALWAYS, "C_L_D": 0}.items():
            if self._set(tile, name) != wanted:
                raise ReadbackError(
                    f"the register at {place} is reset without the clock, or a latch: its {name} is "
                    f"{self._set(tile, name)}; fpgaprune decodes {wanted}"
                )
        clock, inverted, moves = self._control(tile, "CLK", "CINY2")
        enable = ZERO
        if moves and clock is not None and self._clocked(clock, inverted, place):
            source, inverted, on = self._control(tile, "EN", "PINY2")
            enable = int(on) if source is None else self._value(source)
            enable = self._inverted(enable) if inverted else enable
        data: Cell | int = ZERO
        net = ZERO
        if enable != ZERO:
            if half == "1":
                data = "cpe", tile, "COMBOUT1"
            elif self._set(tile, "C_BR"):
                net = self._value(self._wire(tile, "MUXOUT_int"))
            else:
                data = "cpe", tile, "COMBOUT2" if self._set(tile, "C_2D_IN") else "COMBOUT1"
            net = net if data == ZERO else self._of(data)
        given = self._set(tile, "FF_INIT")
        start = given & 1 if given & 2 else OPEN
        self._parts.register(net, enable, ZERO, start, place, self._net[cell])

    def _control(self, tile: int, name: str, other: str) -> tuple[Wire | None, bool, bool]:
        """Return the wire that a clock or an enable comes from, whether it is inverted, and what it is without one."""
        kind = self._set(tile, f"C_CPE_{name}")
        if self._set(tile, "C_CLKSEL" if name == "CLK" else "C_ENSEL"):
            return self._wire(tile, other), kind != 0, True
        if kind in (_NEVER, _ALWAYS):
            return None, False, kind == _ALWAYS
        return self._wire(tile, name), kind == _INVERTED, True

    # Memories and pins.

    def _block(self, cell: Cell) -> None:
        _, tile, name = cell
        output = OF_RAM.fullmatch(name)
        half = "" if output is None else self._rams.half(tile, int(output[2]))
        if (tile, half) not in self._memories:
            self._memories[tile, half] = self._rams.read(self._parts, tile, half, self._ram_wire, self._clocked_ram)
        shown = self._memories[tile, half].get(name.removeprefix("RAM."))
        net = OPEN if shown is None else shown.made(self._parts)
        self._parts.table(COPY, (net,), f"{self._db.place(tile)}/{name}", self._net[cell])

    def _ram_wire(self, tile: int, name: str) -> int:
        wire = self._db.named(tile, f"RAM.{name}")
        return OPEN if wire is None else self._value(wire)

    def _clocked_ram(self, tile: int, name: str, place: str) -> bool:
        wire = self._db.named(tile, f"RAM.{name}")
        return wire is not None and self._clocked(wire, False, place)

    def _pin(self, cell: Cell) -> None:
        wire = self._db.named(cell[1], cell[2])
        if wire is not None:
            self._parts.netlist.pins[self._pins.input(wire)] = self._net[cell]

    # The clock.

    def _clocked(self, wire: Wire, inverted: bool, place: str) -> bool:
        """Return whether the clock moves at a wire; a constant, and a wire that nothing is led to, do not."""
        origin, turned = self._origin(wire)
        inverted ^= turned
        if isinstance(origin, int):
            return False
        if origin[0] == "clock":
            source = self._db.named(origin[1], origin[2])
            if source is not None:
                before, turned = self._pins.before_global(source)
                inverted ^= turned
                origin, turned = self._origin(before)
                inverted ^= turned
        if isinstance(origin, int) or origin[0] != "pin":
            raise ReadbackError(
                f"the clock of {place} comes from {'nowhere' if isinstance(origin, int) else self._place(origin)}; "
                "fpgaprune decodes a pin"
            )
        if inverted:
            raise ReadbackError(f"{place} works at the falling edge; fpgaprune does not decode that")
        wire_of_pin = self._db.named(origin[1], origin[2])
        pin = "" if wire_of_pin is None else self._pins.input(wire_of_pin)
        netlist = self._parts.netlist
        netlist.clock = netlist.clock or pin
        if netlist.clock != pin:
            raise ReadbackError(f"{place} has another clock, of pin {pin}, than others, of pin {netlist.clock}")
        return True

    def _named(self, wire: Wire) -> str:
        return f"{self._db.place(wire.tile)}/{self._db.name(wire)}"

    def _place(self, cell: Cell) -> str:
        return f"{self._db.place(cell[1])}/{cell[2]}"
