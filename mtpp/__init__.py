"""Cut a neural network into pipeline stages, and prove how close to optimal the cut is."""

from pathlib import Path as _Path

__version__ = "0.1.0"

# In a checkout the sibling folders (cli, formats, solvers, datasets) are this package's subpackages;
# an installed wheel already has them inside, and this bridge finds nothing to do.
_checkout = _Path(__file__).resolve().parent.parent
if (_checkout / "pyproject.toml").is_file() and (_checkout / "solvers").is_dir():
    __path__.append(str(_checkout))
