"""Reports of Quartus, with figures of our own."""

from __future__ import annotations

from collections.abc import Sequence

from tests.unit.vendor.texts import grid

FIT_VALUES = {
    "Fitter Status": "Successful - Sat Feb  1 13:00:00 2025",
    "Quartus Prime Version": "22.1.0 Build 174 03/30/2022 SC Pro Edition",
    "Revision Name": "top",
    "Top-level Entity Name": "myproject",
    "Family": "Arria 10",
    "Device": "10AX115S2F45I1SG",
    "Timing Models": "Final",
    "Power Models": "Final",
    "Device Status": "Final",
    "Logic utilization (in ALMs)": "2,825 / 427,200 ( < 1 % )",
    "Total dedicated logic registers": "3821",
    "Total pins": "131 / 924 ( 14 % )",
    "Total block memory bits": "575,968 / 55,562,240 ( 1 % )",
    "Total RAM Blocks": "87 / 2,713 ( 3 % )",
    "Total DSP Blocks": "4 / 1,518 ( < 1 % )",
    "Total PLLs": "0 / 112 ( 0 % )",
}


# Of Standard and Lite; Pro and families without ALMs have other lines.
STANDARD_VALUES = {
    name.replace("dedicated logic ", ""): value for name, value in FIT_VALUES.items() if "Model" not in name
}
MAX10_VALUES = {
    "Fitter Status": "Successful - Sat Feb  1 13:30:00 2025",
    "Quartus Prime Version": "20.1.1 Build 1 11/11/2020 SJ Lite Edition",
    "Revision Name": "top",
    "Top-level Entity Name": "myproject",
    "Family": "MAX 10",
    "Device": "10M16SAU169C8G",
    "Timing Models": "Final",
    "Total logic elements": "2,345 / 15,840 ( 15 % )",
    "    Total combinational functions": "2,100 / 15,840 ( 13 % )",
    "    Dedicated logic registers": "900 / 15,840 ( 6 % )",
    "Total registers": "912",
    "Total pins": "11 / 130 ( 8 % )",
    "Total virtual pins": "0",
    "Total memory bits": "4,096 / 562,176 ( < 1 % )",
    "Embedded Multiplier 9-bit elements": "8 / 90 ( 9 % )",
    "Total PLLs": "0 / 1 ( 0 % )",
    "UFM blocks": "0 / 1 ( 0 % )",
    "ADC blocks": "0 / 1 ( 0 % )",
}


def fit_rpt(values: dict[str, str] | None = None) -> str:
    """`<revision>.fit.rpt` of Pro, columns of the entities not in Quartus' order."""
    shown = FIT_VALUES if values is None else values
    header = [
        "Compilation Hierarchy Node",
        "Dedicated Logic Registers",
        "ALMs needed [=A-B+C]",
        "DSP Blocks needed [=A-B]",
    ]
    header += ["Combinational ALUTs", "Entity Name"]
    rows = [
        ["|", "3821 (21)", "2824.5 (10.3)", "4", "4,100 (15)", "myproject"],
        ["   |dense_1:dense_1_inst|", "3800 (3800)", "2814.2 (2814.2)", "4", "4085 (4085)", "dense_1"],
    ]
    return (
        "Fitter report for top\nSat Feb  1 13:00:00 2025\nQuartus Prime Version 22.1.0\n\n\n---------------------\n"
        "; Table of Contents ;\n---------------------\n  1. Legal Notice\n  2. Fitter Summary\n"
        "---- Place Stage Reports ----\n      3. Fitter Resource Utilization by Entity\n  4. Fitter Messages\n\n\n\n"
        "----------------\n; Legal Notice ;\n----------------\nA notice.\n\n"
        + titled("Fitter Summary", semicolons(None, [[name, value] for name, value in shown.items()]))
        + titled("Fitter Resource Utilization by Entity", semicolons(header, rows))
        + titled("Fitter Messages", "")
        + "Info: done\n"
    )


def semicolons(header: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> str:
    text = grid(header or rows[0], rows if header else rows[1:], sign=";").splitlines()
    return "\n".join(text[1:] if header else [*text[1:2], *text[3:]])


def titled(title: str, table: str) -> str:
    border = "+" + "-" * 60 + "+"
    return f"\n{border}\n; {title:<58} ;\n{border}\n{table}\n\n"


def fit_summary(values: dict[str, str] | None = None) -> str:
    """`<revision>.fit.summary`."""
    shown = FIT_VALUES if values is None else values
    return "\n".join(f"{name} : {value}" for name, value in shown.items()) + "\n"
