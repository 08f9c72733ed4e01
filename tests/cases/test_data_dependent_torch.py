"""An exported program with sizes that only a run tells."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from stage_equality import assert_equal, run_program_stages  # noqa: E402

import mtpp  # noqa: E402


@pytest.mark.slow
def test_what_passes_the_check_runs(shared_data: Path, tmp_path: Path) -> None:
    """Stages compute what the program does for any number of rows, and ``run`` needs no sizes."""
    path = shared_data / "cases" / "data-dependent-torch" / "m.pt2"
    plan = mtpp.partition(mtpp.read(path, dims="auto"), 2)
    split = mtpp.split(path, plan, tmp_path / "stages", check=True)
    assert split.passed
    whole = torch.export.load(path).module()
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(6, 8)
        (found,) = run_program_stages(tmp_path / "stages", {"x": x})
        assert_equal(found.detach(), whole(x).detach())
    assert mtpp.run_pipeline(split, model=path, batches=2, warmup=0).agrees
