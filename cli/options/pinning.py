"""``--pin``: a list of cores, or all of them."""

from __future__ import annotations

from typing import Any

import click

_MOST = 65536


class Cores(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """Numbers of cores, separated by commas; ``all`` for those that this process may use."""

    name = "cores"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the numbers, none for all, or fail."""
        if isinstance(value, tuple):
            return value
        if value == "all":
            return ()
        parts = [part.strip() for part in str(value).split(",")]
        if not all(part.isascii() and part.isdigit() and len(part) <= len(str(_MOST)) for part in parts):
            self.fail(f"{value!r} is no list of cores: write --pin 0,1, or --pin after the folder", param, ctx)
        return tuple(map(int, parts))
