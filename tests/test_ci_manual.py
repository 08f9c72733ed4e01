"""What docs/ci.md shows works: commands are run, files for other programs are held to what those programs read."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from processes import ROOT
from shells import shell_environment

from mtpp.cli.main import root
from mtpp.datasets import sample_path
from mtpp.errors import InputError

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
SCRIPTS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
TEXTS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
WORKFLOW, HOOKS, GITLAB = map(yaml.safe_load, TEXTS)
COMMANDS = [line for script in SCRIPTS for line in script.splitlines()]
OURS = re.compile(r"\bmtpp (partition|verify|split|certify|completion|warmup|report) ")


def words_for_mtpp(line: str) -> list[str] | None:
    """Return the arguments of ``mtpp`` in a line of a shell, None if there is no ``mtpp`` in it."""
    match = OURS.search(line)
    return shlex.split(line[match.start() + len("mtpp ") :].rstrip(')"').partition(" > ")[0]) if match else None


def parse(arguments: list[str]) -> None:
    """Have the command line read its arguments, and do nothing; raise what is wrong with them."""
    with root.make_context("mtpp", list(arguments)) as context:
        name, command, rest = root.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        command.make_context(name, rest, parent=context)


def run_lines(script: str, folder: Path) -> None:
    """Run a script, as it stands, where ``mtpp`` is on the path."""
    env = shell_environment(folder)
    done = subprocess.run(["sh", "-euc", script], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_scripts_are_those_known_here() -> None:
    """One for each way; a new one needs a test below."""
    begins = ["docker build", "pipx run", "eval"]
    assert [next(begin for begin in begins if script.startswith(begin)) for script in SCRIPTS] == begins


@pytest.mark.parametrize("line", [line for line in COMMANDS if words_for_mtpp(line)])
def test_every_line_is_read(line: str) -> None:
    """Also those of containers and pipx: commands and options are there, and values are of their kind."""
    parse(words_for_mtpp(line) or [])


@pytest.mark.parametrize("name", ["partition", "certify", "verify", "split"])
def test_options_of_the_tables_are_there(name: str) -> None:
    """Each requirement is an option of the command that it is listed for."""
    rows = re.findall(rf"^\| `{name} (--[a-z-]+)", PAGE, re.MULTILINE)
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert rows
    assert set(rows) <= {option for param in command.params for option in param.opts}


def test_codes_are_those_of_errors() -> None:
    """The table has every code that the program ends with, in order."""
    from mtpp.api.verification.verified_files import WORST_FIRST
    from mtpp.cli.main import BROKEN_PIPE, INTERNAL_ERROR
    from mtpp.host.interrupts import INTERRUPTED

    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)]
    assert codes == sorted({*WORST_FIRST, InputError.exit_code, INTERNAL_ERROR, INTERRUPTED, BROKEN_PIPE})


def test_the_workflow_gives_the_action_what_it_takes() -> None:
    """Inputs by their names, as texts; arguments that mtpp partition reads."""
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (step,) = (step for step in WORKFLOW["jobs"]["stages"]["steps"] if "mtpp" in step["uses"])
    given = step["with"]
    assert set(given) <= set(action["inputs"])
    assert all(isinstance(value, str) for value in given.values())
    parse(["partition", "-k", given["k"], "--require-ratio", given["require-ratio"], *shlex.split(given["arguments"]),
           given["model"]])  # fmt: skip


@pytest.mark.skipif(find_spec("check_jsonschema") is None, reason="needs check-jsonschema")
@pytest.mark.parametrize(("text", "schema"), [(TEXTS[0], "github-workflows"), (TEXTS[2], "gitlab-ci")])
def test_files_of_services_have_their_shape(text: str, schema: str, tmp_path: Path) -> None:
    """The schemas of both services take the examples."""
    path = tmp_path / "example.yml"
    path.write_text(text)
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_script_for_gitlab_runs(tmp_path: Path) -> None:
    """All of it but the installation."""
    shutil.copy(sample_path("resnet50"), tmp_path / "model.onnx")
    install, *rest = GITLAB["partition"]["script"]
    assert install.startswith("pip install ")
    run_lines("\n".join(rest), tmp_path)
    assert all((tmp_path / path).exists() for path in GITLAB["partition"]["artifacts"]["paths"])


def test_hooks_of_the_example_are_there(tmp_path: Path) -> None:
    """Their ids are those of the manifest, and their arguments are read."""
    manifest = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    for hook in HOOKS["repos"][0]["hooks"]:
        entry = manifest[hook["id"]]
        parse([*shlex.split(entry["entry"])[1:], *hook.get("args", ["plan.json"])])
    if find_spec("pre_commit") is not None:
        config = tmp_path / ".pre-commit-config.yaml"
        config.write_text(yaml.safe_dump(HOOKS))
        subprocess.run([sys.executable, "-m", "pre_commit", "validate-config", str(config)], check=True)


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
def test_completion_is_switched_on(tmp_path: Path) -> None:
    """The line for bash leaves a completion for mtpp behind."""
    command = ["bash", "--norc", "-c", SCRIPTS[2] + "complete -p mtpp"]
    done = subprocess.run(command, env=shell_environment(tmp_path), cwd=tmp_path, capture_output=True, text=True)
    assert "-F _mtpp_completion mtpp" in done.stdout, done.stderr


@pytest.mark.slow
def test_the_folder_runs_without_an_installation(tmp_path: Path) -> None:
    """pipx, or an environment as it makes one, with the libraries at hand: the checkout is installed, and runs.

    Wheels that are installed with what they require are run by ``.ci/run``.
    """
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    words = shlex.split(SCRIPTS[1])
    env = {name: value for name, value in shell_environment(tmp_path).items() if name != "PYTHONPATH"}
    if shutil.which("pipx"):
        command = words
    else:
        made = tmp_path / "env"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
        (site,) = made.glob("lib/python*/site-packages")
        (site / "libraries.pth").write_text("\n".join(place for place in sys.path if place.endswith("-packages")))
        install = [str(made / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*install, words[words.index("--spec") + 1]], cwd=clone, env=env, check=True)
        command = [str(made / "bin" / "mtpp"), *words[words.index("mtpp") + 1 :]]
        where = [str(made / "bin" / "python"), "-P", "-c", "import mtpp; print(mtpp.__file__)"]
        done = subprocess.run(where, cwd=clone, env=env, capture_output=True, text=True, check=True)
        assert Path(done.stdout).is_relative_to(site)
    done = subprocess.run(command, cwd=clone, env=env, capture_output=True, text=True)
    assert "bottleneck " in done.stdout, done.stderr
