"""Closure of families against that of the checker, which another module derives in its own words."""

from __future__ import annotations

import random

import numpy as np
from flow_proofs import claim_of, random_problem

from mtpp.checker.bounds.families import Families
from mtpp.checker.merged import stage_weights
from mtpp.checker.paths import Paths
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.configuration.families import StageSets
from mtpp.solvers.bounds.configuration.kernels.stage_network import FREE, IN, OUT


def test_solver_and_checker_conclude_the_same() -> None:
    """Ops inside and outside and tensors apart of random families, at random limits; the same families are empty."""
    empty = apart = 0
    for seed in range(400):
        pick = random.Random(seed)
        graph, system, k, _ = random_problem(seed, op_count=pick.randint(2, 9))
        k = max(2, k)
        sets = StageSets.of(Instance.build(graph, Machine.uniform(k, system)))
        total = sets.cost.total
        sets.within(pick.randint(total // 5, total))
        merged = claim_of(graph, system, k, [], 0, {}).merged()
        assert not isinstance(merged, str)
        weighed = stage_weights(merged, system.to_document(), streamed=sets.cost.streamed)
        assert weighed is not None
        families = Families(Paths(merged), weighed[0], merged.tensors, sets.most, sets.least)
        name = sets.instance.first_members.tolist()
        n = len(name)
        state = np.full(n, FREE, dtype=np.int8)
        root = pick.randrange(n)
        left_out = [op for op in range(n) if op != root and pick.random() < 0.2]
        state[root] = IN
        state[left_out] = OUT
        said = families.rooted(name[root], sum(1 << name[op] for op in left_out))
        for _ in range(4):
            known = sets.closed(state)
            assert (known is None) is (said is None), seed
            if known is None or said is None:
                empty += 1
                break
            state, _, _, parted = known
            assert sum(1 << name[op] for op in range(n) if state[op] == IN) == said.inside, seed
            assert sum(1 << name[op] for op in range(n) if state[op] == OUT) == said.outside, seed
            touching = {
                families.touching[t] for t in range(len(merged.tensors)) if said.apart >> t & 1 and merged.tensors[t][0]
            }
            network = sets.network
            for t in range(len(parted)):
                pins = network.pins[network.pin_offsets[t] : network.pin_offsets[t + 1]].tolist()
                if len(pins) > 1 and network.transfer[t] > 0:
                    assert bool(parted[t]) is (sum(1 << name[op] for op in pins) in touching), seed
                    apart += int(parted[t])
            free = np.flatnonzero(state == FREE).tolist()
            if not free:
                break
            op, inside = pick.choice(free), pick.random() < 0.5
            said = families.split(said, name[op])[0 if inside else 1]
            state[op] = IN if inside else OUT
    assert empty > 100
    assert apart > 300
