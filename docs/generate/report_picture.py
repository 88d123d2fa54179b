"""The picture of a report in the README, light and dark: `python docs/generate/report_picture.py runs/digits`.

A browser draws it, so that it is made by hand after the page has changed: `write.py` does not.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PICTURES = Path(__file__).parents[1] / "pictures"
# The window, in pixels: as much of the page as its two answers and its four boxes take.
_WINDOW = "1060,640"
# The value of Chromium's setting for each colour scheme.
_SCHEMES = {"light": 1, "dark": 0}


def draw(report: Path) -> list[Path]:
    """Draw the top of the page `report` in each colour scheme.

    Raises:
        SystemExit: no Chromium is on PATH, or it drew nothing.
    """
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no chromium on PATH: install it, for example with 'sudo apt install chromium'")
    made = []
    with tempfile.TemporaryDirectory() as profile:
        for scheme, value in _SCHEMES.items():
            path = PICTURES / f"report_{scheme}.png"
            command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            command += [f"--window-size={_WINDOW}", f"--screenshot={path}", f"--user-data-dir={profile}"]
            command += [f"--blink-settings=preferredColorScheme={value}", report.resolve().as_uri()]
            subprocess.run(command, check=True, capture_output=True, timeout=300)
            made.append(path)
    return made


if __name__ == "__main__":
    for picture in draw(Path(sys.argv[1]) / "report.html"):
        sys.stdout.write(f"{picture}: {picture.stat().st_size:,} bytes\n")
