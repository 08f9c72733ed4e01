"""The folders install as one import package and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

FOLDERS = {
    "mtpp": "mtpp",
    "mtpp.cli": "cli",
    "mtpp.formats": "formats",
    "mtpp.solvers": "solvers",
    "mtpp.datasets": "datasets",
    "mtpp.runtime": "runtime",
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
        "import mtpp, mtpp.cli.main, mtpp.solvers.registry, mtpp.datasets, mtpp.formats.recognise\n"
        "import mtpp.runtime.session\n"
        "from mtpp.system import load_system\n"
        "assert 'elsewhere' in mtpp.__file__ and len(list(mtpp.__path__)) == 1\n"
        "load_system('reference')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path / "elsewhere")
