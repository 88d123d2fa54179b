"""What a browser says of a page is heard; the report page fits narrow and wide screens."""

from __future__ import annotations

import importlib.util
import sys

from fpgaprune.report import write_report

from . import snippets
from .browser import look_at, needs_browser

_FILE = snippets.CHECKOUT / "tests" / "unit" / "report" / "samples.py"


@needs_browser
def test_a_page_that_is_too_wide_is_found(tmp_path):
    (tmp_path / "wide.html").write_text(
        '<!doctype html><div style="width:700px">wide</div><img src="none.png"><a href="gone.html">gone</a>'
        "<script>nothing()</script>"
    )
    seen = look_at(tmp_path, ["wide.html"])
    kinds = [entry[1:3] for entry in seen["found"]]
    assert kinds == [[390, "overflow"], [390, "image"], [1200, "image"], [404]]
    assert len(seen["errors"]) == 2
    assert "nothing is not defined" in seen["errors"][0]


@needs_browser
def test_code_that_is_cut_and_a_menu_that_is_hidden_are_found(tmp_path):
    (tmp_path / "cut.html").write_text(
        '<!doctype html><a href="cut.html">here</a><pre style="width:90px"><code style="display:block;overflow:auto">'
        f"{'long' * 20}</code></pre>"
        '<div class="md-sidebar--primary" style="position:fixed;left:-300px;width:9px"></div>'
    )
    seen = look_at(tmp_path, ["cut.html"])
    assert [entry[1:3] for entry in seen["found"]] == [[390, "cut"], [1200, "cut"], [1200, "no menu"]]


@needs_browser
def test_the_report_page_fits_narrow_and_wide_screens(tmp_path):
    spec = importlib.util.spec_from_file_location("report_samples", _FILE)
    samples = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = samples
    spec.loader.exec_module(samples)
    write_report(tmp_path, samples.run_report(measured=samples.measured()))
    seen = look_at(tmp_path, ["report.html"])
    assert (seen["found"], seen["errors"]) == ([], [])
