"""`Cpe`: what a logic cell of a GateMate computes by its settings, signal by signal, as tables of up to four inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.functions import depends
from fpgaprune.readback.netlist import ZERO
from fpgaprune.readback.parts import CARRY, CHOICE, Parts

# What a cell may be beside a tree of tables.
PLAIN, ADDER, TWO_ADDERS, PRODUCT, FOUR_WAYS, TAKES_CARRY, ADDS_CARRY = 0, 1, 2, 3, 4, 5, 7
XOR2, XOR3 = 0b0110, 0b10010110
_AND, _SECOND = 0b1000, 0b1100
# The tables that each of these has; what it does with others is not known.
_TABLES = {
    ADDER: {"INIT_L02": 0, "INIT_L03": 0, "INIT_L10": XOR2, "INIT_L11": XOR2, "INIT_L20": XOR2},
    TWO_ADDERS: {"INIT_L10": XOR2, "INIT_L11": XOR2, "INIT_L20": _SECOND},
    PRODUCT: {
        **dict.fromkeys(("INIT_L00", "INIT_L02"), _AND),
        **dict.fromkeys(("INIT_L01", "INIT_L03", "INIT_L20"), _SECOND),
        **dict.fromkeys(("INIT_L10", "INIT_L11"), XOR2),
        **dict.fromkeys(("C_I1", "C_I2", "C_I3", "C_I4"), 1),
    },
    FOUR_WAYS: {"INIT_L20": _SECOND},
}
# Signals that some cells make instead of handing on what comes from the cell beside or below.
MADE = {
    ADDER: ("COUTY1",),
    TWO_ADDERS: ("COUTY1",),
    PRODUCT: ("COUTX", "POUTX", "COUTY1", "COUTY2"),
}
# Which input a setting puts in the place of another.
_INSTEAD = {"IN2": ("C_I1", "PINY1"), "IN4": ("C_I2", "CINX"), "IN6": ("C_I3", "PINY1"), "IN8": ("C_I4", "PINX")}
_LEAVES = {"L00": ("IN1", "IN2"), "L01": ("IN3", "IN4"), "L02": ("IN5", "IN6"), "L03": ("IN7", "IN8")}
_UPPER, _LOWER = ("L00", "L01"), ("L02", "L03")
# The halves of a cell, as nextpnr calls them, by what they make.
_HALVES = {"COMBOUT1": "CPE_LT_L", "COMBOUT2": "CPE_LT_U"}
Signal = tuple[int, Sequence[str]]


def table_of(function: Callable[[int, int, int, int], int]) -> int:
    """Return the sixteen bits of a function of four bits; the first is the lowest bit of a place."""
    return sum((function(at & 1, at >> 1 & 1, at >> 2 & 1, at >> 3) & 1) << at for at in range(16))


def tree(low: int, high: int, top: int, last: int = _SECOND) -> int:
    """Return what tables of two inputs make of four: `low` and `high` of two each, `top` of those.

    A table `last` gets that as its second input, and does not depend on its first.
    """

    def made(a: int, b: int, c: int, d: int) -> int:
        return last >> 2 * (top >> (low >> (a | b << 1) & 1 | (high >> (c | d << 1) & 1) << 1) & 1)

    return table_of(made)


# Two bits times two, of an array: PINY1 and PINY2 are bits of B; IN1, IN5 and IN8 of A, inverted in each second column.
OF_PRODUCT: dict[str, Signal] = {
    "UPPER": (table_of(lambda a, b, c, _: a & b ^ c), ("IN1", "PINY1", "CINX")),
    "LOWER": (table_of(lambda a, b, c, _: a & b ^ c), ("IN5", "PINY1", "PINX")),
    "CARRY": (table_of(lambda a, b, p, c: (a & p | c) & (b & p | 1 ^ a & p ^ c)), ("IN1", "IN5", "PINY1", "CINX")),
    "COUTY1": (table_of(lambda u, v, c, d: c if u & v else d), ("UPPER", "LOWER", "CINY1", "CARRY")),
    "ADDED": (table_of(lambda u, c, a, p: 1 ^ c if u else 1 ^ a & p), ("LOWER", "CINY1", "IN5", "PINY1")),
    "SECOND": (table_of(lambda p, a, u, d: 1 ^ p & a ^ u ^ d), ("PINY2", "IN5", "UPPER", "ADDED")),
    "FIRST": (table_of(lambda p, a, c, u: p & a ^ c ^ u), ("PINY2", "IN8", "CINY1", "LOWER")),
    "CARRIED": (table_of(lambda s, p, a, b: p & (b if s else a)), ("SECOND", "PINY2", "IN5", "IN8")),
    "COUTY2": (table_of(lambda s, f, c, d: c if s & f else d), ("SECOND", "FIRST", "CINY2", "CARRIED")),
    "CHOSEN": (table_of(lambda f, c, p, a: 1 ^ c if f else 1 ^ p & a), ("FIRST", "CINY2", "PINY2", "IN8")),
    "POUTX": (XOR2, ("FIRST", "CINY2")),
    "COUTX": (table_of(lambda s, d, *_: 1 ^ s ^ d), ("SECOND", "CHOSEN")),
}


class Cpe:
    """A logic cell.

    Args:
        parts: gets the tables.
        setting: gives a setting, as `INIT_L00`; 0 if it is not there.
        wire: gives the net of an input, as `IN1`, or of a signal that the cell itself makes.
        place: of the cell.
    """

    def __init__(self, parts: Parts, setting: Callable[[str], int], wire: Callable[[str], int], place: str) -> None:
        self._parts, self._setting, self._wire, self._place = parts, setting, wire, place

    def make(self, signal: str, output: int | None = None) -> int:
        """Make the table of a signal; return its net, which is `output` if that is given.

        Raises:
            ReadbackError: the cell is set in a way that fpgaprune does not decode.
        """
        table, inputs = self._signal(signal)
        nets = [self._wire(name) if depends(table, at) else ZERO for at, name in enumerate(inputs)]
        return self._parts.table(table, nets, f"{self._place}/{_HALVES.get(signal, signal)}", output)

    def _leaves(self, *leaves: str) -> list[str]:
        """Return what the tables of some leaves take; a wire from the cell beside or below may stand for an input."""
        found = []
        for name in (name for leaf in leaves for name in _LEAVES[leaf]):
            setting, other = _INSTEAD.get(name, ("", ""))
            found.append(other if setting and self._setting(setting) else name)
        return found

    def _signal(self, signal: str) -> Signal:
        function = self._setting("C_FUNCTION")
        wanted = {"C_HORIZ": 0, "C_COMP": 0, "C_COMP_I": 0, **_TABLES.get(function, {})}
        strange = [name for name, value in wanted.items() if self._setting(name) != value]
        if strange:
            raise self._refused(f"has {strange[0]} {self._setting(strange[0]):04b}")
        if signal in _LEAVES:
            return self._setting(f"INIT_{signal}"), self._leaves(signal)
        if signal == "COMPOUT":
            return self._setting("INIT_L30") ^ 0b1111, ("COMBOUT1", "COMBOUT2")
        if function == PRODUCT:
            # The upper bit of the last row of an array leaves at both outputs.
            shown = {"CPOUT1": "COUTX" if self._setting("C_C_P") else "POUTX", "CPOUT2": "COUTX"}.get(signal, signal)
            found = OF_PRODUCT.get(shown)
        elif function in (ADDER, TWO_ADDERS):
            found = self._sum(signal, twice=function == TWO_ADDERS)
        elif function == FOUR_WAYS:
            found = self._choice(signal)
        elif function in (PLAIN, TAKES_CARRY, ADDS_CARRY):
            found = self._tree(signal, function)
        else:
            raise self._refused(f"has C_FUNCTION {function}")
        if found is None:
            raise self._refused(f"has C_FUNCTION {function}, and the output depends on its {signal}")
        return found

    def _refused(self, what: str) -> ReadbackError:
        return ReadbackError(f"the logic cell at {self._place} {what}; fpgaprune does not decode that")

    def _sum(self, signal: str, *, twice: bool) -> Signal | None:
        upper = (*_UPPER, "BETWEEN" if twice else "CINY1")
        found: dict[str, Signal] = {"COUTY1": (CARRY, upper)}
        if twice:
            found["COMBOUT1"], found["BETWEEN"] = (XOR3, (*_LOWER, "CINY1")), (CARRY, (*_LOWER, "CINY1"))
            found["COMBOUT2"] = XOR3, upper
        else:
            found["COMBOUT1"], found["CPOUT2"] = (XOR3, upper), (CARRY, upper)
        return found.get(signal)

    def _choice(self, signal: str) -> Signal | None:
        if signal == "COMBOUT1":
            return CHOICE, ("LOW", "HIGH", "L03")
        if signal not in ("LOW", "HIGH"):
            return None
        first = 0 if signal == "LOW" else 2
        used, inverted = self._setting("INIT_L10") >> first, self._setting("INIT_L11") >> first

        def chosen(a: int, b: int, choose: int, _: int) -> int:
            return (b & used >> 1 ^ inverted >> 1) if choose else (a & used ^ inverted)

        return table_of(chosen), (f"IN{first + 1}", f"IN{first + 2}", "L02")

    def _tree(self, signal: str, function: int) -> Signal | None:
        if signal == "COMBOUT2":
            return tree(*(self._setting(name) for name in ("INIT_L00", "INIT_L01", "INIT_L10"))), self._leaves(*_UPPER)
        below = self._setting("INIT_L02"), self._setting("INIT_L03"), self._setting("INIT_L11")
        if signal == "L11":
            return tree(*below), self._leaves(*_LOWER)
        if signal != "COMBOUT1":
            return None
        both, lower = self._setting("INIT_L20"), below[2]
        if function == ADDS_CARRY:
            return table_of(lambda a, b, c, _: both >> (a | b << 1) ^ c), ("COMBOUT2", "L11", "CINY1")
        if function == TAKES_CARRY:

            def taken(up: int, a: int, b: int, carry: int) -> int:
                return both >> (up | (lower >> (a | (b | carry) << 1) & 1) << 1)

            return table_of(taken), ("COMBOUT2", "L02", "L03", "CINY1")
        if (both ^ both >> 1) & 0b0101:
            return both, ("COMBOUT2", "L11")
        return tree(*below, both), self._leaves(*_LOWER)
