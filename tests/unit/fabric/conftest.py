"""What the tests of the open tools share: a project written by hand, and a PATH with nothing on it but fakes."""

import pytest

from fpgaprune.fabric import OPEN_TOOLS, open_tools

from ..programs import play_tools
from .tiny import tiny_project


@pytest.fixture
def tiny(tmp_path):
    """The project of `tiny.py`, in a folder with a space in its name."""
    return tiny_project(tmp_path / "my project")


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    """A folder whose `bin` goes before PATH; the tools' own variables are unset."""
    return play_tools(tmp_path, monkeypatch, [tool.program for tool in OPEN_TOOLS])


@pytest.fixture
def no_packages(monkeypatch):
    """No Python package brings a tool."""
    monkeypatch.setattr(open_tools, "find_spec", lambda name: None)
