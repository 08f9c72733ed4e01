"""Completion in shells: commands, options, values and files, with a TAB pressed where the shell is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import environment, run
from shells import after_tabs, bash_replies, fish_completions

from mtpp.cli.main import COMMANDS
from mtpp.cli.terminal.completing import rejoined

SHELLS = ("bash", "zsh", "fish")
LINES = {
    "mtpp part": "mtpp partition ",
    "mtpp partition mod": "mtpp partition model.onnx ",
    "mtpp partition model.onnx --max-b": "mtpp partition model.onnx --max-bottleneck ",
    "mtpp partition model.onnx --format mark": "mtpp partition model.onnx --format markdown ",
    "mtpp partition --algorithm series": "mtpp partition --algorithm series-parallel ",
    "mtpp partition --system lap": "mtpp partition --system laptop-cpu ",
    "mtpp partition --system my": "mtpp partition --system my.toml ",
    "mtpp compare . --algorithms auto,anneal,br": "mtpp compare . --algorithms auto,anneal,brkga ",
    "mtpp generate transformer --kind dec": "mtpp generate transformer --kind decoder ",
    "mtpp verify sub": "mtpp verify subfolder/",
    "mtpp partition --dim batch=1 --format=js": "mtpp partition --dim batch=1 --format=json ",
    "mtpp partition --dim batch=1 mod": "mtpp partition --dim batch=1 model.onnx ",
}
"""What is typed before the TAB, and what stands there after it."""

needs = {name: pytest.mark.skipif(not shutil.which(name), reason=f"no {name} here") for name in SHELLS}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a model, a system and a folder in it."""
    (tmp_path / "model.onnx").touch()
    (tmp_path / "my.toml").touch()
    (tmp_path / "subfolder").mkdir()
    return tmp_path


@pytest.mark.parametrize("shell", [pytest.param(name, marks=needs[name]) for name in ("bash", "zsh")])
def test_a_tab_completes_the_word(shell: str, folder: Path) -> None:
    """Commands, options, their values, presets, files and folders, at the prompt of a real shell."""
    completed = [line.rstrip(" /") for line in after_tabs(shell, list(LINES), folder)]
    assert completed == [line.rstrip(" /") for line in LINES.values()]


@needs["fish"]
@pytest.mark.parametrize("typed", LINES)
def test_fish_offers_the_word(typed: str, folder: Path) -> None:
    """The same words in fish, which says what it would offer."""
    assert LINES[typed].split()[-1] in [word.replace("./", "") for word in fish_completions(typed, folder)]


@needs["bash"]
def test_bash_is_offered_all(folder: Path) -> None:
    """Every command for an empty word; every choice of an option; what is left of a list; files for the rest."""
    assert bash_replies(["mtpp", ""], folder) == list(COMMANDS)
    assert bash_replies(["mtpp", "partition", "m", "--format", "="], folder) == ["table", "json", "csv", "markdown"]
    assert bash_replies(["mtpp", "completion", ""], folder) == list(SHELLS)
    assert bash_replies(["mtpp", "certify", "--bounds", "node,no"], folder) == ["node,node-convex"]
    assert bash_replies(["mtpp", "warmup", "--for", "partition,v"], folder) == ["partition,verify"]
    assert bash_replies(["mtpp", "verify", ""], folder) == ["default"]


def test_words_are_put_together() -> None:
    """What bash breaks at = and : is whole again; other words stay as they are."""
    broken = ["partition", "--dim", "batch", "=", "1", "--from", "torch", "a.b", ":", "f", "--format", "=", "js"]
    assert rejoined(broken) == ["partition", "--dim", "batch=1", "--from", "torch", "a.b:f", "--format=js"]
    assert rejoined(["--format", "="]) == ["--format="]
    assert rejoined(["a", "", "b"]) == ["a", "", "b"]


def test_a_completion_imports_no_solver_and_no_other_command() -> None:
    """A TAB costs the start of Python and click: names stand in tables."""
    code = (
        "import sys\nfrom mtpp.cli.main import root\nfrom mtpp.cli.terminal.completing import script\n"
        "from click.shell_completion import BashComplete\n"
        "complete = BashComplete(root, {}, 'mtpp', '_MTPP_COMPLETE').get_completions\n"
        "assert len(complete([], '')) > 10\n"
        "assert 'slice' in [item.value for item in complete(['partition', '--algorithm'], 's')]\n"
        "assert 'onnx' in [item.value for item in complete(['partition', '--from'], '')]\n"
        "late = ('numpy', 'numba', 'onnx', 'networkx', 'rich')\n"
        "loaded = [name for name in sys.modules if name.split('.')[0] in late]\n"
        "commands = [name for name in sys.modules if name in ('mtpp.cli.plan', 'mtpp.cli.run', 'mtpp.cli.generate')]\n"
        "sys.exit(f'{loaded} {commands}' if loaded or commands else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment())


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_needs_no_shell_to_be_printed(shell: str) -> None:
    """It may be written while an image is built that has none of them; another shell is refused in one line."""
    assert "_MTPP_COMPLETE" in run("completion", shell).stdout
    done = run("completion", "tcsh")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
