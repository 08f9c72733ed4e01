"""Pictures of seconds against ops, and the CSV beside them."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from certificate_documents import row
from processes import ROOT, environment

from mtpp.errors import InputError
from mtpp.inference.certificate_table import CertificateRow
from mtpp.views.certificate_plot import check_plot, write_plot


def rows() -> list[CertificateRow]:
    """Return two graphs for two k, one bound out of time."""
    return [
        row(name, k, 30, simple=10, node=20, exact_mip=-25, method="exact-mip", ops_=ops)
        for name, ops in (("a", 50), ("b", 200))
        for k in (4, 16)
    ]


def texts(path: Path) -> list[str]:
    """Return what an SVG of matplotlib's says, in order; letters are drawn, and named in comments."""
    return re.findall(r"<!-- (.*?) -->", path.read_text())


@pytest.fixture
def matplotlib() -> None:
    """Skip where there is no matplotlib."""
    pytest.importorskip("matplotlib")


def test_csv_holds_every_point(tmp_path: Path, matplotlib: None) -> None:
    """One line per run, in the order of the table; the simple bound too, which is not drawn."""
    write_plot(str(tmp_path / "seconds.svg"), rows()[:2], 60)
    assert (tmp_path / "seconds.csv").read_text() == (
        "model,ops,k,method,seconds,solved\n"
        "a,50,4,partition,0.5,true\na,50,4,simple,0.25,true\na,50,4,node,0.25,true\na,50,4,exact-mip,0.25,false\n"
        "a,50,16,partition,0.5,true\na,50,16,simple,0.25,true\na,50,16,node,0.25,true\na,50,16,exact-mip,0.25,false\n"
    )


def test_a_panel_for_each_k_and_a_legend(tmp_path: Path, matplotlib: None) -> None:
    """Axes have names and units, methods are named once, and so is the limit."""
    path = tmp_path / "seconds.svg"
    write_plot(str(path), rows(), 3600)
    said = texts(path)
    assert [text for text in said if text.startswith("k =")] == ["k = 4", "k = 16"]
    assert (said.count("ops"), said.count("time (s)")) == (2, 1)
    first, *_, last = methods = said[said.index("partition") :][:5]
    assert (first, set(methods[1:3]), last) == ("partition", {"node", "exact-mip"}, "limit per cell, 3600 s")
    assert methods[3] == "hollow: stopped"
    assert "Time of each method against the number of ops: 2 graphs" in said
    assert "simple" not in said


def test_bounds_alone_have_no_partition(tmp_path: Path, matplotlib: None) -> None:
    """And without a limit there is no line, without stopped bounds nothing hollow."""
    path = tmp_path / "seconds.svg"
    write_plot(str(path), [row("net", simple=10, node=12, method="node")])
    said = texts(path)
    assert "Time of each method against the number of ops: net" in said
    assert "node" in said
    assert not {"partition", "hollow: stopped"} & set(said)
    assert not any(text.startswith("limit") for text in said)


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("PDF", b"%PDF"), ("svg", b"<?xml")])
def test_formats_are_written_alike_each_time(tmp_path: Path, ending: str, start: bytes, matplotlib: None) -> None:
    """No date is in the file, so that a rerun changes nothing."""
    first, second = tmp_path / f"one.{ending}", tmp_path / f"two.{ending}"
    for path in (first, second):
        check_plot(str(path))
        write_plot(str(path), rows(), 60)
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(("panels", "shape"), [(1, (1, 1)), (3, (3, 1)), (4, (2, 2)), (6, (3, 2))])
def test_size_grows_with_the_panels(tmp_path: Path, panels: int, shape: tuple[int, int], matplotlib: None) -> None:
    """At most three panels stand beside each other; no panel is smaller than those of the paper's figures."""
    path = tmp_path / "seconds.png"
    write_plot(str(path), [row(k=2**i, upper=3, simple=2, node=3, method="node") for i in range(panels)], 60)
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    assert width >= 500 * shape[0]
    assert height >= 450 * shape[1]


def test_no_rows_give_an_empty_picture(tmp_path: Path, matplotlib: None) -> None:
    """An interrupted run may have finished no cell."""
    path = tmp_path / "seconds.png"
    write_plot(str(path), [])
    assert path.read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "seconds.csv").read_text() == "model,ops,k,method,seconds,solved\n"


def test_drawing_needs_no_display_and_no_state(tmp_path: Path, matplotlib: None) -> None:
    """Pyplot, which looks for a display, is not loaded; a bad backend in the environment does no harm."""
    code = (
        "import sys\nfrom mtpp.views.certificate_plot import check_plot, write_plot\n"
        "check_plot(sys.argv[1])\nwrite_plot(sys.argv[1], [], 60)\nassert 'matplotlib.pyplot' not in sys.modules"
    )
    variables = {**environment(), "MPLBACKEND": "TkAgg"}
    variables.pop("DISPLAY", None)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "seconds.png")],
        cwd=ROOT, env=variables, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    assert "Error" not in done.stderr


def test_problems_are_named_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown ending, a missing folder, a folder for a CSV, no matplotlib: one line each."""

    def problem(path: Path) -> str:
        with pytest.raises(InputError) as caught:
            check_plot(str(path))
        assert caught.value.exit_code == 2
        return str(caught.value).replace(str(tmp_path), "T")

    assert problem(tmp_path / "seconds.jpg") == (
        "--plot T/seconds.jpg: is no kind of picture that can be drawn; let the name end in .png or .svg or .pdf"
    )
    assert problem(tmp_path / "none" / "seconds.png") == (
        "T/none/seconds.png: there is no directory 'T/none'; make it first"
    )
    (tmp_path / "taken.csv").mkdir()
    assert problem(tmp_path / "taken.png") == "T/taken.csv: is a directory; give the name of a file"
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = problem(tmp_path / "seconds.png")
    assert text.startswith("plot: needs matplotlib (")
    assert text.endswith("; run: pip install 'mtpp[plot]'")
    assert list(tmp_path.iterdir()) == [tmp_path / "taken.csv"]
