"""The decomposition tree: complete, the graph again when expanded, and with the smallest cores there are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain as chained
from itertools import combinations
from pathlib import Path

import numpy as np
import onnx
import pytest
from composed_graphs import composed_edges, composed_graph
from graph_strategies import graphs, random_graph
from hypothesis import given, settings

from mtpp.datasets.layered import layered_network
from mtpp.formats.graphs.placement import graph_from_placement
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.io.source import read_source
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.series_parallel.decomposition import CORE, EDGE, PARALLEL, SERIES, Decomposition, decompose, expand

Edges = list[tuple[int, int]]


def graph_of(op_count: int, edges: Edges) -> CostGraph:
    """Return a graph with one tensor per edge."""
    ops = [Op(f"op{v}", 1) for v in range(op_count)]
    tensors = [Tensor(f"t{i}", f"op{u}", (f"op{v}",), transfer=1) for i, (u, v) in enumerate(edges)]
    return CostGraph.build(name="drawn", time_unit="1", ops=ops, tensors=tensors)


def all_edges(graph: CostGraph) -> Edges:
    """Return the edges, those of the virtual source and sink included."""
    n = graph.op_count
    tails, heads = (ends.tolist() for ends in graph.edges)
    begins, ends = set(range(n)) - set(heads), set(range(n)) - set(tails)
    return [*zip(tails, heads, strict=True), *((n, v) for v in begins), *((v, n + 1) for v in ends)]


def reached(edges: Edges, start: int) -> set[int]:
    """Return the ops that *start* reaches, itself included."""
    found, stack = {start}, [start]
    while stack:
        u = stack.pop()
        new = {b for a, b in edges if a == u} - found
        found |= new
        stack.extend(new)
    return found


def is_series_parallel(edges: Edges, source: int, sink: int) -> bool:
    """Return whether a two-terminal graph is series-parallel, by its definition: one edge, or two that are composed."""
    if edges == [(source, sink)]:
        return True
    sides = components(edges, source, sink)
    if len(sides) > 1:
        return all(is_series_parallel(side, source, sink) for side in sides)
    for v in {v for edge in edges for v in edge} - {source, sink}:
        behind = reached(edges, v)
        second = [edge for edge in edges if edge[0] in behind]
        first = [edge for edge in edges if edge[0] not in behind]
        if all(b == v or b not in behind for _, b in first):
            return is_series_parallel(first, source, v) and is_series_parallel(second, v, sink)
    return False


def components(edges: Edges, source: int, sink: int) -> list[Edges]:
    """Return the edges that hang together without the terminals, an edge between the terminals on its own."""
    left, found = list(edges), []
    while left:
        side = [left.pop()]
        for edge in side:
            inner = set(edge) - {source, sink}
            side += [other for other in left if inner & set(other)]
            left = [other for other in left if not inner & set(other)]
        found.append(side)
    return found


def is_piece(ops: Iterable[int], edges: Edges) -> bool:
    """Return whether only one op outside feeds *ops* and only one outside reads from them."""
    inside = set(ops)
    feeds = {a for a, b in edges if b in inside and a not in inside}
    reads = {b for a, b in edges if a in inside and b not in inside}
    return len(feeds) == len(reads) == 1


def check_tree(tree: Decomposition, graph: CostGraph) -> None:
    """Assert that the tree is one of the graph, and that nothing in it could be composed further."""
    tails, heads = expand(tree)
    assert tails.tolist() == graph.edges[0].tolist()
    assert heads.tolist() == graph.edges[1].tolist()
    uses = np.bincount(tree.children, minlength=len(tree.kind))
    assert uses.tolist() == [1] * tree.root + [0]
    for node, children in enumerate(tree.child_lists()):
        kinds = [int(tree.kind[child]) for child in children]
        ends = [(int(tree.tail[child]), int(tree.head[child])) for child in children]
        own = (int(tree.tail[node]), int(tree.head[node]))
        assert all(child < node for child in children)
        if tree.kind[node] == EDGE:
            assert not children
        elif tree.kind[node] == PARALLEL:
            assert len(children) > 1
            assert PARALLEL not in kinds
            assert set(ends) == {own}
        elif tree.kind[node] == SERIES:
            assert len(children) > 1
            assert SERIES not in kinds
            assert [ends[0][0], *(head for _, head in ends)] == [*(tail for tail, _ in ends), own[1]]
            assert ends[0][0] == own[0]
        else:
            assert len(set(ends)) == len(ends) > 4


@settings(max_examples=300)
@given(graphs(max_ops=8))
def test_series_parallel_exactly_by_the_definition(graph: CostGraph) -> None:
    """A small random graph has no core exactly if the definition says series-parallel, and the tree expands to it."""
    tree = decompose(graph)
    check_tree(tree, graph)
    plain = is_series_parallel(all_edges(graph), graph.op_count, graph.op_count + 1)
    assert plain == (not tree.cores())


@pytest.mark.parametrize("seed", range(50))
def test_cores_are_as_small_as_can_be(seed: int) -> None:
    """No proper subset of a core's ops lies between two ops, and its edges are distinct: nothing in it reduces."""
    graph = random_graph(seed, 9 + seed % 4, consumers_per_tensor=(0.7, 1.2, 2.0)[seed % 3])
    tree = decompose(graph)
    check_tree(tree, graph)
    for core in tree.cores():
        x, y = int(tree.tail[core]), int(tree.head[core])
        edges = [(int(tree.tail[child]), int(tree.head[child])) for child in tree.children_of(core)]
        inner = {v for edge in edges for v in edge} - {x, y}
        assert is_piece(inner, edges)
        subsets = chained.from_iterable(combinations(sorted(inner), size) for size in range(1, len(inner)))
        assert not any(is_piece(ops, edges) for ops in subsets)


@pytest.mark.parametrize("seed", range(40))
def test_cores_within_cores_and_blocks(seed: int) -> None:
    """An edge of a series-parallel graph, or of a bridge, replaced by a bridge: one core more, the rest as before."""
    edges = composed_edges(30, seed)
    count = 30
    before = decompose(graph_of(count, edges))
    assert not before.cores()
    for depth in range(1, 4):
        tail, head = edges.pop((7 * seed + depth) % len(edges))
        a, b = count, count + 1
        count += 2
        edges += [(tail, a), (tail, b), (a, b), (a, head), (b, head)]
        graph = graph_of(count, edges)
        tree = decompose(graph)
        check_tree(tree, graph)
        assert [len(tree.children_of(core)) for core in tree.cores()] == [5] * depth


@pytest.mark.parametrize("series", [pytest.param(0.5, marks=pytest.mark.slow), 0.9])
@pytest.mark.slow
def test_large_graphs_expand_to_themselves(series: float) -> None:
    """Random series-parallel graphs of 100,000 ops, some edges repeated, decompose fully and expand to themselves."""
    edges = composed_edges(100_000, 1, series=series)
    graph = graph_of(100_000, edges)
    tree = decompose(graph)
    assert not tree.cores()
    assert [tuple(ends) for ends in np.stack(expand(tree), axis=1).tolist()] == edges


def test_small_cases() -> None:
    """One op, ops without edges, a chain, repeated edges, a shortcut, and the smallest core."""
    kinds = {
        "one": (1, [], SERIES),
        "apart": (3, [], PARALLEL),
        "chain": (3, [(0, 1), (1, 2)], SERIES),
        "twice": (2, [(0, 1), (0, 1)], SERIES),
        "shortcut": (3, [(0, 1), (1, 2), (0, 2)], SERIES),
        "bridge": (4, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], SERIES),
        "two inputs, two outputs": (4, [(0, 2), (0, 3), (1, 2), (1, 3)], CORE),
    }
    for name, (count, edges, kind) in kinds.items():
        graph = graph_of(count, edges)
        tree = decompose(graph)
        check_tree(tree, graph)
        assert tree.kind[tree.root] == kind, name
        assert bool(tree.cores()) == (name in ("bridge", "two inputs, two outputs"))


@pytest.mark.slow
def test_deep_and_long_graphs() -> None:
    """A chain of 50,000 ops, shortcuts nested as deep, and cores nested 300 deep, need no deep recursion."""
    n = 50_000
    links = [(v, v + 1) for v in range(n - 1)]
    nested = [(v, n - 1 - v) for v in range(n // 2 - 1)]
    for edges in (links, links + nested):
        graph = graph_of(n, edges)
        check_tree(decompose(graph), graph)
    # Each level: a bridge whose middle edge is the level below.
    depth, count = 300, 2
    edges, inner = [], (0, 1)
    for _ in range(depth):
        x, y = count, count + 1
        count += 2
        edges += [(x, inner[0]), (x, inner[1]), (inner[0], y), (inner[1], y)]
        inner = (x, y)
    graph = graph_of(count, [*edges, (0, 1)])
    tree = decompose(graph)
    check_tree(tree, graph)
    assert len(tree.cores()) == depth


def test_layered_networks() -> None:
    """Networks of blocks with long skips: the tree expands to them, cores or not."""
    for seed in range(4):
        graph = layered_network(2_000, seed)
        check_tree(decompose(graph), graph)
        graph = composed_graph(500, seed)
        assert not decompose(graph).cores()


@pytest.mark.parametrize("name", ["resnet50", "efficientnet", "convnext", "bert-base", "vit-base", "tinyllama"])
def test_exported_models_decompose_fully(shared_data: Path, name: str) -> None:
    """The CNNs among the exported models, and transformers whose masks are folded, have no core."""
    source = read_source(str(shared_data / "onnx" / f"{name}.onnx"))
    graph = read_graph(source, from_format=None, dims={}, system=load_device())
    tree = decompose(graph)
    check_tree(tree, graph)
    assert not tree.cores()


LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
def test_light_models_decompose_fully(path: Path) -> None:
    """The models that come with the onnx package have no core."""
    graph = read_graph(read_source(str(path)), from_format=None, dims={}, system=load_device())
    assert not decompose(graph).cores()


PIPEDREAM = ("alexnet", "densenet121", "inception_v3", "resnet18", "resnet50", "squeezenet1_0", "vgg16")


@pytest.mark.parametrize(("name", "cores"), [*((name, []) for name in PIPEDREAM), ("nasnetamobile", [15, 171])])
def test_profiles_decompose(shared_data: Path, name: str, cores: list[int]) -> None:
    """PipeDream's CNNs have no core but NASNet, two of whose cells feed each other's neighbours all along."""
    graph = read_graph(read_source(str(shared_data / "pipedream" / f"{name}.txt")))
    tree = decompose(graph)
    check_tree(tree, graph)
    assert [len(tree.children_of(core)) for core in tree.cores()] == cores


@pytest.mark.parametrize("name", ["LayerGraphs/inceptionv3", "LayerGraphs/resnet50", "OperatorGraphs/resnet50"])
def test_placement_graphs_decompose(shared_data: Path, name: str) -> None:
    """The CNNs of the placement graphs, parameters left out and colour classes merged, have no core."""
    graph = read_graph(read_source(str(shared_data / "placement" / f"{name}_inference.json")))
    assert not decompose(graph).cores()


def test_cores_of_the_operator_graph(shared_data: Path) -> None:
    """Unmerged, each residual block of the operator-level ResNet-50 is a core; with parameters as ops, all is one."""
    document = json.loads((shared_data / "placement" / "OperatorGraphs" / "resnet50_inference.json").read_text())
    for node in document["nodes"]:
        node.pop("colorClass", None)
    for keep, cores in ((False, [9, 9, 11, 9, 9, 9, 9, 9, 11, 9, 9, 9, 11, 9, 9, 11]), (True, [315])):
        for node in document["nodes"]:
            node["fpgaLatency"] += keep  # what takes time is no parameter
        graph = graph_from_placement(parse_json(json.dumps(document).encode(), "resnet50"), "resnet50")
        tree = decompose(graph)
        check_tree(tree, graph)
        assert [len(tree.children_of(core)) for core in tree.cores()] == cores


def test_an_instance_gives_the_tree_of_its_graph() -> None:
    """Decomposing the instance or the graph is the same."""
    graph = composed_graph(60, 3)
    trees = [decompose(graph), decompose(Instance.build(graph, Machine.uniform(2, load_device())))]
    assert trees[0].children.tolist() == trees[1].children.tolist()
