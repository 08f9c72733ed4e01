"""Language models op by op, as transformers builds them without weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mtpp
from mtpp.errors import InputError
from tests.support.language_models import LAYER_PARAMETERS, LLAMA

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Folder with a configuration."""
    (tmp_path / "config.json").write_text(json.dumps(LLAMA | {"intermediate_size": 16}))
    return str(tmp_path)


def test_a_program_has_all_parameters_and_the_prompt(folder: str) -> None:
    """Ops, not layers; plans embed the graph and are verified alone."""
    pytest.importorskip("transformers")
    model = mtpp.read(folder, from_format="transformers", context=24, batch=2)
    assert model.graph.op_count > 50
    buffers = model.graph.all_bytes - 2 * (2 * 80 + 2 * LAYER_PARAMETERS + 8)
    assert 0 <= buffers < 1024
    assert model.graph.metadata["inputs"][0]["shape"] == [2, 24]
    plan = mtpp.partition(model, 2)
    assert mtpp.verify(plan.document(embed=True)).passed


@pytest.mark.parametrize("option", [{"kv_dtype": "fp8"}, {"mtp": 1}, {"phase": "decode"}])
def test_a_program_has_no_caches(folder: str, option: dict[str, object]) -> None:
    """Nor layers for further tokens."""
    with pytest.raises(InputError, match=next(iter(option))):
        mtpp.read(folder, from_format="transformers", **option)  # type: ignore[arg-type]


def test_without_transformers_it_says_so(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra that has it."""
    monkeypatch.setattr("mtpp.runtime.pytorch.transformers_program.meta_model", lambda values, source: None)
    with pytest.raises(
        InputError, match=r"transformers is not there, or does not know 'llama'; pip install 'mtpp\[hf\]'"
    ):
        mtpp.read(folder, from_format="transformers")
