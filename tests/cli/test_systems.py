"""``mtpp systems`` and :func:`mtpp.systems`: figures of presets, and where they come from."""

from __future__ import annotations

import csv
import io
import json

import pytest
from processes import run

import mtpp
from mtpp.errors import InputError
from mtpp.machine.presets import load_device, preset_tables
from mtpp.views.systems import systems_text
from mtpp.views.terminal import Medium


def test_every_preset_is_listed_with_its_figures() -> None:
    """The document has the figures of the devices, and the table fits a terminal of 80 columns."""
    document = json.loads(run("systems", "--format", "json").stdout)
    assert (document["format"], document["version"]) == ("mtpp-systems", 1)
    for row in document["systems"]:
        device = load_device(row["name"]).to_document()
        assert {key: row[key] for key in device if key in row} == {key: device[key] for key in device if key in row}
    assert [row["name"] for row in document["systems"]] == list(preset_tables()) == mtpp.systems().names
    assert max(map(len, systems_text(document, Medium("table", plain=True)).splitlines())) <= 80
    assert [row["name"] for row in csv.DictReader(io.StringIO(mtpp.systems().text("csv")))] == list(preset_tables())


def test_one_preset_says_its_sources() -> None:
    """In any spelling; each figure has the source that its preset gives."""
    shown = mtpp.systems("RTX-4090")
    (row,) = shown.document()["systems"]
    assert row["name"] == "rtx-4090"
    assert sorted(row["sources"].values()) == sorted(preset_tables()["rtx-4090"]["sources"].values())
    assert all(" ".join(source.split()) in repr(shown) for source in row["sources"].values())
    with pytest.raises(InputError, match="did you mean 'm3-ultra' or 'm2-ultra'"):
        mtpp.systems("m4-ultra")
