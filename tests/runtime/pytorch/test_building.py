"""Functions that build models: found, called, and what is wrong with them told in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

from mtpp.errors import InputError
from mtpp.runtime.pytorch.exporting import built_program

BUILDERS = """
    import torch
    from torch import nn

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 5)
        def forward(self, x, *, by=None):
            return self.layer(x) if by is None else self.layer(x) * by

    X = torch.ones(2, 3)
    number = 3

    def pair(): return Scaled().train(), (X,)
    def triple(): return Scaled(), (X,), {"by": torch.ones(5)}
    def program(): return torch.export.export(Scaled(), (X,))
    def alone(): return Scaled()
    def four(): return Scaled(), (X,), {}, {}
    def nothing(): pass
    def empty(): return ()
    def as_list(): return Scaled(), [X]
    def as_tuple(): return Scaled(), (X,), (X,)
    def raises(): raise ValueError("no weights\\nhere")
    def leaves(): raise SystemExit(3)
    def needs(width): return None
    def wrong_shape(): return Scaled(), (torch.ones(2, 4),)
    def imports():
        import nonexistent_module

    class Models:
        small = staticmethod(pair)
"""
FILES = {
    "builders": BUILDERS,
    "needy": "import nonexistent_module",
    "broken": "1 / 0",
    "unclosed": "x = (",
    "leaving": "raise SystemExit",
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a folder with modules that nothing else knows of."""
    for name, text in FILES.items():
        (tmp_path / f"{name}_of_models.py").write_text(dedent(text))
    monkeypatch.chdir(tmp_path)
    yield
    for name in FILES:
        sys.modules.pop(f"{name}_of_models", None)


@pytest.mark.parametrize(
    ("function", "calls"),
    [("pair", ["linear"]), ("triple", ["linear", "mul"]), ("program", ["linear"]), ("Models.small", ["linear"])],
)
def test_what_a_function_may_return(function: str, calls: list[str]) -> None:
    """A module with inputs, by name too, or a program; the search path is as it was before."""
    before = list(sys.path)
    exported = built_program(f"builders_of_models:{function}")
    assert [one.name for one in exported.graph.nodes if one.op == "call_function"] == calls
    assert sys.path == before


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("", "'': names no function of a module; write package.module:function"),
        ("builders_of_models", "names no function of a module"),
        ("builders_of_models:", "names no function of a module"),
        (":pair", "names no function of a module"),
        ("./builders_of_models.py:pair", "names no function of a module"),
        ("builders_of_models.py:pair", "there is no module 'builders_of_models.py'; write builders_of_models:pair"),
        ("none_of_models:pair", "there is no module 'none_of_models'; run mtpp in the folder that it is in"),
        ("none_of_models.inner:pair", "there is no module 'none_of_models.inner'"),
        ("needy_of_models:pair", "it imports 'nonexistent_module', which is not installed"),
        ("broken_of_models:pair", "importing it raised ZeroDivisionError: division by zero; call it in Python"),
        ("unclosed_of_models:pair", "importing it raised SyntaxError: '(' was never closed"),
        ("leaving_of_models:pair", "importing it raised SystemExit; call"),
        ("builders_of_models:none", "module 'builders_of_models' has no function 'none'"),
        ("builders_of_models:number.none", "module 'builders_of_models' has no function 'number.none'"),
        ("builders_of_models:number", "'number' is no function, but an object of the type int"),
        ("builders_of_models:alone", "the function returned a module alone; return (module, args), "),
        ("builders_of_models:four", "the function returned 4 values; return"),
        ("builders_of_models:nothing", "the function returned None; return"),
        ("builders_of_models:empty", "the function returned an object of the type tuple; return"),
        ("builders_of_models:as_list", "returned an object of the type list in place of a tuple of inputs; return"),
        ("builders_of_models:as_tuple", "returned an object of the type tuple in place of a dictionary of inputs"),
        ("builders_of_models:raises", "the function raised ValueError: no weights; call it in Python"),
        ("builders_of_models:leaves", "the function raised SystemExit: 3"),
        ("builders_of_models:needs", "the function raised TypeError: needs() missing 1 required"),
        ("builders_of_models:imports", "the function raised ModuleNotFoundError: No module named 'nonexistent_module'"),
        ("builders_of_models:wrong_shape", "cannot export it: a and b must have same reduction dim"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(place: str, message: str) -> None:
    """By the text that was given, with what to do."""
    with pytest.raises(InputError) as caught:
        built_program(place)
    assert message in str(caught.value)
    assert str(caught.value).startswith(place or "''")
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_what_is_printed_goes_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output carries results and nothing else."""
    module = tmp_path / "needy_of_models.py"
    module.write_text(
        "print('imported')\nfrom builders_of_models import pair\ndef build(): print('built'); return pair()"
    )
    built_program("needy_of_models:build")
    assert capsys.readouterr() == ("", "imported\nbuilt\n")
