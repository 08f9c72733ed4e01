"""Results of a graph: tensors that the stage that makes them keeps for whoever runs the model."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.errors import InputError


def result_numbers(names: Sequence[str], tensor_names: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the tensors of the given names, ascending.

    Raises
    ------
    InputError
        On a name that no tensor has, or one that is there twice; *where* is a JSON pointer (``/results/0``).
    """
    index = {name: t for t, name in enumerate(tensor_names)}
    found: set[int] = set()
    for i, name in enumerate(names):
        if name not in index:
            raise InputError(f"no tensor is called {name!r}", where=f"/results/{i}", remedy="name one of /tensors")
        if index[name] in found:
            raise InputError(f"duplicate result {name!r}", where=f"/results/{i}")
        found.add(index[name])
    return tuple(sorted(found))
