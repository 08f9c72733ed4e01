"""Programs that functions build, and those with own operators, effect tokens or whole numbers as inputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from stage_equality import assert_equal, run_program_stages  # noqa: E402

import mtpp  # noqa: E402
from mtpp.errors import InputError  # noqa: E402
from mtpp.runtime.pytorch.exporting import built_program  # noqa: E402

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


@pytest.fixture(scope="module")
def operators() -> Iterator[Any]:
    """Return operators that add 1 to their second operand, without a result and with one."""
    library = torch.library.Library("mtpp_custom", "DEF")
    library.define("raised(Tensor by, Tensor(a!) target) -> ()")
    library.define("raised_and_doubled(Tensor by, Tensor(a!) target) -> Tensor")
    library.impl("raised", _raise, "CompositeExplicitAutograd")
    library.impl("raised_and_doubled", lambda by, target: target.add_(by) * 2, "CompositeExplicitAutograd")
    yield torch.ops.mtpp_custom
    library._destroy()


def _raise(by: Any, target: Any) -> None:
    target.add_(by)


def _saved(forward: Any, path: Path) -> Path:
    module = torch.nn.Module()
    module.forward = forward
    torch.export.save(torch.export.export(module, (torch.ones(3),)), path)
    return path


def test_operators_without_results_stay_beside_readers_of_their_operands(operators: Any, tmp_path: Path) -> None:
    """An operator without results runs for what it writes: it counts, and no cut changes what readers see."""

    def forward(x: Any) -> Any:
        y = x.exp()
        before = y * 3
        operators.raised(x, y)
        return before.sin(), (y * 2).cos()

    path = _saved(forward, tmp_path / "model.pt2")
    reading = mtpp.read(path)
    assert reading.graph.metadata["not_modelled"] == {"mtpp_custom.raised": 1}
    x = torch.tensor([0.5, -1.0, 2.0])
    for number, cut in enumerate(range(1, reading.graph.op_count)):
        plan = {name: int(place >= cut) for place, name in enumerate(reading.graph.op_names)}
        mtpp.split(reading, plan, tmp_path / f"stages{number}")
        assert_equal(run_program_stages(tmp_path / f"stages{number}", {"x": x}), list(forward(x.clone())))


def test_operators_with_results_that_write_are_refused_with_a_remedy(operators: Any, tmp_path: Path) -> None:
    """An operator whose result hides a write crosses no cut unnoticed; decomposed, the program splits."""

    def forward(x: Any) -> Any:
        y = x.exp()
        return operators.raised_and_doubled(x, y) + y

    path = _saved(forward, tmp_path / "model.pt2")
    reading = mtpp.read(path)
    plan = {name: int(place > 0) for place, name in enumerate(reading.graph.op_names)}
    with pytest.raises(InputError, match=r"'raised_and_doubled' writes what it reads.*run_decompositions\(\)"):
        mtpp.split(reading, plan, tmp_path / "stages")


class Inverted(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A layer before and after the inverse of a matrix, which PyTorch checks in core programs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        """Return one result of what is inverted."""
        a = self.layer(x).relu()
        return self.layer(torch.linalg.inv(a @ a.T + torch.eye(4))).relu()


def test_a_token_is_no_tensor_of_the_program(tmp_path: Path) -> None:
    """The call behind it is read in its place, and stages compute what the whole does on several inputs."""
    torch.manual_seed(0)
    model, whole = tmp_path / "m.pt2", Inverted().eval()
    torch.export.save(torch.export.export(whole, (torch.zeros(4, 4),)).run_decompositions(), model)
    read = mtpp.read(model)
    assert not [name for name in read.graph.op_names if "effects" in name]
    assert [one["name"] for one in read.graph.metadata["inputs"]] == ["x"]
    for k in (2, 3):
        folder = tmp_path / f"k{k}"
        check = mtpp.split(model, mtpp.partition(read, k), folder, check=True).stages.check
        assert check is not None
        assert check.passed
        for _ in range(3):
            x = torch.randn(4, 4)
            torch.testing.assert_close(run_program_stages(folder, {"x": x})[0], whole(x))


class FirstRows(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A product of the first rows of a product."""

    def forward(self, x: Any, n: int) -> Any:
        """Return as many rows as asked for, and a number."""
        return (x @ x)[:n].relu() @ x, n + 1


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Save a program exported for three rows of at most six."""
    free = {"x": None, "n": torch.export.Dim.DYNAMIC}
    path = tmp_path / "rows.pt2"
    torch.export.save(torch.export.export(FirstRows(), (torch.randn(6, 6), 3), dynamic_shapes=free), path)
    return path


@pytest.mark.parametrize(("rows", "proposed"), [(4, False), pytest.param(3, True, marks=pytest.mark.slow)])
def test_stages_are_for_the_number_that_was_planned_for(
    rows: int, proposed: bool, program: Path, tmp_path: Path
) -> None:
    """The check draws no other one, and stages give that many rows."""
    plan = mtpp.partition(mtpp.read(program, dims="auto" if proposed else {"n": rows}), 2)
    folder = tmp_path / "stages"
    check = mtpp.split(program, plan, folder, check=True).stages.check
    assert check is not None
    assert check.passed
    assert not check.random
    x = torch.randn(6, 6)
    torch.testing.assert_close(run_program_stages(folder, {"x": x})[0], FirstRows()(x, rows)[0])
    ran = mtpp.run_pipeline(folder, model=program, batches=2, warmup=1)
    assert "equal those of the unsplit model" in str(ran)
    with pytest.raises(InputError, match="is 5, and the stages are made for"):
        mtpp.run_pipeline(folder, batches=2, inputs={"n": np.array(5)})


def test_the_number_is_named_as_the_input_is(program: Path) -> None:
    """An open one is asked for by the name of the input, and held to the program's limits."""
    with pytest.raises(InputError, match="'n' "):
        mtpp.read(program)
    with pytest.raises(InputError, match="sizes from 0 to 6"):
        mtpp.read(program, dims={"n": 7})


def test_ops_are_measured_for_it(program: Path) -> None:
    """A profile feeds the number that is asked for."""
    assert mtpp.profile(program, dims={"n": 4}, repeats=1, warmup=0).graph.op_names
