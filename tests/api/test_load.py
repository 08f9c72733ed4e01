"""Results saved and read back as claims, and time limits that end the reading of models."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from planning import plan_with, sweep_with
from plans_beside_models import without_times
from refusals import refusal

import mtpp
from mtpp.api.cells.certificate_table import BoundTable, CertificateTable
from mtpp.api.output import SavedResult
from mtpp.api.profile import Profile
from mtpp.datasets.transformer_training import transformer_training
from mtpp.formats.training.native import write_training_model


@pytest.fixture
def table(chain_file: Path) -> CertificateTable:
    """Return certificates of a chain for two numbers of stages."""
    return mtpp.certify(chain_file, [2, 3], jobs=1)


def test_a_table_is_what_it_was(table: CertificateTable, chain_file: Path, tmp_path: Path) -> None:
    """The same rows and document, from a file, its bytes or the parsed document; it can be verified."""
    table.save(tmp_path / "table.json")
    path = tmp_path / "table.json"
    for given in (path, path.read_bytes(), table.document(), json.loads(path.read_text())):
        loaded = mtpp.load(given)
        assert isinstance(loaded, CertificateTable)
        assert (table.verified, loaded.verified) == (True, False)
        assert without_times(loaded.document()) == without_times(table.document())
        assert mtpp.verify(loaded, chain_file).passed
    assert loaded.text() == table.text()
    assert repr(loaded) == f"{table!r}\nclaimed, not verified"
    assert "claimed, not verified" in loaded._repr_html_()
    loaded.save(tmp_path / "again.json.gz")
    assert without_times(mtpp.load(tmp_path / "again.json.gz").document()) == without_times(table.document())


def test_a_table_of_bounds(chain_file: Path) -> None:
    """Without partitions: a row for each bound."""
    table = mtpp.bound(chain_file, [2, 3], bounds=["simple", "downset"])
    loaded = mtpp.load(table.document())
    assert isinstance(loaded, BoundTable)
    assert list(loaded) == list(table)
    assert without_times(loaded.document()) == without_times(table.document())


@pytest.mark.parametrize(
    ("path", "to", "place"),
    [
        (("rows", 1, "ratio"), 1.5, "/rows/1/ratio"),
        (("rows", 0, "optimal"), False, "/rows/0/optimal"),
        (("rows", 0, "lower"), 10**15, "/rows/0/lower"),
        (("rows", 0, "ops"), 7, "/rows/0/ops"),
        (("rows", 0, "k"), 1, "/rows/0/assignment/op3"),
        (("rows", 0, "solved"), ["magic"], "/rows/0/solved/0"),
        (("rows", 0, "seconds"), {}, "/rows/0/seconds/partition"),
        (("rows", 0, "tier"), "certain", "/rows/0/tier"),
        (("rows",), 3, "/rows"),
        (("version",), 2, "/version"),
    ],
)
@pytest.mark.slow
def test_broken_tables_are_refused_with_the_place(table: CertificateTable, path: Any, to: Any, place: str) -> None:
    """Malformed ones, and rows whose figures contradict each other."""
    document = table.document()
    at: Any = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = to
    assert refusal(mtpp.load, document).where == place


def test_tables_of_earlier_versions_are_read(table: CertificateTable) -> None:
    """They called optimal what the solver alone had closed; they had no limit on the memory of a stage."""
    document = table.document()
    for row in document["rows"]:
        row["tier"] = "solver"
        del row["system"]["stage_memory_bytes"]
    loaded = mtpp.load(document)
    assert [row.optimal for row in loaded] == [False, False]


TERMS: dict[str, Any] = {"memory": "2GiB", "bandwidth": "25GB/s", "max_micro_batches": 4, "time_limit_s": 0.2}
CALLS: dict[str, Callable[[Path, Path], Any]] = {
    "partition": lambda graph, _: mtpp.partition(graph, 2, time_limit_s=0.2),
    "partition in memory": lambda graph, _: mtpp.partition(graph.read_bytes(), 2, time_limit_s=0.2),
    "compare": lambda graph, _: mtpp.compare(graph, 2, algorithms="slice", time_limit_s=0.2),
    "bound": lambda graph, _: mtpp.bound(graph, 2, bounds="simple", time_limit_s=0.2),
    "plan_training": lambda _, model: plan_with(model, devices=4, **TERMS),
    "sweep_training": lambda _, model: sweep_with(model, devices=[1, 2], **TERMS),
}


@pytest.fixture
def training_file(tmp_path: Path) -> Path:
    """Return the file of a model to be trained."""
    path = tmp_path / "training.json"
    path.write_text(write_training_model(transformer_training(2, hidden=64, heads=4)))
    return path


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have reading take a minute."""

    def read(*arguments: Any, **named: Any) -> None:
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            pass

    for place in ("api.inputs.reading.read_model", "api.inputs.model_files.read_model"):
        monkeypatch.setattr(f"mtpp.{place}", read)
    monkeypatch.setattr("mtpp.formats.training.models.training_model_from_source", read)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("name", CALLS)
def test_a_limit_ends_reading(chain_file: Path, training_file: Path, name: str) -> None:
    """In one line that names the file."""
    began = time.monotonic()
    with pytest.raises(mtpp.LimitReached, match=r"the time limit of 0\.2 s passed while reading") as caught:
        CALLS[name](chain_file, training_file)
    assert time.monotonic() - began < 50
    assert caught.value.source in (str(chain_file), str(training_file), "‹model›")


def test_models_at_hand_are_not_read(chain_file: Path) -> None:
    """However short the limit is, there is a plan."""
    assert mtpp.partition(mtpp.read(chain_file), 2, time_limit_s=1e-6).k == 2
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(mtpp.partition, chain_file, 2, time_limit_s=5).result().k == 2


def _results(chain_file: Path) -> list[Any]:
    model = transformer_training(2, hidden=64, heads=4)
    terms: dict[str, Any] = {"memory": "2GiB", "bandwidth": "25GB/s", "max_micro_batches": 4}
    return [
        mtpp.bound(chain_file, 2, bounds="simple"),
        mtpp.certify(chain_file, 2, jobs=1),
        mtpp.compare(chain_file, 2, algorithms="slice"),
        plan_with(model, devices=4, **terms),
        sweep_with(model, devices=[1, 2], **terms),
    ]


def test_documents_are_saved(chain_file: Path, tmp_path: Path) -> None:
    """What is written is the document; it goes over one of ours, and over no other file."""
    notes = tmp_path / "notes.json"
    notes.write_text('{"mine": 1}')
    for result in _results(chain_file):
        assert isinstance(result, SavedResult)
        result.save(tmp_path / "result.json")
        written = json.loads((tmp_path / "result.json").read_text())
        assert result.document() == json.loads(result.to_json())
        assert without_times(written) == without_times(result.document())
        for path in (notes, chain_file):
            with pytest.raises(mtpp.InputError, match="no result of mtpp"):
                result.save(path)
    assert issubclass(Profile, SavedResult)
    assert "save" not in vars(Profile)
