"""Searches run again come to the same by definition, in plain Python and by the kernel; and what passes is true."""

from __future__ import annotations

import random
from dataclasses import replace
from hashlib import sha256
from typing import Any

import oracles
import pytest
from downset_proofs import RULES, Case, narrow_case, plain_case, random_case
from graph_strategies import LINK, chain, random_graph
from plan_documents import embedded_document, graph_document
from refusals import refusal

from mtpp.checker.claim import BoundClaim
from mtpp.checker.graph import embedded_in_ticks
from mtpp.checker.merged import MergedGraph
from mtpp.errors import Infeasible
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.recheck import compiled as recheck_compiled
from mtpp.solvers.recheck import downset as recheck
from mtpp.solvers.recheck.arrays import fits_arrays
from mtpp.solvers.recheck.claim import DownsetClaim, Found, digest_of
from mtpp.solvers.recheck.compiled import Unwatched, search_compiled
from mtpp.solvers.recheck.downset import recheck_downset
from mtpp.solvers.recheck.plain import search_plain
from mtpp.solvers.solve import solve

MANY = 10**9


def compiled(claim: DownsetClaim, steps: int = 2_000_000) -> Found:
    """Search by the kernel, however long it takes."""
    return search_compiled(claim, MANY, MANY, Unwatched(), steps)


def figures(found: Found) -> tuple[int, int, str] | None:
    """Return what a proof says of a search, None if there is a partition."""
    if found.stages is not None:
        return None
    assert found.digest is not None
    return found.downsets, found.pairs, found.digest


@pytest.mark.parametrize("seeds", [range(s, s + 50) for s in range(0, 300, 50)], ids=str)
@pytest.mark.slow
def test_all_ways_to_search_agree_with_the_definition(seeds: range) -> None:
    """On all downsets and pairs of small graphs: counts, digest, and that there is a partition just above OPT."""
    for seed in seeds:
        case = random_case(seed) if seed % 3 else narrow_case(seed)
        if case is None:
            continue
        steps = random.Random(seed).choice([1, 3, 1000])
        for cutoff in {case.optimum, case.optimum + 1, max(0, case.optimum - 1), case.optimum * 9 // 10}:
            for rules in case.rules:
                proof, claim = case.proof(cutoff, rules), case.claim(cutoff, rules)
                due = None if proof is None else (proof["downsets"], proof["pairs"], proof["digest"])
                assert (due is None) == (cutoff > case.optimum), seed
                plain = search_plain(claim, None)
                assert plain is not None
                assert figures(plain) == due, (seed, cutoff, rules)
                assert figures(compiled(claim, steps)) == due, (seed, cutoff, rules)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.slow
def test_the_kernel_agrees_with_plain_python_on_larger_graphs(seed: int) -> None:
    """With 12 to 15 ops, by all rules, around the least limit that there is a partition within."""
    case = plain_case(random_graph(seed, 12 + seed % 4, largest_cost=20, consumers_per_tensor=1 + seed % 2), 4)
    total = sum(case.ticks.work)
    for cutoff in (total // 4, total // 4 + 15, total // 3 + 30, total // 3 + 40):
        for rules in RULES:
            claim = case.claim(cutoff, rules)
            plain, fast = search_plain(claim, None), compiled(claim, 500)
            assert plain is not None
            assert figures(plain) == figures(fast), (cutoff, rules)


def ladder(rungs: int) -> CostGraph:
    """Two chains side by side, joined here and there, 2 · *rungs* ops in no topological order of the file."""
    pick = random.Random(rungs)
    ops = [Op(f"{side}{i}", pick.randint(1, 9), param_bytes=i % 3) for i in reversed(range(rungs)) for side in "ab"]
    tensors = []
    for i in range(rungs - 1):
        across = (f"b{i + 1}",) if i % 5 == 0 else ()
        tensors.append(Tensor(f"ta{i}", f"a{i}", (f"a{i + 1}", *across), None, pick.randint(0, 4)))
        tensors.append(Tensor(f"tb{i}", f"b{i}", (f"b{i + 1}",), None, pick.randint(0, 4)))
    return CostGraph.build(name="ladder", time_unit="1", ops=ops, tensors=tensors)


@pytest.mark.parametrize("rules", RULES, ids="-".join)
@pytest.mark.slow
def test_sets_of_several_words(rules: list[str]) -> None:
    """More ops than one word has bits, at the last limit that there is no partition within."""
    case = plain_case(ladder(35), 12)
    low, high = 0, sum(case.ticks.work)
    while low < high:  # a limit is infeasible up to a number of ticks, and feasible from there on
        middle = (low + high + 1) // 2
        low, high = (middle, high) if compiled(case.claim(middle, rules)).stages is None else (low, middle - 1)
    plain, fast = search_plain(case.claim(low, rules), None), compiled(case.claim(low, rules))
    assert plain is not None
    assert figures(plain) == figures(fast) is not None
    assert fast.downsets > 10


def wide_claim() -> DownsetClaim:
    """Return a claim that takes 303 downsets and 2,309 pairs."""
    case = plain_case(random_graph(10, 12, largest_cost=20, consumers_per_tensor=1), 4)
    return case.claim(sum(case.ticks.work) // 4 + 15, ["fit"])


def test_the_store_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """From room for one downset on, with the same outcome."""
    claim = wide_claim()
    whole = compiled(claim)
    assert whole.downsets == 303
    monkeypatch.setattr(recheck_compiled, "_FIRST_CAPACITY", 1)
    assert compiled(claim, 100) == whole


def test_the_search_ends_with_what_the_proof_says() -> None:
    """More downsets or pairs than stated are not waited for."""
    claim = wide_claim()
    whole = compiled(claim)
    assert search_compiled(claim, whole.downsets, whole.pairs, Unwatched(), 100) == whole
    assert search_compiled(claim, whole.downsets // 2, MANY, Unwatched(), 100).digest is None
    assert search_compiled(claim, MANY, whole.pairs // 2, Unwatched(), 100).digest is None


def test_the_digest_is_what_is_documented() -> None:
    """Four bytes of level, most significant first, then a bit per op, least significant first; sorted."""
    empty, some = bytes([0, 0, 0, 0, 0, 0]), bytes([0, 0, 1, 2, 0b101, 0b10])
    due = sha256(empty + some).hexdigest()
    assert digest_of([(0b10_0000_0101, 258), (0, 0)], 10) == due


def correct(case: Case, rules: list[str]) -> dict[str, Any]:
    """Return the proof that the optimum is one."""
    proof = case.proof(case.optimum, rules)
    assert proof is not None
    return proof


@pytest.mark.parametrize("way", ["plain", "kernel"])
def test_only_true_proofs_pass(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof of the search's own making passes up to the optimum, and none does above it (brute force)."""
    if way == "kernel":
        monkeypatch.setattr(recheck, "SMALL", 0)
    passed = 0
    for seed in range(1000, 1060):
        case = random_case(seed, most_ops=6)
        if case is None:
            continue
        for cutoff in (case.optimum - 1, case.optimum, case.optimum + 1, case.optimum + 5):
            claim = case.claim(max(0, cutoff), ["crossings", "fit"])
            found = search_plain(claim, None)
            assert found is not None
            stated = {"downsets": found.downsets, "pairs": found.pairs, "digest": found.digest or "0" * 64}
            terms = {"merges": [], "cutoff": max(0, cutoff), "k": case.k, "rules": ["crossings", "fit"]}
            holds, detail = case.recheck(terms | stated)
            assert holds == (max(0, cutoff) <= case.optimum), (seed, detail)
            passed += holds
    assert passed > 50


@pytest.fixture(scope="module")
def case() -> Case:
    """Return a problem whose proof reaches several downsets, fewer with each further rule."""
    return plain_case(chain([7, 10, 4, 1, 11, 19, 13, 14], [6, 11, 4, 1, 3, 0, 0]), 4)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"downsets": +1}, "downsets, the proof says"),
        ({"downsets": -1}, "downsets"),
        ({"pairs": +1}, "pairs, the proof says"),
        ({"pairs": -1}, "pairs"),
        ({"digest": "0" * 64}, "the digest of the downsets is "),
        ({"k": +1}, "the proof is for k = "),
        ({"cutoff": -1}, "ticks, the claim is "),
        ({"rules": ["maximal", "fit"]}, "no search goes by these rules: maximal, fit"),
        ({"rules": []}, "no search goes by these rules: none"),
        ({"rules": ["fit"]}, "the proof says"),
        ({"rules": ["fit", "maximal"]}, "the proof says"),
    ],
    ids=str,
)
@pytest.mark.parametrize("way", ["plain", "kernel"])
def test_what_is_false_is_named(
    case: Case, change: dict[str, Any], fault: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong count, digest, k, cutoff or list of rules fails, in one line that says which."""
    if way == "kernel":
        monkeypatch.setattr(recheck, "SMALL", 0)
    proof = correct(case, ["crossings", "fit", "maximal"])
    assert case.recheck(proof)[0]
    wrong = proof | {key: proof[key] + by if isinstance(by, int) else by for key, by in change.items()}
    holds, detail = case.recheck(wrong, value=case.optimum)
    assert not holds
    assert fault in detail
    assert "\n" not in detail


def test_a_cutoff_above_the_optimum_fails(case: Case) -> None:
    """Whatever the proof says of its search: there is a partition, and the report says into how many stages."""
    proof = correct(case, ["fit"])
    holds, detail = case.recheck(proof | {"cutoff": case.optimum + 1})
    assert not holds
    assert detail.startswith("there is a partition into ")
    assert detail.endswith(f" below {case.optimum + 1} ticks")
    whole = plain_case(chain([3, 4], [1]), 2)
    assert whole.recheck(proof | {"cutoff": 8, "k": 2}) == (False, "there is a partition into 1 stage below 8 ticks")


def test_a_proof_of_other_merges_fails() -> None:
    """On the graph as merged otherwise the search comes to something else."""
    case = plain_case(chain([5, 1, 5, 1, 5, 4], [9, 2, 9, 2, 2]), 3)
    proof = correct(case, ["fit"])
    assert case.recheck(proof)[0]
    merged = case.merged
    tensors = [(cost, max(0, u - 1), tuple(v - 1 for v in readers)) for cost, u, readers in merged.tensors[1:]]
    first = MergedGraph(
        [merged.work[0] + merged.work[1], *merged.work[2:]],
        [merged.param_bytes[0] + merged.param_bytes[1], *merged.param_bytes[2:]],
        tensors,
        [0, 0, 1, 2, 3, 4],
    )
    assert not replace_merged(case, first).recheck(proof)[0]


def replace_merged(case: Case, merged: MergedGraph) -> Case:
    """Return the case with another graph after the merges."""
    return case._replace(merged=merged)


def test_merged_ops_that_wait_for_each_other_fail() -> None:
    """No order of the ops, no downsets."""
    case = plain_case(chain([1, 2], [3]), 2)
    wrong = MergedGraph([1, 2], [0, 0], [(3, 0, (1,)), (1, 1, (0,))], [0, 1])
    assert replace_merged(case, wrong).recheck(correct(case, ["fit"])) == (
        False,
        "the ops, as merged, wait for each other",
    )


def test_maximal_is_refused_where_activations_are_counted() -> None:
    """There it does not hold: an op that leaves a stage may make its activations more."""
    graph = random_graph(5, 6, time_unit="ps")
    most = int(graph.param_bytes.sum()) + sum(int(size) for size in graph.tensor_bytes if size != UNKNOWN_BYTES)
    roomy, tight = (plain_case(graph, 2, replace(LINK, peak="order", memory_bytes=size)) for size in (most, most - 1))
    assert roomy.recheck(correct(roomy, ["fit", "maximal"]))[0]
    holds, detail = tight.recheck(correct(tight, ["fit"]) | {"rules": ["fit", "maximal"]})
    assert (holds, "'maximal' does not hold" in detail) == (False, True)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"downsets": 0}, "/lower_bound/proof/downsets"),
        ({"pairs": "1"}, "/lower_bound/proof/pairs"),
        ({"rules": "fit"}, "/lower_bound/proof/rules"),
        ({"rules": [["fit"]]}, "/lower_bound/proof/rules/0"),
        ({"digest": "0" * 63}, "/lower_bound/proof/digest"),
        ({"more": 1}, "/lower_bound/proof/more"),
    ],
    ids=str,
)
def test_malformed_proofs_are_refused(case: Case, change: dict[str, Any], where: str) -> None:
    """With the place."""
    assert refusal(case.recheck, correct(case, ["fit"]) | change).where == where


def test_a_zero_cutoff_holds() -> None:
    """No stage costs less than nothing."""
    case = plain_case(chain([0, 0, 0], [0, 0]), 2)
    assert case.optimum == 0
    for rules in RULES:
        assert case.recheck(correct(case, rules))[0]


def test_costs_beyond_64_bits_are_searched_in_plain_python() -> None:
    """Sums that no kernel could hold are still exact."""
    case = plain_case(chain([2**61, 2**60 + 1, 2**61, 5], [3, 2**60, 1]), 3)
    proof = correct(case, ["crossings", "fit", "maximal"])
    assert not fits_arrays(case.claim(case.optimum, proof["rules"]))
    assert case.recheck(proof)[0]


def test_overflow_is_exact_in_the_kernel() -> None:
    """Bytes times ticks per second would not fit into 64 bits; the limit is met to the tick."""
    for bandwidth in (1, 3, 10**9 + 7, 2**60 - 1):
        system = LINK.overriding(bandwidth_bytes_per_s=bandwidth, fast_memory_bytes=0)
        ops = [Op("a", 1, param_bytes=10**6 + 1), Op("b", 1, param_bytes=10**6)]
        graph = CostGraph.build(name="g", time_unit="ps", ops=ops, tensors=[Tensor("t", "a", ("b",), None, 0)])
        case = plain_case(graph, 2, system)
        assert case.optimum == oracles.stage_cost(graph, system, [0])
        assert compiled(case.claim(case.optimum, ["fit"])).stages is None
        assert compiled(case.claim(case.optimum + 1, ["fit"])).stages == 2


def test_a_search_that_does_not_fit_into_memory_is_left_open() -> None:
    """Neither true nor false, whatever its proof says."""
    ops = [Op(f"op{v}", 10) for v in range(22)]
    graph = CostGraph.build(name="bins", time_unit="ps", ops=ops, tensors=[])
    counts = {"merges": [], "downsets": 10**18, "pairs": 10**18, "digest": "0" * 64}
    proof = {**counts, "cutoff": 60, "k": 4, "rules": ["fit"]}
    claim = BoundClaim(embedded_in_ticks(graph_document(graph)), LINK.to_document(), 4, [], 60, proof)
    merged = claim.merged()
    assert not isinstance(merged, str)
    asked = (merged, claim.graph, claim.system, claim.k, claim.value, proof)
    passed, detail = recheck.recheck_downset(*asked, memory_bytes=2**18)
    assert passed is None
    assert detail.endswith("downsets take all the memory that it may (0 MiB)")
    assert recheck.recheck_downset(*asked, memory_bytes=2)[1].endswith("22 ops are too many for it")


def random_system(graph: CostGraph, pick: random.Random) -> Device:
    """Return a system with or without memories that parts of a graph fill."""
    system = Device("s", 1, 1, Link(10**12 // pick.choice([1, 3, 7])))
    if pick.random() < 0.4:
        return system
    params = sum(int(size) for size in graph.param_bytes)
    return replace(
        system,
        peak=pick.choice(["reserve", "order"]),
        activation_reserve_bytes=pick.choice([0, 20]),
        fast_memory_bytes=pick.randint(20, 20 + params) if pick.random() < 0.7 else None,
        memory_bytes=pick.randint(50 + params // 3, 150 + params) if pick.random() < 0.5 else None,
    )


def proven(seed: int) -> tuple[bool, str] | None:
    """Solve a random problem of up to 14 ops and run the search behind its bound again; None if there is none."""
    pick = random.Random(seed)
    graph = random_graph(
        seed, pick.randint(5, 14), time_unit="ps", largest_cost=20, consumers_per_tensor=pick.choice([1, 1.5])
    )
    system, k = random_system(graph, pick), pick.randint(2, 5)
    together = [pick.sample(list(graph.op_names), 2)] if pick.random() < 0.2 else []
    limits = SearchLimits(200, seed=seed)
    try:
        plan = solve(
            Instance.build(graph, Machine.uniform(k, system)), graph, limits, algorithm="downset", together=together
        )
    except Infeasible:
        return None
    bound: dict[str, Any] = plan.certificate.lower.to_document()
    if bound["tier"] != "enumerated":
        return None
    ticks = embedded_in_ticks(embedded_document(graph, system, k))
    given: dict[str, Any] = system.to_document()
    merged = BoundClaim(ticks, given, k, together, bound["value"], bound["proof"]).merged()
    assert not isinstance(merged, str), (seed, merged)
    return recheck_downset(merged, ticks, given, k, bound["value"], bound["proof"])


@pytest.mark.parametrize("way", ["plain", "kernel"])
def test_every_proof_passes(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With memories and groups, on graphs with merges, at every limit that the search ended with."""
    if way == "kernel":
        monkeypatch.setattr(recheck, "SMALL", 0)
    checked = 0
    for seed in range(80):
        outcome = proven(seed)
        if outcome is not None:
            assert outcome[0], (seed, outcome[1])
            checked += 1
    assert checked > 30
