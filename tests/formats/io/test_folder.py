"""The graphs among the files of a folder."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from mtpp.datasets import sample_path
from mtpp.errors import InputError
from mtpp.formats.io import source
from mtpp.formats.io.folder import files_of, has_graph_suffix, may_be_graph, model_at

SAMPLE = sample_path("resnet50")


@pytest.mark.parametrize(
    ("name", "from_format", "expected"),
    [
        ("a.json", None, True),
        ("a.JSON.GZ", None, True),
        ("a.onnx", None, True),
        ("a.onnx", "native", False),
        ("a.onnx", "onnx", True),
        ("a.txt", None, False),
        ("a.txt", "pipedream", True),
        ("a.txt", "onnx", False),
        ("a.pbtxt", None, True),
        ("a.json", "piper", True),
        ("json", None, False),
    ],
)
def test_suffixes(name: str, from_format: str | None, expected: bool) -> None:
    """Those of the formats, or of the one asked for."""
    assert has_graph_suffix(Path(name), from_format) is expected


def test_files_are_listed_by_name(tmp_path: Path) -> None:
    """Hidden files, folders and pipes are not; a link to nowhere is, so that its reader can complain."""
    for name in ("b", "a", ".c"):
        (tmp_path / name).touch()
    (tmp_path / "d").mkdir()
    (tmp_path / "e").symlink_to("nowhere")
    os.mkfifo(tmp_path / "f")
    assert [path.name for path in files_of(tmp_path)] == ["a", "b", "e"]
    with pytest.raises(InputError, match="cannot be listed"):
        files_of(tmp_path / "g")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b' \n{"format"', True),
        (b"[", True),
        (SAMPLE.read_bytes(), True),
        (gzip.compress(b"{}", mtime=0), True),
        (gzip.compress(b"{}", mtime=0)[:12], False),
        (b"", False),
        (b"hello", False),
        (b"node1 -- ReLU() -- forward_compute_time=1, backward", True),
        (b"# costs\nnode {", True),
        (bytes(100_000), False),
    ],
)
def test_without_a_suffix_the_beginning_decides(
    content: bytes, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON and ONNX are seen by their first bytes; the rest of the file is not read."""
    path = tmp_path / "file.bin"
    path.write_bytes(content)
    monkeypatch.setattr(source, "_read_all", None)
    assert may_be_graph(path) is expected
    assert may_be_graph(path, "onnx") is False
    assert may_be_graph(tmp_path / "missing.json") is True


def test_drawings_and_tables_are_no_graphs(tmp_path: Path) -> None:
    """What is written and not read is not worth reading, whatever its suffix."""
    for name, text in (("a.csv", "stage,op\n"), ("b.dot", "digraph g {}"), ("c.txt", "digraph g {}")):
        (tmp_path / name).write_text(text)
        assert not may_be_graph(tmp_path / name)
    (tmp_path / "d.txt").write_text("<graphml/>")
    assert may_be_graph(tmp_path / "d.txt")


def test_a_folder_is_its_only_model(tmp_path: Path) -> None:
    """Weights, tokenizers and configurations beside it do not count; a folder ``onnx`` inside is looked into."""
    assert model_at(str(tmp_path / "absent.onnx")) == str(tmp_path / "absent.onnx")
    for name in ("tokenizer.json", "config.json", "model.onnx_data"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match="is a folder without a model; give a file"):
        model_at(str(tmp_path))
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").touch()
    assert model_at(str(tmp_path)) == str(tmp_path / "onnx" / "model.onnx")
    (tmp_path / "program.pt2").touch()
    assert model_at(str(tmp_path)) == str(tmp_path / "program.pt2")
    (tmp_path / "model.ONNX.gz").touch()
    assert model_at(str(tmp_path)) == str(tmp_path / "model.ONNX.gz")


def test_a_folder_of_several_models_names_them(tmp_path: Path) -> None:
    """Which of them is meant cannot be told."""
    for i in range(10):
        (tmp_path / f"m{i}.onnx").touch()
    with pytest.raises(InputError) as caught:
        model_at(str(tmp_path))
    assert str(caught.value) == (
        f"{tmp_path}: holds 10 models: {', '.join(f'm{i}.onnx' for i in range(8))}, … 2 more; "
        "give the path of one of them"
    )
