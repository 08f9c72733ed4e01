"""Ops that write in place: random programs cut into stages that copy what they hand over compute what whole ones do."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import numpy as np
import pytest

from mtpp.formats.torch_export.in_place import InPlace, merged


class Step(NamedTuple):
    """An op: *kind* is ``new`` (a function of what it reads), ``view`` (of the first) or ``write`` (into the first)."""

    kind: str
    name: str
    reads: tuple[str, ...]


BUFFERS = ("buffer_0", "buffer_1")


def random_program(rng: Random) -> tuple[list[Step], list[str]]:
    """Return ops in their order and the names of the results."""
    names = [*BUFFERS, "input"]
    steps = []
    for op in range(rng.randint(3, 14)):
        kind = rng.choice(["new", "new", "view", "write"])
        reads = tuple(rng.choice(names) for _ in range(1 if kind == "view" else rng.randint(1, 3)))
        steps.append(Step(kind, f"v{op}", reads))
        names.append(f"v{op}")
    return steps, rng.sample(names[len(BUFFERS) + 1 :], min(2, len(steps)))


def run(step: Step, op: int, values: dict[str, np.ndarray]) -> None:
    """Run an op on arrays: views share memory, writes change it."""
    first = values[step.reads[0]]
    if step.kind == "view":
        values[step.name] = first[::-1] if op % 2 else first
        return
    total = sum((i + 2) * values[name] for i, name in enumerate(step.reads)) % 1009 + op
    if step.kind == "new":
        values[step.name] = np.array(total)
    else:
        first[:] = total
        values[step.name] = first


def initial() -> dict[str, np.ndarray]:
    """Return buffers and input."""
    return {name: np.arange(3) + 10 * i for i, name in enumerate((*BUFFERS, "input"))}


def constraints(steps: list[Step], results: list[str]) -> tuple[list[int], set[tuple[int, int]]]:
    """Return the group of each op and the edges between groups."""
    place = InPlace()
    for name in (*BUFFERS, "input"):
        place.enter(name)
    for op, step in enumerate(steps):
        for name in dict.fromkeys(step.reads):
            place.read(op, name)
        if step.kind == "write":
            place.write(op, step.reads[0])
        place.make(op, step.name, None if step.kind == "new" else step.reads[0])
    for name in results:
        place.read(None, name)
    place.finish()
    makers = {step.name: op for op, step in enumerate(steps)}
    edges = [(makers[name], op) for op, step in enumerate(steps) for name in step.reads if name in makers]
    groups = merged(len(steps), [*edges, *place.before], place.together)
    pairs = {(groups[a], groups[b]) for a, b in [*edges, *place.before]}
    return groups, {(a, b) for a, b in pairs if a != b}


def random_stages(rng: Random, count: int, edges: set[tuple[int, int]]) -> list[int]:
    """Return a stage for each group so that no edge goes back."""
    stages = [-1] * count
    while min(stages) < 0:
        ready = [g for g in range(count) if stages[g] < 0 and all(stages[a] >= 0 for a, b in edges if b == g)]
        one = rng.choice(ready)
        least = max((stages[a] for a, b in edges if b == one), default=0)
        stages[one] = least + rng.choice([0, 0, 1])
    return stages


def check(seed: int) -> int:
    """Compare a program with its stages; return how many ops could be apart."""
    rng = Random(seed)
    steps, results = random_program(rng)
    whole = initial()
    made = {}
    for op, step in enumerate(steps):
        run(step, op, whole)
        made[step.name] = whole[step.name].copy()
    groups, edges = constraints(steps, results)
    for _ in range(4):
        of_group = random_stages(rng, max(groups) + 1, edges)
        handed: dict[str, np.ndarray] = {}
        after: dict[str, np.ndarray] = {}
        for stage in range(max(of_group) + 1):
            members = [op for op in range(len(steps)) if of_group[groups[op]] == stage]
            values = {name: array.copy() for name, array in handed.items()} | initial()
            for op in members:
                run(steps[op], op, values)
                assert values[steps[op].name].tolist() == made[steps[op].name].tolist(), (seed, steps, of_group)
            handed |= {steps[op].name: values[steps[op].name].copy() for op in members}
            written = {name for name in (*BUFFERS, "input") if values[name].tolist() != initial()[name].tolist()}
            after |= {name: values[name] for name in written}
        for name in results:
            assert handed[name].tolist() == whole[name].tolist(), (seed, steps, of_group)
        for name, value in initial().items():
            assert after.get(name, value).tolist() == whole[name].tolist(), (seed, steps, of_group)
    return max(groups) + 1


@pytest.mark.parametrize("fold", range(4))
def test_stages_compute_what_the_whole_program_does(fold: int) -> None:
    """Every op, every result, and what is left in buffers."""
    assert sum(check(1000 * fold + seed) for seed in range(500)) > 1500


def test_a_chain_of_activations_in_place_can_be_cut() -> None:
    """``relu_`` on the result of a convolution, read by the next one, and an addition in place around it."""
    steps = [
        Step("new", "conv", ("input",)),
        Step("write", "relu", ("conv",)),
        Step("new", "conv_1", ("relu",)),
        Step("write", "add", ("conv_1", "relu")),
        Step("new", "conv_2", ("add",)),
    ]
    groups, edges = constraints(steps, ["conv_2"])
    assert groups == [0, 1, 2, 3, 4]
    assert (2, 3) in edges


def test_an_older_name_of_what_was_written_keeps_ops_together() -> None:
    """A view that is made before a write and read after it."""
    steps = [
        Step("new", "x", ("input",)),
        Step("view", "y", ("x",)),
        Step("write", "x_1", ("x",)),
        Step("new", "z", ("y",)),
        Step("new", "w", ("z",)),
    ]
    groups, _ = constraints(steps, ["w"])
    assert len({groups[1], groups[2], groups[3]}) == 1
    assert groups[4] != groups[3]
