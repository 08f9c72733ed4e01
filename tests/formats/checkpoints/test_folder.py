"""Checkpoints of several files: indices, shards, and folders with more than one model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checkpoint_files import gguf_bytes, write_safetensors

from mtpp.errors import InputError
from mtpp.formats.checkpoints.folder import checkpoint_in, read_checkpoint

FIRST = {"a": ("BF16", (2, 3))}
SECOND = {"b": ("F32", (4,))}


def _index(folder: Path, weight_map: Any, **metadata: Any) -> Path:
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": metadata, "weight_map": weight_map}))
    return path


def _sharded(folder: Path) -> Path:
    write_safetensors(folder / "model-1.safetensors", FIRST)
    write_safetensors(folder / "model-2.safetensors", SECOND)
    return _index(folder, {"a": "model-1.safetensors", "b": "model-2.safetensors"}, total_size=28)


def test_an_index_joins_its_shards(tmp_path: Path) -> None:
    """All tensors, and no word where the index is right."""
    index = _sharded(tmp_path)
    assert checkpoint_in(tmp_path) == index
    found = read_checkpoint(index)
    assert [tensor.name for tensor in found.tensors] == ["a", "b"]
    assert found.notes == ()
    assert len(found.files) == 2


def test_an_index_that_says_other_bytes_is_noted(tmp_path: Path) -> None:
    """And so are tensors that it does not list."""
    _sharded(tmp_path)
    index = _index(tmp_path, {"a": "model-1.safetensors"}, total_size=99)
    write_safetensors(tmp_path / "model-1.safetensors", FIRST | SECOND)
    notes = read_checkpoint(index).notes
    assert notes == ("1 tensor of the shards not in the index: b", "the index says 99 bytes, the headers 28")


@pytest.mark.parametrize(
    ("weight_map", "text"),
    [
        ({"a": "model-1.safetensors", "b": "none.safetensors"}, "1 shard missing: none.safetensors"),
        ({"a": "model-1.safetensors", "z": "model-2.safetensors"}, "1 tensor in no shard: z"),
        ({"a": "../model-1.safetensors"}, "is no name of a file beside it"),
        ({"a": "/etc/passwd"}, "is no name of a file beside it"),
        ({"a": 1}, "weight_map: is no object of names"),
        ([], "weight_map: is no object of names"),
    ],
)
def test_indices_that_do_not_fit_are_refused(tmp_path: Path, weight_map: Any, text: str) -> None:
    """Shards that are missing, tensors in none, and paths out of the folder."""
    _sharded(tmp_path)
    with pytest.raises(InputError) as caught:
        read_checkpoint(_index(tmp_path, weight_map))
    assert text in str(caught.value)


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path) -> None:
    """By its name."""
    write_safetensors(tmp_path / "model-1.safetensors", FIRST)
    write_safetensors(tmp_path / "model-2.safetensors", FIRST)
    with pytest.raises(InputError, match="a: stands in two shards"):
        read_checkpoint(_index(tmp_path, {"a": "model-1.safetensors", "b": "model-2.safetensors"}))


def test_adapters_and_projectors_are_no_models(tmp_path: Path) -> None:
    """The one model in a folder is found beside them; of two neither is guessed."""
    write_safetensors(tmp_path / "adapter_model.safetensors", FIRST)
    write_safetensors(tmp_path / "weights.safetensors", SECOND)
    assert checkpoint_in(tmp_path) == tmp_path / "weights.safetensors"
    write_safetensors(tmp_path / "others.safetensors", SECOND)
    with pytest.raises(InputError, match="holds several models"):
        checkpoint_in(tmp_path)


def test_shards_of_a_gguf_file_are_joined(tmp_path: Path) -> None:
    """By the name of the first; a missing one is refused."""
    for i, tensors in enumerate((FIRST, SECOND), 1):
        data = gguf_bytes({"general.architecture": "llama", "split.count": 2}, tensors)
        (tmp_path / f"m-0000{i}-of-00002.gguf").write_bytes(data)
    first = tmp_path / "m-00001-of-00002.gguf"
    assert checkpoint_in(tmp_path) == first
    assert [tensor.name for tensor in read_checkpoint(first).tensors] == ["a", "b"]
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(InputError, match="1 shard missing"):
        read_checkpoint(first)
