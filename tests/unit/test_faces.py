"""Each package offers its names in its face, and loads the module behind a name when the name is asked for."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import fpgaprune as fp

PRODUCT = Path(fp.__file__).parent
TESTS = Path(__file__).parents[1]
PACKAGES = sorted(".".join(file.parent.relative_to(PRODUCT).parts) for file in PRODUCT.rglob("*/__init__.pyi"))


@cache
def parsed(file):
    """The syntax tree of a file."""
    return ast.parse(file.read_text())


def offered(folder):
    """The names in the face of `folder`, each with the module that it is loaded from."""
    stub = parsed(folder / "__init__.pyi")
    return {name.name: line.module for line in stub.body if isinstance(line, ast.ImportFrom) for name in line.names}


def bound(file):
    """The names that the statements of a module bind, those inside functions and classes left out."""
    for statement in parsed(file).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            yield from (part.id for part in ast.walk(statement) if isinstance(part, ast.Name))


def is_defined(name, folder):
    """Whether the module, or the inner package, that the face of `folder` names for `name` has it."""
    home = folder.joinpath(*offered(folder)[name].split("."))
    if (home / "__init__.pyi").is_file():
        return name in offered(home) and is_defined(name, home)
    return name in bound(home / "__init__.py" if home.is_dir() else home.with_suffix(".py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_face_is_defined_where_the_face_says(package):
    folder = PRODUCT.joinpath(*package.split("."))
    assert offered(folder), "a package that offers nothing needs no folder"
    assert [name for name in offered(folder) if not is_defined(name, folder)] == []


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


def past_faces(tree, home):
    """The modules inside packages with a face that `tree`, a module of package `home`, imports from outside."""
    named = []
    for line in ast.walk(tree):
        if isinstance(line, ast.Import):
            named += [name.name for name in line.names]
        elif isinstance(line, ast.ImportFrom) and line.level == 0:
            # `from fpgaprune.rtl import sums` may name a module too.
            named += [line.module, *(f"{line.module}.{name.name}" for name in line.names)]
    found = []
    for module in dict.fromkeys(name.removeprefix("fpgaprune.") for name in named if name.startswith("fpgaprune.")):
        path = PRODUCT.joinpath(*module.split("."))
        inside = [package for package in PACKAGES if module.startswith(f"{package}.")]
        if (path.is_dir() or path.with_suffix(".py").is_file()) and any(
            not f"{home}.".startswith(f"{package}.") for package in inside
        ):
            found.append(module)
    return found


def test_a_package_is_imported_by_its_face_alone():
    modules = {file: file.relative_to(PRODUCT).parent.parts for file in PRODUCT.rglob("*.py")}
    found = {
        file.relative_to(PRODUCT): past_faces(parsed(file), ".".join(home))
        for file, home in modules.items()
        if home[:1] != ("hw",)  # in a wheel: scripts that are copied into exported folders
    }
    assert {place: imports for place, imports in found.items() if imports} == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from fpgaprune.rtl import to_verilog", []),
        ("from fpgaprune.rtl.sums import summed", ["rtl.sums"]),
        ("from fpgaprune.rtl import sums", ["rtl.sums"]),
        ("def f():\n    import fpgaprune.rtl.sums", ["rtl.sums"]),
        ("from fpgaprune.flow import run_flow", []),
        ("from fpgaprune.flow.run import RunDirectory", []),
        ("from fpgaprune.flow.run.digests import digest_tree", ["flow.run.digests"]),
        ("from fpgaprune.flow.stages.stage import FlowStage", []),
        ("from fpgaprune.target import find_part", []),
    ],
)
def test_an_import_past_a_face_is_found(line, found):
    assert past_faces(ast.parse(line), "flow.stages") == found


def imports_past_faces(file):
    """The imports of a test that name a module inside a package; a face within a package is one too."""
    lines = [line for line in ast.walk(parsed(file)) if isinstance(line, ast.Import | ast.ImportFrom)]
    found = [line for line in lines if set(past_faces(line, "")) - set(PACKAGES)]
    return [f"{file.relative_to(TESTS)}:{line.lineno}: {ast.unparse(line)}" for line in found]


def test_tests_reach_past_faces_no_more_than_they_did():
    """Who moves code within a package should meet few of these; a lower number is to be written here."""
    found = [line for file in sorted(TESTS.rglob("*.py")) for line in imports_past_faces(file)]
    assert len(found) <= 74, "\n".join(found)


def private_patches(tree):
    """What a test puts in the place of a name that begins with `_`."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in ("setattr", "delattr", "patch"):
            for place in [ast.unparse(call.args[0]), *(str(part.value) for part in call.args[:2] if is_text(part))]:
                if any(part.startswith("_") and not part.startswith("__") for part in place.strip("'\"").split(".")):
                    yield ast.unparse(call)
                    break


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_no_test_patches_a_private_name():
    """A named limit, a fake of what is outside, or `change` of `tests/teeth/changed_code.py` stay when code moves."""
    assert [line for file in sorted(TESTS.rglob("*.py")) for line in private_patches(parsed(file))] == []


@pytest.mark.parametrize(
    "patch",
    [
        "monkeypatch.setattr(run, '_batch', spy)",
        "monkeypatch.setattr('fpgaprune.emulate.run._batch', spy)",
        "monkeypatch.setattr(alive._Walk, 'backward', spy)",
        "mock.patch('fpgaprune.emulate.run._batch')",
        "monkeypatch.delattr(run, '_batch')",
    ],
)
def test_a_patch_of_a_private_name_is_found(patch):
    assert list(private_patches(ast.parse(f"def test():\n    {patch}")))
    public = patch.replace("_batch", "batch").replace("_Walk", "Walk")
    assert not list(private_patches(ast.parse(f"def test():\n    {public}")))


def test_an_inner_room_is_not_imported_from_outside_its_package():
    assert past_faces(ast.parse("from fpgaprune.flow.run import RunDirectory"), "commands") == ["flow.run"]
