"""The site builds strictly: no dead link, no page without a way in. A browser shows its pages, narrow and wide."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys

import pytest

from . import snippets
from .browser import look_at, needs_browser

pytest.importorskip("mkdocs", reason="mkdocs is not installed: it is in the dependency group docs")


def _build(config, folder):
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    # Not --quiet: mkdocs then neither prints nor counts its warnings.
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--strict", "--config-file", str(config)]
    return subprocess.run(
        [*command, "--site-dir", str(folder)], capture_output=True, text=True, env=environment, timeout=300
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    done = _build(snippets.CHECKOUT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[there](other.md)", None),
        ("[gone](gone.md) [there](other.md)", "gone.md"),
        ("[nowhere](other.md#nowhere)", "#nowhere"),
        ("[away](../away.md) [there](other.md)", "away.md"),
    ],
    ids=["sound", "no such page", "no such heading", "outside docs"],
)
def test_dead_links_are_refused(text, said, tmp_path):
    (tmp_path / "docs" / "generate").mkdir(parents=True)
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        (tmp_path / name).write_text("# Page\n\n[there](docs/other.md)\n")
    (tmp_path / "docs" / "other.md").write_text("# Other\n")
    (tmp_path / "docs" / "first.md").write_text(f"# First\n\n{text}\n")
    hook = snippets.CHECKOUT / "docs" / "generate" / "outside.py"
    (tmp_path / "docs" / "generate" / "outside.py").write_bytes(hook.read_bytes())
    whole = (snippets.CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8")
    kept = whole[whole.index("validation:") : whole.index("\nnav:")]
    start = "site_name: small\nexclude_docs: generate/\nhooks: [docs/generate/outside.py]\n"
    (tmp_path / "mkdocs.yml").write_text(start + kept)
    done = _build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert (done.returncode == 0) == (said is None), done.stderr
    assert said is None or said in done.stderr


def test_site_is_built_strictly(site):
    assert (site / "index.html").is_file()
    text = (site / "reference" / "python.html").read_text(encoding="utf-8")
    # The functions that are called as their packages are described, and not the packages.
    for name in ("fpgaprune.lock", "fpgaprune.select.select", "fpgaprune.estimate.estimate", "fpgaprune.MaskSet"):
        assert f'id="{name}"' in text


def test_pages_are_fetched_from_nowhere_else(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', text), page
        assert not re.search(r'<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="(?:https?:)?//', text), page


@pytest.mark.parametrize(
    "maker",
    [
        *("command_line", "errors_page", "parts_page", "python_page", "run_folder_page"),
        # Found by trying networks, which takes minutes.
        pytest.param("layers_page", marks=pytest.mark.slow),
    ],
)
def test_generated_pages_are_up_to_date(maker, monkeypatch):
    monkeypatch.syspath_prepend(snippets.CHECKOUT / "docs" / "generate")
    module = importlib.import_module(maker)
    page = snippets.CHECKOUT / "docs" / module.PLACE
    assert page.read_text(encoding="utf-8") == module.page(), "run 'python docs/generate/write.py'"


def test_charts_show_the_tables_of_their_pages(monkeypatch):
    monkeypatch.syspath_prepend(snippets.CHECKOUT / "docs" / "generate")
    module = importlib.import_module("charts")
    folder = snippets.CHECKOUT / "docs" / module.FOLDER
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert written == module.charts(), "run 'python docs/generate/write.py'"


def test_a_chart_without_its_table_is_an_error(monkeypatch):
    monkeypatch.syspath_prepend(snippets.CHECKOUT / "docs" / "generate")
    module = importlib.import_module("tables")
    with pytest.raises(ValueError, match="has 0 tables with the columns trial, colour"):
        module.rows_of("measurements/fit.md", "trial", "colour")


@pytest.mark.parametrize("page", ["tutorial.md", "howto/hold_one_kernel.md"])
def test_notebooks_are_their_pages(page, monkeypatch):
    monkeypatch.syspath_prepend(snippets.CHECKOUT / "docs" / "generate")
    module = importlib.import_module("notebooks")
    made = module.notebook(page)
    written = snippets.CHECKOUT / "examples" / module.NOTEBOOKS[page]
    assert written.read_text(encoding="utf-8") == made, "run 'python docs/generate/write.py'"
    # Its cells are the blocks that the page shows, which test_snippets runs.
    cells = ["".join(cell["source"]) for cell in json.loads(made)["cells"] if cell["cell_type"] == "code"]
    text = (snippets.CHECKOUT / "docs" / page).read_text(encoding="utf-8")
    assert cells == [found.strip("\n") for found in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)]


@needs_browser
@pytest.mark.parametrize(
    "which",
    [
        pytest.param("index.html", id="first page"),
        pytest.param("**/*.html", id="all pages", marks=pytest.mark.slow),
    ],
)
def test_pages_fit_narrow_and_wide_screens(site, which):
    pages = sorted(path.relative_to(site).as_posix() for path in site.glob(which) if path.name != "harness.html")
    seen = look_at(site, pages)
    assert (seen["found"], seen["errors"]) == ([], [])
    assert seen["links"] >= 40
