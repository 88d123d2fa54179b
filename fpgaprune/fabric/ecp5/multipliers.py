"""`register_multipliers`: the registers around a multiplier become those that an ECP5 has within it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from fpgaprune.fabric.ecp5.macros import REGISTER

_MULTIPLIER = "MULT18X18D"
# The registers in a multiplier take the rising edge, are 0 after power-up, and have no other reset here.
_SETTINGS = {"CLKMUX": "CLK", "REGSET": "RESET"}
_NEVER = ("0", "x", "z")

Cell = dict[str, Any]


def register_multipliers(module: dict[str, Any]) -> int:
    """Move registers into the multipliers of a flat module of yosys's JSON; return how many multipliers hold some.

    yosys leaves these registers outside, so that one cycle has to last for a wire to the multiplier and, in it, for the
    whole product. Registers go in for both factors or for none, because nextpnr knows the timing of these cases alone,
    and for the product. A register that others read as well stays where it is, too.
    """
    cells: dict[str, Cell] = module["cells"]
    multipliers = [(name, cell) for name, cell in cells.items() if cell["type"] == _MULTIPLIER]
    if not multipliers:
        return 0
    drivers: dict[Any, str] = {}
    readers: dict[Any, list[str]] = defaultdict(list)
    for port in module["ports"].values():
        for bit in port["bits"]:
            readers[bit].append("")
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            for bit in bits:
                if cell["port_directions"].get(port) == "output":
                    drivers[bit] = name
                else:
                    readers[bit].append(name)
    held, left = 0, set[str]()
    for name, cell in multipliers:
        pins = {port: bits[0] for port, bits in cell["connections"].items() if port[0] in "ABP" and port[1:].isdigit()}
        factors = {port: bit for port, bit in pins.items() if port[0] != "P" and bit not in _NEVER}
        product = {port: bit for port, bit in pins.items() if port[0] == "P" and readers[bit]}
        before = {port: cells.get(drivers.get(bit, "")) for port, bit in factors.items()}
        behind = {port: _only(readers[bit], cells, bit) for port, bit in product.items()}
        clocks = _clock(before.values()), _clock(behind.values())
        if None not in clocks and clocks[0] != clocks[1]:
            continue
        if clocks[0] is not None:
            for port, bit in factors.items():
                left.add(drivers[bit])
                new = cells[drivers[bit]]["connections"]["DI"]
                cell["connections"][port] = new
                readers[bit].remove(name)
                readers[new[0]].append(name)
            _hold(cell, ("INPUTA", "INPUTB"), clocks[0])
        if clocks[1] is not None:
            for port, bit in product.items():
                new = cells.pop(readers[bit][0])["connections"]["Q"]
                cell["connections"][port] = new
                drivers[new[0]] = name
            _hold(cell, ("OUTPUT",), clocks[1])
        held += clocks != (None, None)
    for name in left:
        if not readers[cells[name]["connections"]["Q"][0]]:
            del cells[name]
    return held


def _only(names: list[str], cells: dict[str, Cell], bit: object) -> Cell | None:
    """Return the register that stores `bit`, if nothing else reads it."""
    cell = cells.get(names[0]) if len(names) == 1 else None
    return cell if cell is not None and cell["connections"].get("DI") == [bit] else None


def _clock(registers: Iterable[Cell | None]) -> Any:
    """Return the clock of `registers`; None if there are none, or if a multiplier cannot hold one of them."""
    found = set()
    for cell in registers:
        if cell is None or cell["type"] != REGISTER:
            return None
        wires, settings = cell["connections"], cell["parameters"]
        # In JSON, yosys puts a space behind text that could be a number.
        free = settings.get("CEMUX", "").strip() == "1" and wires.get("LSR", ["0"])[0] in _NEVER
        if not free or any(settings.get(key) != value for key, value in _SETTINGS.items()):
            return None
        found.add(wires["CLK"][0])
    return found.pop() if len(found) == 1 else None


def _hold(cell: Cell, names: tuple[str, ...], clock: object) -> None:
    """Give the multiplier `cell` the registers `names`, always enabled and never reset."""
    for name in names:
        cell["parameters"].update({f"REG_{name}_{kind}": f"{kind}0" for kind in ("CLK", "CE", "RST")})
    for port, bit in (("CLK0", clock), ("CE0", "1"), ("RST0", "0")):
        cell["connections"][port], cell["port_directions"][port] = [bit], "input"
