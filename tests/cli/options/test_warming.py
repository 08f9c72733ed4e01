"""``--warm-up-behind`` after commands that came to their end, and ``--trips``, read beside sizes and kept by plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import onnx
import onnx.parser
import pytest

import mtpp
from mtpp.cli.options.sizes import sizes_of
from mtpp.cli.options.warming import warm_up_behind_option
from mtpp.errors import InputError


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return what is compiled behind commands."""
    found: list[list[str]] = []
    monkeypatch.setattr("mtpp.api.warmup.warm_up_behind", found.append)
    return found


@click.command()
@click.option("--end", type=int, default=0)
@click.option("--wrong", is_flag=True)
@warm_up_behind_option("verify")
@click.pass_context
def command(ctx: click.Context, **options: Any) -> str:
    """End with a code, or fail."""
    assert sorted(options) == ["end", "wrong"]
    if options["wrong"]:
        raise InputError("is wrong")
    if options["end"]:
        ctx.exit(options["end"])
    return "done"


def test_after_a_command(started: list[list[str]]) -> None:
    """Whether it ends well or with an exit code of its own, its kernels are compiled once it is done."""
    assert command.main(["--warm-up-behind"], standalone_mode=False) == "done"
    for code in (1, 3):
        assert command.main(["--warm-up-behind", "--end", str(code)], standalone_mode=False) == code
    assert started == [["verify"]] * 3


def test_not_otherwise(started: list[list[str]]) -> None:
    """Unasked, after bad input and after an interruption nothing is started."""
    command.main([], standalone_mode=False)
    command.main(["--warm-up-behind", "--end", "130"], standalone_mode=False)
    with pytest.raises(InputError):
        command.main(["--warm-up-behind", "--wrong"], standalone_mode=False)
    with pytest.raises(click.UsageError):
        command.main(["--warm-up-behind", "--other"], standalone_mode=False)
    assert not started


ENDLESS = """
<ir_version: 8, opset_import: ["": 17]>
g (float[2,4] x) => (float[2,4] z) <bool yes = {1}, float half = {0.5}, float one = {1.0}> {
    h = Exp(x)
    l = Loop ("", yes, h) <body = b (int64 i, bool c, float[2,4] a) => (bool go, float[2,4] t) {
        t = Mul(a, half) n = ReduceSum<keepdims = 0>(t) go = Greater(n, one)
    }>
    z = Relu(l)
}
"""


def test_trips_are_read_beside_sizes() -> None:
    """They stand among the sizes under a key of their own."""
    given = {"dims": ("batch=2",), "trips": ("while_loop=64", "a=b=3"), "auto_dims": "auto"}
    assert sizes_of(given) == {"batch": 2, "while_loop:trips": 64, "a=b:trips": 3, "*": "auto"}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("loop",), "'loop' is not NODE=VALUE"),
        (("loop=0",), "'loop=0' is not NODE=VALUE"),
        (("=3",), "'=3' is not NODE=VALUE"),
        (("loop=3", "loop=4"), "'loop' is set twice"),
        (("loop=" + "9" * 30,), "the value of 'loop' is too large"),
    ],
)
def test_trips_that_make_no_sense(texts: tuple[str, ...], words: str) -> None:
    """They are refused with the flag's name."""
    with pytest.raises(InputError, match=words) as caught:
        sizes_of({"dims": (), "trips": texts, "auto_dims": None})
    assert caught.value.source == "--trips"


def test_a_plan_keeps_the_trips_that_it_was_made_with(tmp_path: Path) -> None:
    """What is not modelled names the loop; with trips given, the plan is verified and split with the same."""
    pytest.importorskip("onnxruntime")
    path = tmp_path / "endless.onnx"
    onnx.save(onnx.parser.parse_model(ENDLESS), path)
    document = mtpp.inspect(path)
    assert "trips of 'l' (one counted)" in repr(document)
    assert "set it with --trips l=64" in repr(document)
    plan = mtpp.partition(mtpp.read(path, dims={"l:trips": 64}), 2)
    assert any(text.endswith("64 trips, as given") for text in plan.assumptions)
    assert mtpp.verify(plan.document(), model=path).passed
    assert mtpp.split(path, plan.document(), check=True).passed
