"""`find_pll`: the settings of an FPGA's PLL that make a faster clock of the board's oscillator, and its Verilog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

# A serial port takes a whole number of cycles for a bit: so far may its rate be from the one that is asked for.
_SERIAL_ERROR = 0.01


class PllKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The PLL of a device, from `hw/synth`.

    Attributes:
        cell: name of its cell.
        source: the document that states the limits.
        compared_mhz: lowest and highest frequency at its phase detector.
        oscillator_mhz: lowest and highest frequency of its oscillator.
        most_mhz: highest frequency of its output.
        divide: most that the reference is divided by.
        multiply: most that it is multiplied by.
        outputs: what its oscillator may be divided by.
        divided: whether the feedback is the oscillator, so that the output is divided once more; else the output.
    """

    cell: str
    source: str
    compared_mhz: tuple[float, float]
    oscillator_mhz: tuple[float, float]
    most_mhz: float
    divide: int
    multiply: int
    outputs: tuple[int, ...]
    divided: bool = False


@dataclass(frozen=True, slots=True)
class Pll:
    """Settings of a PLL.

    Attributes:
        cell: name of its cell.
        reference_mhz: frequency that goes in.
        divide: what the reference is divided by.
        multiply: what it is multiplied by.
        output: what the oscillator is divided by.
        clock_mhz: frequency that comes out.
    """

    cell: str
    reference_mhz: float
    divide: int
    multiply: int
    output: int
    clock_mhz: float

    def verilog(self) -> str:
        """Return an instance: `clk` goes in, `clock` and `locked` come out."""
        return _CELLS[self.cell](self)


def find_pll(kind: PllKind, reference_mhz: float, most_mhz: float, baud: int) -> Pll | None:
    """Find the settings with the highest clock up to `most_mhz` that a serial port of `baud` divides; None if none."""
    (slow, fast), (low, high) = kind.compared_mhz, kind.oscillator_mhz
    middle, best, found = (low + high) / 2, (0.0, 0.0), None
    for divide in range(1, kind.divide + 1):
        compared = reference_mhz / divide
        if not slow <= compared <= fast:
            continue
        for multiply in range(1, kind.multiply + 1):
            for output in kind.outputs:
                oscillator = compared * multiply * (1 if kind.divided else output)
                clock = oscillator / output
                if low <= oscillator <= high and clock <= min(most_mhz, kind.most_mhz) and _divides(clock, baud):
                    better = (clock, -divide - abs(oscillator / middle - 1))
                    if found is None or better > best:
                        best, found = better, Pll(kind.cell, reference_mhz, divide, multiply, output, clock)
    return found


def _divides(clock_mhz: float, baud: int) -> bool:
    cycles = clock_mhz * 1e6 / baud
    return cycles >= 4 and abs(cycles - round(cycles)) <= _SERIAL_ERROR * cycles


def _gowin(pll: Pll) -> str:
    return f"""    rPLL #(
        .FCLKIN("{pll.reference_mhz:g}"),
        .IDIV_SEL({pll.divide - 1}), .FBDIV_SEL({pll.multiply - 1}), .ODIV_SEL({pll.output})
    ) pll (
        .CLKIN(clk), .CLKOUT(clock), .LOCK(locked), .CLKOUTP(), .CLKOUTD(), .CLKOUTD3(), .RESET(1'b0), .RESET_P(1'b0),
        .CLKFB(1'b0), .FBDSEL(6'b0), .IDSEL(6'b0), .ODSEL(6'b0), .PSDA(4'b0), .DUTYDA(4'b0), .FDLY(4'b0)
    );
"""


def _ecp5(pll: Pll) -> str:
    # The output feeds itself back; half a turn of the output divider aligns its edges.
    return f"""    (* FREQUENCY_PIN_CLKI="{pll.reference_mhz:g}" *) (* FREQUENCY_PIN_CLKOP="{pll.clock_mhz:g}" *)
    EHXPLLL #(
        .CLKI_DIV({pll.divide}), .CLKFB_DIV({pll.multiply}), .CLKOP_DIV({pll.output}), .CLKOP_CPHASE({pll.output // 2}),
        .CLKOP_FPHASE(0), .CLKOP_ENABLE("ENABLED"), .FEEDBK_PATH("CLKOP")
    ) pll (
        .CLKI(clk), .CLKFB(clock), .CLKOP(clock), .LOCK(locked), .RST(1'b0), .STDBY(1'b0), .PHASESEL0(1'b0),
        .PHASESEL1(1'b0), .PHASEDIR(1'b1), .PHASESTEP(1'b1), .PHASELOADREG(1'b1), .PLLWAKESYNC(1'b0), .ENCLKOP(1'b0)
    );
"""


def _ice40(pll: Pll) -> str:
    filtered = filter_range(pll.reference_mhz / pll.divide)
    return f"""    SB_PLL40_PAD #(
        .FEEDBACK_PATH("SIMPLE"), .FILTER_RANGE({filtered}),
        .DIVR({pll.divide - 1}), .DIVF({pll.multiply - 1}), .DIVQ({pll.output.bit_length() - 1})
    ) pll (
        .PACKAGEPIN(clk), .PLLOUTGLOBAL(clock), .LOCK(locked), .RESETB(1'b1), .BYPASS(1'b0)
    );
"""


def filter_range(compared_mhz: float) -> int:
    """Return the range of an iCE40's loop filter for a frequency at the phase detector."""
    return 1 + sum(compared_mhz >= limit for limit in (17, 26, 44, 66, 101))


_CELLS: dict[str, Callable[[Pll], str]] = {"rPLL": _gowin, "EHXPLLL": _ecp5, "SB_PLL40_PAD": _ice40}
