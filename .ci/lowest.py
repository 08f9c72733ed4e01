"""Constraints for pip that hold each dependency to the lowest version declared: ``python .ci/lowest.py``.

They are worked out from ``pyproject.toml`` for the Python that runs this, so they cannot lag behind it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def declared() -> list[Requirement]:
    """Return what the build, the package and its extras require, with and without markers."""
    document = tomllib.loads(PYPROJECT.read_text())
    project = document["project"]
    lists = [document["build-system"]["requires"], project["dependencies"], *project["optional-dependencies"].values()]
    return [Requirement(text) for texts in lists for text in texts]


def lowest(requirements: Iterable[Requirement]) -> dict[str, Version]:
    """Return the lowest version of each package that all its requirements allow on this Python.

    Raises
    ------
    ValueError
        If one of them does not say with ``>=`` where it begins.
    """
    found: dict[str, Version] = {}
    for requirement in requirements:
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        begins = [Version(part.version) for part in requirement.specifier if part.operator == ">="]
        if not begins:
            raise ValueError(f"pyproject.toml: {requirement}: no lowest version is declared; add >=")
        name = canonicalize_name(requirement.name)
        found[name] = max([*begins, found.get(name, begins[0])])
    return found


if __name__ == "__main__":
    for name, version in sorted(lowest(declared()).items()):
        print(f"{name}=={version}")
