"""Regions of torch.vmap in an exported program: their batch counts, nothing is cut inside, and the refusal helps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stage_equality import assert_equal, run_program_stages

import mtpp
from mtpp.errors import InputError


def test_a_region_counts_its_batch_and_is_one_op(shared_data: Path, tmp_path: Path) -> None:
    """Work is that of the program without the region; the remedy that the refusal names makes a program that splits."""
    torch = pytest.importorskip("torch")
    model = shared_data / "cases" / "vmap-torch" / "vmap.pt2"
    graph = mtpp.read(model).graph
    assert len(graph.op_names) == 4
    told = "4 ops around regions of torch.vmap merged into 1: split takes the program once its run_decompositions() "
    assert any(one.startswith(told) for one in mtpp.partition(model, 2).assumptions)
    taken_apart = tmp_path / "apart.pt2"
    torch.export.save(torch.export.load(model).run_decompositions({}), taken_apart)
    plain = mtpp.read(taken_apart).graph
    for key in ("flops", "macs", "work_ps"):
        assert graph.metadata.get(key) == plain.metadata.get(key)
    assert sum(graph.work) == sum(plain.work)

    with pytest.raises(InputError, match=r"torch\.vmap.*run_decompositions\(\)"):
        mtpp.split(model, mtpp.partition(model, 2), tmp_path / "refused")
    x = torch.randn(2, 4)
    whole = torch.export.load(taken_apart).module()(x)
    for cut in range(1, len(plain.op_names)):
        stages = {op: int(place >= cut) for place, op in enumerate(plain.op_names)}
        folder = tmp_path / str(cut)
        mtpp.split(taken_apart, stages, folder)
        found = run_program_stages(folder, {"a_0": x})
        assert_equal(np.asarray(found[0]), whole.detach().numpy())
