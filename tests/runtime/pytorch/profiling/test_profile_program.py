"""Exported programs measured op by op: every op has its times, results stay what they are; skipped without PyTorch."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
modules = pytest.importorskip("trained_modules")
models = pytest.importorskip("torch_models")

from mtpp.errors import InputError  # noqa: E402
from mtpp.formats.graphs.native import write_native  # noqa: E402
from mtpp.formats.io.source import Source, source_of_bytes  # noqa: E402
from mtpp.formats.measured.measured_costs import read_costs, with_costs  # noqa: E402
from mtpp.formats.torch_export import read_program, read_with_modules  # noqa: E402
from mtpp.machine.presets import load_device  # noqa: E402
from mtpp.runtime.profiling.profiled_graph import MeasuredProfile  # noqa: E402
from mtpp.runtime.profiling.timing import ProfileChoices, ProfileRequest  # noqa: E402
from mtpp.runtime.pytorch.loading import load_program  # noqa: E402
from mtpp.runtime.pytorch.profiling.clocks import HostClock  # noqa: E402
from mtpp.runtime.pytorch.profiling.profile_program import profile_program  # noqa: E402
from mtpp.runtime.pytorch.profiling.program_timing import measured_run, time_program  # noqa: E402
from mtpp.runtime.pytorch.profiling.steps import flat_program  # noqa: E402

ALL = {**models.MODELS, **modules.MODULES}
NOT_TRAINABLE = {"batch norm", "quantised"}
"""Modules that PyTorch itself refuses to train: what is saved for it is written, or all weights are integers."""


def exported(name: str, *, training: bool = False, core: bool = False, **options: Any) -> tuple[Source, Any, Any]:
    """Return the file of a program, and the module with its inputs."""
    torch.manual_seed(0)
    make, inputs = ALL[name]
    module, arguments = make().train(training), inputs()
    written = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, arguments, **options)
        torch.export.save(program.run_decompositions() if core else program, written)
    return source_of_bytes(written.getvalue(), "m.pt2"), module, arguments


def profiled(source: Source, *, backward: bool = True, choices: Any = None, **more: Any) -> MeasuredProfile:
    """Measure a program with few runs."""
    request = ProfileRequest(choices or ProfileChoices(0, 2), load_device(), backward=backward, **more)
    return profile_program(source, request)


@pytest.mark.parametrize("core", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["training", "core"])
@pytest.mark.parametrize("name", [name for name in ALL if name not in NOT_TRAINABLE])
def test_every_op_has_its_times(name: str, core: bool) -> None:
    """Forward above zero; some backward; the file's costs join to the graph that the reader makes of the program."""
    source, _, _ = exported(name, training=True, core=core)
    profile = profiled(source)
    graph = profile.graph
    due = read_program(source.data, source="m", system=load_device(), name=source.stem)
    assert graph.op_names == due.op_names
    assert all(work > 0 for work in graph.work)
    assert len(graph.backward) == graph.op_count
    assert sum(cost for cost in graph.backward if cost is not None) > 0
    costs = write_native(graph).encode()
    joined = with_costs(due, read_costs(source_of_bytes(costs, "costs.json")))
    assert sum(joined.work) == sum(graph.work) * 10**6
    assert joined.backward == tuple(cost and cost * 10**6 for cost in graph.backward)


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("core", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["training", "core"])
@pytest.mark.parametrize("name", list(modules.MODULES))
def test_results_are_those_of_the_module(name: str, core: bool, backward: bool) -> None:
    """Whatever is written in place, and in every run: each starts from the same inputs and buffers."""
    source, module, arguments = exported(name, core=core)
    reading = read_with_modules(source.data, source="m", system=load_device(), name="m")
    program = flat_program(load_program(source.data, "m").exported, reading.nodes)
    order = [int(op) for op in reading.graph.order]
    times = time_program(
        program, arguments, HostClock(), order, warm_up=1, repeats=2, threads=1, seed=0, backward=backward
    )
    with torch.no_grad():
        due = module(*(one.clone() if isinstance(one, torch.Tensor) else one for one in arguments))
    listed = list(due.values()) if isinstance(due, dict) else list(due) if isinstance(due, tuple) else [due]
    for mine, its in zip(times.outputs, listed, strict=True):
        torch.testing.assert_close(mine, its, check_dtype=False)


@pytest.mark.parametrize("name", ["perceptron", "in place", "written input", "modes", "transformer", "u-net", "norms"])
def test_gradients_are_those_of_the_module(name: str) -> None:
    """Passes op by op give parameters the gradients that one backward pass of the whole gives them.

    What depends on no input is folded: no op has a gradient for the parameters behind it.
    """
    source, _, arguments = exported(name, training=True)
    reading = read_with_modules(source.data, source="m", system=load_device(), name="m")
    loaded = load_program(source.data, "m").exported
    program = flat_program(loaded, reading.nodes)
    order = [int(op) for op in reading.graph.order]
    fresh = lambda: [one.clone() if isinstance(one, torch.Tensor) else one for one in arguments]  # noqa: E731
    run = measured_run(program, fresh(), HostClock(), order, gradient_of=lambda place, one: torch.ones_like(one))
    outputs = program.whole(*fresh())
    listed = outputs if isinstance(outputs, list | tuple) else [outputs]
    trained = [one for one in listed if one.requires_grad]
    torch.autograd.backward(trained, [torch.ones_like(one) for one in trained])
    due: dict[int, Any] = {}
    for one in program.stored.values():
        if one.requires_grad and one.grad is not None:
            due[id(one)] = one.grad
    mine: dict[int, Any] = {}
    for parameter, gradient in run.parameter_gradients:
        mine[id(parameter)] = mine[id(parameter)] + gradient if id(parameter) in mine else gradient
    folded = [name for step in program.steps if step.op is None for name in step.reads()]
    behind = {id(program.stored[name]) for name in folded if name in program.stored}
    assert mine.keys() == due.keys() - behind
    for key, gradient in mine.items():
        torch.testing.assert_close(gradient, due[key], rtol=1e-3, atol=1e-4)


def test_what_has_no_gradients_has_no_backward_pass() -> None:
    """Counters, comparisons and what runs without gradients; all else has one."""
    source, _, _ = exported("modes")
    graph = profiled(source).graph
    backward = dict(zip(graph.op_names, graph.backward, strict=True))
    by_kind = dict(zip(graph.op_names, graph.op_kinds, strict=True))
    still = [name for name, kind in by_kind.items() if kind in ("aten.ge", "aten.sum")]
    without = [name for name, node in graph.metadata["node_names"].items() if node.startswith("linear/")]
    assert still
    assert without
    assert all(backward[name] == 0 for name in (*still, *without))


def test_without_backward_passes_the_graph_has_none() -> None:
    """Nor does what is said of the measurement."""
    source, _, _ = exported("perceptron")
    graph = profiled(source, backward=False).graph
    assert graph.backward == ()
    assert "backward_wall_us" not in graph.metadata["profile"]


def test_the_measurement_is_described() -> None:
    """Versions, device, runs, what was made up, and the whole program's times beside those of the ops."""
    source, _, _ = exported("perceptron")
    said = profiled(source, choices=ProfileChoices(1, 3), seed=5).graph.metadata["profile"]
    assert said["pytorch"] == torch.__version__
    assert said["device"]
    assert (said["warm_up"], said["repeats"], said["seed"], said["threads"]) == (1, 3, 5, 1)
    assert said["random_inputs"] == ["x"]
    assert said["random_weight_bytes"] == 0
    assert said["model_sha256"] == source.sha256
    assert said["kernels_us"] > 0
    assert said["backwards_us"] > 0
    assert len(said["op_quartiles_us"]) == len(said["op_backward_quartiles_us"]) == 3
    assert {"wall_us", "backward_wall_us", "between_kernels_us", "call_us"} <= said.keys()


def test_symbolic_sizes_and_weights_that_the_file_has_not() -> None:
    """A program exported on the device meta runs on random weights, at the size asked for."""
    with torch.device("meta"):
        module, ids = models.Transformer(tied=False).eval(), torch.zeros(4, 32, dtype=torch.int64)
    written = io.BytesIO()
    torch.export.save(torch.export.export(module, (ids,), dynamic_shapes={"ids": {0: torch.export.Dim("b")}}), written)
    source = source_of_bytes(written.getvalue(), "m.pt2")
    with pytest.raises(InputError, match=r"set dims=\{'ids:0': 4\}"):
        profiled(source)
    profile = profiled(source, dims={"ids:0": 2})
    assert profile.graph.metadata["inputs"][0]["shape"] == [2, 32]
    assert profile.random_weight_bytes == sum(4 * one.numel() for one in module.parameters())
    assert all(work > 0 for work in profile.graph.work)


def test_given_inputs_are_used() -> None:
    """Nothing is said to be random then; other shapes, types and names are refused."""
    source, _, _ = exported("perceptron")
    x = np.ones((5, 8), dtype=np.float32)
    assert profiled(source, arrays={"x": x}).random_inputs == ()
    for arrays, problem in (
        ({"y": x}, "no input 'y'; it has: x"),
        ({"x": x[:3]}, r"has the shape \[3, 8\], the program's has \[5, 8\]"),
        ({"x": x.astype(np.float64)}, "holds float64, the program's float32"),
        ({"x": np.full((5, 8), "a")}, "holds <U1, the program's float32"),
    ):
        with pytest.raises(InputError, match=problem):
            profiled(source, arrays=arrays)


def test_threads_and_random_numbers_are_as_before() -> None:
    """Whatever was measured, with whatever number of threads."""
    source, _, _ = exported("perceptron")
    torch.manual_seed(7)
    before = torch.get_num_threads(), torch.get_rng_state()
    assert profiled(source, choices=ProfileChoices(0, 1, threads=3)).graph.metadata["profile"]["threads"] == 3
    assert torch.get_num_threads() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])


def test_what_cannot_be_trained_is_refused() -> None:
    """As PyTorch refuses it; forward it can be measured."""
    ALL["untrainable"] = (modules.Untrainable, lambda: (torch.randn(5, 8),))
    source, _, _ = exported("untrainable")
    assert profiled(source, backward=False).graph.work[0] > 0
    with pytest.raises(InputError, match=r"cannot run its backward pass: .*inplace.*; change the module") as caught:
        profiled(source)
    assert caught.value.source == "m.pt2"


def test_a_program_without_gradients_is_refused() -> None:
    """There is nothing to measure backward."""
    ALL["sum"] = (lambda: torch.nn.Sequential(torch.nn.ReLU()), lambda: (torch.randn(3),))
    with pytest.raises(InputError, match="nothing in the program has gradients"):
        profiled(exported("sum")[0])


def test_what_does_not_fit_is_refused_with_numbers() -> None:
    """Before anything runs."""
    with pytest.raises(
        InputError, match=r"takes about .* of weights, .* of activations and gradients\), and there are"
    ):
        profiled(exported("perceptron")[0], memory_bytes=1024)


def test_a_program_that_fails_says_where() -> None:
    """Random indices may be out of range: the message names the node and what to do."""
    table = torch.nn.Embedding(1, 4)
    ALL["table"] = (lambda: table, lambda: (torch.zeros(500, dtype=torch.int64),))
    source, _, _ = exported("table")
    with pytest.raises(InputError, match=r"m\.pt2: .*PyTorch cannot run it: index out of range.*inputs FILE\.npz"):
        profiled(source, backward=False)
