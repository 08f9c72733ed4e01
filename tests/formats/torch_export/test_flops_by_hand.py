"""Costs of exported programs by hand: operations of each kind of op, and copies and views."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import Tensor, nn  # noqa: E402

from mtpp.formats.torch_export import read_with_modules  # noqa: E402
from mtpp.formats.torch_export.flops.movement import has_view  # noqa: E402
from mtpp.machine.presets import load_device  # noqa: E402

functional, fft, linalg = torch.nn.functional, torch.fft, torch.linalg


class _Called(torch.nn.Module):  # type: ignore[misc]
    """A module that calls a function."""

    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self._call = call

    def forward(self, *arguments: Any) -> Any:
        """Call it."""
        return self._call(*arguments)


def _exported(call: Callable[..., Any], arguments: tuple[Any, ...], *, core: bool) -> tuple[Any, Any]:
    """Return the metadata of the graph of a function, and its program."""
    graph, program = _graph(call, arguments, core=core)
    return graph.metadata, program


def _counted(call: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, list[int]]:
    """Return the metadata of the graph of a function, and the work of its ops."""
    graph, _ = _graph(call, arguments, core=False)
    return graph.metadata, [int(one) for one in graph.work]


def _graph(call: Callable[..., Any], arguments: tuple[Any, ...], *, core: bool) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(_Called(call), arguments)
        program = program.run_decompositions() if core else program
        written = io.BytesIO()
        torch.export.save(program, written)
    return read_with_modules(written.getvalue(), source="m", system=load_device(), name="m").graph, program


def _shaped(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(torch.zeros(shape) for shape in shapes)


def _complex(x: Any) -> Any:
    return torch.complex(x, x)


def _sampled(x: Any, grid: Any) -> Any:
    return functional.grid_sample(x, grid, align_corners=False)


BY_HAND = {
    # 5·N·log₂ N for each transform.
    "fft": (lambda x: torch.view_as_real(fft.fft(x)), _shaped((3, 16)), 5 * 3 * 16 * 4),
    "rfft2": (lambda x: torch.view_as_real(fft.rfft2(x)), _shaped((3, 8, 16)), 5 * 3 * 128 * 7),
    "rfftn": (lambda x: torch.view_as_real(fft.rfftn(x)), _shaped((4, 8)), 5 * 32 * 5),
    "irfft": (lambda x: fft.irfft(_complex(x)), _shaped((3, 9)), 5 * 3 * 16 * 4),
    "affine grid": (lambda x: functional.affine_grid(x, [2, 3, 4, 5], align_corners=False), _shaped((2, 2, 3)),
                    2 * 2 * 4 * 5 * 2 * 3),
    "grid sample": (_sampled, _shaped((1, 3, 8, 8), (1, 4, 5, 2)), 2 * 4 * 60),
    "bilinear": (lambda x: functional.interpolate(x, size=[8, 8], mode="bilinear"), _shaped((1, 3, 4, 4)),
                 2 * 4 * 192),
    # From 8 to 3: six neighbours on either axis, first along rows, then along columns.
    "antialiased": (lambda x: functional.interpolate(x, size=[3, 3], mode="bilinear", antialias=True),
                    _shaped((1, 3, 8, 8)), 2 * 6 * (3 * 8 * 3) + 2 * 6 * (3 * 3 * 3)),
    "determinant": (linalg.det, _shaped((2, 6, 6)), 2 * 2 * 72),
    "orthogonal": (lambda x: linalg.qr(x)[1], _shaped((6, 3)), 4 * 6 * 9 - 36),
    "triangular": (lambda a, b: linalg.solve_triangular(a, b, upper=True), _shaped((6, 6), (6, 2)), 36 * 2),
}  # fmt: skip


@pytest.mark.parametrize("core", [False, True], ids=["training", "core"])
@pytest.mark.parametrize("name", BY_HAND)
def test_transforms_and_samples_count_by_hand(name: str, core: bool) -> None:
    """In both dialects, of which one has operators of its own."""
    call, arguments, flops = BY_HAND[name]
    metadata, _ = _exported(call, arguments, core=core)
    assert metadata["not_modelled"] == {}
    assert metadata["flops"] == flops


def test_framed_transforms_count_their_frames() -> None:
    """17 frames of 8 for each of 3 signals: window and transform, and the windows' sum on the way back."""
    window = torch.ones(8)
    for call in (
        lambda x: torch.view_as_real(torch.stft(x, 8, window=window, return_complex=True)),
        lambda x: torch.stft(x, 8, window=window, return_complex=False),
    ):
        metadata, _ = _exported(call, _shaped((3, 32)), core=False)
        assert metadata["flops"] == 3 * 17 * (5 * 8 * 3 + 8)
    metadata, _ = _exported(lambda x: torch.istft(_complex(x), 8, window=window), _shaped((3, 5, 17)), core=False)
    assert metadata["flops"] == 3 * 17 * (5 * 8 * 3 + 3 * 8) + 3 * 32
    assert metadata["not_modelled"] == {}


@pytest.mark.parametrize("core", [False, True], ids=["training", "core"])
def test_systems_of_equations_count_elimination_and_substitution(core: bool) -> None:
    """A cube for the matrix, a square for each right-hand side; checks in order of their effects take nothing."""
    for call, shapes, flops in (
        (linalg.solve, ((6, 6), (6, 2)), 2 * 72 + 2 * 12 * 6),
        (linalg.inv, ((6, 6),), 2 * 216),
        (linalg.cholesky, ((2, 6, 6),), 2 * 72),
    ):
        metadata, _ = _exported(call, tuple(torch.eye(s[-2], s[-1]).repeat(*s[:-2], 1, 1) for s in shapes), core=core)
        assert metadata["flops"] == flops
        assert metadata["not_modelled"] == {}


PRODUCTS = {
    "added": (torch.baddbmm, _shaped((2, 3, 5), (2, 3, 4), (2, 4, 5))),
    "broadcast": (torch.matmul, _shaped((2, 3, 4, 5), (3, 5, 6))),
    "three": (lambda a, b, c: torch.einsum("ab,bc,cd->ad", a, b, c), _shaped((3, 4), (4, 5), (5, 6))),
    "contracted": (lambda a, b: torch.tensordot(a, b, 2), _shaped((2, 3, 4), (3, 4, 5))),
    "chain": (lambda a, b, c: linalg.multi_dot([a, b, c]), _shaped((3, 40), (40, 5), (5, 6))),
    "power": (lambda a: linalg.matrix_power(a, 5), _shaped((4, 4))),
    "dilated": (lambda x, w: functional.conv2d(x, w, dilation=2, padding=1, groups=2),
                _shaped((2, 4, 7, 7), (6, 2, 3, 3))),
    "without a batch": (functional.conv1d, _shaped((4, 7), (6, 4, 3))),
    "transposed": (lambda x, w: functional.conv_transpose3d(x, w, stride=2, padding=1, output_padding=1),
                   _shaped((2, 4, 3, 3, 3), (4, 6, 3, 3, 3))),
    "transposed groups": (lambda x, w: functional.conv_transpose2d(x, w, stride=2, groups=2, dilation=2),
                          _shaped((2, 4, 7, 7), (4, 3, 3, 3))),
    "attention": (lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
                  _shaped((2, 4, 5, 8), (2, 4, 6, 8), (2, 4, 6, 10))),
}  # fmt: skip


@pytest.mark.parametrize("core", [False, True], ids=["training", "core"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_count_as_pytorch_counts_them(name: str, core: bool) -> None:
    """Two FLOPs for a multiply-accumulate; masks do not lessen them."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    call, arguments = PRODUCTS[name]
    metadata, _ = _exported(call, arguments, core=core)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        call(*arguments)
    assert 2 * metadata["macs"] == counter.get_total_flops()


UNCOUNTED = {
    "vector": (torch.matmul, _shaped((2, 3, 4), (4,)), 24),
    "summed": (torch.addbmm, _shaped((3, 5), (2, 3, 4), (2, 4, 5)), 120),
    "over time": (lambda x, w, b: torch.conv_tbc(x, w, b, 1), _shaped((7, 2, 4), (3, 4, 6), (6,)), 7 * 2 * 6 * 12),
    "grouped heads": (lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, enable_gqa=True),
                      _shaped((2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 8)), 2 * 4 * 30 * 16),
    "of eight bits": (torch._weight_int8pack_mm,
                      (torch.zeros(3, 32).bfloat16(), torch.ones(8, 32, dtype=torch.int8), torch.ones(8).bfloat16()),
                      3 * 8 * 32),
    "grouped rows": (torch._grouped_mm, (torch.zeros(8, 16).bfloat16(), torch.zeros(2, 16, 8).bfloat16(),
                                         torch.tensor([3, 8], dtype=torch.int32)), 8 * 16 * 8),
    "grouped inner side": (torch._grouped_mm, (torch.zeros(8, 16).bfloat16(), torch.zeros(16, 8).bfloat16(),
                                               torch.tensor([8, 16], dtype=torch.int32)), 8 * 16 * 8),
}  # fmt: skip


@pytest.mark.parametrize("name", UNCOUNTED)
def test_products_that_pytorch_does_not_count_count_by_hand(name: str) -> None:
    """Its counter has no formula for them."""
    call, arguments, macs = UNCOUNTED[name]
    metadata, _ = _exported(call, arguments, core=False)
    assert metadata["macs"] == macs
    assert metadata["not_modelled"] == {}


@pytest.mark.parametrize("rows", [2, 64])
def test_experts_that_no_row_chooses_are_not_read(rows: int) -> None:
    """Two rows choose two of eight matrices at most, in transformers' own operator as in ATen's."""
    experts = [torch.zeros(rows, 16).bfloat16(), torch.zeros(8, 16, 24).bfloat16(), torch.zeros(8, dtype=torch.int32)]
    if not hasattr(torch.ops.transformers, "grouped_mm_fallback"):
        _register_experts()
    for call in (torch._grouped_mm, torch.ops.transformers.grouped_mm_fallback):
        metadata, work = _counted(call, tuple(experts))
        assert (metadata["macs"], metadata["not_modelled"]) == (rows * 16 * 24, {})
        moved = 2 * (rows * 16 + min(8, rows) * 16 * 24 + rows * 24) + 4 * 8
        assert work == [moved * 5]  # picoseconds, at 200 GB/s


def test_operators_of_torchvision_count_what_they_compute() -> None:
    """By their schemas, registered here under their names where torchvision is not installed."""
    pytest.importorskip("torch.library")
    if not hasattr(torch.ops.torchvision, "deform_conv2d"):
        _register_stand_ins()
    ops = torch.ops.torchvision

    def deformed(x: Any, weight: Any, offset: Any, mask: Any, bias: Any) -> Any:
        return ops.deform_conv2d(x, weight, offset, mask, bias, 1, 1, 0, 0, 1, 1, 1, 1, True)

    shapes = ((1, 4, 7, 7), (6, 4, 3, 3), (1, 18, 5, 5), (1, 9, 5, 5), (6,))
    metadata, _ = _exported(deformed, _shaped(*shapes), core=False)
    assert metadata["macs"] == 6 * 25 * 36
    assert metadata["flops"] == 2 * 6 * 25 * 36 + 4 * 9 * 25
    metadata, _ = _exported(
        lambda x, rois: ops.roi_align(x, rois, 1.0, 3, 3, 2, False), _shaped((1, 3, 8, 8), (2, 5)), core=False
    )
    assert metadata["flops"] == 9 * 4 * (2 * 3 * 9)
    assert metadata["not_modelled"] == {}


_LIBRARIES = []


def _register_stand_ins() -> None:
    library = torch.library.Library("torchvision", "FRAGMENT")
    _LIBRARIES.append(library)
    numbers = ", ".join(f"SymInt n{index}" for index in range(8))
    library.define(
        f"deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {numbers}, "
        "bool use_mask) -> Tensor"
    )
    library.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
        "int sampling_ratio, bool aligned) -> Tensor"
    )
    library.impl("deform_conv2d", lambda x, w, o, *_: x.new_empty(x.shape[0], w.shape[0], *o.shape[2:]), "Meta")
    library.impl("roi_align", lambda x, rois, s, h, w, *_: x.new_empty(rois.shape[0], x.shape[1], h, w), "Meta")


def _register_experts() -> None:
    library = torch.library.Library("transformers", "FRAGMENT")
    _LIBRARIES.append(library)
    library.define("grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor")
    library.impl("grouped_mm_fallback", lambda x, w, _: x.new_empty(x.shape[0], w.shape[2]), "Meta")


def random_view(rng: Random) -> Tensor:
    """Return a tensor with gaps, axes in another order, and repeated elements."""
    shape = [rng.randint(1, 4) for _ in range(rng.randint(0, 4))]
    steps = [rng.choice([1, 1, 2]) for _ in shape]
    one = torch.empty([size * step for size, step in zip(shape, steps, strict=True)])
    for axis, (size, step) in enumerate(zip(shape, steps, strict=True)):
        one = (
            one.narrow(axis, 0, size) if rng.random() < 0.5 else one[(slice(None),) * axis + (slice(None, None, step),)]
        )
    axes = list(range(len(shape)))
    rng.shuffle(axes)
    one = one.permute(axes)
    return one.unsqueeze(0).expand(3, *one.shape) if rng.random() < 0.2 else one


def random_shape(rng: Random, count: int) -> list[int]:
    """Return a shape of that many elements."""
    shape = []
    while count > 1:
        shape.append(rng.choice([size for size in range(1, count + 1) if count % size == 0]))
        count //= shape[-1]
    return shape


def test_views_are_those_of_pytorch() -> None:
    """``Tensor.view`` raises where there is none."""
    rng, views = Random(0), 0
    for _ in range(4000):
        one = random_view(rng)
        shape = random_shape(rng, one.numel())
        try:
            one.view(shape)
            expected = True
        except RuntimeError:
            expected = False
        views += expected
        assert has_view(one.shape, one.stride(), shape) == expected, (one.shape, one.stride(), shape)
    assert 1000 < views < 3500


class Reshaped(nn.Module):
    """Reshapes that copy and ones that do not."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return something of each."""
        turned = x.transpose(1, 2)
        return x.reshape(2, 12), turned.reshape(2, 12), turned.contiguous(), turned.flatten(1)


def read(module: nn.Module, *inputs: Tensor) -> Any:
    """Export a module and read the program."""
    written = io.BytesIO()
    torch.export.save(torch.export.export(module, inputs), written)
    return read_with_modules(written.getvalue(), source="m.pt2", system=load_device(), name="m")


def test_copies_take_time() -> None:
    """A reshape and ``contiguous`` after a transposition read and write everything."""
    graph = read(Reshaped(), torch.randn(2, 3, 4)).graph
    work = dict(zip(graph.op_names, graph.work, strict=True))
    kinds = dict(zip(graph.op_names, graph.op_kinds, strict=True))
    free = [name for name, ticks in work.items() if ticks == 0]
    assert sorted(kinds[name].rpartition(".")[2] for name in free) == ["reshape", "transpose"]
    assert len({work[name] for name in ("reshape_1", "contiguous", "flatten")}) == 1
