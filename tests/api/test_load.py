"""Results of other kinds than plans are read back as what they were: their figures are claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mtpp
from mtpp.api.cells.certificate_table import BoundTable, CertificateTable


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
        assert loaded.to_dicts() == table.to_dicts()
        assert loaded.document() == table.document()
        assert mtpp.verify(loaded, chain_file).passed
    assert loaded.text() == table.text()
    assert repr(loaded) == f"{table!r}\nclaimed, not verified"
    assert "claimed, not verified" in loaded._repr_html_()
    loaded.save(tmp_path / "again.json.gz")
    assert mtpp.load(tmp_path / "again.json.gz").document() == table.document()


def test_a_table_of_bounds(chain_file: Path) -> None:
    """Without partitions: a row for each bound."""
    table = mtpp.bound(chain_file, [2, 3], bounds=["simple", "downset"])
    loaded = mtpp.load(table.document())
    assert isinstance(loaded, BoundTable)
    assert list(loaded) == list(table)
    assert loaded.document() == table.document()


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
    with pytest.raises(mtpp.InputError) as caught:
        mtpp.load(document)
    assert caught.value.where == place


def test_tables_of_earlier_versions_are_read(table: CertificateTable) -> None:
    """They called optimal what the solver alone had closed; they had no limit on the memory of a stage."""
    document = table.document()
    for row in document["rows"]:
        row["tier"] = "solver"
        del row["system"]["stage_memory_bytes"]
    loaded = mtpp.load(document)
    assert [row.optimal for row in loaded] == [False, False]
