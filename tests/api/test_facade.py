"""Public names of the package, its examples, and results that cannot be changed in place."""

from __future__ import annotations

import doctest
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from graph_strategies import chain
from planning import plan_with, sweep_with

import mtpp
from mtpp.datasets.transformer_training import transformer_training
from mtpp.errors import Infeasible, InputError, Interrupted
from mtpp.formats.graphs.native import write_native


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


ROOM = Path(__file__).parents[2] / "api"
MODULES = sorted(path for path in ROOM.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    """No example fails."""
    module = import_module(".".join(("mtpp", "api", *path.relative_to(ROOM).with_suffix("").parts)))
    assert doctest.testmod(module).failed == 0


def _plan(chain_file: Path) -> Any:
    return mtpp.partition(chain_file, 2)


def _loaded(chain_file: Path) -> Any:
    return mtpp.load(_plan(chain_file).document())


def _table(chain_file: Path) -> Any:
    return mtpp.certify(chain_file, [2, 3], jobs=1)


def _bounds(chain_file: Path) -> Any:
    return mtpp.bound(chain_file, 2, bounds=["simple", "downset"])


def _comparison(chain_file: Path) -> Any:
    return mtpp.compare(chain_file, 2, algorithms="slice")


def _training(_: Path) -> Any:
    model = transformer_training(2, hidden=64, heads=4)
    return plan_with(model, devices=4, memory="2GiB", bandwidth="25GB/s", max_micro_batches=4)


def _sweep(_: Path) -> Any:
    model = transformer_training(2, hidden=64, heads=4)
    return sweep_with(model, devices=[1, 2], memory="2GiB", bandwidth="25GB/s", max_micro_batches=4)


def _verification(chain_file: Path) -> Any:
    return mtpp.verify(_table(chain_file), chain_file)


EDITS: list[tuple[Callable[[Path], Any], Callable[[Any], Any]]] = [
    (_plan, lambda plan: plan.lower_bound.proof.clear()),
    (_plan, lambda plan: plan.lower_bound.proof["merges"].append(1)),
    (_plan, lambda plan: plan.stages.clear()),
    (_plan, lambda plan: plan.stages[0].ops.append("x")),
    (_loaded, lambda plan: plan.lower_bound.proof["merges"].append(1)),
    (_loaded, lambda plan: plan.lower_bound.proof.update(k=7)),
    (_table, lambda table: table.cells.clear()),
    (_table, lambda table: table.problems.update(a="b")),
    (_table, lambda table: table[0].assignment.update(op0=7)),
    (_table, lambda table: table[0].bounds.clear()),
    (_table, lambda table: table[0].system.clear()),
    (_table, lambda table: table[0].lower.proof.clear()),
    (_table, lambda table: table[0].lower.proof["merges"].append(1)),
    (_bounds, lambda table: table.cells.clear()),
    (_bounds, lambda table: table.cells[0].lower.proof.clear()),
    (_comparison, lambda comparison: comparison.compared.cells.clear()),
    (_comparison, lambda comparison: comparison.compared.models.clear()),
    (_training, lambda plan: plan.stages.clear()),
    (_training, lambda plan: plan.stages[0].configurations.clear()),
    (_training, lambda plan: plan.plan.lower.proof.update(a=1)),
    (_sweep, lambda sweep: sweep.swept.cells.clear()),
    (_sweep, lambda sweep: sweep.swept.devices.clear()),
    (_verification, lambda verification: verification.report.reports.clear()),
    (_verification, lambda verification: verification.report.rows.clear()),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Path], Any]], Any]:
    """Return a function that makes each kind of result once: they are said to stay as they were."""
    path = tmp_path_factory.mktemp("results") / "chain.json"
    path.write_text(write_native(chain([10, 20, 30, 40], [1, 1, 1], "ms")))
    return cache(lambda make: make(path))


@pytest.mark.parametrize(("make", "edit"), EDITS)
def test_results_refuse_changes(
    made: Callable[..., Any], make: Callable[[Path], Any], edit: Callable[[Any], Any]
) -> None:
    """Whatever collection one gets hold of; the result stays as it was."""
    result = made(make)
    before = json.dumps(result.document(), default=float)
    with pytest.raises((AttributeError, TypeError)):
        edit(result)
    assert json.dumps(result.document(), default=float) == before


@pytest.mark.parametrize("make", [_plan, _loaded, _table, _bounds, _training, _sweep, _verification])
def test_documents_are_copies_all_the_way_down(made: Callable[..., Any], make: Callable[[Path], Any]) -> None:
    """Changing one changes nothing."""
    result = made(make)
    before = json.dumps(result.document(), default=float)
    _scramble(result.document())
    if hasattr(result, "to_dicts"):
        _scramble(result.to_dicts())
    assert json.dumps(result.document(), default=float) == before


def test_tables_pickle(chain_file: Path) -> None:
    """Read-only rows go to other processes as any other value."""
    table = _table(chain_file)
    assert pickle.loads(pickle.dumps(table)).document() == table.document()


def _scramble(value: Any) -> None:
    if isinstance(value, dict):
        for item in value.values():
            _scramble(item)
        value["extra"] = 1
    elif isinstance(value, list):
        for item in value:
            _scramble(item)
        value.append(1)
