"""The package as it is installed: public names, lazy imports, data files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fpgaprune as fp
from fpgaprune.files import hardware_path
from tests.quick import quick

CHECKOUT = Path(__file__).parents[2]


def test_importing_loads_no_framework():
    code = "import sys, fpgaprune; print({'tensorflow', 'keras', 'hls4ml', 'numpy'} & set(sys.modules) or 'none')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "none"


@pytest.mark.parametrize("name", fp.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name):
    assert getattr(fp, name).__doc__


@pytest.mark.parametrize("name", quick(["quantize"], ["LockedOptimizer", "quantize"]))
def test_what_imports_keras_first_is_registered_too(name):
    code = (
        f"import fpgaprune as fp\nfp.{name}\nimport keras\n"
        "print(keras.saving.get_registered_object('fpgaprune>LockedOptimizer') is fp.LockedOptimizer)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_an_unknown_name_lists_the_known():
    with pytest.raises(AttributeError, match=r"'frobnicate'; it has .*MaskSet"):
        fp.frobnicate  # noqa: B018


def test_a_name_of_a_room_says_where_it_is_imported_from():
    with pytest.raises(AttributeError, match=r"no attribute 'Block'; import it from fpgaprune\.select$"):
        fp.Block  # noqa: B018


def test_a_function_keeps_its_name_once_the_room_of_that_name_is_imported():
    code = (
        "import fpgaprune as fp, fpgaprune.select\nfrom fpgaprune.select import Block\nfrom fpgaprune import select\n"
        "print(callable(fp.select), select is fp.select, 'select' in dir(fp), Block.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True", "fpgaprune.select.units"]


def test_few_names_are_flat():
    assert len(fp.__all__) <= 45, "import what few need from its room"


def test_hardware_data_are_found():
    assert (hardware_path("parts") / "zynq7000.toml").is_file()


@pytest.mark.skipif("FPGAPRUNE_FROM_WHEEL" not in os.environ, reason="only 'make test' tests the installed wheel")
def test_the_wheel_is_what_is_tested():
    assert CHECKOUT not in Path(fp.__file__).parents or ".venv" in Path(fp.__file__).parts


def test_type_checkers_are_told_that_the_package_has_types():
    assert (Path(fp.__file__).parent / "py.typed").is_file()
