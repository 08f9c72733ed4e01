"""Names of the systems that come with the package."""

from __future__ import annotations


def presets() -> tuple[str, ...]:
    """Return the names of the systems that come with the package."""
    from mtpp.inference.system import preset_tables

    return tuple(preset_tables())
