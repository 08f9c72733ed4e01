"""The property of splits for exported programs; importing it needs PyTorch."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from stage_equality import assert_equal
from stage_property import split_plans
from torch.utils._pytree import tree_flatten
from varied_programs import varied_program

import mtpp
from mtpp.errors import InputError

torch.set_num_threads(1)


def program_faults(seed: int, folder: Path) -> Iterator[str]:
    """Yield the faults of the stages of one random program.

    ``refused`` stands for plans by hand that a split refuses, and for regions of ``torch.vmap``, where the refusal says
    that ``run_decompositions()`` takes them apart.
    """
    drawn = varied_program(seed)
    if drawn is None:
        yield "not run"
        return
    program, inputs = drawn
    path = folder / "program.pt2"
    torch.export.save(program, path)
    whole = torch.export.load(path).module()
    with torch.no_grad():
        expected = [_plain(tree_flatten(whole(*_copied(one["args"]), **_copied(one["kwargs"])))[0]) for one in inputs]
    try:
        reading = mtpp.read(path, dims="auto")
    except InputError as error:
        yield f"not read: {error}"
        return
    for name, stages in split_plans(reading, seed, folder):
        if stages is None:
            yield name
            continue
        try:
            run = _Stages(stages)
            for one, (given, results) in enumerate(zip(inputs, expected, strict=True)):
                assert_equal(run(given["feeds"]), results, f"input {one}")
        except Exception as error:
            yield f"{name}: {type(error).__name__}: {error}"


class _Stages:
    """Stages of a folder, loaded once: their buffers go on from input to input."""

    def __init__(self, folder: Path) -> None:
        self.manifest = json.loads((folder / "manifest.json").read_text())
        files = [stage["file"] for stage in self.manifest["stages"]]
        self.modules = [torch.export.load(folder / file).module() for file in files]

    def __call__(self, feeds: dict[str, Any]) -> list[Any]:
        live = {name: value.clone() for name, value in feeds.items()}
        live |= {entry["output"]: feeds[entry["input"]] for entry in self.manifest["direct"]}
        with torch.no_grad():
            for stage, module in zip(self.manifest["stages"], self.modules, strict=True):
                made = module(*(live[value["name"]] for value in stage["inputs"]))
                made = made if isinstance(made, list | tuple) else (made,)
                live |= dict(zip((value["name"] for value in stage["outputs"]), made, strict=True))
        return _plain(live.get(output["name"]) for output in self.manifest["outputs"])


def _plain(values: Any) -> list[Any]:
    return [
        (value.detach().float() if value.dtype == torch.bfloat16 else value.detach()).numpy().copy()
        if isinstance(value, torch.Tensor)
        else value
        for value in values
    ]


def _copied(value: Any) -> Any:
    return copy.deepcopy(value)
