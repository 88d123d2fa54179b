"""Our Verilog, its estimates and their commands need no hls4ml: it is not imported, and may be missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Any import of hls4ml ends the program.
_WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "hls4ml":
            raise ImportError("hls4ml was imported")

sys.meta_path.insert(0, Missing())
"""
_DESIGN = """
import keras
import numpy as np
import fpgaprune as fp

keras.utils.set_random_seed(1)
image = keras.Input((6, 6, 2), name="images")
path = keras.layers.Conv2D(3, 3, padding="same", activation="relu", name="first")(image)
path = keras.layers.Conv2D(3, 3, padding="same", name="second")(path)
path = keras.layers.MaxPooling2D(name="pool")(path)
path = keras.layers.Flatten(name="flat")(path)
model = keras.Model(image, keras.layers.Dense(4, activation="softmax", name="head")(path))
x = np.random.default_rng(1).uniform(-1, 1, (160, 6, 6, 2)).astype("float32")
"""
_MADE = """
target = fp.Target.of("xc7z020clg400-1", io_type="io_stream")
for precision in (None, "auto"):
    design = fp.make_design(model, target, x[:40], precision)
    assert fp.emulate(design, x).shape == (160, 4)
fp.to_verilog(design, sys.argv[1])
"""


def _run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT + program, *arguments], capture_output=True, text=True, check=False
    )


_FLOW = """
from fpgaprune import cli

def main(*arguments):
    sys.argv = ["fpgaprune", *arguments]
    try:
        cli.main()
    except SystemExit as end:
        return end.code or 0
    return 0

model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.save("model.keras")
y = np.arange(160) % 4
np.savez("data.npz", x_train=x, y_train=y, x_test=x, y_test=y)
with open("flow.toml", "w") as file:
    file.write(
        '[data]\\nsource = "data.npz"\\n[train]\\nmodel = "model.keras"\\n[select]\\nsparsity = 0.5\\n'
        '[finetune]\\nepochs = 1\\n[target]\\npart = "GW1NR-9"\\n[verdict]\\nmax_loss = "100 %"\\n'
    )
"""
_RUN = """
assert main("run", "flow.toml", "--out", "run") in (0, 1, 3, 4)
assert main("verify", "run") == 0
assert main("estimate", "run", "--verilog") == 0
"""
# The check has teeth.
_HLS = """
print("no import so far")
fp.to_hls(model, fp.Target.of("xc7z020clg400-1"), x, "hls")
"""


def test_a_design_its_verilog_and_a_run_for_a_part_of_gowin_need_none(tmp_path: Path) -> None:
    done = _run(
        f"import os\nos.chdir({str(tmp_path)!r})\n" + _DESIGN + _MADE + _FLOW + _RUN + _HLS, str(tmp_path / "rtl")
    )
    assert "no import so far" in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
    assert "hls4ml was imported" in done.stderr
    assert list((tmp_path / "rtl").rglob("*.v"))
    assert not (tmp_path / "run" / "hls").exists()
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert "design.json" in [link["link"] for link in certificate["links"]]


_SEARCH = """
found = fp.fit("model.keras", "data.npz", fp.Target.of("GW1NR-9"), max_loss="100 %", minutes=0.5, epochs=1, out="fit")
print(found.best)
"""


@pytest.mark.slow
def test_a_search_for_a_part_of_gowin_writes_no_project(tmp_path: Path) -> None:
    done = _run(f"import os\nos.chdir({str(tmp_path)!r})\n" + _DESIGN + _FLOW + _SEARCH)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert list((tmp_path / "fit").rglob("design.json"))
    assert not list((tmp_path / "fit").rglob("hls4ml_config.yml"))
    # Its page says what each layer takes, and no setting of hls4ml.
    page = (tmp_path / "fit" / "report.html").read_text()
    assert ("reuse" in page, " LUT</td>" in page or " DSP</td>" in page) == (False, True)
