"""`words_of`: which bits of a block of settings are which setting, by Project Peppercorn's documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

# Settings in the order of their bits, each with how many it has.
_CPE = (
    "INIT_L00:4 INIT_L01:4 INIT_L02:4 INIT_L03:4 INIT_L10:4 INIT_L11:4 INIT_L20:4 INIT_L30:4 C_I1 C_I2 C_I3 C_I4 "
    "C_FUNCTION:3 C_COMP C_COMP_I C_HORIZ C_SELX C_SELY1 C_SELY2 C_SEL_C C_SEL_P C_Y12 C_CX_I C_CY1_I C_CY2_I C_PX_I "
    "C_PY1_I C_PY2_I C_C_P C_2D_IN C_SN:3 C_O1:2 C_O2:2 C_BR C_CPE_CLK:2 C_CPE_EN:2 C_CPE_RES:2 C_CPE_SET:2 C_RAM_I1 "
    "C_RAM_I2 C_RAM_O1 C_RAM_O2 C_L_D C_EN_SR C_CLKSEL C_ENSEL"
)
_GPIO = (
    "OPEN_DRAIN SLEW DRIVE:2 INPUT_ENABLE PULLDOWN PULLUP SCHMITT_TRIGGER OUT_SIGNAL OUT1_4 OUT2_3 OUT23_14_SEL "
    "USE_CFG_BIT USE_DDR SEL_IN_CLOCK SEL_OUT_CLOCK OE_ENABLE OE_SIGNAL:2 - OUT1_FF OUT2_FF IN1_FF IN2_FF OUT_CLOCK:2 "
    "INV_OUT1_CLOCK INV_OUT2_CLOCK IN_CLOCK:2 INV_IN1_CLOCK INV_IN2_CLOCK DELAY_OBF:16 DELAY_IBF:16 LVDS_EN LVDS_BOOST "
    "LVDS_IE LVDS_RTERM"
)
_BIG, _SMALL = "YDIAG:3 Y1:3 Y2:3 Y3:3 Y4:3", "YDIAG:3 Y1:2 Y2:2 Y3:2 Y4:2"
_DRIVE = "D1 D2 D3 D4"
_PINS = " ".join(f"SB_IN_{at:02}" for at in range(1, 13))
_LEFT = (
    "SB_Y3_SEL1:3 MDIE1_SEL1:3 CLOCK_SEL1:2 SB_Y3_SEL2:3 MDIE1_SEL2:3 CLOCK_SEL2:2 CINX_CONST CINX_SEL:2 PINX_CONST "
    "PINX_SEL:2"
)
_RIGHT = " ".join([*(f"SEL_MDIE{at}" for at in range(1, 9)), *(f"SIG_SEL{at}:3" for at in range(1, 5))])
_BOTTOM = " ".join(
    [
        *(f"SB_Y4_SEL{at}:3 MDIE2_SEL{at}:3 CLOCK_SEL{at}:2" for at in range(1, 5)),
        *(f"{name}_CONST {name}_SEL:2" for name in ("CINY1", "PINY1", "CINY2", "PINY2")),
        "P_CINY1 P_PINY1 P_CINY2 P_PINY2",
    ]
)
_RAM = (
    "forward_a_addr:8 forward_b_addr:8 forward_a0_clk:8 forward_a0_en:8 forward_a0_we:8 forward_a1_clk:8 "
    "forward_a1_en:8 forward_a1_we:8 forward_b0_clk:8 forward_b0_en:8 forward_b0_we:8 forward_b1_clk:8 "
    "forward_b1_en:8 forward_b1_we:8 sram_mode:2 input_config_a0:3 input_config_a1:3 - input_config_b0:3 "
    "input_config_b1:3 output_config_a0:3 output_config_a1:3 output_config_b0:3 output_config_b1:3 -:5 a0_writemode "
    "a1_writemode b0_writemode b1_writemode a0_set_outputreg a1_set_outputreg b0_set_outputreg b1_set_outputreg "
    "inversion_a0:3 inversion_a1:3 inversion_b0:3 inversion_b1:3 ecc_enable:2 dyn_stat_select:2 almost_empty_offset:15 "
    "fifo_sync_enable almost_full_offset:15 fifo_async_enable sram_delay:6 -:2 datbm_sel:4 cascade_enable:2"
)
_CLOCKS = " ".join(
    [
        *(f"CLKIN.REF{at}:3 CLKIN.REF{at}_INV -:4" for at in range(4)),
        *(
            f"GLBOUT.GLB{at}_CFG:3 GLBOUT.USR_GLB{at}_EN GLBOUT.GLB{at}_EN -:3 GLBOUT.FB{at}_CFG:2 "
            f"GLBOUT.USR_FB{at}_EN -:5"
            for at in range(4)
        ),
    ]
)
_BANKS = "-:16 BANK_S1 BANK_S2 - BANK_CFG BANK_E1 BANK_E2 -:2 BANK_N1 BANK_N2 -:2 BANK_W1 BANK_W2 -:2"
_PLL = (
    "PLL_RST PLL_EN PLL_AUTN SET_SEL USR_SET USR_CLK_REF CLK_OUT_EN LOCK_REQ AUTN_CT_I:3 CLK180_DOUB CLK270_DOUB -:2 "
    "USR_CLK_OUT"
)
# The last column and the last row of blocks, in which there are no logic cells, as in the first.
_LAST_COLUMN, _LAST_ROW = 81, 65
Words = Mapping[str, tuple[int, int]]


def words_of(column: int, row: int) -> Words:
    """Return the settings of a block -> their first bit, and how many they have."""
    kind = "BES" if row == 0 else "LES" if column == 0 else "TES" if row == _LAST_ROW else ""
    return _block(kind or ("RES" if column == _LAST_COLUMN else ""))


@cache
def words_of_ram() -> Words:
    """Return the same of a block memory."""
    return dict(_words("RAM_cfg_", _RAM, 0))


@cache
def words_of_clocks() -> Words:
    """Return the same of the clocks' pins and the global clocks."""
    return dict(_words("", _CLOCKS, 0))


@cache
def words_of_status() -> Words:
    """Return the same of the last bytes: banks of pins, and where the PLLs lead."""
    plls = (word for at in range(4) for word in _words(f"PLL{at}.", _PLL, 32 + 16 * at))
    return dict([*_words("GPIO.", _BANKS, 0), *plls])


def read_words(data: bytes, words: Words) -> tuple[dict[str, int], list[int]]:
    """Return the settings that are not 0, and the bits that are 1 but belong to none."""
    whole = int.from_bytes(data, "little")
    found = {name: whole >> first & (1 << bits) - 1 for name, (first, bits) in words.items()}
    for name, (first, _) in words.items():
        whole ^= found[name] << first
    return {name: value for name, value in found.items() if value}, [
        at for at in range(whole.bit_length()) if whole >> at & 1
    ]


@cache
def _block(edge: str) -> Words:
    found: list[tuple[str, tuple[int, int]]] = []
    if edge:
        kinds = {"LES": (_LEFT, 24), "RES": (_RIGHT, 24), "TES": (_RIGHT, 24), "BES": (_BOTTOM, 48)}
        fields, size = kinds[edge]
        found += _words("GPIO.", _GPIO, 0)
        for at in range(2):
            found += _words(f"IOES{at + 1}.", _PINS, 72 + 16 * at)
            found += _words(f"{edge}{at + 1}.", fields, 104 + size * at)
    else:
        for at in range(4):
            found += _words(f"CPE{at + 1}.", _CPE, 80 * at)
            for plane in range(12):
                first = 320 + 48 * at + 8 * (plane // 2) + 3 * (plane % 2)
                found.append((f"IM{at + 1}.P{plane + 1:02}", (first, 3)))
        for at, number in enumerate((1, 4)):
            found += [(f"OM{number}.P{9 + plane:02}", (438 + 48 * at + 8 * plane, 2)) for plane in range(4)]
    for plane in range(12):
        first = 512 + 40 * (plane // 2)
        found += _words(f"SB_BIG.P{plane + 1:02}.", _BIG, first + 24 * (plane % 2))
        found += _words(f"SB_DRIVE.P{plane + 1:02}.", _DRIVE, first + 16 + 4 * (plane % 2))
        found += _words(f"SB_SML.P{plane + 1:02}.", _SMALL, 752 + 24 * (plane // 2) + 12 * (plane % 2))
    return dict(found)


def _words(before: str, fields: str, first: int) -> Iterator[tuple[str, tuple[int, int]]]:
    for one in fields.split():
        name, _, bits = one.partition(":")
        size = int(bits or 1)
        if not name.startswith("-"):
            yield before + name, (first, size)
        first += size
