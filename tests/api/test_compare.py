"""Comparisons from Python: runs and means, what is refused, and agreement with the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from graph_strategies import chain
from plans_beside_models import without_times
from processes import run

from mtpp.api.compare import compare
from mtpp.api.inputs.model import read_model
from mtpp.api.inputs.reading import reading_of
from mtpp.api.observer import MtppWarning
from mtpp.api.options.reading import Reading
from mtpp.errors import InputError
from mtpp.formats.graphs.native import write_native


def test_runs_and_means_are_those_of_the_command(two_chains: Path, tmp_path: Path) -> None:
    """All but times."""
    comparison = compare(two_chains, [2, 4], algorithms=["slice", "random-5"], jobs=1)
    assert len(comparison) == 8
    assert comparison.stopped == "finished"
    assert [(Path(cell.source).name, cell.k, cell.algorithm) for cell in comparison][:3] == [
        ("a.json", 2, "slice"),
        ("a.json", 2, "random-5"),
        ("a.json", 4, "slice"),
    ]
    assert comparison[0].ratio == pytest.approx(61 / 50)
    assert comparison.means()[0].ratio == pytest.approx((61 / 50 * 25 / 15) ** 0.5)
    comparison.save(tmp_path / "comparison.json")
    saved = json.loads((tmp_path / "comparison.json").read_text())
    done = run("compare", two_chains, "-k", "2,4", "--algorithms", "slice,random-5", "-j", "1", "--format", "json")
    assert without_times(saved) == without_times(json.loads(done.stdout))
    assert saved["rows"] == comparison.to_dicts()


def test_the_comparison_shows_itself(two_chains: Path) -> None:
    """As the command shows it, and in a notebook."""
    comparison = compare(two_chains, 2, algorithms="slice", jobs=1)
    shown = run("compare", two_chains, "-k", "2", "--algorithms", "slice", "-j", "1").stdout.splitlines()
    assert repr(comparison).splitlines()[0] == shown[0]
    assert "<td" in comparison._repr_html_()


def test_models_without_work_are_left_out(two_chains: Path) -> None:
    """With a warning; if there are no others, they are refused."""
    (two_chains / "idle.json").write_text(write_native(chain([0, 0], [1], "ms")))
    with pytest.warns(MtppWarning, match="no op takes time"):
        comparison = compare(two_chains, 2, algorithms="slice", jobs=1)
    assert len(comparison) == 2
    with pytest.raises(InputError, match="nothing to compare"):
        compare(two_chains / "idle.json", 2, algorithms="slice")


def test_models_for_several_systems_are_refused(two_chains: Path) -> None:
    """A comparison says which one it is for."""
    how = reading_of(None)
    other = replace(how, system=how.device.overriding(bandwidth_bytes_per_s=1))
    models = [read_model(str(two_chains / "a.json"), one, lambda text: None) for one in (how, other)]
    with pytest.raises(InputError, match="not all for one system"):
        compare(models, 2, algorithms="slice")


def test_rules_that_divide_memory_are_left_out_where_it_has_no_limit(chain_file: Path, tmp_path: Path) -> None:
    """A word says so; where nothing else was asked for it is an error, as in `mtpp partition`."""
    with pytest.warns(MtppWarning, match="memory, fill: left out: devices need limits on their memory, and none has"):
        found = compare(chain_file, 2, algorithms=["even", "memory", "fill"])
    assert [run.algorithm for run in found] == ["even"]
    with pytest.raises(InputError, match="divides ops by the memory of devices"):
        compare(chain_file, 2, algorithms=["memory", "fill"])
    (tmp_path / "machine.toml").write_text('[[device]]\n[[device]]\nmemory = "1GB"\n')
    reading = Reading(machine=tmp_path / "machine.toml")
    with pytest.warns(MtppWarning, match="memory: left out: devices need limits on their memory, and some have none"):
        found = compare(chain_file, algorithms=["even", "memory", "fill"], reading=reading)
    assert [run.algorithm for run in found] == ["even", "fill"]
