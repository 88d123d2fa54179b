"""Looks at pages in a headless browser."""

from __future__ import annotations

import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: no page was looked at in a browser")
# Loads each page at two widths, and says what does not fit, fails or is dead.
_HARNESS = Path(__file__).with_name("look_at_pages.html")


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
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,1000"]
        command += ["--dump-dom", "--enable-logging=stderr"]
        command += ["--virtual-time-budget=6000000", f"--user-data-dir={folder / '.profile'}"]
        address = f"http://127.0.0.1:{server.server_address[1]}/harness.html"
        done = subprocess.run([*command, address], capture_output=True, text=True, timeout=1500)
        server.shutdown()
    shown = re.search(r"DONE(\{.*\})</pre>", done.stdout, re.DOTALL)
    assert shown, f"the browser did not come to the end: {done.stdout[:300]} {done.stderr[-300:]}"
    seen = json.loads(html.unescape(shown[1]))
    said = re.findall(r'CONSOLE[^"]*"(.*)", source: ', done.stderr)
    return seen | {"errors": [line for line in said if "Uncaught" in line or "Refused" in line or "Error" in line]}
