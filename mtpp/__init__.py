"""Cut a neural network into pipeline stages, and prove how close to optimal the cut is."""

import os as _os
import sys as _sys

__version__ = "0.1.0"


def _end(number: int, frame: object) -> None:
    """Take the place of :mod:`mtpp.host.interrupts` until that is imported."""
    if _sys.stderr is not None:
        _os.write(2, b"error: interrupted\n")
    _os._exit(130)


# Ctrl-C has to end the program in one line from its first line on, which is here: `python -m mtpp` is known by what it
# leaves in sys.argv while it looks for the package, the command by its name. Programs that import mtpp keep their own
# handlers. `_signal` is what `signal` wraps; importing that takes milliseconds, in which a signal may come.
_module = _sys.orig_argv[_sys.orig_argv.index("-m") + 1 :][:1] if _sys.argv[:1] == ["-m"] else []
if _module == ["mtpp"] or _os.path.basename(_sys.argv[0] if _sys.argv else "") in ("mtpp", "mtpp.exe"):
    import _signal

    _signal.signal(_signal.SIGINT, _end)
    _signal.signal(_signal.SIGTERM, _end)

# In a checkout the sibling folders (cli, formats, solvers, datasets) are this package's subpackages;
# an installed wheel already has them inside, and this bridge finds nothing to do.
_checkout = _os.path.dirname(_os.path.dirname(_os.path.realpath(__file__)))
if _os.path.isfile(_os.path.join(_checkout, "pyproject.toml")) and _os.path.isdir(_os.path.join(_checkout, "solvers")):
    __path__.append(_checkout)
