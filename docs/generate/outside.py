"""Files of the repository outside docs/ are part of the site, and links to them lead there.

A hook of mkdocs. README.md is the first page; CONTRIBUTING.md, CHANGELOG.md and SECURITY.md are pages; a script or a
table that a page links to is copied. A link to a folder becomes plain text, since a site has no page of a folder.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = {"README.md": "index.md", **{name: name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")}}
# A warning is an error in a strict build.
_LOG = logging.getLogger("mkdocs.hooks.outside")
_LINK = re.compile(r"(?P<text>!?\[[^\]]*\])\((?P<path>[^)#\s:]+)(?P<anchor>#[^)]*)?\)")
_IMAGE = re.compile(r'(?P<before><img[^>]* src=")(?P<path>[^":]+)"')


def place_in_site(path: Path) -> str | None:
    """The place in the site of a file of the repository; None if it has none."""
    name = path.relative_to(ROOT).as_posix()
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return PAGES.get(name, name)


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages and files from outside docs/."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    linked = {target for page in _pages(files) for target in _targets(page) if _is_outside(target)}
    for path in sorted(linked):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_post_build(config: Any) -> None:
    """The menu is beside the page from 1,120 pixels on; the theme hides it below 1,220."""
    for folder, ending in (("stylesheets", "css"), ("javascripts", "js")):
        for file in (Path(config["site_dir"]) / "assets" / folder).glob(f"*.{ending}"):
            text = file.read_text(encoding="utf-8")
            # The theme's widths are 76.25 em, and a sixty-fourth of one less.
            file.write_text(text.replace("76.25em", "70em").replace("76.234375em", "69.984375em"), encoding="utf-8")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between files of the repository are links between their places in the site."""
    source = _source(page.file)
    here = os.path.dirname(page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        target = (source.parent / found["path"]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            _LOG.warning("%s links to %s, which is not there", page.file.src_uri, found["path"])
            return found[0]
        if target.is_dir():
            return found["text"].strip("[]")
        return f"{found['text']}({os.path.relpath(place_in_site(target), here or '.')}{found['anchor'] or ''})"

    def image(found: re.Match[str]) -> str:
        target = (source.parent / found["path"]).resolve()
        return (
            f'{found["before"]}{os.path.relpath(place_in_site(target), here or ".")}"' if target.exists() else found[0]
        )

    return _IMAGE.sub(image, _LINK.sub(link, markdown))


def _source(file: File) -> Path:
    named = {page: ROOT / name for name, page in PAGES.items()}
    return named.get(file.src_uri, ROOT / "docs" / file.src_uri)


def _pages(files: Files) -> list[Path]:
    return [_source(file) for file in files if file.is_documentation_page()]


def _targets(page: Path) -> list[Path]:
    text = page.read_text(encoding="utf-8")
    return [(page.parent / found["path"]).resolve() for found in _LINK.finditer(text)]


def _is_outside(path: Path) -> bool:
    inside = path.is_relative_to(ROOT / "docs") or path.name in PAGES
    return path.is_file() and path.is_relative_to(ROOT) and not inside
