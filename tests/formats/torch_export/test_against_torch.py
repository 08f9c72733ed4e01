"""Exported programs against PyTorch's own counts: bytes of parameters, FLOPs, calls; skipped without PyTorch."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
models = pytest.importorskip("torch_models")

from mtpp.formats.torch_export import ProgramReading, read_with_modules  # noqa: E402
from mtpp.machine.presets import load_device  # noqa: E402

NAMES = sorted(models.MODELS)
NOT_COUNTED = {
    "recurrent": 2 * 9 * (2 * (80 * 12 + 80 * 20) + 2 * (80 * 40 + 80 * 20) + 48 * (40 + 16) + 96 * 24 + 8 * 24)
}
"""FLOPs of what PyTorch's counter leaves out, by hand: 9 steps through all weights of recurrent layers."""


def exported(name: str, *, training: bool, core: bool) -> tuple[ProgramReading, Any, Any]:
    """Return what is read of a module, its program, and the module with its inputs."""
    torch.manual_seed(0)
    make, inputs = models.MODELS[name]
    module, arguments = make().train(training), inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, arguments)
        written = io.BytesIO()
        torch.export.save(program.run_decompositions() if core else program, written)
    reading = read_with_modules(written.getvalue(), source=name, system=load_device(), name=name)
    return reading, program, (module, arguments)


@pytest.mark.parametrize(("training", "core"), [(False, True), (True, False)], ids=["eval-core", "train-training"])
@pytest.mark.parametrize("name", NAMES)
def test_counts_are_those_of_pytorch(name: str, training: bool, core: bool) -> None:
    """Parameters to the byte, FLOPs of matrix products, convolutions and attention within 1 %, nothing unknown."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    reading, _, (module, arguments) = exported(name, training=training, core=core)
    stored = [*module.parameters(), *module.buffers()]
    metadata = reading.graph.metadata
    written = sum(state.bytes for state in reading.graph.states.rows(reading.graph.op_names))
    assert metadata["parameter_bytes"] + written == sum(one.numel() * one.element_size() for one in stored)
    assert metadata["not_modelled"] == {}
    if core and name in NOT_COUNTED:
        return  # every step is an op, and the first ones fold: their state is zero
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        module(*arguments)
    due = NOT_COUNTED.get(name, counter.get_total_flops())
    assert 2 * metadata["macs"] == pytest.approx(due, rel=0.01)


@pytest.mark.slow
def test_a_decoder_of_seven_billion_parameters() -> None:
    """On the device ``meta``, read as a module: bytes to the last one, FLOPs of products within 1 %."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    import mtpp

    with torch.device("meta"):
        decoder, ids = models.Decoder(32, 4096, 32, 11008, 32000).eval(), torch.zeros(1, 512, dtype=torch.int64)
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            decoder(ids)
    metadata = mtpp.read(decoder, args=(ids,)).graph.metadata
    assert metadata["parameter_bytes"] == sum(one.numel() * 4 for one in decoder.parameters()) > 4 * 6.7e9
    assert metadata["not_modelled"] == {}
    assert 2 * metadata["macs"] == pytest.approx(counter.get_total_flops(), rel=0.01)


@pytest.mark.slow
def test_a_decoder_of_seventy_layers_is_cut_with_proof(tmp_path: Path) -> None:
    """A stage for each layer, and few large ones; nothing of it needs PyTorch."""
    import mtpp

    with torch.device("meta"):
        decoder, ids = models.Decoder(70, 512, 8, 1376, 1000).eval(), torch.zeros(1, 64, dtype=torch.int64)
        torch.export.save(torch.export.export(decoder, (ids,)), tmp_path / "decoder.pt2")
    model = mtpp.read(tmp_path / "decoder.pt2")
    for k in (8, 16, 70):
        assert mtpp.partition(model, k=k).optimal


def test_a_quantised_program_by_hand() -> None:
    """Bytes as stored; a product, shift and scale of weights folded, three operations a number in and two out."""
    reading, _, _ = exported("quantised", training=False, core=False)
    metadata, numbers = reading.graph.metadata, 6 * 24 + 6 * 40
    assert metadata["parameter_bytes"] == 40 * 24 + 8 * 40 + 48 * (4 + 8)
    assert metadata["macs"] == 6 * (24 * 40 + 40 * 8)
    assert metadata["flops"] == 2 * metadata["macs"] + (3 + 2) * numbers
    assert sorted(reading.graph.param_bytes) == [0, 0, 0, 0, 8 * 40 + 8 * (4 + 8), 40 * 24 + 40 * (4 + 8)]


@pytest.mark.parametrize("name", NAMES)
def test_every_call_is_an_op_or_folded(name: str) -> None:
    """No node is lost, and modules are those of the model."""
    reading, program, (module, _) = exported(name, training=False, core=False)
    calls = [one for one in program.graph.nodes if one.op == "call_function" and "getitem" not in one.name]
    nodes = [node for group in reading.nodes for node in group]
    assert len(nodes) + reading.graph.metadata["folded_constants"] == len(calls)
    assert set(nodes) <= {one.name for one in calls}
    assert set(reading.modules.values()) <= {path for path, _ in module.named_modules()}


def test_symbolic_sizes_of_pytorch() -> None:
    """FLOPs at another batch than the exported one are those of a program with that batch."""
    module = models.Transformer(tied=True).eval()
    sizes = {"ids": {0: torch.export.Dim("batch", max=64)}}
    written = io.BytesIO()
    torch.export.save(torch.export.export(module, (models._ids(4, 32),), dynamic_shapes=sizes), written)
    for batch in (2, 7):
        fixed = io.BytesIO()
        torch.export.save(torch.export.export(module, (models._ids(batch, 32),)), fixed)
        given = {"source": "m", "system": load_device(), "name": "m"}
        one = read_with_modules(written.getvalue(), dims={"ids:0": batch}, **given)  # type: ignore[arg-type]
        other = read_with_modules(fixed.getvalue(), **given)  # type: ignore[arg-type]
        assert one.graph.metadata["flops"] == other.graph.metadata["flops"]
        assert sum(one.graph.work) == sum(other.graph.work)
