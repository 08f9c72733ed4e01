"""``--warm-up-behind``: after a command that came to its end, and only when asked for."""

from __future__ import annotations

from typing import Any

import click
import pytest

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
