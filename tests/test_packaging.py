"""The folders install as one import package and nothing else."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import subprocess
import sys
import tomllib
import zipfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from shutil import which
from typing import Any

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


def test_what_the_build_needs_is_what_runs_need(checkout: Path) -> None:
    """Kernels are compiled into a wheel by the same versions of the same packages that dependencies allow."""
    document = tomllib.loads((checkout / "pyproject.toml").read_text())
    build = [text for text in document["build-system"]["requires"] if not text.startswith("setuptools")]
    assert set(build) <= set(document["project"]["dependencies"])


def _source(checkout: Path, folder: Path) -> Path:
    """Copy what belongs to the project."""
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=checkout, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for name in files:
        if (checkout / name).exists():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((checkout / name).read_bytes())
    return folder


def _build(source: Path, target: Path, *options: str, **settings: str) -> tuple[Path, str]:
    """Return the wheel of a source, and what was said while it was built."""
    build = [sys.executable, "-m", "pip", "wheel", "--verbose", "--no-deps", *options, "--wheel-dir", str(target)]
    kept = {name: value for name, value in os.environ.items() if name == "NUMBA_CACHE_DIR" or "NUMBA_" not in name}
    environment = kept | settings  # a folder of machine code spares compiling it again
    done = subprocess.run([*build, str(source)], check=True, capture_output=True, text=True, env=environment)
    (wheel,) = target.glob("*.whl")
    return wheel, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel built from the checkout, with the libraries of this process; workers share it."""
    temporary = tmp_path_factory.getbasetemp()
    folder = temporary.parent / "wheel" if "PYTEST_XDIST_WORKER" in os.environ else temporary / "wheel"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for built in (folder / "built").glob("*.whl"):
            return built
        return _build(_source(checkout, folder / "source"), folder / "built", "--no-build-isolation")[0]


def _python(site: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run Python with a wheel's content and this process's libraries, and with no folder to keep code in."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON"))}
    environment = kept | {
        "PYTHONPATH": str(site),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(site / "none"),
        "XDG_CACHE_HOME": str(site / "none"),
        **settings,
    }
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, cwd=site, env=environment, capture_output=True, text=True)


@pytest.mark.skipif(not which("bash"), reason="no bash here")
def test_the_lowest_versions_are_tested_where_tests_are(checkout: Path) -> None:
    """Every folder and module of tests that ``.ci/run`` names is there: a wrong one is found after minutes."""
    named = re.findall(r"\btests/[^\s;]+", (checkout / ".ci" / "run").read_text())
    echo = ["bash", "-c", f"printf '%s\\n' {' '.join(named)}"]
    paths = subprocess.run(echo, cwd=checkout, check=True, capture_output=True, text=True).stdout.split()
    assert len(paths) > 10
    assert [path for path in paths if not (checkout / path).exists()] == []


@pytest.mark.slow
def test_wheel_installs_one_top_level_package(wheel: Path, tmp_path: Path) -> None:
    """The wheel's only top-level name is mtpp; installed elsewhere, it runs without the checkout."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (top_level,) = (name for name in names if name.endswith("top_level.txt"))
        assert archive.read(top_level).decode().split() == ["mtpp"]
        assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"mtpp"}
        assert not [name for name in names if "__pycache__" in name]
        assert {"mtpp/py.typed", "mtpp/machine/systems.toml", "mtpp/datasets/samples/resnet50.onnx"} <= set(names)
        archive.extractall(tmp_path)
    code = (
        "import mtpp, mtpp.cli.main, mtpp.solvers.registry, mtpp.datasets, mtpp.formats.graphs.recognise\n"
        "import mtpp.runtime.session\n"
        "from mtpp.machine.presets import load_device\n"
        f"assert mtpp.__file__.startswith({str(tmp_path)!r}) and len(list(mtpp.__path__)) == 1\n"
        "load_device('reference')"
    )
    _python(tmp_path, "-c", code)


@pytest.mark.slow
def test_wheel_runs_without_compiling(wheel: Path, tmp_path: Path) -> None:
    """It is for this platform and Python, and its code runs at once, from a folder that cannot be written.

    The answers are those of kernels that were compiled for the processor at hand.
    """
    assert re.search(r"-cp(\d+)-cp\1-(?!any)\w+\.whl$", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    site = tmp_path / "site"
    package = site / "mtpp" / "solvers"
    assert len(list((package / "compiled").glob("*.kernel"))) > 50
    (package / "__pycache__").write_text("")  # no folder can be made here, nor in the home folder
    (site / "none").write_text("")
    sample = str(site / "mtpp" / "datasets" / "samples" / "gpt2.onnx")
    given = ("--dim", "batch=1", "--dim", "sequence=64", "-k", "6", "--fast-memory", "30MiB", "--format", "json")
    commands: list[tuple[str, ...]] = [
        ("partition", sample, *given, "--peak", "order"),
        ("partition", sample, *given, "--algorithm", "anneal", "--work-limit", "2000"),
        ("partition", sample, *given, "--algorithm", "brkga", "--work-limit", "300"),
        ("certify", sample, *given),
        ("compare", sample, "--dim", "batch=1", "--dim", "sequence=64", "-k", "3", "--fast-memory", "30MiB",
         "--algorithms", "anneal-200", "--format", "json", "-v"),
    ]  # fmt: skip
    byte_code: dict[str, str] = {}  # kept from the second process on, which spares the others to compile all modules
    for command in commands:
        shipped = _python(site, "-m", "mtpp", *command, **byte_code)
        assert "compiling" not in shipped.stderr
        byte_code["PYTHONDONTWRITEBYTECODE"] = ""
        (package / "compiled").rename(package / "away")
        native = _python(site, "-m", "mtpp", *command, NUMBA_CACHE_DIR=str(tmp_path / "cache"), **byte_code)
        (package / "away").rename(package / "compiled")
        assert _timeless(shipped.stdout) == _timeless(native.stdout)
    assert list((tmp_path / "cache").glob("*.kernel"))


def _timeless(text: str) -> Any:
    """Return a document without its times."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(item) for key, item in value.items() if not re.search("elapsed|seconds", key)}
        return list(map(without, value)) if isinstance(value, list) else value

    return without(json.loads(text))


@pytest.mark.slow
def test_building_again_compiles_nothing(wheel: Path, checkout: Path, tmp_path: Path) -> None:
    """While no kernel has changed, a build takes the code of the last one, whatever else was edited; it says so."""
    source = _source(checkout, tmp_path / "source")
    (source / "api" / "bound.py").write_text((source / "api" / "bound.py").read_text() + "# edited\n")
    again, said = _build(source, tmp_path / "built", "--no-build-isolation")
    assert re.search(
        r"mtpp: compiling inner loops: about a minute .*\n(.*\n)*.*mtpp: \d+ .* ahead, 0 of them now", said
    )
    assert _kernels(again) == _kernels(wheel) != set()


def _kernels(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.endswith(".kernel")}


@pytest.mark.slow
def test_builds_tell_a_terminal(checkout: Path, tmp_path: Path) -> None:
    """However quiet pip is: somebody waits there."""
    source = _source(checkout, tmp_path / "source")
    (source / "api" / "shipping.py").write_text("import sys\n\n\ndef main():\n    sys.exit('no reason')\n")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", str(source)]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, command)
    said = b""
    with suppress(OSError):  # the other end is closed
        while more := os.read(terminal, 1000):
            said += more
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0
    first, last = (line for line in said.decode().splitlines() if line.startswith("mtpp: "))
    assert first.startswith("mtpp: compiling inner loops: about a minute on two cores")
    assert last == "mtpp: no inner loops are compiled ahead: no reason"


@pytest.mark.slow
def test_builds_without_numba_compile_nothing(checkout: Path, tmp_path: Path) -> None:
    """Where kernels cannot be compiled the wheel is one for all platforms, and the build says so in a line."""
    (tmp_path / "libraries" / "numba").mkdir(parents=True)
    (tmp_path / "libraries" / "numba" / "__init__.py").write_text("raise ImportError('no numba here')")
    source = _source(checkout, tmp_path / "source")
    settings = {"PYTHONPATH": str(tmp_path / "libraries")}
    wheel, said = _build(source, tmp_path / "built", "--no-build-isolation", **settings)
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "no inner loops are compiled ahead: ImportError: no numba here" in said
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".kernel")]


@pytest.mark.slow
def test_builds_that_fail_halfway_ship_nothing(checkout: Path, tmp_path: Path) -> None:
    """What was compiled before an error came, such as of a full disk, does not make the wheel one for this platform."""
    source = _source(checkout, tmp_path / "source")
    (source / "api" / "shipping.py").write_text(
        "import sys\nfrom pathlib import Path\nimport mtpp.solvers\n\n\ndef main():\n"
        "    folder = Path(mtpp.solvers.__file__).with_name('compiled')\n    folder.mkdir()\n"
        "    (folder / 'half.kernel').touch()\n    sys.exit('No space left on device')\n"
    )
    wheel, said = _build(source, tmp_path / "built", "--no-build-isolation")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "no inner loops are compiled ahead: No space left on device" in said
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".kernel")]


@pytest.mark.slow
def test_editable_installs_compile_nothing(checkout: Path, tmp_path: Path) -> None:
    """A checkout that is installed as it stands gets no machine code: its source is about to change."""
    source = _source(checkout, tmp_path / "source")
    code = f"import setuptools.build_meta as backend; backend.build_editable({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=source, capture_output=True, text=True)
    assert "compiling inner loops" not in done.stdout + done.stderr
    assert not list(source.rglob("*.kernel"))
    assert [wheel.name.endswith("-py3-none-any.whl") for wheel in tmp_path.glob("*.whl")] == [True]
