"""Programs whose results are numbers beside tensors, and which write what they are given, run beside their stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import mtpp  # noqa: E402
from mtpp.formats.results.stage_manifest import manifest_text  # noqa: E402
from mtpp.formats.results.stage_records import ConstantResult  # noqa: E402


class Layers(torch.nn.Module):
    """Two products."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)


class Numbers(Layers):
    """Results that the export fixes, and one that a run tells; the input is called like a function of Python."""

    def forward(self, input: Any) -> Any:
        """Return a sum of chosen rows, numbers, and how many rows there are."""
        h = self.first(input)
        rows = h[torch.nonzero(h[:, 0] > 0).squeeze(1)]
        return self.second(rows).sum(0), 1.5, -0.0, None, True, rows.shape[0]


FEW_BITS = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


class Writing(Layers):
    """An input that is written, and tensors of types that numpy does not have."""

    def forward(self, x: Any, total: Any) -> Any:
        """Return a product of the sum of what each type makes of one, beside the total, which grows."""
        h = self.first(x)
        total.add_(h.detach().mean(0))
        grown = total + 1
        narrow = [h.to(getattr(torch, name)) for name in FEW_BITS]
        pairs = torch.complex(h, -h).to(torch.complex32)
        wide = sum(one.to(torch.float32) for one in narrow)
        return self.second(wide), grown, torch.view_as_real(pairs.to(torch.complex64))


def _plan(model: Any) -> Any:
    """Cut behind the last of the tensors of few bits, where there are some."""
    names = model.graph.op_names
    last = next((i for i, name in enumerate(names) if name == "to_6"), None)
    return mtpp.partition(model, 2) if last is None else {name: int(i > last) for i, name in enumerate(names)}


@pytest.mark.parametrize(("kind", "more"), [(Numbers, ()), (Writing, (torch.zeros(8),))])
@pytest.mark.slow
def test_whole_program_agrees_with_its_stages(tmp_path: Path, kind: Any, more: Any) -> None:
    """What passes the check runs, with the program beside it; inputs stay as they are from batch to batch."""
    path = tmp_path / "program.pt2"
    torch.export.save(torch.export.export(kind(), (torch.randn(6, 8), *more)), path)
    split = mtpp.split(path, _plan(mtpp.read(path, dims="auto")), tmp_path / "stages", check=True)
    assert split.passed
    if kind is Writing:
        assert {*FEW_BITS, "complex32"} <= {tensor.dtype for tensor in split.manifest.stages[1].inputs}
    run = mtpp.run_pipeline(split, model=path, batches=5, warmup=1)
    assert run.agrees
    whole = run.comparison.measured.whole
    assert whole is not None
    assert whole[1].compared == whole[1].near > 0


@pytest.mark.parametrize("value", [1.5, 0.1, 2.0, -0.0, 1e300, float("inf"), float("-inf")])
def test_floats_among_results_are_read_as_written(tmp_path: Path, value: float) -> None:
    """A result that is a plain number stands in the manifest as it is, its sign included."""
    import json
    from dataclasses import replace

    from stage_folders import single

    from mtpp.formats.results.stage_manifest import read_manifest

    manifest = read_manifest(single(tmp_path / "one"))
    wider = replace(manifest, outputs=(*manifest.outputs, ConstantResult.of("number", value)))
    (tmp_path / "one" / "manifest.json").write_text(manifest_text(wider))
    last = read_manifest(tmp_path / "one").outputs[-1]
    assert isinstance(last, ConstantResult)
    assert repr(last.value) == repr(value)
    assert json.loads(manifest_text(wider))["outputs"][-1]["dtype"] == "float"
