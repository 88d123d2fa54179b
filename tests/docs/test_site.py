"""The site builds strictly: no dead link, no page without a way in. A browser shows its pages, narrow and wide."""

from __future__ import annotations

import functools
import http.server
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from . import snippets

pytest.importorskip("mkdocs", reason="mkdocs is not installed: it is in the dependency group docs")
# Loads each page at two widths, and says what does not fit, fails or is dead.
_HARNESS = Path(__file__).with_name("look_at_pages.html")
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        [*command, "--config-file", str(snippets.CHECKOUT / "mkdocs.yml")],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


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


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def look_at(folder: Path, pages: list[str]) -> dict:
    """What a browser finds wrong with these pages of a folder, at 390 and 1200 pixels."""
    text = _HARNESS.read_text(encoding="utf-8").replace("PAGES", json.dumps(pages))
    (folder / "harness.html").write_text(text, encoding="utf-8")
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,1000", "--dump-dom"]
        command += ["--virtual-time-budget=600000", f"--user-data-dir={folder / '.profile'}"]
        address = f"http://127.0.0.1:{server.server_address[1]}/harness.html"
        done = subprocess.run([*command, address], capture_output=True, text=True, timeout=300)
        server.shutdown()
    shown = re.search(r"DONE(\{.*\})</pre>", done.stdout, re.DOTALL)
    assert shown, f"the browser did not come to the end: {done.stdout[:300]} {done.stderr[-300:]}"
    return json.loads(shown[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


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


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: pages were not looked at in a browser")
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
    assert seen["found"] == []
    assert seen["links"] >= 40


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: pages were not looked at in a browser")
def test_a_page_that_is_too_wide_is_found(tmp_path):
    (tmp_path / "wide.html").write_text('<!doctype html><div style="width:700px">wide</div><img src="none.png">')
    found = look_at(tmp_path, ["wide.html"])["found"]
    assert [entry[1:3] for entry in found] == [[390, "overflow"], [390, "image"], [1200, "image"]]
