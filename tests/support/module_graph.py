"""Modules of the package and the imports between them: lazy ones and those for types alone included."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

ROOMS = ("mtpp", "formats", "solvers", "datasets", "runtime", "views", "api", "cli")

Graph = Mapping[str, frozenset[str]]


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def modules(checkout: Path) -> dict[str, Path]:
    """Return the file of every module of the package, by the module's name."""
    found = {}
    for room in ROOMS:
        for path in sorted((checkout / room).rglob("*.py")):
            parts = path.relative_to(checkout).with_suffix("").parts
            parts = parts if room == "mtpp" else ("mtpp", *parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(checkout: Path) -> Graph:
    """Return the modules of the package that each module imports.

    Importing a submodule is no edge to its package; the facade ``mtpp`` itself counts for nothing.
    """
    known = modules(checkout)
    return {name: frozenset(_imported(path, known) - {name, "mtpp"}) for name, path in known.items() if name != "mtpp"}


def _imported(path: Path, known: Mapping[str, Path]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found.add(submodule if submodule in known else node.module)
    return {name for name in found if name in known}


def within(module: str, packages: Iterable[str]) -> bool:
    """Return whether a module is one of these, or in one of them."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def cycles(graph: Graph) -> list[list[str]]:
    """Return a shortest cycle through the first module of every set of modules that all lead to each other."""
    reached = {name: _reachable(graph, name) for name in graph}
    found, seen = [], set()
    for name in sorted(graph):
        if name in seen or name not in reached[name]:
            continue
        seen |= {other for other in reached[name] if name in reached.get(other, ())}
        found.append(_shortest(graph, name))
    return found


def _reachable(graph: Graph, start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph.get(waiting.pop(), ()):
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached


def _shortest(graph: Graph, start: str) -> list[str]:
    paths = [[start]]
    for path in paths:  # grows while it is read
        for target in sorted(graph.get(path[-1], ())):
            if target == start:
                return [*path, start]
            if all(target not in other for other in paths):
                paths.append([*path, target])
    raise AssertionError("no cycle")
