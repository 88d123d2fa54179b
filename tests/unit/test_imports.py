"""Scripts that no test runs whole, as benchmarks, import only what is there, within their functions too."""

import ast
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
SCRIPTS = [file for folder in ("tests", "flows", "examples") for file in sorted((CHECKOUT / folder).rglob("*.py"))]


def module_file(module, near):
    """The file of `module` in this checkout, or its folder if it is a package without one; None if it is not here."""
    place = near.joinpath(*filter(None, module.split(".")))
    files = [place / "__init__.py", place.with_suffix(".py"), place]
    return next((file for file in files if file.exists()), None)


@cache
def names_of(file):
    """All names that a module binds or, in its face, offers."""
    texts = [file.read_text()]
    if file.name == "__init__.py" and (stub := file.with_suffix(".pyi")).is_file():
        texts.append(stub.read_text())
    names = set()
    for node in (node for text in texts for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(name.asname or name.name).partition(".")[0] for name in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def missing(line, script):
    """The names that the import `line` of `script` takes from this checkout and that are not there."""
    near = CHECKOUT if not line.level else script.parents[line.level - 1]
    if not line.level and line.module.partition(".")[0] not in ("fpgaprune", "tests"):
        return []
    file = module_file(line.module or "", near)
    if file is None:
        return [line.module]
    folder = file if file.is_dir() else file.parent if file.name == "__init__.py" else None
    known = set() if file.is_dir() else names_of(file)
    inner = {entry.stem for entry in folder.iterdir()} if folder else set()
    return [f"{line.module}.{name.name}" for name in line.names if name.name not in known | inner]


def missing_in(source, script):
    lines = [line for line in ast.walk(ast.parse(source)) if isinstance(line, ast.ImportFrom)]
    return [name for line in lines for name in missing(line, script)]


@pytest.mark.parametrize("folder", sorted({script.parent for script in SCRIPTS}), ids=lambda f: f.name)
def test_every_import_finds_its_name(folder):
    scripts = [script for script in SCRIPTS if script.parent == folder]
    assert {s.name: found for s in scripts if (found := missing_in(s.read_text(), s))} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f():\n    from fpgaprune.flow.stages import gone", ["fpgaprune.flow.stages.gone"]),
        ("from fpgaprune.gone import name", ["fpgaprune.gone"]),
        ("from .test_imports import gone, names_of", ["test_imports.gone"]),
        ("from fpgaprune.select import Block\nfrom fpgaprune.select import units\nfrom tests import unit", []),
    ],
)
def test_an_import_of_what_is_gone_is_found(source, found):
    assert missing_in(source, Path(__file__)) == found
