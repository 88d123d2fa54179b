"""What `fpgaprune doctor` lists, with everything missing and with everything there."""

import importlib.metadata
import tomllib
from pathlib import Path

import pytest

from fpgaprune.flow import doctor
from fpgaprune.flow.doctor import examine

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


@pytest.mark.skipif(not PYPROJECT.is_file(), reason="the list of extras is in the checkout only")
def test_every_package_that_an_extra_brings_is_listed():
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    brought = {wanted.split(">")[0] for extra in extras.values() for wanted in extra}
    text = " ".join(f"{row['tool']} {row['found']} {row['unlocks']}" for row in examine())
    assert {name for name in brought if name not in text} == set()
    assert {"mtkahypar", "qonnx", "da4ml", "pyosys"} <= brought


def test_what_is_missing_is_listed_with_its_command(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", missing)
    rows = {row["tool"]: row for row in examine()}
    assert rows["mtkahypar"]["found"] is None
    assert "pip install mtkahypar" in rows["mtkahypar"]["unlocks"]
