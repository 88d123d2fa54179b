"""One model gives one ONNX file, in processes of other hash seeds, numbers of threads and history."""

import os
import subprocess
import sys
from collections import defaultdict

import pytest

# A chain, branches by attention, and loops; the file is printed as its digest, after some exports of other models.
EXPORTS = """
import hashlib, sys
from pathlib import Path
from fpgaprune.flow.task import start_session
start_session(3)
import keras
from fpgaprune.export.onnx_file import export_onnx
L = keras.layers

def chain():
    layers = [L.Conv2D(4, 3, name="a"), L.BatchNormalization(name="n"), L.ReLU(name="r"), L.MaxPooling2D(name="p")]
    return keras.Sequential([keras.Input((8, 8, 1)), *layers, L.Flatten(name="f"), L.Dense(3, name="d")], name="net")

def attention():
    x = keras.Input((6, 8))
    y = L.Add(name="s")([x, L.MultiHeadAttention(2, 4, name="m")(x, x)])
    return keras.Model(x, L.Dense(3, name="d")(L.GlobalAveragePooling1D(name="g")(y)), name="net")

def loop(cell):
    return lambda: keras.Sequential([keras.Input((5, 3)), cell(3, go_backwards=True, name="l")], name="net")

makers = {"chain": chain, "attention": attention, "rnn": loop(L.SimpleRNN), "gru": loop(L.GRU), "lstm": loop(L.LSTM)}
names = list(makers) if int(sys.argv[2]) % 2 else list(reversed(makers))
for turn in range(2):
    for name in names:
        start_session(3)
        path = export_onnx(makers[name](), Path(sys.argv[1]) / "model.onnx")
        print("digest", name, hashlib.sha256(path.read_bytes()).hexdigest())
"""


@pytest.mark.slow
def test_exports_are_the_same_in_every_process(tmp_path, capsys):
    found = defaultdict(list)
    for number in range(int(os.environ.get("FPGAPRUNE_EXPORTS", "20"))):
        threads = {"OMP_NUM_THREADS": str(1 + number % 3), "TF_NUM_INTRAOP_THREADS": str(1 + number % 3)}
        environment = {**os.environ, "PYTHONHASHSEED": str(number), **threads}
        command = [sys.executable, "-c", EXPORTS, str(tmp_path), str(number)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-2000:]
        for line in done.stdout.splitlines():
            if line.startswith("digest "):
                _, name, digest = line.split()
                found[name].append(digest)
    with capsys.disabled():
        counted = ", ".join(f"{name} {len(set(all_))} file(s) of {len(all_)} exports" for name, all_ in found.items())
        sys.stdout.write(f"\n{counted}\n")
    assert len(found) == 5
    assert all(len(set(digests)) == 1 for digests in found.values())
