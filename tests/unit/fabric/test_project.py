"""`RtlProject` is what `to_verilog` returns and `load` reads; its methods are the functions of the package."""

import fpgaprune as fp
from fpgaprune import fabric
from fpgaprune.fabric import RtlProject
from fpgaprune.rtl import VerilogProject

from ..rtl.networks import random_design


def test_a_project_has_the_tools_and_plain_data_has_none(tmp_path):
    project = fp.to_verilog(random_design(1, 1), tmp_path)
    assert type(project) is RtlProject is fabric.RtlProject
    assert RtlProject.load(tmp_path) == project
    assert vars(VerilogProject.load(tmp_path)) == vars(project)
    assert not {"simulate", "synthesize", "place_and_route", "make_bitstream"} & set(dir(VerilogProject))


def test_each_method_is_the_function_of_the_package(tiny, monkeypatch):
    calls = {"simulate": ("x",), "synthesize": ("xc7",), "place_and_route": ("ecp5", "lfe5u-25f")}
    calls["make_bitstream"] = ("ulx3s", "out.bit")
    project = RtlProject.load(tiny.path)
    for name, arguments in calls.items():
        monkeypatch.setattr(f"fpgaprune.fabric.rtl_project.{name}", lambda *given, **named: (given, named))
        assert getattr(project, name)(*arguments, timeout_s=3) == ((project, *arguments), {"timeout_s": 3})
