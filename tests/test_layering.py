"""Imports point one way: mtpp ← formats, solvers, datasets ← cli, and formats ← runtime ← cli; libraries come late."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOMS = ("mtpp", "formats", "solvers", "datasets", "runtime", "views", "api", "cli")
MAY_IMPORT = {
    "mtpp": {"mtpp"},
    "formats": {"mtpp", "formats"},
    "solvers": {"mtpp", "solvers"},
    "datasets": {"mtpp", "datasets"},
    "runtime": {"mtpp", "formats", "runtime"},
    "views": {"mtpp", "formats", "solvers", "runtime", "views", "api", "cli"},
    "api": {"mtpp", "formats", "solvers", "datasets", "runtime", "views", "api"},
    "cli": set(ROOMS),
}
LATE = ("click", "rich", "networkx", "scipy", "numba", "onnx", "onnxruntime", "highspy")
"""Libraries that the core must not import when it is imported."""

NAMELESS = ("utils", "util", "helpers", "helper", "common", "misc")


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            yield room, path


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imports(path: Path) -> frozenset[str]:
    found = set()
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def _top_level_imports(path: Path) -> set[str]:
    found = set()
    for node in _parsed(path).body:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def _room_of(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] != "mtpp":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS[1:] else "mtpp"


def test_rooms_import_only_what_they_may(checkout: Path) -> None:
    """No arrow points the wrong way, nowhere in a module; the doors are exempt."""
    doors = {checkout / "mtpp" / name for name in ("__main__.py", "__init__.py")}  # to the command line, to the library
    wrong = [
        f"{path.relative_to(checkout)} imports {module}"
        for room, path in _modules(checkout)
        if path not in doors
        for module in _imports(path)
        if (target := _room_of(module)) and target not in MAY_IMPORT[room]
    ]
    assert wrong == []


def test_verify_shares_nothing_with_what_it_checks(checkout: Path) -> None:
    """The verifier imports only its own modules and the errors: no numpy, no solver, no format."""
    wrong = [
        f"{path.name} imports {module}"
        for path in sorted((checkout / "mtpp" / "checker").rglob("*.py"))
        for module in _imports(path)
        if module.startswith(("mtpp.", "numpy")) and not module.startswith(("mtpp.checker", "mtpp.errors"))
    ]
    assert wrong == []


def test_the_core_imports_no_heavy_library_at_the_door(checkout: Path) -> None:
    """Modules of the core need numpy alone when they are imported."""
    for path in sorted((checkout / "mtpp").rglob("*.py")):
        assert not _top_level_imports(path) & set(LATE), path


def test_only_one_module_imports_numba(checkout: Path) -> None:
    """Kernels are compiled in one way, which lives in one place."""
    users = [path for _, path in _modules(checkout) if any(m.startswith("numba") for m in _imports(path))]
    assert users == [checkout / "solvers" / "jit.py"]


def test_help_imports_nothing_heavy(checkout: Path) -> None:
    """``mtpp --help`` and ``mtpp --version`` load click and no numerical library."""
    code = (
        "import sys\nfrom mtpp.cli.main import root\n"
        "root.main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'numba', 'onnx', 'networkx', 'scipy', 'highspy', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=checkout, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("room", ROOMS)
def test_files_hold_one_idea_and_have_names(checkout: Path, room: str) -> None:
    """No file is longer than 500 lines, none is called after nothing."""
    for path in (checkout / room).rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path
        assert path.stem not in NAMELESS, path


def test_architecture_is_one_page_and_names_rooms_that_exist(checkout: Path) -> None:
    """Every folder in its table of rooms is there, and every package inside a room is in it."""
    text = (checkout / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    table = text[text.index("## The rooms") : text.index("## Adding things")]
    named = {name.rstrip("/") for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)*)/`", table)}
    folders = {path.parent.relative_to(checkout).as_posix() for _, path in _modules(checkout)}
    last = {folder.rpartition("/")[2] for folder in folders} | {"tests", "support", "samples", "benchmarks", "docs"}
    assert {name for name in named if name.rpartition("/")[2] not in last} == set()
    known = {name.rpartition("/")[2] for name in named} | {"kernels"}  # beside each family that calls them
    assert {folder for folder in folders if "/" in folder and folder.rpartition("/")[2] not in known} == set()
