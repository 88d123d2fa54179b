"""Files of Intel's HLS compilers in the way of each release, with figures of our own."""

from __future__ import annotations

import json
from typing import Any

INFO = {
    "name": "Info",
    "rows": [
        {"name": "Project Name", "data": ["./myproject-fpga"], "classes": ["info-table"]},
        {"name": "Target Family, Device", "data": ["Arria10, 10AX115S2F45I1SG"]},
        {"name": "i++ Version", "data": ["19.1.0 Build 1"]},
        {"name": "Quartus Version", "data": ["19.1.0 Build 1 Pro"]},
        {"name": "Reports Generated At", "data": ["Sat Feb  1 15:00:00 2025"]},
    ],
}
HINT = "To generate the data, run a Quartus compile: \n  1) Change to './myproject-fpga.prj/quartus'\n"
NOT_FITTED = {
    "quartusFitClockSummary": {
        "name": "Quartus Fit Summary",
        "children": [{"name": "Run Quartus compile to populate this section.", "details": [{"text": HINT}]}],
    }
}


def area(columns: tuple[str, ...] = ("ALUTs", "FFs", "RAMs", "DSPs", "MLABs")) -> dict[str, Any]:
    """`areaJSON` of i++ for one component with 12.5 DSPs; columns in any order."""
    figures = {"ALUTs": 1000, "FFs": 2000, "RAMs": 30, "DSPs": 12.5, "MLABs": 4}
    whole = {**figures, "DSPs": 13}
    return {
        "columns": ["", *columns, "Details"],
        "debug_enabled": "true",
        "type": "module",
        "total_percent": [1, 2, 3, 4, 5],
        "total": [whole[name] for name in columns],
        "name": "System",
        "max_resources": [854400, 1708800, 2713, 1518, 42720],
        "children": [
            {
                "name": "myproject",
                "compute_units": 1,
                "type": "function",
                "total_kernel_resources": [figures[name] for name in columns],
                "children": [{"name": "Stream 'in_data'", "type": "resource", "data": [0.5, 0, 0, 0, 0]}],
            }
        ],
    }


def kernel_area() -> dict[str, Any]:
    """`areaJSON` of oneAPI for a board: its interface takes most of the total."""
    return {
        **area(),
        "name": "Kernel System",
        "total": [101_500, 203_000, 540, 125, 9],
        "children": [
            {
                "name": "Static Partition",
                "type": "partition",
                "children": [{"name": "Board interface", "type": "resource", "data": [100_000, 200_000, 500, 123, 0]}],
            },
            {"name": "Global interconnect", "type": "resource", "data": [400, 500, 10, 0, 0]},
            {
                "name": "'lambda'(auto)",
                "type": "function",
                "total_kernel_resources": [1100, 2500, 30, 2, 9],
                "children": [{"name": "Function overhead", "type": "resource", "data": [1, 1, 1, 1, 1]}],
            },
        ],
    }


def fit(*, named: bool = False) -> str:
    """`quartusJSON` of i++; with names inside the lists it is no JSON, as in the `quartus.json` of 17.1 and 19.1."""
    clock = '["1x clock fmax": 250.00]' if named else "[250.00]"
    figures = '["ALMs": 2824.5 ,"FFs": 3821 ,"RAMs": 30 ,"DSPs": 11]' if named else "[2824.5 ,3821 ,30 ,11]"
    return (
        '{\n"quartusFitClockSummary":\n{\n  "name":"Quartus Fit Clock Summary"\n  ,"columns":["", "1x clock fmax"]\n'
        f'  ,"children":[\n  {{\n    "name":"Frequency (MHz)","data":{clock}\n  }}\n]}}\n'
        ',"quartusFitResourceUsageSummary":\n{\n  "name":"Quartus Fit Resource Utilization Summary"\n'
        '  ,"columns":["", "ALMs", "FFs", "RAMs", "DSPs"]  ,"children":[\n'
        f'  {{"name":"myproject","data":{figures}\n  }}\n]}}}}\n'
    )


def quoted(name: str, text: str) -> str:
    """`var name='...';`, the JavaScript string of i++: apostrophes and backslashes have a backslash before them."""
    body = text.replace("\n", "").replace("\\", "\\\\").replace("'", "\\'")
    return f"var {name}='{body}';\n"


def ipp_report_data(values: dict[str, Any] | None = None, *, fitted: bool = True) -> str:
    """`report_data.js` of i++ 17.1 to 19.2."""
    return (
        quoted("areaJSON", json.dumps(area() if values is None else values))
        + quoted("summaryJSON", json.dumps(summary_table()))
        + quoted("infoJSON", json.dumps(INFO))
        + quoted("warningsJSON", '{"rows":[]}')
        + quoted("quartusJSON", fit() if fitted else json.dumps(NOT_FITTED))
    )


def report_data(values: dict[str, Any] | None = None) -> str:
    """`report_data.js` of oneAPI: plain objects, in whose strings apostrophes have a backslash."""
    shown = json.dumps(kernel_area() if values is None else values).replace("'", "\\'")
    return f'var areaJSON={shown};\nvar fileJSON=[{{"path":"a.cpp", "content":"x" + "var areaJSON={{"}}];\nvar a=false;'


def summary_table(name: str = "Component Name") -> dict[str, Any]:
    """`summary.json`, which rounds half a DSP down in the total."""
    return {
        "estimatedResources": {
            "name": "Estimated Resource Usage",
            "columns": [name, "ALUTs ", "FFs  ", "RAMs ", "DSPs ", "MLABs"],
            "children": [
                {"name": "myproject", "data": [1000, 2000, 30, 12.5, 4], "debug": [[{"filename": "a.cpp"}]]},
                {"name": "Total", "classes": ["summary-highlight"], "data": [1000, 2000, 30, 12, 4]},
                {"name": "Available", "classes": ["summary-highlight"], "data": [854400, 1708800, 2713, 1518, 0]},
            ],
        }
    }


def lines(*objects: dict[str, Any]) -> str:
    """`.ndjson`: one object a line."""
    return "".join(json.dumps(one) + "\n" for one in objects)


def summary_lines(packing: int | None = 2) -> str:
    """`summary.ndjson` of oneAPI 2025: 7 multipliers share DSP blocks."""
    columns = ["Kernel Name", "ALUTs ", "FFs  ", "RAMs ", "DSPs ", "MLABs", "Frac. DSPs"]
    head = {"name": "Estimated Resource Usage", "summary_type": "estimatedResources", "columns": columns}
    parent = {"parent": "estimatedResources"}
    sums = {**parent, "classes": ["summary-highlight", "nohover"]}
    return lines(
        {"name": "Kernel Summary", "summary_type": "performanceSummary", "columns": ["Kernel Name", "Autorun"]},
        {"name": "Myproject", "parent": "performanceSummary", "data": ["No"]},
        head if packing is None else {**head, "dsp_packing_factor": packing},
        {"name": "dense", **parent, "data": [900, 1800, 20, 3, 4, 7]},
        {"name": "Myproject", **parent, "data": [100, 200, 10, 0, 0, 0]},
        {"name": "Kernel Subtotal", **sums, "data": [1000, 2000, 30, 3, 4, 7]},
        {"name": "Pipe resources", **sums, "data": [65, 300, 0, 0, 0, 0]},
        {"name": "Total", **sums, "data": [1065, 2300, 30, 3, 4, 7], "data_percent": [0.1, 0.2, 0.3, 0]},
        {"name": "Available", **sums, "data": ["974400", "1948800", "7110", "4510", "24360", "0"]},
        {"name": "Compile Warnings", "summary_type": "compileWarnings"},
    )


def area_lines() -> str:
    """`area.ndjson` of oneAPI 2025, the same design."""
    columns = ["", "ALUTs", "FFs", "RAMs", "DSPs", "MLABs", "Frac. DSPs", "Details"]
    return lines(
        {
            "columns": columns,
            "dsp_packing_factor": 2,
            "type": "module",
            "total_percent": [0.3, 0.1, 0.2, 0.3, 0],
            "total": [1065, 2300, 30, 3, 4, 7],
            "name": "Kernel System",
            "id": 0,
            "depth": 0,
            "max_resources": [974400, 1948800, 7110, 4510, 48720],
        },
        {"name": "Pipe resources", "id": 1, "depth": 1, "parent": 0, "type": "group"},
        {"name": "Pipe (a)", "id": 2, "depth": 2, "parent": 1, "type": "resource", "data": [60, 290, 0, 0, 0, 0]},
        {"name": "Pipe (b)", "id": 3, "depth": 2, "parent": 1, "type": "resource", "data": [5, 10, 0, 0, 0, 0]},
        {"name": "dense", "id": 4, "parent": 0, "type": "function", "total_kernel_resources": [900, 1800, 20, 3, 4, 7]},
        {"name": "State", "id": 5, "depth": 2, "parent": 4, "type": "resource", "data": [1, 1, 1, 1, 1, 1]},
        {
            "name": "Myproject",
            "id": 6,
            "parent": 0,
            "type": "function",
            "total_kernel_resources": [100, 200, 10, 0, 0, 0],
        },
    )


def nodes(*, fitted: bool = True, board: bool = True) -> dict[str, Any]:
    """`quartusJSON` of OpenCL and oneAPI, with a board or as an IP core."""
    if not fitted:
        return {
            "quartusFitClockSummary": {"nodes": [{"kernel clock": "TBD", "name": "Clock", "type": "system"}]},
            "quartusFitResourceUsageSummary": {
                "nodes": [{"alm": "TBD", "dsp": "TBD", "ram": "TBD", "reg": "TBD", "name": "Total", "type": "system"}]
            },
        }
    clock = {"kernel clock": "240.00", "kernel clock fmax": "250.00", "clock1x": "250.00"}
    ip_clock = {"clock1x": "250.00", "clock fmax": "250.00", "clock": "245.00"}
    kernels = {"alm": "2824.5", "reg": "3821", "dsp": "12", "ram": "30", "mlab": "7"}
    dense = {"alm": "900.1", "reg": "1,100", "dsp": "4", "ram": "7", "mlab": "0"}
    whole = {"alm": "84,229", "reg": "146,217", "dsp": "10", "ram": "1,319"}
    name = "Quartus Fitter: Clock Frequency (MHz)"
    return {
        "quartusFitClockSummary": {"nodes": [{"name": name, **(clock if board else ip_clock), "type": "system"}]},
        "quartusFitResourceUsageSummary": {
            "nodes": [
                {"type": "system", "id": 1000, "name": "Quartus Fitter: Kernel System", **kernels},
                {"type": "kernel", "id": 1010, "name": "dense", **dense},
                {"type": "kernel", "id": 1010, "name": "relu", **dense},
                *([{"type": "aclsystem", "id": 1001, "name": "Total Used (Entire System)", **whole}] if board else []),
            ]
        },
    }


def quartus_data(values: dict[str, Any] | None = None) -> str:
    """`quartus_data.js` of OpenCL and oneAPI."""
    return f"var quartusJSON={json.dumps(nodes() if values is None else values)};\n"
