"""Files found by SHA-256: where they are looked for, what is passed over, and that each is read once."""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

import pytest

from mtpp.api.verification.verified_files import FilesBeside, folders_of
from mtpp.errors import InputError
from mtpp.formats.io import source

LARGEST = 1000


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_folders_go_up_to_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a plan's folder to the one with .git, a file in work trees; else the plan's own alone; relative or not."""
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a")
    assert folders_of(Path("b/plan.json")) == [Path("b")]
    (tmp_path / ".git").write_text("gitdir: elsewhere")
    expected = [deep, tmp_path / "a", tmp_path]
    for path in (Path("b/plan.json"), Path("../a/b/plan.json"), deep / "plan.json"):
        assert [folder.resolve() for folder in folders_of(path)] == expected
    for path in (None, Path("plan.json")):
        assert [folder.resolve() for folder in folders_of(path)] == expected[1:]


def test_each_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many plans ask; files called like the model come first."""
    names = [f"model{i}.onnx" for i in range(5)]
    random.Random(1).shuffle(names)
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    read: list[str] = []
    whole = source.file_sha256
    monkeypatch.setattr(source, "file_sha256", lambda path: (read.append(path), whole(path))[1])
    files = FilesBeside([], LARGEST)
    wanted = digest(tmp_path / "model3.onnx")
    assert files.find(wanted, tmp_path / "plan.json", "model3").path == str(tmp_path / "model3.onnx")
    assert [Path(path).name for path in read] == ["model3.onnx"]
    for _ in range(2):
        assert files.find("0" * 64, tmp_path / "plan.json", "model").path is None
    assert sorted(Path(path).name for path in read) == sorted(names)


def test_what_is_no_model_is_passed_over(tmp_path: Path) -> None:
    """Results, weights, larger files, hidden ones, pipes and broken links."""
    large, hidden, weights, result = (tmp_path / name for name in ("l.onnx", ".h.onnx", "weights.bin", "r.json"))
    large.write_bytes(bytes(LARGEST + 1))
    hidden.write_bytes(b"hidden")
    weights.write_bytes(b"\xffweights")
    result.write_text('{"format": "mtpp-plan"}')
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "broken.onnx").symlink_to(tmp_path / "nowhere")
    files = FilesBeside([], LARGEST)
    for path in (large, hidden, weights, result):
        found = files.find(digest(path), tmp_path / "plan.json", "")
        assert (found.path, found.why) == (
            None,
            f"no file in {tmp_path} has its SHA-256 {digest(path)}: it has changed, or is elsewhere",
        )


def test_places_that_are_given_come_first(tmp_path: Path) -> None:
    """A file outside every folder; long lists are cut short in what is said; a path that leads nowhere is refused."""
    model = tmp_path / "x" / "model.onnx"
    model.parent.mkdir()
    model.write_bytes(b"model")
    (tmp_path / "plans").mkdir()
    plan = tmp_path / "plans" / "plan.json"
    assert FilesBeside([str(model)], LARGEST).find(digest(model), plan, "").path == str(model)
    more = [str(tmp_path / f"folder{i}") for i in range(6)]
    for path in more:
        os.mkdir(path)
    assert f"{more[3]} and 3 more" in FilesBeside([*more], LARGEST).find("0" * 64, plan, "").why
    with pytest.raises(InputError, match="no such file or folder"):
        FilesBeside([str(tmp_path / "nowhere")], LARGEST)
