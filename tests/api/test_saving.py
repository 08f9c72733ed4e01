"""Results are saved by one rule: as their documents, whole, and over nothing but an earlier result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from planning import plan_with, sweep_with

import mtpp
from mtpp.api.output import SavedResult
from mtpp.api.profile import Profile
from mtpp.datasets.transformer_training import transformer_training


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
        assert json.loads((tmp_path / "result.json").read_text()) == result.document() == json.loads(result.to_json())
        for path in (notes, chain_file):
            with pytest.raises(mtpp.InputError, match="no result of mtpp"):
                result.save(path)
    assert issubclass(Profile, SavedResult)
    assert "save" not in vars(Profile)
