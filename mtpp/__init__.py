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
_asked = _sys.orig_argv if _sys.argv[:1] == ["-m"] else []
_module = _asked[_asked.index("-m") + 1 :][:1] if "-m" in _asked else []
if _module == ["mtpp"] or _os.path.basename(_sys.argv[0] if _sys.argv else "") in ("mtpp", "mtpp.exe"):
    import _signal

    _signal.signal(_signal.SIGINT, _end)
    _signal.signal(_signal.SIGTERM, _end)

# In a checkout the sibling folders (cli, formats, solvers, datasets) are this package's subpackages;
# an installed wheel already has them inside, and this bridge finds nothing to do.
_checkout = _os.path.dirname(_os.path.dirname(_os.path.realpath(__file__)))
if _os.path.isfile(_os.path.join(_checkout, "pyproject.toml")) and _os.path.isdir(_os.path.join(_checkout, "solvers")):
    __path__.append(_checkout)

_EXPORTS = {
    "bound": "mtpp.api.bound",
    "certify": "mtpp.api.certify",
    "compare": "mtpp.api.compare",
    "compare_layouts": "mtpp.api.language_models.compare_layouts",
    "convert": "mtpp.api.convert",
    "describe_machine": "mtpp.api.inputs.described_machine",
    "device_map": "mtpp.api.language_models.device_map",
    "emit": "mtpp.api.emit",
    "evaluate": "mtpp.api.evaluate",
    "evaluate_layout": "mtpp.api.language_models.layout_evaluation",
    "generate": "mtpp.api.generate",
    "inspect": "mtpp.api.inspect",
    "load": "mtpp.api.load",
    "partition": "mtpp.api.partition",
    "pipeline_schedule": "mtpp.api.training.stage_modules",
    "plan_training": "mtpp.api.plan_training",
    "profile": "mtpp.api.profile",
    "read": "mtpp.api.inputs.reading",
    "read_layout": "mtpp.api.language_models.read_layout",
    "report": "mtpp.api.reporting.report",
    "run_pipeline": "mtpp.api.run_pipeline",
    "run_training": "mtpp.api.training.run_training",
    "simulate": "mtpp.api.simulate",
    "split": "mtpp.api.split",
    "stage_modules": "mtpp.api.training.stage_modules",
    "sweep_training": "mtpp.api.sweep_training",
    "systems": "mtpp.api.inputs.systems",
    "verify": "mtpp.api.verify",
    "warmup": "mtpp.api.warmup",
    "Equi": "mtpp.api.options.line_planners",
    "GraphPipe": "mtpp.api.options.graphpipe",
    "Pfeife": "mtpp.api.options.pfeife",
    "PipeDream2BW": "mtpp.api.options.line_planners",
    "Piper": "mtpp.api.options.line_planners",
    "Deadlock": "mtpp.errors",
    "Infeasible": "mtpp.errors",
    "InputError": "mtpp.errors",
    "Interrupted": "mtpp.errors",
    "InvalidPartition": "mtpp.errors",
    "LimitReached": "mtpp.errors",
    "Machine": "mtpp.machine.machine",
    "MtppError": "mtpp.errors",
    "MtppWarning": "mtpp.api.observer",
    "Observer": "mtpp.api.observer",
    "Reading": "mtpp.api.options.reading",
}
"""Public names and the modules that have them; imported when they are first asked for."""

_ROOMS = ("datasets",)
"""Packages that are public as they are."""

__all__ = [
    "Deadlock",
    "Equi",
    "GraphPipe",
    "Infeasible",
    "InputError",
    "Interrupted",
    "InvalidPartition",
    "LimitReached",
    "Machine",
    "MtppError",
    "MtppWarning",
    "Observer",
    "Pfeife",
    "PipeDream2BW",
    "Piper",
    "Reading",
    "bound",
    "certify",
    "compare",
    "compare_layouts",
    "convert",
    "datasets",
    "describe_machine",
    "device_map",
    "emit",
    "evaluate",
    "evaluate_layout",
    "generate",
    "inspect",
    "load",
    "partition",
    "pipeline_schedule",
    "plan_training",
    "profile",
    "read",
    "read_layout",
    "report",
    "run_pipeline",
    "run_training",
    "simulate",
    "split",
    "stage_modules",
    "sweep_training",
    "systems",
    "verify",
    "warmup",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mtpp import datasets
    from mtpp.api.bound import bound
    from mtpp.api.certify import certify
    from mtpp.api.compare import compare
    from mtpp.api.convert import convert
    from mtpp.api.emit import emit
    from mtpp.api.evaluate import evaluate
    from mtpp.api.generate import generate
    from mtpp.api.inputs.described_machine import describe_machine
    from mtpp.api.inputs.reading import read
    from mtpp.api.inputs.systems import systems
    from mtpp.api.inspect import inspect
    from mtpp.api.language_models.compare_layouts import compare_layouts
    from mtpp.api.language_models.device_map import device_map
    from mtpp.api.language_models.layout_evaluation import evaluate_layout
    from mtpp.api.language_models.read_layout import read_layout
    from mtpp.api.load import load
    from mtpp.api.observer import MtppWarning, Observer
    from mtpp.api.options.graphpipe import GraphPipe
    from mtpp.api.options.line_planners import Equi, PipeDream2BW, Piper
    from mtpp.api.options.pfeife import Pfeife
    from mtpp.api.options.reading import Reading
    from mtpp.api.partition import partition
    from mtpp.api.plan_training import plan_training
    from mtpp.api.profile import profile
    from mtpp.api.reporting.report import report
    from mtpp.api.run_pipeline import run_pipeline
    from mtpp.api.simulate import simulate
    from mtpp.api.split import split
    from mtpp.api.sweep_training import sweep_training
    from mtpp.api.training.run_training import run_training
    from mtpp.api.training.stage_modules import pipeline_schedule, stage_modules
    from mtpp.api.verify import verify
    from mtpp.api.warmup import warmup
    from mtpp.errors import Deadlock, Infeasible, InputError, Interrupted, InvalidPartition, LimitReached, MtppError


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: `mtpp --help` needs none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object
    if name in _ROOMS:
        found = import_module(f"{__name__}.{name}")
    else:
        found = getattr(import_module(_EXPORTS[name]), name)
        globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
