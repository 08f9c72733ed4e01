"""The public names of the package: there, late, and told of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mtpp
from mtpp.errors import Infeasible, InputError, Interrupted


@pytest.mark.parametrize("name", mtpp.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    """Each is what its module calls so."""
    assert getattr(mtpp, name) is getattr(mtpp, name)
    assert name in dir(mtpp)


def test_errors_are_those_of_the_core() -> None:
    """A caller catches what is raised; Ctrl-C ends loops that catch Exception."""
    assert (mtpp.InputError, mtpp.Infeasible, mtpp.Interrupted) == (InputError, Infeasible, Interrupted)
    assert issubclass(mtpp.InputError, ValueError)
    assert not issubclass(mtpp.Interrupted, Exception)


def test_other_names_are_none() -> None:
    """What is not public raises what Python does."""
    with pytest.raises(AttributeError, match="has no attribute 'partitoin'"):
        _ = mtpp.partitoin  # type: ignore[attr-defined]


def test_the_package_imports_nothing_by_itself(checkout: Path) -> None:
    """``import mtpp`` loads no library, and leaves signals alone in programs of others."""
    code = (
        "import signal, sys\nbefore = signal.getsignal(signal.SIGINT)\nimport mtpp\n"
        "assert signal.getsignal(signal.SIGINT) is before\n"
        "loaded = {'numpy', 'click', 'rich', 'onnx', 'mtpp.api', 'mtpp.errors'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "assert {'partition', 'read', 'datasets'} <= set(dir(mtpp))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=checkout)


def test_functions_import_no_kernel_before_they_are_called(checkout: Path) -> None:
    """Naming all of them needs neither numba nor onnx."""
    code = (
        "import sys, mtpp\n_ = mtpp.read, mtpp.partition, mtpp.evaluate, mtpp.load, mtpp.inspect, mtpp.convert\n"
        "heavy = {'numba', 'onnx', 'networkx', 'scipy', 'highspy', 'rich', 'click'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=checkout)
