"""A ``split_spec``: played back as PyTorch does, it gives the stages that it was made from."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from exporter_requests import cut, transformer
from hypothesis import given
from hypothesis import strategies as st

from mtpp.errors import InputError
from mtpp.formats.exporters.request import Request
from mtpp.formats.exporters.torch_pipelining import emit_torch


def _spec(text: str) -> dict[str, str]:
    """Read the Python text without running it."""
    imported, assigned = ast.parse(text).body
    assert isinstance(imported, ast.ImportFrom)
    assert imported.module == "torch.distributed.pipelining"
    assert isinstance(assigned, ast.Assign)
    assert isinstance(assigned.value, ast.Dict)
    pairs = zip(assigned.value.keys, assigned.value.values, strict=True)
    return {ast.literal_eval(key): value.attr for key, value in pairs if key and isinstance(value, ast.Attribute)}


def _played(paths: list[str], spec: dict[str, str]) -> list[int]:
    """Return the stage of each op: it grows whenever a named module is entered (BEGINNING) or left (END)."""
    stage, stages = 0, []
    inside = set[str]()
    for path in paths:
        now = {module for module in spec if path == module or path.startswith(f"{module}.")}
        stage += sum(spec[module] == "END" for module in inside - now)
        stage += sum(spec[module] == "BEGINNING" for module in now - inside)
        inside = now
        stages.append(stage)
    return stages


def test_layers() -> None:
    """The outermost module that begins at a boundary stands for it, never the list that holds the layers."""
    request = cut(*transformer(6), ["mask", "add1", "add3", "add5"])
    assert _spec(emit_torch(request)) == {
        "model.layers.0": "BEGINNING",
        "model.layers.2": "BEGINNING",
        "model.layers.4": "BEGINNING",
        "model.norm": "BEGINNING",
    }


def test_inside_a_layer() -> None:
    """A part of a layer will do, and where nothing begins, the end of what came before."""
    request = cut(*transformer(3), ["residual0", "attention1"])
    assert _spec(emit_torch(request)) == {"model.layers.0.mlp": "BEGINNING", "model.layers.1.attention": "END"}


@given(st.sets(st.integers(0, 20), max_size=6), st.integers(0, 3))
def test_what_is_said_is_what_was_meant(positions: set[int], hidden: int) -> None:
    """Whatever the cuts, the specification gives exactly those stages, or is refused."""
    graph, modules = transformer(3)
    request = cut(graph, modules, [graph.op_names[position] for position in sorted(positions)])
    known = {op: path for i, (op, path) in enumerate(modules.items()) if not hidden or i % 4 != hidden}
    try:
        spec = _spec(emit_torch(Request(graph, request.assignment, request.k, known)))
    except InputError:
        return
    played = _played([modules[op] for op in graph.op_names], spec)
    assert np.unique(played, return_inverse=True)[1].tolist() == request.assignment.tolist()


@pytest.mark.parametrize("ends", [["up0", "down0"], ["norm0"], ["embed"], ["attention0"], ["norm1", "attention1"]])
def test_ends_of_modules(ends: list[str]) -> None:
    """Wherever one module ends or begins there is a way to say it, and no module has to do so twice."""
    assert len(_spec(emit_torch(cut(*transformer(2), ends)))) == len(ends)


def test_no_module_begins_or_ends() -> None:
    """The message names the stage and the ops on both sides."""
    graph, modules = transformer(2)
    modules |= dict.fromkeys(("norm1", "attention1", "residual1"), "model.layers.1.part")
    with pytest.raises(InputError, match="stage 1 begins between 'attention1' and 'residual1', where no module"):
        emit_torch(cut(graph, modules, ["attention1"]))


def test_a_module_that_is_called_twice() -> None:
    """It would cut twice, so it stands for no boundary."""
    graph, modules = transformer(2)
    modules |= {"norm0": "model.shared", "norm1": "model.shared"}
    with pytest.raises(InputError, match="stage 1 begins between 'mask' and 'norm0'"):
        emit_torch(cut(graph, modules, ["mask"]))


def test_stages_that_are_no_runs() -> None:
    """An op that runs before its stage begins is named."""
    graph, modules = transformer(2)
    stages = np.array([0, 1] + [0] * 6 + [1] * 8, dtype=np.int32)
    with pytest.raises(InputError, match="op 'norm0' is in stage 0, though 'mask', which runs before it"):
        emit_torch(Request(graph, stages, 2, modules))


def test_stages_that_run_nothing_are_said() -> None:
    """PyTorch cuts where it is told to: a stage less for each, and a comment."""
    request = cut(*transformer(3), ["add1"])
    spread = Request(request.graph, request.assignment * 2 + 1, 4, request.modules)
    said, _, rest = emit_torch(spread).partition("\n")
    assert said == "# stages 0, 2 of the plan run nothing and are left out: 2 of 4 stages"
    assert rest == emit_torch(request)
