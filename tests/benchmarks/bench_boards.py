"""A small pruned network for 8 x 8 digits on every board that open tools make bitstreams for.

    python tests/benchmarks/bench_boards.py FOLDER [--boards tang-nano-9k icebreaker] [--ask 360]

The network is trained once, three quarters of its kernels are locked, and it becomes Verilog. For each board: what
synthesis counts, what place and route takes with the serial port, the clock that it reaches, and how many digits of
`--ask` the simulated board answers with other bits than the emulation. FOLDER keeps everything.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))


def main() -> None:
    """A table on standard output, and everything in FOLDER/results.json."""
    from digits_network import INTERVAL, digits_design, load_digits, train_digits

    import fpgaprune as fp
    from fpgaprune.fabric import list_serial_boards

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="left out: one board, not asked, to show that it runs")
    parser.add_argument("--boards", nargs="+", default=list_serial_boards())
    parser.add_argument("--ask", type=int, default=0, help="digits through the client and the simulated board")
    parser.add_argument("--interval", type=int, default=INTERVAL, help="cycles that a sample may take")
    chosen = parser.parse_args()
    if chosen.folder is None:
        chosen.folder, chosen.boards = Path("boards"), ("ulx3s",)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    trained, kept = chosen.folder / "digits.keras", chosen.folder / "design.json"
    if not trained.exists():
        train_digits(trained)
    if not kept.exists():
        digits_design(trained).save(kept)
    design = fp.Design.load(kept)
    x, y = load_digits()[1]
    logits = fp.emulate(design, x).reshape(len(x), -1)
    print(f"accuracy in hardware {(logits.argmax(axis=1) == y).mean():.2%} of {len(x)}")
    project = fp.to_verilog(design, chosen.folder / f"rtl{chosen.interval}", interval=chosen.interval)
    rows = [measure(project, name, chosen, x, logits) for name in chosen.boards]
    (chosen.folder / "results.json").write_text(json.dumps(rows, indent=1))
    print(table(rows))


def measure(project: Any, name: str, chosen: argparse.Namespace, x: Any, logits: Any) -> dict[str, Any]:
    """The row of one board; it is printed too."""
    from fpgaprune.errors import TargetError
    from fpgaprune.fabric import bitstream_ending, find_board, find_board_router, synthesize
    from fpgaprune.measure import capacity_of
    from fpgaprune.target import find_part

    board, router, _ = find_board_router(name)
    part = find_part(board.device)
    cells = synthesize(project, router.family, cache=chosen.folder / "synth").total
    row: dict[str, Any] = {"board": name, "device": part.name, "synthesis": {}, "fits": True}
    for resource, used, there in cells.against(capacity_of(part)):
        row["synthesis"][resource] = [used, there]
    started = time.monotonic()
    try:
        output = chosen.folder / f"{name}{bitstream_ending(name)}"
        made = project.make_bitstream(name, output, cache=chosen.folder / "synth")
        row |= {"fmax_mhz": made.fmax_mhz, "clock_mhz": made.clock_mhz, "loaded": made.loaded}
        row["route"] = {key: made.used[key] for key in ("lut", "ff", "dsp", "bram18") if made.used[key] is not None}
        row["bytes"] = output.stat().st_size
    except TargetError as error:
        row |= {"fits": False, "why": str(error)}
    row["route_seconds"] = round(time.monotonic() - started, 1)
    if chosen.ask:
        row |= ask_simulated(project, find_board(name), chosen, x, logits)
    print(json.dumps(row), flush=True)
    return row


def ask_simulated(project: Any, board: Any, chosen: argparse.Namespace, x: Any, logits: Any) -> dict[str, Any]:
    """Digits, outputs with other bits than the emulation, samples a second on the real line, seconds of simulation."""
    from simulated_board import simulated_board

    from fpgaprune.fabric import ask

    started = time.monotonic()
    folder = chosen.folder / "simulated" / board.name.replace(" ", "-")
    with simulated_board(project, board, folder) as port:
        found = ask(port, x[: chosen.ask], project=project, baud=board.baud, timeout_s=120)
    unlike = int((found.output.reshape(chosen.ask, -1) != logits[: chosen.ask]).sum())
    return {"asked": chosen.ask, "unlike": unlike, "simulated_seconds": round(time.monotonic() - started, 1)}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a table of Markdown."""
    head = "| board | FPGA | LUT | FF | memory | multipliers | MHz, its clock | digits asked, other bits |\n"
    lines = [head + "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        counts = {name: f"{used:,} of {there:,}" for name, (used, there) in row["synthesis"].items()}
        memory = counts.get("bram18") or counts.get("bram4", "")
        clock = f"{row['fmax_mhz']:.1f}, {row['clock_mhz']:g}" if row["fits"] else "does not fit"
        asked = f"{row['asked']}, {row['unlike']}" if "asked" in row else ""
        cells = (row["board"], row["device"], counts["lut"], counts["ff"], memory, counts.get("dsp", ""), clock, asked)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
