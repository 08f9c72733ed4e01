"""Cost rules of factorisations, systems of equations and Fourier transforms in ATen, by the counts of textbooks.

Golub and Van Loan (2013), Matrix Computations, give the leading terms. Singular values and eigenvalues take as many
iterations as the data needs: they are not modelled.
Transforms of real signals count like complex ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mtpp.formats.modelled.flop_counts import fourier_flops
from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.torch_export.call_view import CallView
from mtpp.formats.torch_export.flops.cost_rule import CostRule


def _of_each(flops: Callable[[int, int], int]) -> CostRule:
    """Return the rule of what takes so many FLOPs for each matrix of some rows and columns."""

    def rule(call: CallView) -> NodeCost:
        *batch, rows, columns = call.first().shape
        return NodeCost(flops=math.prod(batch) * flops(rows, columns))

    return rule


def _triangles(call: CallView) -> NodeCost:
    """Substitute: n² for each right-hand side."""
    return NodeCost(flops=call.output().count * call.first().shape[-1])


def _solved(call: CallView) -> NodeCost:
    """Eliminate, then substitute twice for each right-hand side."""
    *batch, size, _ = call.first().shape
    right = call.tensor("B", "other").count
    return NodeCost(flops=2 * (math.prod(batch) * size**3 // 3) + 2 * right * size)


def _orthogonal(rows: int, columns: int) -> int:
    """Householder reflections, and the product of them."""
    longer, shorter = max(rows, columns), min(rows, columns)
    return 4 * longer * shorter**2 - 4 * shorter**3 // 3


def _fourier(*default: int) -> CostRule:
    """Return the rule of transforms along axes, by default these; along all if there are none."""

    def rule(call: CallView) -> NodeCost:
        x, y = call.first(), call.output()
        larger = x if x.count >= y.count else y
        named = call.value("dim", list(default) or list(range(len(larger.shape))))
        axes = named if isinstance(named, list) else [named]
        length = math.prod(larger.shape[axis] for axis in axes)
        return NodeCost(flops=larger.count // max(1, length) * fourier_flops(length))

    return rule


def _frames(call: CallView) -> NodeCost:
    """Multiply each frame with the window, and transform it; frames are the last axis, or before parts of numbers."""
    made = call.output()
    spectrum = made.shape if made.name.startswith("complex") else made.shape[:-1]
    length, frames = int(call.value("n_fft", 1)), math.prod(spectrum[:-2]) * spectrum[-1]
    return NodeCost(flops=frames * (fourier_flops(length) + length))


def _signal(call: CallView) -> NodeCost:
    """Transform each frame back, multiply it with the window, add it to the signal and to the sum of windows."""
    spectrum = call.first().shape
    length, frames = int(call.value("n_fft", 1)), math.prod(spectrum[:-2]) * spectrum[-1]
    return NodeCost(flops=frames * (fourier_flops(length) + 3 * length) + call.output().count)


_TRANSFORMS: dict[str, CostRule] = {
    **dict.fromkeys(("_fft_c2c", "_fft_c2r", "_fft_r2c"), _fourier(-1)),
    **dict.fromkeys(("fft_fft", "fft_hfft", "fft_ifft", "fft_ihfft", "fft_irfft", "fft_rfft"), _fourier(-1)),
    **dict.fromkeys(("fft_fft2", "fft_hfft2", "fft_ifft2", "fft_ihfft2", "fft_irfft2", "fft_rfft2"), _fourier(-2, -1)),
    **dict.fromkeys(("fft_fftn", "fft_hfftn", "fft_ifftn", "fft_ihfftn", "fft_irfftn", "fft_rfftn"), _fourier()),
    "istft": _signal,
    "stft": _frames,
}

RULES: dict[str, CostRule] = {
    **dict.fromkeys(
        ("_linalg_det", "_linalg_slogdet", "det", "linalg_det", "linalg_lu_factor", "linalg_lu_factor_ex",
         "linalg_slogdet", "logdet", "slogdet"),
        _of_each(lambda n, _: 2 * (n**3 // 3)),
    ),
    **dict.fromkeys(("cholesky", "linalg_cholesky", "linalg_cholesky_ex"), _of_each(lambda n, _: n**3 // 3)),
    **dict.fromkeys(("inverse", "linalg_inv", "linalg_inv_ex"), _of_each(lambda n, _: 2 * n**3)),
    **dict.fromkeys(("linalg_qr", "qr"), _of_each(_orthogonal)),
    **dict.fromkeys(("_linalg_solve_ex", "linalg_solve", "linalg_solve_ex"), _solved),
    "linalg_solve_triangular": _triangles,
    **_TRANSFORMS,
}  # fmt: skip
