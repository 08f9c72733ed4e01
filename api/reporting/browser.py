"""Pages shown in the user's browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path


def shown_in_browser(path: str) -> bool:
    """Open a page in a browser and return whether there is one that can show it.

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
