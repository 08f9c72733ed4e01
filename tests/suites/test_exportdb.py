"""PyTorch's database of exported programs: each that can be exported is read, and its stages give the same results."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from stage_equality import assert_equal, run_program_stages  # noqa: E402

import mtpp  # noqa: E402

CONSTANT = "nothing in the program depends on an input"


def examples() -> dict[str, Any]:
    """Return the programs of the database by name."""
    from torch._export.db.examples import all_examples

    return dict(all_examples())


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.slow
def test_example_programs_are_read_and_split(tmp_path: Path, strict: bool) -> None:
    """Each program that exports is read, and its stages at k = 1, 2, 3 give the results of the whole, as many."""
    faults: dict[str, str] = {}
    held = 0
    for name, case in examples().items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = torch.export.export(
                    case.model,
                    case.example_args,
                    case.example_kwargs,
                    dynamic_shapes=case.dynamic_shapes,
                    strict=strict,
                )
        except Exception:  # some show what cannot be exported
            continue
        try:
            _hold(program, case, tmp_path / name)
            held += 1
        except Exception as error:
            if CONSTANT not in str(error):
                faults[name] = f"{type(error).__name__}: {error}"
    assert not faults, "\n".join(f"{name}: {text}" for name, text in faults.items())
    assert held >= 28


def _hold(program: Any, case: Any, folder: Path) -> None:
    from torch.utils._pytree import tree_leaves

    folder.mkdir()
    path = folder / "program.pt2"
    torch.export.save(program, path)
    args, kwargs = copy.deepcopy((case.example_args, case.example_kwargs))
    expected = tree_leaves(torch.export.load(path).module()(*args, **kwargs))
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    values = tree_leaves((case.example_args, case.example_kwargs))
    reading = mtpp.read(path, dims="auto")
    for k in (1, 2, 3):
        mtpp.split(reading, mtpp.partition(reading, k), folder / f"stages-{k}")
        feeds = {
            name: value.clone() for name, value in zip(names, values, strict=True) if isinstance(value, torch.Tensor)
        }
        found = run_program_stages(folder / f"stages-{k}", feeds)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            plain = isinstance(other, torch.Tensor)
            assert_equal(one.detach().numpy() if plain else one, other.detach().numpy() if plain else other)
