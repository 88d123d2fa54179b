"""What tests of several tools need."""

import pytest

from fpgaprune.errors import ToolError
from fpgaprune.fabric import YOSYS, find_open_tool


@pytest.fixture
def yosys():
    """Skip the test where yosys is missing."""
    try:
        find_open_tool(YOSYS)
    except ToolError as error:
        pytest.skip(str(error))
