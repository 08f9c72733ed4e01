"""Programs of PyTorch as archives: what is tied, what is left out, and the same bytes in every process."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import environment_with_libraries

torch = pytest.importorskip("torch", reason="needs PyTorch")
models = pytest.importorskip("torch_models", reason="needs PyTorch")

from mtpp.errors import InputError  # noqa: E402
from mtpp.formats.torch_export import read_program  # noqa: E402
from mtpp.machine.presets import load_device  # noqa: E402
from mtpp.runtime.pytorch.exporting import archive_of, export_module  # noqa: E402
from mtpp.runtime.pytorch.loading import load_program  # noqa: E402


def _exported(device: str, *, tied: bool = True) -> Any:
    with torch.device(device):
        module, ids = models.Transformer(tied=tied).eval(), torch.zeros(2, 32, dtype=torch.int64)
    return export_module(module, (ids,), None, None, "m"), module


def _parameter_bytes(data: bytes) -> int:
    size: int = read_program(data, source="m", system=load_device(), name="m").metadata["parameter_bytes"]
    return size


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.slow
def test_tied_parameters_count_once(device: str, tied: bool) -> None:
    """Where they are one tensor, with values or without."""
    exported, module = _exported(device, tied=tied)
    due = sum(one.numel() * one.element_size() for one in module.parameters())
    assert _parameter_bytes(archive_of(exported, "m")) == due
    assert _parameter_bytes(archive_of(exported.run_decompositions(), "m")) == due


def test_a_program_loaded_from_meta_has_nothing_tied(tmp_path: Path) -> None:
    """PyTorch loads all its weights as views of one storage, which says nothing of the model."""
    exported, module = _exported("meta", tied=False)
    torch.export.save(exported, tmp_path / "m.pt2")
    again = torch.export.load(tmp_path / "m.pt2")
    due = sum(one.numel() * one.element_size() for one in module.parameters())
    assert _parameter_bytes(archive_of(again, "m")) == due


def test_weights_are_left_out_and_made_up_again() -> None:
    """PyTorch loads the archive; all that is stored is drawn."""
    exported, _ = _exported("cpu")
    data = archive_of(exported, "m")
    assert len(data) < 300_000 < sum(one.nbytes for one in exported.state_dict.values())
    loaded = load_program(data, "m")
    assert set(exported.state_dict) <= set(loaded.made_up)


SCRIPT = """
import hashlib, torch, torch_models
from mtpp.runtime.pytorch.exporting import archive_of, export_module
module, ids = torch_models.Transformer(tied=True), torch.zeros(4, 16, dtype=torch.int64)
sizes = {"ids": {0: torch.export.Dim("batch", max=64), 1: torch.export.Dim("length", max=32)}}
print(hashlib.sha256(archive_of(export_module(module, (ids,), None, sizes, "m"), "m")).hexdigest())
"""


@pytest.mark.slow
def test_every_process_has_the_same_bytes() -> None:
    """Whatever its seed of hashes, its addresses and the values of its weights are."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**environment_with_libraries(), "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    assert all(len(digest.strip()) == 64 for digest in digests)


def test_what_cannot_be_exported(capfd: pytest.CaptureFixture[str]) -> None:
    """PyTorch's message on one line, what to do about it, and nothing else on any stream."""

    class Branch(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(InputError) as caught:
        export_module(Branch(), (torch.ones(3),), None, None, "Branch")
    message = str(caught.value)
    assert message.startswith(f"Branch: PyTorch {torch.__version__} cannot export it: Could not guard on data-depend")
    assert message.endswith("is read as well")
    assert "draft_export" in message
    assert "\n" not in message
    assert capfd.readouterr() == ("", "")


class _Cache:
    """Result of a type that PyTorch does not know."""


class _Caching(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x + 1, _Cache()


def test_results_of_unknown_types_are_named() -> None:
    """Caches that models of transformers return are such; the message says how to leave them out."""
    with pytest.raises(InputError, match="of type _Cache, which PyTorch does not export") as caught:
        export_module(_Caching(), (torch.ones(2),), None, None, "m")
    assert "use_cache=False" in str(caught.value.remedy)
