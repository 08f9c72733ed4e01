"""Ranges of inputs that pick rows of tables: those of the smallest table, through what only lays numbers out anew."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from mtpp.runtime.pytorch.flat_program import flat_program  # noqa: E402
from mtpp.runtime.pytorch.input_limits import row_limits  # noqa: E402


class Tables(torch.nn.Module):
    """Two tables that rows are picked from by the same numbers, and an input that picks none."""

    def __init__(self) -> None:
        super().__init__()
        self.large, self.small = torch.nn.Embedding(100, 4), torch.nn.Embedding(7, 4)

    def forward(self, ids: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Return the sum of the rows, and of what is counted."""
        return self.large(ids).sum() + self.small(ids.view(-1).unsqueeze(0)).sum() + counts.sum()


def test_rows_are_those_of_the_smallest_table() -> None:
    """Both are read with the same numbers, so these are rows of either."""
    ids, counts = torch.zeros(2, 3, dtype=torch.int64), torch.zeros(5, dtype=torch.int64)
    flat = flat_program(torch.export.export(Tables().eval(), (ids, counts)), {})
    assert {node.name: limits for node, limits in row_limits(flat).items()} == {"ids": (0, 6)}


class Offsets(torch.nn.Module):
    """A table read two rows further on, one read from its second row on, and a number that is checked."""

    def __init__(self) -> None:
        super().__init__()
        self.places, self.kinds = torch.nn.Embedding(9, 4), torch.nn.Embedding(5, 4)

    def forward(self, places: torch.Tensor, kinds: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        """Return rows, and as many ones as *count* says."""
        n = count.item()
        torch._check(n >= 2)
        torch._check(n <= 6)
        return self.places(places + 2).sum() + self.kinds(kinds - 1).sum() + torch.ones(n).sum()


def test_offsets_and_checked_numbers_are_respected() -> None:
    """Rows stay within a table that is read further on, and numbers within what the program checks."""
    places, kinds = torch.zeros(3, dtype=torch.int64), torch.ones(3, dtype=torch.int64)
    flat = flat_program(torch.export.export(Offsets().eval(), (places, kinds, torch.tensor(3))), {})
    found = {node.name: limits for node, limits in row_limits(flat).items()}
    assert found == {"places": (0, 6), "kinds": (1, 5), "count": (2, 6)}
