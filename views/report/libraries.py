"""Libraries that pages are made with: those of the extra ``report``."""

from __future__ import annotations

from importlib import import_module

from mtpp.errors import InputError

_LIBRARIES = {"Jinja": "jinja2", "Bokeh": "bokeh.embed", "igraph": "igraph"}
"""Name → module that is there if it is installed; Bokeh needs Jinja as well, so that comes first."""


def require_libraries() -> None:
    """Check that all libraries of the extra are installed.

    Raises
    ------
    InputError
        If one is not.
    """
    for name, module in _LIBRARIES.items():
        try:
            import_module(module)
        except ImportError as error:
            raise InputError(f"a report needs {name} ({error})", remedy="run: pip install 'mtpp[report]'") from None
