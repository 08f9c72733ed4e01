"""Cost rules of matrix factorisations and of systems of equations in ATen, by the counts of textbooks.

Golub and Van Loan (2013), Matrix Computations, give the leading terms. Singular values and eigenvalues take as many
iterations as the data needs: they are not modelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable

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
}  # fmt: skip
