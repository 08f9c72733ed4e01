"""Random programs cut at random: the stages compute what the whole does, forward and backward, bit for bit."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from random_modules import TOKENS, WIDTH, RandomModule, exported  # noqa: E402

from mtpp.formats.torch_export import read_with_modules  # noqa: E402
from mtpp.machine.presets import load_device  # noqa: E402
from mtpp.runtime.pytorch.flat_program import called, flat_program  # noqa: E402
from mtpp.runtime.pytorch.layout import Layout  # noqa: E402
from mtpp.runtime.pytorch.loading import load_program  # noqa: E402
from mtpp.runtime.pytorch.neighbour_stages import neighbour_stages  # noqa: E402
from mtpp.runtime.pytorch.pipelining import loss_of  # noqa: E402
from mtpp.runtime.pytorch.stage_modules import SplitProgram, split_program  # noqa: E402

torch.set_num_threads(1)  # sums over several threads are split as these happen to run

SEEDS = [pytest.param(seed, marks=() if seed < 12 else pytest.mark.slow) for seed in range(28)]


def cut(seed: int, *, trained: bool) -> tuple[Any, SplitProgram, bool]:
    """Return a program in a list, its stages, which hold weights of their own, and whether they follow its order.

    They do not where an op of several nodes, merged for what they write in place, comes before nodes in between; and
    writes into views have autograd make nodes of its own, in an order of its own.
    """
    written = io.BytesIO()
    torch.export.save(exported(seed, trained=trained), written)
    data = written.getvalue()
    reading = read_with_modules(data, source="random.pt2", system=load_device(), name="random")
    rng, ops = Random(seed), reading.graph.op_count
    order = reading.graph.order
    k = rng.randint(2, 4)
    bounds = sorted(rng.randrange(ops + 1) for _ in range(k - 1))
    labels = [0] * ops
    for place, op in enumerate(order):
        labels[op] = sum(place >= bound for bound in bounds)
    whole = flat_program(load_program(data, "random.pt2").exported, {})
    loaded = load_program(data, "random.pt2").exported
    results = list(loaded.graph_signature.user_outputs)
    stage_of = {name: label for names, label in zip(reading.nodes, labels, strict=True) for name in names}
    stages = [stage_of[step.name] for step in whole.steps if step.name in stage_of]
    split = split_program(flat_program(loaded, {}), results, reading.nodes, labels, "random.pt2")
    writes_into_views = any(kind == "in_place" for kind, _ in RandomModule(seed, trained=trained).plan)
    return whole, split, stages == sorted(stages) and not writes_into_views


def state_of(module: Any) -> dict[str, Any]:
    """Return the buffers of a module by name."""
    return dict(module.named_buffers(remove_duplicate=False))


@pytest.mark.parametrize("seed", SEEDS[::3])
def test_stages_compute_what_the_whole_does(seed: int) -> None:
    """Twice, so that what the first run leaves in buffers shows in the second."""
    whole, split, _ = cut(seed, trained=False)
    held: dict[str, Any] = {}
    for stage in split.stages:
        held |= state_of(stage.module)
    for round_ in range(2):
        torch.manual_seed(round_)
        given = {split.inputs[0].name: torch.randn(2, TOKENS, WIDTH)}
        with torch.no_grad():
            expected = called(whole.module, {name: one.clone() for name, one in given.items()})
            live = dict(given)
            for stage in split.stages:
                made = stage.module(*(live[one.name].clone() for one in stage.inputs))
                live |= dict(zip((one.name for one in stage.outputs), made, strict=True))
        for output, place in zip(split.outputs, split.positions, strict=True):
            assert torch.equal(live[output.name], expected[place]), output.name
    for name, buffer in state_of(whole.module).items():
        assert name not in held or torch.equal(buffer, held[name]), name


@pytest.mark.parametrize("seed", SEEDS)
def test_stages_train_as_the_whole_does(seed: int) -> None:
    """Gradients travel back from neighbour to neighbour, as PyTorch's pipelining sends them."""
    whole, split, in_order = cut(seed, trained=True)
    stages = neighbour_stages(split)
    torch.manual_seed(seed)
    given = torch.randn(2, TOKENS, WIDTH)
    flat = called(whole.module, {split.inputs[0].name: given.clone()})
    results = tuple(flat[place] for place in split.positions)
    if not any(one.requires_grad for one in results):
        pytest.skip("nothing to train")
    expected = loss_of(results)
    expected.backward()
    passed: list[tuple[list[Any], Any]] = []
    tensors: tuple[Any, ...] = (given,)
    for stage in stages:
        taken = [
            one.detach().clone().requires_grad_(like.requires_grad)
            for one, like in zip(tensors, stage.example_inputs, strict=True)
        ]
        made = stage(*taken)
        tensors = made if isinstance(made, tuple) else (made,)
        passed.append((taken, tensors))
        assert stage is stages[-1] or all(one.is_contiguous() and not one._is_view() for one in tensors)
        needs = [one.requires_grad for one in tensors]
        assert needs == [one.requires_grad for one in stage.example_outputs]
    found = loss_of(tensors if len(tensors) > 1 else tensors[0])
    assert torch.equal(found, expected)
    roots: list[Any] = [found]
    gradients: list[Any] = [None]
    for taken, tensors in reversed(passed):
        if roots and roots[0] is not found:
            pairs = [
                (one, gradient)
                for one, gradient in zip(tensors, gradients, strict=True)
                if one.requires_grad and gradient is not None
            ]
            roots, gradients = [one for one, _ in pairs], [gradient for _, gradient in pairs]
        if roots:
            torch.autograd.backward(roots, gradients)
        roots, gradients = [None], [one.grad for one in taken]
    due = dict(whole.module.named_parameters(remove_duplicate=False))
    tied = [name for name in due if sum(name in dict(one.stage.named_parameters()) for one in stages) > 1]
    for stage in stages:
        for name, parameter in stage.stage.named_parameters():
            gradient = due[name].grad
            if gradient is None:
                assert parameter.grad is None or not parameter.grad.any(), name
            elif name in tied or not in_order:  # gradients are added up in another order
                assert torch.allclose(parameter.grad, gradient, rtol=1e-5, atol=1e-6), name
            else:
                assert torch.equal(parameter.grad, gradient), name


class SharedMemory(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Writes through views of many kinds, read under other names afterwards."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place
        self.register_buffer("mask", torch.zeros(4, 4, dtype=torch.bool))

    def forward(self, x: Any, y: Any) -> Any:
        """Return three tensors."""
        a, b = x * 2, y * 3
        seen = a > 0
        if self.place == 0:
            row = seen[1:]
            seen &= b > 0
            return a * row.sum(), b + 1, a
        if self.place == 1:
            swapped = torch.einsum("ij->ji", a)
            swapped.mul_(b)
            return a + 1, swapped + 1, b
        if self.place == 2:
            left, right = torch.broadcast_tensors(a, b)
            right.add_(1)
            return left + b, right * 2, b * b
        if self.place == 3:
            left, right = torch.meshgrid(a[0], b[1], indexing="ij")
            a.mul_(3)
            return left + 1, right + 1, b
        if self.place == 4:
            line = torch.linalg.diagonal(a)
            line.fill_(5.0)
            return a + b, line + 1, b
        if self.place == 5:
            room = torch.empty(4, 4)
            made = torch.mm(a, b, out=room)
            part = made[1:]
            room.tanh_()
            return part * 2, made + 1, b
        self.mask |= a > b
        part = self.mask[:2]
        self.mask ^= b > 1
        return part.sum() + a, torch.where(self.mask, a, b), b


class ShapedLike(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Constants of the shape of tensors that are made before and behind."""

    def forward(self, x: Any) -> Any:
        """Return a tensor like *x*."""
        a = torch.tanh(x).t()
        b = torch.sigmoid(a) * torch.ones_like(a)
        return torch.relu(b) + torch.full_like(a, 2.0) + a.new_zeros(4, 4)


@pytest.mark.parametrize("place", range(7))
def test_views_of_all_kinds_are_kept_with_what_writes_them(place: int) -> None:
    """Cut everywhere, twice each: results and buffers are those of the whole."""
    _check_all_cuts(SharedMemory(place), ("x", "y"))


@pytest.mark.parametrize("core", [False, True])
def test_constants_shaped_like_a_tensor_need_not_have_it(core: bool) -> None:
    """Only tensors that are computed with go from stage to stage."""
    crossing = _check_all_cuts(ShapedLike(), ("x",), core=core)
    assert max(map(len, crossing)) <= 2


def test_a_constant_may_stand_before_what_it_is_shaped_like() -> None:
    """The op whose shape is looked at is in a later stage than the reader of the constant."""

    class Backwards(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            late = torch.tanh(x)
            early = torch.relu(x) + torch.full_like(late, 2.0)
            return early * 2, late * 3

    reading, data = _read(Backwards(), ("x",), core=False)
    labels = [0 if {"relu", "add", "mul"} & set(names) else 1 for names in reading.nodes]
    assert sorted(set(labels)) == [0, 1]
    split = _check_cut(reading, data, labels)
    assert [one.name for one in split.stages[0].inputs] == [split.inputs[0].name]


def _read(module: Any, names: tuple[str, ...], *, core: bool) -> tuple[Any, bytes]:
    with torch.no_grad():
        program = torch.export.export(module, tuple(torch.randn(4, 4) for _ in names))
    written = io.BytesIO()
    torch.export.save(program.run_decompositions() if core else program, written)
    return read_with_modules(written.getvalue(), source="m", system=load_device(), name="m"), written.getvalue()


def _check_all_cuts(module: Any, names: tuple[str, ...], *, core: bool = False) -> list[list[str]]:
    """Check every cut in two; return what crosses each."""
    reading, data = _read(module, names, core=core)
    crossing = []
    for bound in range(1, reading.graph.op_count):
        labels = [0] * reading.graph.op_count
        for place, op in enumerate(reading.graph.order):
            labels[op] = int(place >= bound)
        split = _check_cut(reading, data, labels)
        crossing.append([one.name for one in split.stages[1].inputs])
    return crossing


def _check_cut(reading: Any, data: bytes, labels: list[int]) -> SplitProgram:
    """Compare the stages with the whole, twice."""
    whole = flat_program(load_program(data, "m").exported, {})
    loaded = load_program(data, "m").exported
    split = split_program(
        flat_program(loaded, {}), list(loaded.graph_signature.user_outputs), reading.nodes, labels, "m"
    )
    for round_ in range(2):
        torch.manual_seed(round_)
        live = {one.name: torch.randn(4, 4) for one in split.inputs}
        with torch.no_grad():
            expected = called(whole.module, {name: one.clone() for name, one in live.items()})
            for stage in split.stages:
                made = stage.module(*(live[one.name].clone() for one in stage.inputs))
                live |= dict(zip((one.name for one in stage.outputs), made, strict=True))
        for output, place in zip(split.outputs, split.positions, strict=True):
            assert torch.equal(live[output.name], expected[place]), (output.name, labels)
    held = [state_of(stage.module) for stage in split.stages]
    for name, buffer in state_of(whole.module).items():
        assert all(torch.equal(buffer, one[name]) for one in held if name in one), (name, labels)
    return split


def test_layouts() -> None:
    """Elements out of order, with gaps or repeated are laid out as they were; those in order are left as they are."""
    assert Layout.of((2, 3, 4, 5), (60, 20, 5, 1)) is None
    assert Layout.of((2, 1, 3), (3, 3, 1)) is None
    assert Layout.of((2, 1, 3), (3, 1, 1)) == ([2, 1, 3], [3, 1, 1], [])
    assert Layout.of((), ()) is None
    assert Layout.of((2, 3, 4, 5), (60, 1, 15, 3)) == ([2, 3, 4, 5], [60, 1, 15, 3], [])
    assert Layout.of((2, 4), (8, 1)) == ([2, 4], [8, 1], [])
    assert Layout.of((3, 4), (0, 1)) == ([1, 4], [1, 1], [0])
    assert Layout.of((3, 4), (1, 1)) is None
