"""What the notes say about zeros, against what removing the named kernels really does."""

import re
from dataclasses import replace

import numpy as np

import fpgaprune as fp
from fpgaprune.target import Target
from fpgaprune.values import MaskSet

from .designs import cnn, mlp

TARGET = Target.of("xc7z020clg400-1")


def note_on(made, name):
    return next(note for note in made.notes if note.startswith(f"{name}:"))


def test_resource_strategy_says_that_zeros_save_nothing():
    note = note_on(fp.estimate(mlp(4, "resource", zeros=0.5, width=12), TARGET), "fc1")
    assert "save 0 DSP at reuse 4" in note
    assert re.search(r"these \d+ further kernels would free \d+ more", note)


def test_the_named_kernels_free_what_the_note_says():
    design = cnn("io_stream", "resource_unrolled", 2, zeros=0.5, width=12, backend="Vitis")
    before = fp.estimate(design, TARGET)
    note = note_on(before, "conv")
    count, freed = map(int, re.search(r"these (\d+) further kernels would free (\d+) more", note).groups())
    assert count <= 4  # all of them are named
    names = re.findall(r"conv/weight\[[^\]]*\]", note)
    assert len(names) == count
    conv = design["conv"]
    mask = MaskSet.from_slices({"conv/weight": conv.weights["weight"].shape}, names)["conv/weight"]
    weights = {**conv.weights, "weight": np.where(mask, conv.weights["weight"], 0)}
    layers = tuple(replace(x, weights=weights) if x.name == "conv" else x for x in design.layers)
    after = fp.estimate(replace(design, layers=layers), TARGET)
    at = [x.name for x in design.layers].index("conv")
    assert before.layers[at].csynth.dsp.value - after.layers[at].csynth.dsp.value == freed > 0


def test_latency_strategy_says_what_zeros_save():
    made = fp.estimate(mlp(zeros=0.5, width=12), TARGET)
    note = note_on(made, "fc1")
    dsp, lut = (
        int(found.replace(",", "")) for found in re.search(r"saves about ([\d,]+) DSP and ([\d,]+) LUT", note).groups()
    )
    full = fp.estimate(mlp(zeros=0.0, width=12), TARGET)
    real = {r: getattr(full.layers[1].synth, r).value - getattr(made.layers[1].synth, r).value for r in ("dsp", "lut")}
    assert abs(dsp - real["dsp"]) <= 0.15 * real["dsp"]
    assert abs(lut - real["lut"]) <= 0.15 * real["lut"]


def test_no_zeros_no_note():
    made = fp.estimate(mlp(zeros=0.0, width=12), TARGET)
    assert not [note for note in made.notes if "by zero" in note]


def test_the_clock_is_judged_as_far_as_it_can_be():
    slow, fast = (fp.estimate(mlp(), Target.of("xc7z020clg400-1", clock_ns=c)).notes[-1] for c in (10.0, 2.5))
    assert "enough for one multiplication" in slow
    assert "less than one multiplication" in fast
