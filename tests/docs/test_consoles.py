"""Console blocks of README and of all pages print what they show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from consoles import PAGES, agrees, consoles, prepare, printed
from processes import ROOT

from mtpp.cli.main import COMMANDS

SHOWN = {page: list(consoles(page)) for page in PAGES}
WITH_CONSOLES = [page for page, shown in SHOWN.items() if shown]


@pytest.mark.parametrize("page", WITH_CONSOLES, ids=[str(page.relative_to(ROOT)) for page in WITH_CONSOLES])
def test_consoles_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """Every command of a page, in its order and in one folder, prints exactly the text below it, measurements aside."""
    prepare(tmp_path)
    for command, shown, _ in SHOWN[page]:
        done = printed(command, tmp_path)
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout == shown or agrees(command, done.stdout, shown), command


UNSHOWN = {"warmup", "completion"}


def test_every_command_is_shown() -> None:
    """There is a console for each subcommand but those that compile for minutes, or write for shells."""
    shown = " ".join(console.command for page in SHOWN.values() for console in page)
    assert {command for command in COMMANDS if not re.search(rf"\bmtpp {command}\b", shown)} == UNSHOWN


def test_no_console_is_overlooked() -> None:
    """Every fence that says so is read as one."""
    for page in PAGES:
        fences = page.read_text(encoding="utf-8").count("```console")
        assert fences <= len(SHOWN[page])
        assert fences == 0 or SHOWN[page]
