"""README and docs show what the program prints, and the README's two commands are there."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from processes import MTPP, ROOT, environment

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [README, *(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))]
EXAMPLES = re.findall(r"```console\n\$ ([^\n]+)\n(.*?)```", "\n".join(PAGES), re.DOTALL)


SECONDS = re.compile(r" +[\d.,]+(?: in all cells together)?$", re.MULTILINE)


def _same_everywhere(command: str, text: str) -> str:
    """Leave out of a comparison what depends on the machine: the column of seconds, and the number of cores."""
    if not command.startswith(("mtpp compare", "mtpp certify")):
        return text
    return re.sub(r"\d+ threads?", "threads", SECONDS.sub("", text))


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_examples_print_what_the_readme_shows(command: str, shown: str) -> None:
    """Every console example, run as it stands, prints exactly the text below it, measured times aside."""
    line = re.sub(r"(^|\| )mtpp ", lambda match: f"{match[1]}{shlex.join(MTPP)} ", command)
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert _same_everywhere(command, done.stdout) == _same_everywhere(command, shown)


def test_every_example_was_found() -> None:
    """Partition and the pipe to verify; in docs compare, inspect, certify, the pipe to split, and training."""
    shown = ["partition", "convert", "compare", "inspect", "partition", "partition", "certify"]
    shown += ["simulate", "generate", "partition", "generate", "generate", "generate", "generate"]
    assert [command.split()[1] for command, _ in EXAMPLES] == shown


def test_links_lead_to_files() -> None:
    """Every relative link of README and docs names a file that is there."""
    pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    links = [
        (page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    ]
    assert [(str(page), link) for page, link in links if not (page.parent / link).exists()] == []


def test_readme_is_short() -> None:
    """What, install, five minutes, where to read on."""
    assert len(README.splitlines()) <= 200


@pytest.mark.parametrize("end", [r"mtpp partition \S+\.onnx -k \d+", r"python -m pytest -n logical"])
def test_set_up_is_one_line(end: str) -> None:
    """One shell line installs and partitions a shipped model, one installs and runs the tests."""
    (line,) = re.findall(rf"^(python3 -m venv .venv && .*{end})$", README, re.MULTILINE)
    for name in re.findall(r"\S+\.onnx", line):
        assert Path(ROOT / name).is_file()
