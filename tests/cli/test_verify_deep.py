"""``mtpp verify --deep``, as a process: made by hand and by ``mtpp partition``."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from downset_proofs import plain_case
from graph_strategies import chain, random_graph
from plan_documents import plan_document
from processes import interrupted, printed, run

from mtpp.formats.graphs.native import write_native
from mtpp.inference.graph import CostGraph, Op

ALL = ["crossings", "fit", "maximal"]


def optimal_plan() -> dict[str, Any]:
    """Return a plan of a chain with a proof that it is optimal, from the oracles alone."""
    case = plain_case(chain([7, 10, 4, 1, 11, 19, 13, 14], [6, 11, 4, 1, 3, 0, 0]), 4)
    plan: dict[str, Any] = plan_document(case.graph, case.system, 4, [0, 0, 0, 1, 1, 2, 3, 3], embed=True)
    assert plan["bottleneck"] == case.optimum
    proof = case.proof(case.optimum, ALL)
    bound = {"value": case.optimum, "method": "downset", "tier": "enumerated", "proof": proof}
    return plan | {"lower_bound": bound, "ratio": 1.0, "optimal": True}


def verify(plan: dict[str, Any], path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Write a plan and verify it."""
    path.write_text(json.dumps(plan, default=float))
    return run("verify", path, *options)


def bound_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a report says of the lower bound, in single spaces."""
    return next(" ".join(line.split()) for line in done.stdout.splitlines() if " lower bound  " in line)


def test_a_proof_made_by_hand_passes(tmp_path: Path) -> None:
    """The search runs again; with --shallow the bound is unchecked, and no tier is met."""
    path = tmp_path / "plan.json"
    done = verify(optimal_plan(), path, "--require-tier", "enumerated")
    assert (done.returncode, done.stderr) == (0, "")
    assert bound_line(done) == (
        "ok lower bound downset: no merges; no partition into 4 stages stays below 27: "
        "3 downsets and 2 pairs, as the proof says"
    )
    assert done.stdout.splitlines()[-1] == (
        "valid, proven optimal: no partition of the embedded graph into 4 stages has a smaller bottleneck"
    )
    assert run("verify", path, "--deep").stdout == done.stdout
    shallow = run("verify", path, "--shallow")
    assert shallow.returncode == 3
    assert bound_line(shallow) == (
        "unchecked lower bound downset: no merges; the search behind it was left out by --shallow"
    )
    assert shallow.stdout.splitlines()[-1] == (
        "NOT PROVEN: lower bound, ratio and optimal are merely claimed; all else holds"
    )
    assert run("verify", path, "--shallow", "--accept-unchecked").returncode == 0
    unmet = run("verify", path, "--shallow", "--accept-unchecked", "--require-tier", "enumerated")
    assert unmet.returncode == 1
    assert unmet.stderr == ("unmet: --require-tier enumerated: the bound is of tier enumerated, and was not checked\n")
    assert run("verify", path, "--require-tier", "exact").returncode == 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"pairs": 3}, "the search comes to 2 pairs, the proof says 3"),
        ({"downsets": 2}, "the search comes to 3 downsets, the proof says 2"),
        ({"digest": "0" * 64}, "the digest of the downsets is "),
        ({"rules": ["fit"]}, "the search comes to 5 downsets, the proof says 3"),
        ({"k": 3}, "the proof is for k = 3, the claim for k = 4"),
        ({"merges": [["pull-down", 0, 1]]}, "merge 0 ('pull-down' of op 'op0' to 'op1')"),
    ],
    ids=str,
)
def test_a_false_proof_fails(change: dict[str, Any], fault: str, tmp_path: Path) -> None:
    """Exit code 1, and what is false."""
    plan = optimal_plan()
    plan["lower_bound"]["proof"] |= change
    done = verify(plan, tmp_path / "plan.json", "--deep")
    assert done.returncode == 1
    assert bound_line(done).startswith("false lower bound ")
    assert fault in bound_line(done)
    assert done.stdout.splitlines()[-1] == "INVALID: lower bound, ratio and optimal are false"


def test_a_bound_above_the_optimum_fails(tmp_path: Path) -> None:
    """A worse plan, said to be optimal: there is a better partition."""
    plan = optimal_plan()
    graph = chain([7, 10, 4, 1, 11, 19, 13, 14], [6, 11, 4, 1, 3, 0, 0])
    worse = plan_document(graph, plain_case(graph, 4).system, 4, [0, 0, 1, 1, 1, 2, 3, 3], embed=True)
    assert worse["bottleneck"] > plan["bottleneck"]
    bound = plan["lower_bound"] | {"value": worse["bottleneck"]}
    bound["proof"] |= {"cutoff": worse["bottleneck"]}
    worse |= {"lower_bound": bound, "ratio": 1.0, "optimal": True}
    done = verify(worse, tmp_path / "plan.json", "--deep", "--format", "json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    check = next(check for check in report["checks"] if check["name"] == "lower bound")
    assert (report["valid"], report["tier"], check["verdict"]) == (False, "none", "false")
    assert f"stages below {worse['bottleneck']}" in check["detail"]


def test_malformed_proofs_and_unknown_methods(tmp_path: Path) -> None:
    """A proof of another shape is bad input; a search that nobody knows cannot be run."""
    plan = optimal_plan()
    plan["lower_bound"]["proof"]["pairs"] = "2"
    done = verify(plan, tmp_path / "plan.json", "--deep")
    assert (done.returncode, done.stdout) == (2, "")
    assert "/lower_bound/proof/pairs: expected a whole number" in done.stderr
    assert done.stderr.count("\n") == 1
    plan["lower_bound"]["method"] = "upset"
    done = verify(plan, tmp_path / "plan.json", "--deep")
    assert done.returncode == 1
    assert "no search is known by the name of 'upset'" in bound_line(done)


def test_deep_changes_nothing_for_other_tiers(tmp_path: Path) -> None:
    """There is no search behind an exact bound."""
    graph = chain([4, 1], [2])
    plan = plan_document(graph, plain_case(graph, 2).system, 2, [0, 1], embed=True)
    path = tmp_path / "plan.json"
    assert verify(plan, path, "--deep").stdout == run("verify", path).stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_search_exits_with_130(number: signal.Signals, tmp_path: Path) -> None:
    """In the middle of a search that would take forever, Ctrl-C and SIGTERM give one line and no report."""
    graph = CostGraph.build(name="wide", time_unit="1", ops=[Op(f"op{v}", 10) for v in range(60)], tensors=[])
    case = plain_case(graph, 7)
    plan = plan_document(graph, case.system, 7, [v // 9 for v in range(60)], embed=True)
    proof = {"merges": [], "cutoff": 90, "k": 7, "rules": ["fit"], "downsets": 2**60, "pairs": 2**60}
    bound = {"value": 90, "method": "downset", "tier": "enumerated", "proof": proof | {"digest": "0" * 64}}
    path = tmp_path / "plan.json"
    plan |= {"lower_bound": bound, "ratio": 1.0, "optimal": True}
    path.write_text(json.dumps(plan, default=float))
    code, stdout, stderr = interrupted("verify", path, "--deep", after="searched again: 1 of ", number=number)
    assert (code, stdout) == (130, "")
    assert stderr.splitlines()[-1] == "error: interrupted"


def no_options(graph: CostGraph) -> list[str]:
    """Ask for nothing else."""
    return []


def reserve(graph: CostGraph) -> list[str]:
    """Limit the memory of stages, with a reserve for activations."""
    return ["--stage-memory", f"{sum(graph.param_bytes.tolist()) // 2 + 60}B", "--activation-reserve", "10B"]


def in_order(graph: CostGraph) -> list[str]:
    """Stream parameters that do not fit, with activations counted in order."""
    return ["--fast-memory", f"{sum(graph.param_bytes.tolist()) // 3}B", "--peak", "order"]


def together(graph: CostGraph) -> list[str]:
    """Keep two ops together."""
    return ["--together", "op1,op4"]


@pytest.mark.parametrize("options", [no_options, reserve, in_order, together])
def test_plans_of_mtpp_partition_pass(options: Callable[[CostGraph], list[str]], tmp_path: Path) -> None:
    """What the search on the other side proves is found again, with and without memories and groups."""
    enumerated = 0
    for seed in (0, 2):
        graph = random_graph(seed, 10 + 2 * seed, time_unit="ns", largest_cost=20, consumers_per_tensor=1)
        model, output = tmp_path / f"{seed}.json", tmp_path / "plan.json"
        model.write_text(write_native(graph))
        printed("partition", model, "-k", "3", "-q", "-o", output, *options(graph))
        tier = json.loads(output.read_text())["lower_bound"]["tier"]
        enumerated += tier == "enumerated"
        printed("verify", output, "--model", model, "--deep", "--require-tier", "enumerated")
    assert enumerated > 0


@pytest.mark.parametrize(("name", "k"), [("resnet50", 16), ("bert-base", 16), ("tinyllama", 16)])
@pytest.mark.slow
def test_plans_of_real_models_pass(name: str, k: int, shared_data: Path, tmp_path: Path) -> None:
    """Up to 1,400 ops and 68,000 pairs."""
    model, output = shared_data / "instances" / f"{name}.json", tmp_path / "plan.json"
    assert run("partition", model, "-k", str(k), "-q", "-o", output, "--require-optimal").returncode == 0
    done = run("verify", output, "--model", model, "--deep", "--require-tier", "enumerated")
    assert done.returncode == 0, done.stdout
    line = bound_line(done)
    assert "as the proof says" in line or line.startswith("ok lower bound node: any stage with op")
