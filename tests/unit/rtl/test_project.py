"""Projects of Verilog: written, read and refused."""

import json

import pytest

from fpgaprune.errors import RtlError
from fpgaprune.rtl import VerilogProject, to_verilog

from .networks import random_design


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return to_verilog(random_design(3, 2), tmp_path_factory.mktemp("rtl"))


def test_a_project_is_read_as_it_was_written(project):
    assert VerilogProject.load(project.path) == project
    assert VerilogProject.load(project.path / "project.json") == project
    assert all((project.path / name).is_file() for name in project.files)
    assert {name for layer in project.layers for name in layer.files} <= set(project.files)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a Verilog project: "),
        ("[]", "is not a Verilog project of format 1; write it anew"),
        ('{"format": 1}', "is not a whole Verilog project: KeyError"),
    ],
)
def test_what_is_no_project_is_refused(text, message, tmp_path):
    (tmp_path / "project.json").write_text(text)
    with pytest.raises(RtlError, match=message):
        VerilogProject.load(tmp_path)


def test_a_missing_project_is_refused(tmp_path):
    with pytest.raises(RtlError, match=r"no Verilog project at .*: project.json is missing; write it with to_verilog"):
        VerilogProject.load(tmp_path)


def test_the_list_is_plain_json(project):
    document = json.loads((project.path / "project.json").read_text())
    assert document["format"] == 1
    assert {"name", "top", "clock_ns", "files", "layers", "inputs", "outputs"} <= set(document)
