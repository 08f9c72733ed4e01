"""The action for GitHub: its shape, and its scripts, run by bash with the environment of a runner."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from composite_actions import EXPRESSION, Runner, clean_environment, program
from graph_strategies import chain
from processes import MTPP, ROOT, run

from mtpp.cli.main import COMMANDS
from mtpp.datasets import sample_path
from mtpp.formats.graphs.native import write_native
from mtpp.solvers.kernel_cache import own_folders

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
SCRIPTS = [step for step in STEPS if "run" in step]
KEYS = {"id", "name", "if", "env", "shell", "run", "uses", "with"}

needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")


@pytest.mark.skipif(find_spec("check_jsonschema") is None, reason="needs check-jsonschema")
def test_the_action_has_the_shape_of_one() -> None:
    """GitHub's schema for actions takes it."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions"]
    done = subprocess.run([*command, str(ROOT / "action.yml")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_steps_have_what_composite_actions_need() -> None:
    """Scripts name their shell, actions their version; ids are unique, descriptions are there, nothing is misspelt."""
    assert ACTION["runs"]["using"] == "composite"
    assert all(set(step) <= KEYS and ("run" in step) != ("uses" in step) for step in STEPS)
    assert all(step["shell"] == "bash" for step in SCRIPTS)
    assert all(re.fullmatch(r"[\w./-]+@v\d+", step["uses"]) for step in STEPS if "uses" in step)
    ids = [step["id"] for step in STEPS if "id" in step]
    assert len(ids) == len(set(ids))
    described = [*ACTION["inputs"].values(), *ACTION["outputs"].values()]
    assert all(spec["description"].endswith((".", ")")) for spec in described)
    assert all(isinstance(spec.get("default", ""), str) for spec in ACTION["inputs"].values())


def test_no_input_is_expanded_in_a_script() -> None:
    """An expression in a script would run whatever an input says; inputs come as variables."""
    for step in SCRIPTS:
        assert "${{" not in step["run"]
        assert "eval" not in step["run"]


def test_expressions_name_what_is_there() -> None:
    """Inputs that exist, all of them used, and outputs of earlier steps that their scripts write."""
    seen: dict[str, str | None] = {}
    used = set()
    for step in [*STEPS, {"with": {name: spec["value"] for name, spec in ACTION["outputs"].items()}}]:
        texts = [str(step.get("if", "")), *step.get("env", {}).values(), *step.get("with", {}).values()]
        for text in texts:
            for name in re.findall(r"inputs\.([\w-]+)", str(text)):
                assert name in ACTION["inputs"]
                used.add(name)
            for owner, name in re.findall(r"steps\.([\w-]+)\.outputs\.([\w-]+)", str(text)):
                script = seen[owner]
                assert script is None or f"{name}=" in script, (owner, name)
        assert all(re.fullmatch(r"[\w.-]+", expression) for text in step.get("env", {}).values()
                   for expression in EXPRESSION.findall(text))  # fmt: skip
        if "id" in step:
            seen[step["id"]] = step.get("run")
    assert used == set(ACTION["inputs"])


def test_the_manual_lists_inputs_and_outputs() -> None:
    """docs/ci.md has a row for each."""
    manual = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([\w-]+)` \|", manual, re.MULTILINE)
    assert [*ACTION["inputs"], *ACTION["outputs"]] == [name for name in listed if name in ACTION["inputs"] or
                                                       name in ACTION["outputs"]]  # fmt: skip


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="no shellcheck here")
def test_scripts_are_clean(tmp_path: Path) -> None:
    """ShellCheck finds no fault in them, such as a variable without quotes."""
    for number, step in enumerate(SCRIPTS):
        script = tmp_path / f"{number}.sh"
        script.write_text(step["run"])
        command = ["shellcheck", "--shell", "bash", "--severity", "info", str(script)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return the folder of a repository with a model: stages of 60 and 41 ms at best, with a proof of it."""
    folder = tmp_path / "work space"
    folder.mkdir()
    (folder / "model.json").write_text(write_native(chain([10, 20, 30, 40], [1, 1, 1], "ms")))
    return folder


def runner(workspace: Path, **inputs: str) -> Runner:
    """Return a runner whose Python makes environments that hold this checkout, and notes what pip is told."""
    home = workspace.parent / "home"
    home.mkdir(exist_ok=True)
    log = shlex.quote(str(workspace.parent / "log.txt"))
    here = f"PYTHONPATH={shlex.quote(str(ROOT))} NUMBA_CACHE_DIR={shlex.quote(str(own_folders()[0]))} NO_COLOR=1 exec"
    mtpp = program(workspace.parent / "made" / "mtpp", (
        f'case "$1" in warmup) echo "mtpp $*" >> {log}; exit;; esac\n' + _report_until_there_is_one() +
        f'{here} {shlex.join(MTPP)} "$@"'
    ))  # fmt: skip
    python = program(workspace.parent / "made" / "python", (
        f'if [ "$1 $2" = "-m pip" ]; then echo "$*" >> {log}; exit; fi\n{here} {shlex.quote(sys.executable)} "$@"'
    ))  # fmt: skip
    base = program(workspace.parent / "made" / "base", (
        f'if [ "$1 $2" = "-m venv" ]; then echo "venv" >> {log}; mkdir -p "$3/bin"; '
        f'cp {shlex.quote(str(mtpp))} {shlex.quote(str(python))} "$3/bin/"; exit; fi\n'
        f'exec {shlex.quote(sys.executable)} "$@"'
    ))  # fmt: skip
    outputs = {"python": {"python-path": str(base)}}
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    return Runner(ROOT, {"model": "model.json", **given}, workspace, clean_environment(home), outputs)


def _report_until_there_is_one() -> str:
    """Return a stand-in for a command that may come later: it writes a page where it is told to."""
    if "report" in COMMANDS:
        return ""
    return 'if [ "$1" = report ]; then while [ "$1" != -o ]; do shift; done; echo "<html>" > "$2"; exit; fi\n'


def log_of(workspace: Path) -> list[str]:
    """Return what was installed and compiled, and forget it."""
    log = workspace.parent / "log.txt"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


@pytest.mark.slow
@needs_bash
def test_plans_for_several_numbers_of_stages(workspace: Path) -> None:
    """They are verified and kept as one file, and have no figures to hand on."""
    ran = runner(workspace, k="1-2")
    assert ran.run() == 0, ran.printed
    assert len(json.loads((workspace / "mtpp-plan.json").read_text())["plans"]) == 2
    assert {name for name, value in ran.results().items() if value} == {"plan"}


@needs_bash
def test_a_plan_that_will_do(workspace: Path) -> None:
    """Plan, report and outputs are there; the summary has the stages and what mtpp verify says."""
    ran = runner(workspace, k="2", require_optimal="true", plan="out/the plan.json")
    assert ran.run() == 0, ran.printed
    plan = json.loads((workspace / "out" / "the plan.json").read_text())
    assert ran.results() == {
        "bottleneck": str(plan["bottleneck"]),
        "ratio": "1.0",
        "optimal": "true",
        "plan": "out/the plan.json",
    }
    assert ran.outputs["partition"]["report"] == "out/the plan.html"
    assert (workspace / "out" / "the plan.html").stat().st_size > 0
    summary = ran.summary.read_text(encoding="utf-8")
    assert summary.startswith("### ")
    assert "| stage | ops |" in summary
    assert "valid, proven optimal: no partition into 2 stages has a smaller bottleneck" in summary
    assert "unmet" not in summary
    again = run("verify", workspace / "out" / "the plan.json", "--model", workspace / "model.json")
    assert again.returncode == 0


@needs_bash
def test_a_requirement_that_is_unmet(workspace: Path) -> None:
    """Exit code 1, and still a plan, a report, outputs, and a summary that says what is unmet."""
    ran = runner(workspace, k="3", arguments="--algorithm random-1 --seed 3", require_ratio="1.0")
    assert ran.run() == 1, ran.printed
    results = ran.results()
    assert results["plan"] == "mtpp-plan.json"
    assert results["optimal"] == "false"
    assert float(results["ratio"]) > 1
    assert (workspace / "mtpp-plan.html").exists()
    summary = ran.summary.read_text(encoding="utf-8")
    assert "unmet: --require-ratio 1" in summary
    assert "unmet: --require-ratio 1" in ran.printed
    assert "<summary>mtpp verify</summary>" in summary


@needs_bash
@pytest.mark.parametrize(
    ("inputs", "code", "said"),
    [
        ({"k": "2", "model": "absent.onnx"}, 2, "error: absent.onnx: no such file"),
        ({}, 2, "give either -k or --max-bottleneck"),
        ({"k": "2", "max_bottleneck": "5ms"}, 2, "give either -k or --max-bottleneck"),
        ({"k": "two"}, 2, "'two' is neither a number of stages"),
        ({"k": "2", "arguments": "--no-such-option"}, 2, "No such option"),
        ({"k": "2", "require_ratio": "-1"}, 2, "--require-ratio"),
        ({"k": "2", "arguments": '--dim "open'}, 2, "a quote is open"),
        ({"k": "1", "arguments": "--stage-memory 1B --costs absent.json"}, 2, "absent.json"),
        ({"max_bottleneck": "5ms"}, 1, "error: "),
    ],
)  # fmt: skip
def test_codes_of_partition_pass_through(inputs: dict[str, str], code: int, said: str, workspace: Path) -> None:
    """Bad input is 2 and what is infeasible 1; there are no outputs, whatever plan lay there before."""
    (workspace / "mtpp-plan.json").write_text("of yesterday")
    ran = runner(workspace, **inputs)
    assert ran.run() == code, ran.printed
    assert said in ran.printed
    assert "Traceback" not in ran.printed
    assert set(ran.results().values()) == {""}
    assert (workspace / "mtpp-plan.json").read_text() == "of yesterday"


@pytest.mark.slow
@needs_bash
def test_codes_of_verify_pass_through(workspace: Path) -> None:
    """What is left unchecked is 3 unless that is accepted; the page is made by what says how to read the plan alone."""
    shutil.copy(sample_path("resnet50"), workspace / "net.onnx")

    def code(verify_arguments: str, **more: str) -> int:
        ran = runner(workspace, model="net.onnx", k="4", verify_arguments=verify_arguments, **more)
        found = ran.run()
        assert ran.outputs["partition"].get("report", "") == ("" if more else "mtpp-plan.html"), ran.printed
        return found

    assert code("--shallow", report="false") == 3
    assert code("--require-tier=exact", report="false") == 1
    assert code("--shallow --accept-unchecked --require-tier solver") == 0


@needs_bash
def test_inputs_run_nothing(workspace: Path) -> None:
    """Names of files and arguments with commands, quotes and line breaks in them stay names and arguments."""
    name = "$(touch hacked) `touch hacked`; touch hacked.json"
    shutil.move(workspace / "model.json", workspace / name)
    ran = runner(workspace, model=name, k="2", plan='$(touch hacked)"; touch hacked.json', report="false")
    assert ran.run() == 0, ran.printed
    assert ran.results()["plan"] == '$(touch hacked)"; touch hacked.json'
    for arguments in ("--seed $(touch hacked)", "--seed '1; touch hacked'", "--seed 1\ntouch hacked", "* ~ $HOME"):
        assert runner(workspace, model=name, k="2", arguments=arguments).run() == 2
    assert runner(workspace, model=name, k="2; touch hacked").run() == 2
    assert runner(workspace, model="--help", k="2").run() == 2
    assert not (workspace / "hacked").exists()


@needs_bash
def test_names_in_a_model_are_no_markup_in_the_summary(workspace: Path) -> None:
    """Neither HTML, nor links, nor pictures that another host would be asked for."""
    graph = json.loads((workspace / "model.json").read_text().replace("op0", "<b>0![x](https://example.org/x.png)"))
    (workspace / "model.json").write_text(json.dumps({**graph, "name": "<h1>a & b"}))
    ran = runner(workspace, k="2")
    assert ran.run() == 0, ran.printed
    summary = ran.summary.read_text(encoding="utf-8")
    assert "### &lt;h1>a &amp; b: " in summary
    assert r"| &lt;b>0!\[x](https://example.org/x.png) |" in summary
    assert "<b>" not in summary
    assert "![" not in summary.partition("<details>")[0]


@needs_bash
def test_names_are_no_markup_in_the_summary(workspace: Path) -> None:
    """What verify and standard error say stands there as text."""
    name = "<img src=x>&.json"
    ran = runner(workspace, model=name, k="2")
    assert ran.run() == 2
    summary = ran.summary.read_text(encoding="utf-8")
    assert "<img" not in summary
    assert "&lt;img src=x&gt;&amp;.json" in summary


@needs_bash
def test_what_verify_says_is_one_block_of_text(workspace: Path) -> None:
    """With its errors, and apart from the heading: Markdown would take lines behind a blank one for its own."""
    ran = runner(workspace, k="2", verify_arguments="--no-such-option")
    assert ran.run() == 2
    summary = ran.summary.read_text(encoding="utf-8")
    assert "<summary>mtpp verify</summary>\n\n<pre>\n" in summary
    assert "No such option" in summary.partition("<summary>mtpp verify</summary>")[2]


@needs_bash
@pytest.mark.parametrize("name", ["setup.py", "pyproject.toml", "solvers/jit.py", "mtpp/machine/systems.toml"])
def test_the_cache_is_for_all_that_is_built(name: str, workspace: Path) -> None:
    """An edit of what a wheel is made of, the program that builds it included, is another key; a test is none."""

    def key() -> str:
        ran = runner(workspace, k="2")
        ran.folder = sources
        assert ran.run_step("cache") == 0, ran.printed
        return ran.outputs["cache"]["prefix"]

    sources = workspace.parent / "sources"
    for path in ("pyproject.toml", "setup.py", "mtpp/machine/systems.toml", "solvers/jit.py", "tests/test_action.py"):
        (sources / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, sources / path)
    first = key()
    with (sources / "tests" / "test_action.py").open("a") as file:
        file.write("# more\n")
    assert key() == first
    with (sources / name).open("a") as file:
        file.write("# more\n")
    assert key() != first


@needs_bash
@pytest.mark.parametrize(
    "inputs",
    [{"report": "yes"}, {"require_optimal": "1"}, {"extras": "run torch"}, {"extras": "run]@x"}, {"plan": ""},
     {"plan": "a\nb"}, {"plan": "-o"}],
    ids=str,
)  # fmt: skip
def test_inputs_that_make_no_sense_are_refused_first(inputs: dict[str, str], workspace: Path) -> None:
    """Before anything is installed, with the name of the input."""
    ran = runner(workspace, k="2", **inputs)
    assert ran.run() == 2
    assert f"::error::mtpp: {next(iter(inputs)).replace('_', '-')} has to be " in ran.printed
    assert log_of(workspace) == []


@pytest.mark.slow
@needs_bash
def test_what_is_installed_is_kept(workspace: Path) -> None:
    """The first run installs and compiles, one that finds it in the cache does neither, a new processor compiles."""
    first = runner(workspace, k="2", extras="run")
    assert first.run() == 0, first.printed
    assert log_of(workspace) == [
        "venv",
        f"-m pip install --quiet --disable-pip-version-check --no-cache-dir {ROOT}[run,report]",
        "mtpp warmup --for partition,verify",
    ]
    assert first.outputs["cache"]["folder"] == str(workspace.parent / "home" / ".cache" / "mtpp-action")
    second = runner(workspace, k="2", extras="run")
    second.outputs["fetched"] = {"cache-hit": "true"}
    assert second.run() == 0, second.printed
    assert log_of(workspace) == []
    assert second.outputs["cache"] == first.outputs["cache"]
    third = runner(workspace, k="2", extras="run", report="false")
    third.outputs["fetched"] = {"cache-hit": "false"}
    assert third.run() == 0, third.printed
    assert log_of(workspace) == ["mtpp warmup --for partition,verify"]
    assert third.outputs["cache"]["prefix"] != first.outputs["cache"]["prefix"]
    assert re.fullmatch(r"mtpp-Linux-[0-9a-f]{32}-", first.outputs["cache"]["prefix"])
