"""Pages shown in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console


def open_page(path: str, console: Console) -> None:
    """Show a page in a browser, or say that there is none."""
    from mtpp.api.reporting.browser import shown_in_browser

    if not shown_in_browser(path):
        console.warn(f"there is no browser here to show {path}")
