"""Names that parameters take: formats, systems and algorithms."""

from __future__ import annotations


def formats_read() -> tuple[str, ...]:
    """Return the names of the formats that :func:`mtpp.read` takes."""
    from mtpp.formats.graphs.registry import READERS

    return READERS


def formats_written() -> tuple[str, ...]:
    """Return the names of the formats that :func:`mtpp.convert` writes."""
    from mtpp.formats.graphs.registry import WRITERS

    return WRITERS


def presets() -> tuple[str, ...]:
    """Return the names of the systems that come with the package."""
    from mtpp.inference.system import preset_tables

    return tuple(preset_tables())


def is_preset(name: str) -> bool:
    """Return whether a system is called *name*, so that no file is looked for."""
    from mtpp.inference.system import preset_tables

    return name in preset_tables()


def is_algorithm(name: str) -> bool:
    """Return whether an algorithm of :func:`mtpp.partition` is called *name*."""
    from mtpp.solvers.registry import ALIASES, PARTITIONERS

    return ALIASES.get(name, name) in PARTITIONERS


def is_schedule(name: str) -> bool:
    """Return whether a schedule of passes is called *name*, so that no file is looked for."""
    from mtpp.training.pfeife.named import NAMES

    return name in NAMES
