"""Folders of machine code: the order in which they are looked into, and the one that new code is kept in."""

from __future__ import annotations

import os
from pathlib import Path

from mtpp.solvers.machine_code.code_file import read_code, write_code
from mtpp.solvers.machine_code.code_folders import CodeFolders, CodeName

NAME = CodeName("slicing.cut", "11", "aa")


def test_the_first_that_can_be_written_keeps_it(tmp_path: Path) -> None:
    """New code goes to the first folder that takes it, and is found in any; without one it is just not kept."""
    (tmp_path / "no folder").write_text("")
    closed, first, second = tmp_path / "no folder", tmp_path / "first", tmp_path / "second"
    assert not CodeFolders(None, (closed,)).keep(NAME, b"code")
    folders = CodeFolders(None, (closed, first, second))
    assert folders.find_own(NAME) is None
    assert not folders.has_any(NAME)
    assert folders.keep(NAME, b"code")
    assert list(first.iterdir()) == [first / NAME.file]
    assert not second.exists()
    assert folders.has_any(NAME)
    assert folders.find_own(NAME) == CodeFolders(None, (second, first)).find_own(NAME) == b"code"


def test_shipped_code_is_by_itself(tmp_path: Path) -> None:
    """What came with the package is found as such, and never written to."""
    write_code(tmp_path / "shipped" / NAME.file, b"shipped")
    folders = CodeFolders(tmp_path / "shipped", (tmp_path / "own",))
    assert folders.find_shipped(NAME) == b"shipped"
    assert folders.find_own(NAME) is None
    assert folders.has_any(NAME)
    folders.keep(NAME, b"own")
    assert folders.find_shipped(NAME) == b"shipped"
    assert folders.find_own(NAME) == b"own"


def test_other_kernels_sources_and_targets_are_not_taken_for_it(tmp_path: Path) -> None:
    """A name is found by all of its parts; for a forecast any target will do."""
    folders = CodeFolders(None, (tmp_path,))
    folders.keep(NAME, b"code")
    for other in (CodeName("slicing.cut_", "11", "aa"), CodeName("slicing.cut", "12", "aa")):
        assert folders.find_own(other) is None
        assert not folders.has_any(other)
    other = CodeName("slicing.cut", "11", "ab")
    assert folders.find_own(other) is None
    assert folders.has_any(other)


def test_names_of_local_functions_are_names_of_files(tmp_path: Path) -> None:
    """Characters that no file name should have are left out."""
    name = CodeName("test.made.<locals>.cut", "11", "aa")
    assert CodeFolders(None, (tmp_path,)).keep(name, b"code")
    assert [entry.name for entry in tmp_path.iterdir()] == ["test.made.locals.cut-11-aa.kernel"]


def test_old_versions_go(tmp_path: Path) -> None:
    """Of the same kernel, signature and processor the newest four stay; others are left alone."""
    folders = CodeFolders(None, (tmp_path,))
    other = CodeName("slicing.cut", "0", "ab")
    folders.keep(other, b"other")
    names = [CodeName("slicing.cut", str(source), "aa") for source in range(7)]
    for age, name in enumerate(names):
        folders.keep(name, b"code")
        os.utime(tmp_path / name.file, (age, age))
    assert [folders.find_own(name) is not None for name in names] == [False] * 3 + [True] * 4
    assert folders.find_own(other) == b"other"


def test_what_is_used_is_copied(tmp_path: Path) -> None:
    """A package ships what its commands have loaded, and nothing else."""
    folders = CodeFolders(None, (tmp_path / "own",), used=tmp_path / "used")
    other = CodeName("slicing.inner", "11", "aa")
    folders.keep(NAME, b"code")
    folders.keep(other, b"inner")
    assert not (tmp_path / "used").exists()
    folders.find_own(NAME)
    assert [entry.name for entry in (tmp_path / "used").iterdir()] == [NAME.file]
    assert read_code(tmp_path / "used" / NAME.file) == b"code"
