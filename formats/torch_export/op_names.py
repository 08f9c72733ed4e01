"""Names of ops: the paths of the modules that they came from, ``layers.7.mlp.down_proj``.

The only op of a module without modules inside is called as the module is; others have their kind behind the path,
``layers.7.self_attn.softmax``, and later ones of the same kind a number, ``layers.7.self_attn.matmul_1``. Later calls
of a module are told apart as PyTorch does: ``layers.7.relu@1`` is its second call. Ops of the outermost module, and of
programs that do not say which module a node is from, are called as their node is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mtpp.formats.modelled.naming import unique_names
from mtpp.formats.torch_export.program import Call


def op_names(calls: Sequence[Call]) -> tuple[list[str], list[str]]:
    """Return the names of ops and those of their nodes, each unique.

    Parameters
    ----------
    calls
        Node of each op; of an op that stands for several nodes its first one.

    Returns
    -------
    Names and names of nodes. A name that is a node's too belongs to the op of that node, so that either tells an op.

    Notes
    -----
    O(ops · depth of the modules) time and memory.
    """
    nodes = unique_names((call.name, call.kind, call.position) for call in calls)
    ops_of = Counter((call.module, call.visit) for call in calls)
    outer = {path[:dot] for path in {call.module or "" for call in calls} for dot in _dots(path)}
    known, taken, numbers = set(nodes), set[str](), Counter[str]()
    names = []
    for call, node in zip(calls, nodes, strict=True):
        name = node
        if call.module:
            visit = f"@{call.visit}" if call.visit else ""
            leaf = ops_of[call.module, call.visit] == 1 and call.module not in outer
            stem = call.module if leaf else f"{call.module}.{call.kind.rpartition('.')[2]}"
            name = _numbered(stem, numbers[stem + visit], visit)
            while name in taken or (name in known and name != node):
                numbers[stem + visit] += 1
                name = _numbered(stem, numbers[stem + visit], visit)
        taken.add(name)
        names.append(name)
    return names, nodes


def _dots(path: str) -> list[int]:
    return [place for place, letter in enumerate(path) if letter == "."]


def _numbered(stem: str, number: int, visit: str) -> str:
    return f"{stem}_{number}{visit}" if number else stem + visit
