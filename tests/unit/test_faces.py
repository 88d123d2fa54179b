"""Each package offers its names in its face, and loads the module behind a name when the name is asked for."""

import ast
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

import fpgaprune as fp

CHECKOUT = Path(__file__).parents[2]
PRODUCT = Path(fp.__file__).parent
PACKAGES = sorted(".".join(file.parent.relative_to(PRODUCT).parts) for file in PRODUCT.rglob("*/__init__.pyi"))


def offered(folder):
    """The names in the face of `folder`, each with the module that it is loaded from."""
    stub = ast.parse((folder / "__init__.pyi").read_text())
    return {name.name: line.module for line in stub.body if isinstance(line, ast.ImportFrom) for name in line.names}


def bound(file):
    """The names that the statements of a module bind, those inside functions and classes left out."""
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            yield from (part.id for part in ast.walk(statement) if isinstance(part, ast.Name))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_face_is_defined_where_the_face_says(package):
    folder = PRODUCT.joinpath(*package.split("."))
    assert offered(folder), "a package that offers nothing needs no folder"
    for name, module in offered(folder).items():
        home = folder.joinpath(*module.split("."))
        file = home / "__init__.py" if home.is_dir() else home.with_suffix(".py")
        assert name in bound(file), f"fpgaprune.{package}.{module} does not define {name}"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_of_a_face_is_that_of_a_module_in_it(package):
    """Once such a module is loaded, Python binds it on the package, in the place of the name."""
    folder = PRODUCT.joinpath(*package.split("."))
    assert not {path.stem for path in folder.iterdir()} & set(offered(folder))


def test_importing_the_faces_loads_no_module_behind_them():
    code = (
        "import sys\nfrom importlib import import_module\n"
        f"faces = ['fpgaprune.' + name for name in {PACKAGES}]\n"
        "for name in faces: import_module(name)\n"
        "loaded = {name for name in sys.modules if name.startswith('fpgaprune.')} - {*faces, 'fpgaprune.keras_hook'}\n"
        "heavy = {'tensorflow', 'keras', 'hls4ml', 'tf2onnx', 'tensorflow_model_optimization', 'numpy'}\n"
        "print(sorted(loaded | heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_package_has_the_contract_that_closes_it():
    contracts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    closed = [contract["protected_modules"] for contract in contracts if contract["type"] == "protected"]
    assert sorted(closed) == sorted([f"fpgaprune.{package}.*"] for package in PACKAGES)


def test_a_class_name_means_one_thing_and_no_file_name_stands_in_three_packages():
    homes, files = defaultdict(set), defaultdict(list)
    for file in PRODUCT.rglob("*.py"):
        place = file.relative_to(PRODUCT)
        if place.parts[0] == "hw":  # in a wheel: scripts that are copied into exported folders
            continue
        files[file.stem].append(place)
        for statement in ast.parse(file.read_text()).body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                homes[statement.name].add(place)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
    assert {name: found for name, found in files.items() if len(found) > 2 and name != "__init__"} == {}
