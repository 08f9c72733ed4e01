"""Pages shown in the user's browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.api.observer import Observer


def open_in_browser(path: str, observer: Observer) -> None:
    """Show a page in a browser, or warn that there is none."""
    if not _opened(path):
        observer.warn(f"there is no browser here to show {path}")


def _opened(path: str) -> bool:
    """Open a page and return whether there is a browser that can show it.

    Browsers that draw into a terminal are used only where standard output is one: it has the command's result.
    """
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    in_terminal = type(browser) is webbrowser.GenericBrowser
    if in_terminal and not (sys.stdout is not None and sys.stdout.isatty()):
        return False
    return browser.open(Path(path).resolve().as_uri())
