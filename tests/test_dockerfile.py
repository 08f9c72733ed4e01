"""The image: its Dockerfile names what is there, runs as no root, and holds nothing to versions or hosts."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from processes import ROOT

from mtpp.cli.main import COMMANDS

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with their arguments, one line each."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines if line.strip())]


def last_stage() -> list[tuple[str, str]]:
    """Return the instructions that the image is made of."""
    found = instructions()
    start = max(i for i, (name, _) in enumerate(found) if name == "FROM")
    return found[start:]


def sent_to_the_builder(path: str) -> bool:
    """Return whether .dockerignore lets a file through: the last pattern that meets it decides."""
    passed = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        pattern, back = line.removeprefix("!"), line.startswith("!")
        parts = path.split("/")
        names = parts[-1:] if pattern.startswith("**/") else ["/".join(parts[: i + 1]) for i in range(len(parts))]
        names += parts if pattern.startswith("**/") else []
        if any(fnmatch(name, pattern.removeprefix("**/")) for name in names):
            passed = back
    return passed


def test_both_stages_stand_on_a_slim_python() -> None:
    """By its name alone, in a version that the project is for, and the same for both: the environment is moved."""
    bases = [rest for name, rest in instructions() if name == "FROM"]
    assert bases == ["python:${PYTHON}-slim AS build", "python:${PYTHON}-slim"]
    version = dict(rest.split("=") for name, rest in instructions() if name == "ARG")["PYTHON"]
    assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]


def test_extras_are_those_of_the_project() -> None:
    """What partition, verify, split --check and report need."""
    (extras,) = (rest.partition("=")[2] for name, rest in instructions() if name == "ARG" and rest.startswith("EXTRAS"))
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    assert "run" in extras.split(",")


def test_it_runs_as_no_root() -> None:
    """Inner loops are compiled by the user of the image, where that user may write, and others may too."""
    stage = last_stage()
    users = [rest for name, rest in stage if name == "USER"]
    assert users == ["mtpp"]
    (compiled,) = (i for i, (name, rest) in enumerate(stage) if name == "RUN" and "mtpp warmup" in rest)
    assert stage.index(("USER", "mtpp")) < compiled
    settings = next(rest for name, rest in stage if name == "ENV")
    folder = re.search(r"NUMBA_CACHE_DIR=(\S+)", settings)[1]  # type: ignore[index]
    assert any(name == "RUN" and "--mode=1777" in rest and folder in rest for name, rest in stage)
    assert f"chmod -R a+rwX {folder}" in stage[compiled][1]
    assert re.search(r"NUMBA_CPU_NAME=generic\s+NUMBA_CPU_FEATURES=(\s|$)", settings)


def test_its_command_is_mtpp() -> None:
    """In the form without a shell, so that signals reach it; without arguments it says what it can do."""
    found = dict(last_stage())
    assert json.loads(found["ENTRYPOINT"]) == ["mtpp"]
    assert json.loads(found["CMD"]) == ["--help"]
    assert "warmup" in COMMANDS


def test_packages_are_not_pinned_and_come_from_no_named_host() -> None:
    """Versions are pyproject.toml's business; what is installed is what was built in the first stage."""
    runs = [rest for name, rest in instructions() if name == "RUN"]
    pips = [part for rest in runs for part in rest.split("&&") if part.strip().startswith("pip ")]
    assert len(pips) == 2
    assert all("==" not in part and "://" not in part and "index-url" not in part for part in pips)
    assert "--no-index --find-links /wheels" in pips[1]
    assert not any(word in " ".join(runs) for word in ("curl", "wget", "apt-get", "sudo"))


def test_the_builder_is_sent_what_the_wheel_is_made_of() -> None:
    """Every file of the packages, its settings, readme and licence; no tests, documentation, nor what is no source."""
    copied = [rest.split() for name, rest in instructions() if name == "COPY" and not rest.startswith("--from")]
    assert copied == [[".", "/source"]]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a checkout of git")
    rooms = tuple(f"{folder}/" for folder in PROJECT["tool"]["setuptools"]["package-dir"].values())
    needed = {"pyproject.toml", PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]}
    for path in tracked.stdout.splitlines():
        built = path.startswith(rooms) or path in needed or path == "setup.py"
        assert sent_to_the_builder(path) == built, path
    assert not sent_to_the_builder("solvers/__pycache__/jit.cpython-313.pyc")
    assert not sent_to_the_builder(".git/config")
    assert not sent_to_the_builder("build/lib/mtpp/__init__.py")


def test_stages_copy_what_was_made() -> None:
    """The last stage takes the environment from where the first one makes it."""
    made = [rest for name, rest in instructions() if name == "RUN" and "-m venv" in rest]
    (taken,) = (rest.split() for name, rest in last_stage() if name == "COPY")
    assert taken == ["--from=build", "/opt/mtpp", "/opt/mtpp"]
    assert "/opt/mtpp" in made[0]
    assert Path(taken[1]).is_absolute()
