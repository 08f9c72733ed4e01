"""Compilation of all inner loops ahead of their use."""

from __future__ import annotations


def compile_solvers() -> int:
    """Compile every solver's inner loops, and return the number of solvers."""
    from mtpp.solvers.compiling import compile_all

    return compile_all()
