"""Sets of ops to leave out: small trees that others pay for are found, and lose next to nothing."""

from __future__ import annotations

import numpy as np
from graph_strategies import LINK

from mtpp.inference.charges import charges
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.relaxation import relax
from mtpp.solvers.relaxation.candidates import Candidates
from mtpp.solvers.relaxation.relaxed_search import RelaxedSearch

LAYERS = 8


def _layers() -> Instance:
    """Return a chain of layers; each reads the cosine and the sine of a table that is made for it from nothing.

    They may be anywhere before their layer: without them there are few downsets.
    """
    ops, tensors = [], []
    for i in range(LAYERS):
        ops += [Op(f"table{i}", 2), Op(f"cos{i}", 1), Op(f"sin{i}", 1), Op(f"layer{i}", 1000)]
        tensors += [
            Tensor(f"t{i}", f"table{i}", (f"cos{i}", f"sin{i}"), None, 9),
            Tensor(f"c{i}", f"cos{i}", (f"layer{i}",), None, 9),
            Tensor(f"s{i}", f"sin{i}", (f"layer{i}",), None, 9),
        ]
        if i:
            tensors.append(Tensor(f"x{i}", f"layer{i - 1}", (f"layer{i}",), None, 50))
    graph = CostGraph.build(name="layers", time_unit="ps", ops=ops, tensors=tensors)
    return Instance.build(graph, LINK, 4)


def test_trees_that_others_pay_for_are_left_out_at_no_loss() -> None:
    """Tables, cosines and sines go, but those that come before all else, and the relaxed optimum is that of all ops."""
    instance = _layers()
    candidates = Candidates.of(instance)
    found = next(candidates.levels(2500, lambda: False))
    left_out = [name for name, out in zip(instance.op_names, found.tolist(), strict=True) if out]
    assert left_out == [f"{kind}{i}" for i in range(1, LAYERS) for kind in ("table", "cos", "sin")]
    assert candidates.lost_work(found) == 0
    relaxation = relax(instance, found)
    assert relaxation.instance.work.tolist() == [2, 1, 1, 1000, *[1004] * (LAYERS - 1)]
    search = RelaxedSearch(relaxation, 0, 3000, 2**20, lambda: False)
    search.run(0, 3000, 10**6)
    assert search.lower == 2 * 1004 + 2 * 50  # two layers, with what comes in and goes out


def test_a_tree_is_charged_on_the_reader_of_its_dearest_tensor() -> None:
    """One that stays before one that does not, and no more than the tensor costs."""
    ops = [Op("a", 7), Op("b", 3), Op("c", 1), Op("d", 1)]
    tensors = [
        Tensor("ab", "a", ("b", "c"), None, 5),
        Tensor("ad", "a", ("d",), None, 4),
        Tensor("bd", "b", ("d",), None, 2),
    ]
    graph = CostGraph.build(name="tree", time_unit="ps", ops=ops, tensors=tensors)
    instance = Instance.build(graph, LINK, 2)
    charged = charges(instance, np.array([True, True, False, False]), instance.transfer)
    assert charged.reader.tolist() == [2, 3, -1, -1]
    assert charged.amount.tolist() == [5, 2, 0, 0]
    assert charged.on_op.tolist() == [0, 0, 5, 2]
    assert charged.spare.tolist() == [0, 4, 0]
    charged = charges(instance, np.array([True, True, True, False]), instance.transfer)
    assert charged.reader.tolist() == [1, 3, -1, -1]  # nobody reads from c, so nothing can be charged on it
    assert charged.amount.tolist() == [5, 2, 0, 0]
    assert charged.on_op.tolist() == [0, 5, 0, 2]
