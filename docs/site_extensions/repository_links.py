"""Links of the pages to files of the repository, and of files that pages include to pages."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

INCLUDED = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    "examples/README.md": "project/examples.md",
}
"""Files outside the folder of the pages, and the pages that include them."""

_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_the_site(text: str, file: Path, page: Path, root: Path) -> str:
    """Return Markdown with its relative links, seen from *file*, turned into links from *page*.

    Parameters
    ----------
    root
        Folder of the repository; its pages are in ``docs``.
    """
    docs = root / "docs"

    def moved(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(file.parent / match[1]))
        name = target.relative_to(root).as_posix() if target.is_relative_to(root) else ""
        if name in INCLUDED:
            target = docs / INCLUDED[name]
        elif target.is_dir() and (target / "README.md").relative_to(root).as_posix() in INCLUDED:
            target = docs / INCLUDED[(target / "README.md").relative_to(root).as_posix()]
        return f"]({os.path.relpath(target, page.parent)}{match[2] or ''})"

    return _LINK.sub(moved, text)


def _source_read(app: Sphinx, name: str, content: list[str]) -> None:
    page = Path(app.env.doc2path(name))
    content[0] = on_the_site(content[0], page, page, Path(app.srcdir).parent)


def _include_read(app: Sphinx, path: Path, name: str, content: list[str]) -> None:
    page = Path(app.env.doc2path(app.env.docname))  # of *name*, MyST gives the last part alone
    content[0] = on_the_site(content[0], Path(app.srcdir) / path, page, Path(app.srcdir).parent)


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrite links as pages and included files are read."""
    app.connect("source-read", _source_read)
    app.connect("include-read", _include_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
