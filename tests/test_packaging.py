"""The folders install as one import package and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

FOLDERS = {
    "mtpp": "mtpp",
    "mtpp.api": "api",
    "mtpp.cli": "cli",
    "mtpp.formats": "formats",
    "mtpp.solvers": "solvers",
    "mtpp.datasets": "datasets",
    "mtpp.runtime": "runtime",
    "mtpp.views": "views",
}


def test_packages_list_matches_the_folders(checkout: Path) -> None:
    """Every folder with an ``__init__.py`` is listed in pyproject.toml, and nothing else is."""
    listed = tomllib.loads((checkout / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = []
    for package, folder in FOLDERS.items():
        for init in (checkout / folder).rglob("__init__.py"):
            parts = init.parent.relative_to(checkout / folder).parts
            found.append(".".join([package, *parts]))
    assert sorted(listed) == sorted(found)


def _requirements(checkout: Path) -> list[str]:
    """Return what pyproject.toml requires on this Python, extras included."""
    document = tomllib.loads((checkout / "pyproject.toml").read_text())
    project = document["project"]
    texts = chain(
        document["build-system"]["requires"], project["dependencies"], *project["optional-dependencies"].values()
    )
    markers = {text: Requirement(text).marker for text in texts}
    return [text for text, marker in markers.items() if marker is None or marker.evaluate()]


def _numbers(text: str) -> list[int]:
    """Return the numbers of a version, zeros at its end left out: 8.2.0 is 8.2."""
    numbers = [int(part) for part in text.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers


def test_lowest_versions_are_the_declared_ones(checkout: Path) -> None:
    """Every package is held to the highest ``>=`` that is said of it for this Python: the lowest that all allow."""
    script = [sys.executable, str(checkout / ".ci" / "lowest.py")]
    done = subprocess.run(script, check=True, capture_output=True, text=True)
    held = dict(line.split("==") for line in done.stdout.splitlines())
    expected: dict[str, list[int]] = {}
    for text in _requirements(checkout):
        name, begin = re.match(r"([a-z0-9-]+)\s*>=\s*([0-9.]+)", text).groups()  # type: ignore[union-attr]
        expected[name] = max(expected.get(name, []), _numbers(begin))
    assert {name: _numbers(number) for name, number in held.items()} == expected
    for text in _requirements(checkout):
        assert Requirement(text).specifier.contains(held[Requirement(text).name])


def test_what_is_installed_is_what_is_declared(checkout: Path) -> None:
    """These tests run on versions that pyproject.toml allows; build tools and extras may be missing."""
    for text in _requirements(checkout):
        requirement = Requirement(text)
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            continue
        if requirement.name != "setuptools":  # builds have their own
            assert requirement.specifier.contains(installed), text


def test_releases_of_the_solver_that_nobody_tried_are_not_taken(checkout: Path) -> None:
    """HiGHS has proven bounds above the optimum in releases before: each is allowed once its bounds were checked."""
    (text,) = (text for text in _requirements(checkout) if text.startswith("highspy"))
    (last,) = (part.version for part in Requirement(text).specifier if part.operator == "<=")
    major, minor, patch = map(int, last.split("."))
    for later in (f"{last}.post1", f"{major}.{minor}.{patch + 1}", f"{major}.{minor + 1}.0", f"{major + 1}.0.0"):
        assert not Requirement(text).specifier.contains(later)


@pytest.mark.slow
def test_wheel_installs_one_top_level_package(checkout: Path, tmp_path: Path) -> None:
    """The wheel's only top-level name is mtpp; installed elsewhere, it runs without the checkout."""
    source = tmp_path / "source"
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=checkout, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for name in files:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((checkout / name).read_bytes())
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (top_level,) = (name for name in names if name.endswith("top_level.txt"))
        assert archive.read(top_level).decode().split() == ["mtpp"]
        assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"mtpp"}
        assert {"mtpp/py.typed", "mtpp/systems.toml", "mtpp/datasets/samples/resnet50.onnx"} <= set(names)
        archive.extractall(tmp_path / "elsewhere")
    code = (
        "import mtpp, mtpp.cli.main, mtpp.solvers.registry, mtpp.datasets, mtpp.formats.graphs.recognise\n"
        "import mtpp.runtime.session\n"
        "from mtpp.inference.system import load_system\n"
        "assert 'elsewhere' in mtpp.__file__ and len(list(mtpp.__path__)) == 1\n"
        "load_system('reference')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path / "elsewhere")
