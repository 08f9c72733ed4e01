"""Architectures that transformers knows and the table does not: counted on the meta device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from refusals import refusal

import mtpp

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5")


def test_an_unknown_architecture_is_counted(tmp_path: Path) -> None:
    """Parameters by layer, caches as they are allocated, and the word of where both come from."""
    values = {
        "model_type": "helium", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "head_dim": 16,
        "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 50, "pad_token_id": 0,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(values))
    found = mtpp.inspect(tmp_path)
    layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96 + 2 * 64
    assert [one["parameters"] for one in found.layers] == [layer] * 3
    assert [(one["kind"], one["cache_bytes_per_token"]) for one in found.layers] == [("full", 2 * 2 * 16 * 2)] * 3
    assert any("counted by transformers" in note for note in found.notes)


def test_what_transformers_refuses_is_refused(tmp_path: Path) -> None:
    """In its words, with the file."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "helium", "hidden_size": "wide"}))
    assert "transformers refuses it" in str(refusal(mtpp.inspect, tmp_path))
