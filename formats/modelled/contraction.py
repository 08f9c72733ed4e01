"""Cost of an einsum, from its equation and the shapes of its operands."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mtpp.formats.modelled.node_cost import NodeCost, dense


def contraction(equation: str, operands: Sequence[tuple[int, ...]]) -> NodeCost:
    """Return the cost of contracting operands in pairs from the left, each over the labels nobody needs afterwards.

    Parameters
    ----------
    equation
        Such as ``ij,jk->ik``; an ellipsis stands for the same axes of all operands.
    """
    labelled, sizes = labelled_sizes(equation, operands)
    _, arrow, result = equation.replace(" ", "").partition("->")
    if arrow:
        wanted = set(_result_labels(result, sizes))
    else:
        everything = [label for labels in labelled for label in labels]
        wanted = {label for label in everything if everything.count(label) == 1 or label.startswith(".")}
    flops = macs = 0
    current = set(labelled[0])
    for position in range(1, len(labelled)):
        joined = current | set(labelled[position])
        needed = wanted.union(*labelled[position + 1 :])
        volume = math.prod(sizes[label] for label in joined)
        if joined <= needed:
            flops += volume
        else:
            macs += volume
        current = joined & needed
    if len(labelled) == 1 and not current <= wanted:
        flops += math.prod(sizes[label] for label in current)
    return dense(macs, flops)


def elements_read(equation: str, operands: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the elements of each operand that are read: a label that stands twice in a term picks a diagonal."""
    labelled, sizes = labelled_sizes(equation, operands)
    return [
        math.prod(sizes[label] for label in set(labels)) if len(set(labels)) < len(labels) else math.prod(shape)
        for labels, shape in zip(labelled, operands, strict=True)
    ]


def labelled_sizes(equation: str, operands: Sequence[tuple[int, ...]]) -> tuple[list[list[str]], dict[str, int]]:
    """Return the labels of each operand's axes, and the size that each label stands for."""
    equation = equation.replace(" ", "")
    terms = equation.partition("->")[0].split(",")
    if len(terms) != len(operands) or not operands:
        raise ValueError(f"equation {equation!r} does not fit {len(operands)} operands")
    sizes: dict[str, int] = {}
    return [_labels(term, shape, sizes) for term, shape in zip(terms, operands, strict=True)], sizes


def _labels(term: str, shape: tuple[int, ...], sizes: dict[str, int]) -> list[str]:
    """Give each axis a label; the axes under an ellipsis are counted from the right: ``.1`` is the last."""
    before, dots, after = term.partition("...")
    hidden = len(shape) - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        raise ValueError(f"einsum term {term!r} does not fit an operand of rank {len(shape)}")
    labels = [*before, *(f".{hidden - i}" for i in range(hidden)), *after]
    for label, size in zip(labels, shape, strict=True):
        known = sizes.get(label, 1)
        if size != known and 1 not in (size, known):
            raise ValueError(f"einsum label {label!r} stands for {known} and for {size}")
        sizes[label] = size if known == 1 else known
    return labels


def _result_labels(result: str, sizes: dict[str, int]) -> list[str]:
    labels = list(result.replace("...", ""))
    if "..." in result:
        labels += [label for label in sizes if label.startswith(".")]
    return labels
