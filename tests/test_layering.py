"""Imports point one way: mtpp ← formats, solvers, datasets ← runtime, views ← api ← cli; libraries come late."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from module_graph import ROOMS, cycles, imports, modules, parsed, within

MAY_IMPORT = {
    "mtpp": {"mtpp"},
    "formats": {"mtpp", "formats"},
    "solvers": {"mtpp", "solvers"},
    "datasets": {"mtpp", "datasets"},
    "runtime": {"mtpp", "formats", "runtime"},
    "views": {"mtpp", "formats", "solvers", "runtime", "views"},
    "api": {"mtpp", "formats", "solvers", "datasets", "runtime", "views", "api"},
    "cli": set(ROOMS),
}
LATE = ("click", "rich", "networkx", "scipy", "numba", "onnx", "onnxruntime", "highspy")
"""Libraries that the core must not import when it is imported."""

ARROWS = {
    "mtpp.document_shape": ("mtpp.errors",),
    "mtpp.checker": ("mtpp.checker", "mtpp.document_shape", "mtpp.errors"),
    "mtpp.solvers.recheck": (
        "mtpp.solvers.recheck",
        "mtpp.checker",
        "mtpp.solvers.flows.kernels.max_flow",
        "mtpp.solvers.jit",
        "mtpp.array_types",
        "mtpp.errors",
        "mtpp.host",
    ),
    "mtpp.cli": (
        "mtpp.cli",
        "mtpp.api",
        "mtpp.views",
        "mtpp.datasets",
        "mtpp.errors",
        "mtpp.host",
        "mtpp.names",
        "mtpp.ranges",
        "mtpp.terminal_safe",
        "mtpp.units",
        "mtpp.wording",
    ),
}
"""Package → all that its modules may import of this one; what is not named here has the arrows of its room."""

KERNELS = (
    "mtpp.solvers.arrays",
    "mtpp.solvers.flows",
    "mtpp.solvers.jit",
    "mtpp.solvers.stage_cost",
    "mtpp.array_types",
)
"""Modules that kernels may import besides those of their own family, whose records they take."""

KERNELS_OF_OTHERS = {
    "mtpp.solvers.local_search": ("mtpp.solvers.orders.kernels.random_stream",),
    "mtpp.solvers.unequal": (
        "mtpp.solvers.downsets",
        "mtpp.solvers.orders.device_labels",
        "mtpp.solvers.orders.kernels.device_labels",
    ),
}
"""Family → kernels of others that its own may call."""

MOST_MODULES = 25
"""Of a folder."""

RIDDLE = re.compile(r"(What|How|Whether|Which|Where)\b")
"""Beginning of a docstring that names no thing."""

OTHERS = {"tests", "support", "samples", "benchmarks", "docs", "examples"}
"""Folders that are no packages."""

NAMELESS = ("utils", "util", "helpers", "helper", "common", "misc")


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            yield room, path


@cache
def _imports(path: Path) -> frozenset[str]:
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def _top_level_imports(path: Path) -> set[str]:
    found = set()
    for node in parsed(path).body:
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
    """No arrow points the wrong way, nowhere in a module; the bridge itself is exempt."""
    wrong = {
        name: ", ".join(others)
        for name, path in modules(checkout).items()
        if name not in ("mtpp", "mtpp.__main__")  # the bridge, and the door to the command line
        if (others := [m for m in _imports(path) if (room := _room_of(m)) and room not in MAY_IMPORT[_room_of(name)]])
    }
    assert wrong == {}


def test_the_checker_imports_no_numpy(checkout: Path) -> None:
    """The checker shares nothing with what it checks, neither modules (below) nor libraries."""
    for path in sorted((checkout / "mtpp" / "checker").rglob("*.py")):
        assert not any(module.startswith(("numpy", "scipy", "numba")) for module in _imports(path)), path


@pytest.mark.parametrize("package", ARROWS)
def test_packages_import_only_what_they_may(checkout: Path, package: str) -> None:
    """Rooms with narrow arrows of their own keep to them."""
    graph = imports(checkout)
    wrong = {
        name: ", ".join(sorted(target for target in targets if not within(target, ARROWS[package])))
        for name, targets in graph.items()
        if within(name, [package]) and not all(within(target, ARROWS[package]) for target in targets)
    }
    assert wrong == {}


def test_kernels_import_only_what_they_may(checkout: Path) -> None:
    """Inner loops know their own family's records, and what all kernels share."""
    wrong = {}
    for name, targets in imports(checkout).items():
        family, found, _ = f"{name}.".partition(".kernels.")
        if found:
            allowed = (family, *KERNELS, *KERNELS_OF_OTHERS.get(family, ()))
            if others := [target for target in targets if not within(target, allowed)]:
                wrong[name] = ", ".join(others)
    assert wrong == {}


def test_no_module_leads_back_to_itself(checkout: Path) -> None:
    """There are no cycles of imports, lazy ones and those for types alone included."""
    found = {cycle[0]: " → ".join(cycle) for cycle in cycles(imports(checkout))}
    assert found == {}


def test_cycles_are_found() -> None:
    """The finder names a shortest cycle of each knot, and no module beside it."""
    graph = {
        "a": frozenset("b"),
        "b": frozenset("cd"),
        "c": frozenset("a"),
        "d": frozenset("e"),
        "e": frozenset(),
        "f": frozenset("g"),
        "g": frozenset("fa"),
    }
    assert cycles(graph) == [["a", "b", "c", "a"], ["f", "g", "f"]]
    assert cycles({"a": frozenset("b"), "b": frozenset()}) == []


def test_folders_are_small(checkout: Path) -> None:
    """No folder holds more modules than one can take in."""
    paths = (*modules(checkout).values(), *(checkout / "benchmarks").rglob("*.py"))
    counts = Counter(path.parent for path in paths if path.stem != "__init__")
    large = {str(folder.relative_to(checkout)): str(n) for folder, n in counts.items() if n > MOST_MODULES}
    assert large == {}


def test_docstrings_of_modules_name_a_thing(checkout: Path) -> None:
    """Their first lines are something to search for, no riddles."""
    lines = {name: (ast.get_docstring(parsed(path)) or "").split("\n")[0] for name, path in modules(checkout).items()}
    assert {name: line for name, line in lines.items() if RIDDLE.match(line)} == {}


def test_the_core_imports_no_heavy_library_at_the_door(checkout: Path) -> None:
    """Modules of the core need numpy alone when they are imported."""
    for path in sorted((checkout / "mtpp").rglob("*.py")):
        assert not _top_level_imports(path) & set(LATE), path


def test_one_module_imports_numba_with_its_cache(checkout: Path) -> None:
    """Kernels are compiled in one way, and kept in one, which live in one place each."""
    users = {path for _, path in _modules(checkout) if any(m.startswith("numba") for m in _imports(path))}
    assert users == {checkout / "solvers" / "jit.py", checkout / "solvers" / "kernel_cache.py"}


@pytest.mark.parametrize(("library", "module"), [("bokeh", "drawing"), ("igraph", "graph_section"), ("jinja2", "page")])
def test_only_one_module_imports_what_pages_are_made_with(checkout: Path, library: str, module: str) -> None:
    """Each library of reports lives in one place, which imports it when it is needed."""
    users = [path for _, path in _modules(checkout) if any(f"{m}.".startswith(f"{library}.") for m in _imports(path))]
    assert users == [checkout / "views" / "report" / f"{module}.py"]
    assert library not in _top_level_imports(users[0])


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
    folders = {path.parent.relative_to(checkout).as_posix() for path in modules(checkout).values()}
    last = {folder.rpartition("/")[2] for folder in folders} | OTHERS
    assert {name for name in named if name.rpartition("/")[2] not in last} == set()
    known = {name.rpartition("/")[2] for name in named} | {"kernels"}  # beside each family that calls them
    assert {folder for folder in folders if "/" in folder and folder.rpartition("/")[2] not in known} == set()
