"""The site has a page for everything, links that lead somewhere, and nothing that is fetched from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import ROOT, environment

import mtpp
from mtpp.cli.main import COMMANDS

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
OTHERS = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
OTHERS += [ROOT / "benchmarks" / "README.md", ROOT / "examples" / "README.md"]
NEEDED = ("sphinx", "myst_parser", "furo", "sphinx_click", "sphinx_copybutton")


def test_links_lead_to_files() -> None:
    """Every relative link of the pages, and of the files that they include, names a file that is there."""
    links = [
        (page, link)
        for page in (*OTHERS, *PAGES)
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    ]
    assert [(str(page), link) for page, link in links if not (page.parent / link).exists()] == []


def test_every_command_has_a_page() -> None:
    """One with its options, drawn from click, listed in the contents with its line of help."""
    assert {path.stem for path in (DOCS / "commands").glob("*.md")} == {*COMMANDS, "index"}
    contents = (DOCS / "commands" / "index.md").read_text(encoding="utf-8")
    for command, line in COMMANDS.items():
        assert f"| [`mtpp {command}`]({command}.md) | {line.removesuffix('.')} |" in contents
        page = (DOCS / "commands" / f"{command}.md").read_text(encoding="utf-8")
        assert f".. click:: mtpp.cli.{command}:command\n   :prog: mtpp {command}\n" in page
        assert f"\n{command}\n" in contents


def test_every_public_name_is_in_the_reference() -> None:
    """All that ``mtpp`` exports is documented by its docstring."""
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    documented = set(re.findall(r"^\.\. auto\w+:: (?:mtpp\.)?(\w+)(?:\(\))?$", pages, re.MULTILINE))
    assert set(mtpp.__all__) <= documented


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, warnings being errors."""
    if not all(find_spec(name) for name in NEEDED):
        pytest.skip("the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
    done = subprocess.run(
        [*build, "--doctree-dir", str(folder / "doctrees"), str(DOCS), str(folder / "html")],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


@pytest.mark.slow
def test_pages_fetch_nothing(site: Path) -> None:
    """Scripts, styles and pictures of every page are files of the site, and so is all that its styles name."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        tags = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", text)
        for address in re.findall(r'\b(?:src|href)="([^"]*)"', "".join(tags)):
            assert not re.match(r"(?:https?:)?//", address), (page, address)
            if not address.startswith(("data:", "#")):
                assert (page.parent / address.partition("?")[0]).exists(), (page, address)
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*['\"]?(?:https?:)?//", style.read_text(encoding="utf-8")), style


@pytest.mark.slow
def test_the_reference_says_what_helps_say(site: Path) -> None:
    """Pages of commands list their options, and names of formats that a help fills in."""
    page = (site / "commands" / "convert.html").read_text(encoding="utf-8")
    assert "--assignment" in page
    assert "{}" not in page
    assert "graphml" in page
    report = (site / "commands" / "report.html").read_text(encoding="utf-8")
    assert "<strong>Required</strong> HTML file" in report
    assert "True" not in report
    families = (site / "commands" / "generate.html").read_text(encoding="utf-8")
    assert not re.search(r"<p class=\"rubric\">[^<]*</p>\s*(?:<section|</section)", families)
    plan = (site / "reference" / "partitions.html").read_text(encoding="utf-8")
    assert "mtpp.api.partition_plan.PartitionPlan.stage_of" in plan
