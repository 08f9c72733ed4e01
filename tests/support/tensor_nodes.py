"""Plans of a Llama on nodes of GPUs by formulas alone: costs and memory of every stage, and the best of all plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any, NamedTuple

PS = 10**12


@dataclass(frozen=True)
class Llama:
    """Sizes of a model without ties: width, network, layers, heads, heads of keys and values, vocabulary."""

    h: int
    f: int
    layers: int
    q: int
    kv: int
    vocabulary: int

    def configuration(self) -> dict[str, Any]:
        """Return the keys of its configuration."""
        return {
            "model_type": "llama", "hidden_size": self.h, "intermediate_size": self.f, "num_hidden_layers": self.layers,
            "num_attention_heads": self.q, "num_key_value_heads": self.kv, "vocab_size": self.vocabulary,
            "torch_dtype": "bfloat16", "tie_word_embeddings": False,
        }  # fmt: skip


@dataclass(frozen=True)
class Node:
    """GPU of a node in FLOP/s and bytes a second, its memory, and the degrees of a stage on the node."""

    peak: int
    memory_rate: int
    bandwidth: int
    memory: int
    link: int
    degrees: tuple[int, ...]

    def table(self, name: str) -> str:
        """Return the table of a machine file."""
        return (
            f'[[device]]\nname = "{name}"\nmemory = "{self.memory}B"\nbandwidth = "{self.bandwidth}B/s"\n'
            f'tensor_parallel = {list(self.degrees)}\ntensor_link = "{self.link}B/s"\n'
            f'[device.system]\npeak_flops = "{self.peak}FLOP/s"\nmemory_bandwidth = "{self.memory_rate}B/s"\n'
        )


class Load(NamedTuple):
    """Further tokens of a batch, of so many sequences held, at a context."""

    context: int
    sequences: int
    batch: int


class Part(NamedTuple):
    """An op on one GPU: ps, bytes of weights, of a sequence's cache, of intermediate tensors."""

    time: int
    weights: int
    cache: int
    inner: int


def up(above: int, below: int) -> int:
    """Divide and round up."""
    return -(-above // below)


def parts(model: Llama, load: Load, node: Node, t: int) -> list[Part]:
    """Return the embedding, the layers and the head on one of t GPUs."""
    h, b, d = model.h, load.batch, model.h // model.q
    heads, own, rows = model.q // t, max(1, model.kv // t), up(model.vocabulary, t)
    matrices = h * heads * d + 2 * h * own * d + heads * d * h + 3 * h * model.f // t
    weights = 2 * (matrices + 2 * h)
    read = 2 * b * load.context * 2 * own * d
    written = 2 * b * 2 * own * d
    flops = 2 * b * matrices + 4 * b * heads * d * load.context
    state = 2 * b * h
    summed = (2 * (t - 1) * state, t)
    wide = max(h, heads * d, own * d, model.f // t)

    def time(work: int, moved: int, sent: tuple[int, int]) -> int:
        roofline = max(up(work * PS, node.peak), up(moved * PS, node.memory_rate))
        return roofline + up(sent[0] * PS, sent[1] * node.link)

    layer = Part(
        time(flops, weights + read + written, (2 * summed[0], t)), weights, 2 * load.context * 2 * own * d, 4 * b * wide
    )
    table = 2 * rows * h
    embedding = Part(time(0, 2 * b * h, summed), table, 0, 0)
    logits = ((t - 1) * 2 * b * model.vocabulary, t)
    head = Part(time(2 * b * rows * h, table + 2 * h, logits), table + 2 * h, 0, 4 * b * model.vocabulary)
    return [embedding, *[layer] * model.layers, head]


class Plan(NamedTuple):
    """Bottleneck and latency in ps, and for each stage its node, degree and ops."""

    bottleneck: int
    latency: int
    stages: tuple[tuple[int, int, int], ...]


def plans(model: Llama, load: Load, nodes: list[Node], *, free: bool) -> Iterator[Plan]:
    """Yield all plans that keep to the memories: each cut, each choice of nodes and each degree."""
    n, moved = model.layers + 2, 2 * load.batch * model.h
    known = {(j, t): parts(model, load, node, t) for j, node in enumerate(nodes) for t in node.degrees}
    for k in range(1, len(nodes) + 1):
        chosen = permutations(range(len(nodes)), k) if free else combinations(range(len(nodes)), k)
        for order in chosen:
            for degrees in product(*(nodes[j].degrees for j in order)):
                for cuts in combinations(range(1, n), k - 1):
                    ends = (0, *cuts, n)
                    costs = [
                        stage(known[j, t][ends[i] : ends[i + 1]], nodes[j], load, moved, i > 0, i < k - 1)
                        for i, (j, t) in enumerate(zip(order, degrees, strict=True))
                    ]
                    fitting = [cost for cost in costs if cost is not None]
                    if len(fitting) == k:
                        counts = [ends[i + 1] - ends[i] for i in range(k)]
                        yield Plan(max(fitting), sum(fitting), tuple(zip(order, degrees, counts, strict=True)))


def stage(ops: list[Part], node: Node, load: Load, moved: int, first: bool, last: bool) -> int | None:
    """Return the ps of a stage that takes a tensor if *first*, and sends one if *last*; None: it does not fit.

    While an op runs, the tensor that it takes and the one that it makes are in memory, beside its own.
    """
    peaks = []
    for i, op in enumerate(ops):
        taken = moved if i or first else 0
        made = moved if i < len(ops) - 1 or last else 0
        peaks.append(taken + made + op.inner)
    held = sum(op.weights for op in ops) + load.sequences * sum(op.cache for op in ops) + max(peaks)
    if held > node.memory:
        return None
    return sum(op.time for op in ops) + (first + last) * up(moved * PS, node.bandwidth)
