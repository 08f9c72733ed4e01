"""Compilation of all inner loops ahead of their use."""

from __future__ import annotations


def warmup() -> int:
    """Compile every solver's inner loops now, so that later calls start at once.

    Machine code is kept beside the installed package, or in the user's cache folder where that cannot be written. It
    takes up to a minute the first time, and seconds after that.

    Returns
    -------
    The number of solvers.

    Examples
    --------
    >>> warmup() > 20
    True
    """
    from mtpp.solvers.compiling import compile_all

    return compile_all()
