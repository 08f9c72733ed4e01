"""Training plans as JSON: the keys that verifiers rely on, and figures worked out by hand."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from given_plans import MIB, chain_problem, given_training_plan

from mtpp.formats.results.document_text import document_text
from mtpp.formats.results.training_plan import no_plan_document, training_plan_document
from mtpp.host.stop_reason import StopReason
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine
from mtpp.training.nested_plan import NestedPlan, Superstage
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.plan import LayerStage, NoPlan, TimeBound


def test_document_has_the_keys_in_order() -> None:
    """The document of a plan is what docs/formats.md says."""
    document = training_plan_document(
        given_training_plan(notes=["so it is"]),
        file={"sha256": "ab"},
        knapsack="exact",
        heuristic_differs=[1],
        elapsed_s=0.25,
    )
    assert list(document) == [
        "format", "version", "planner", "model", "time_unit", "ticks_per_unit", "system", "feasible",
        "time_per_sample", "time_per_sample_ticks", "throughput_per_s", "lower_bound", "ratio", "optimal",
        "devices_used", "degrees_sum", "stages", "knapsack", "notes", "stopped", "elapsed_s",
    ]  # fmt: skip
    assert list(document["stages"][0]) == [
        "index", "layers", "data_parallel", "tensor_parallel", "devices", "in_flight", "memory_bytes", "time",
        "time_ticks", "compute", "communication", "edges", "gradients", "utilization", "configurations",
    ]  # fmt: skip
    assert document["model"] == {"name": "chain", "sha256": "ab", "layers": 6, "edges": 5}
    assert document["system"] == {
        "devices": 8, "memory_bytes": 2**31, "bandwidth_bytes_per_s": 25 * 10**9, "max_micro_batches": 64,
        "exact_micro_batches": False, "convention": "paper", "data_parallel": True, "tensor_parallel": True,
        "recompute": True, "topology": None,
    }  # fmt: skip
    assert (document["devices_used"], document["degrees_sum"]) == (5, 4)
    assert document["knapsack"] == {"method": "exact", "heuristic_differs": [1]}
    assert (document["notes"], document["stopped"], document["elapsed_s"]) == (["so it is"], "finished", 0.25)


def test_figures_are_those_of_the_stages_by_hand() -> None:
    """Times, in ticks and in the model's unit, follow from section 4 of the paper."""
    document = training_plan_document(
        given_training_plan(), file={"sha256": ""}, knapsack="exact", heuristic_differs=[], elapsed_s=0
    )
    stage = document["stages"][0]
    edge = -(-2 * 4 * MIB * 10**12 // (25 * 10**9))
    weights = 3 * -(-4 * 100 * MIB * 10**12 // (25 * 10**9))
    time = Fraction(100 * 10**9 + edge, 2) + Fraction(weights, 4)
    assert stage["layers"] == ["layer 0", "layer 1", "layer 2"]
    assert stage["configurations"] == {"layer 0": "vanilla", "layer 1": "recompute", "layer 2": "vanilla"}
    assert stage["time_ticks"] == [time.numerator, time.denominator] == document["time_per_sample_ticks"]
    assert document["time_per_sample"] == stage["time"] == float(time / 10**9)
    assert (stage["compute"], stage["edges"]) == (50.0, float(Fraction(edge, 2 * 10**9)))
    assert stage["gradients"] == float(Fraction(weights, 4 * 10**9))
    assert stage["communication"] == pytest.approx(stage["edges"] + stage["gradients"])
    assert (stage["in_flight"], stage["memory_bytes"]) == (2, (2 * 480 + 442) * MIB)
    assert document["throughput_per_s"] == float(10**12 / time)
    assert document["optimal"]
    assert document["ratio"] == 1.0
    share = document["stages"][2]["time"] / document["time_per_sample"]
    assert document["stages"][2]["utilization"] == pytest.approx(share, rel=1e-12)


def test_text_reads_back_with_a_line_for_each_stage() -> None:
    """What is written is JSON, and short enough in lines to be looked at."""
    document = training_plan_document(
        given_training_plan(), file={"sha256": ""}, knapsack="exact", heuristic_differs=[], elapsed_s=0
    )
    text = document_text(document)
    assert json.loads(text) == document
    assert sum(line.startswith('  {"index": ') for line in text.splitlines()) == 3


def test_no_plan_says_what_would_help() -> None:
    """Where there is no plan, the least memory and the reason take the place of stages."""
    none = NoPlan(chain_problem(), "equi", True, 5, StopReason.FINISHED, "too small")
    document = no_plan_document(none.problem, none, file={"sha256": "ab"}, elapsed_s=1)
    assert list(document)[7:] == [
        "feasible", "proven", "least_memory_bytes", "reason", "stages", "stopped", "elapsed_s",
    ]  # fmt: skip
    assert (document["feasible"], document["least_memory_bytes"], document["stages"]) == (False, 5, [])


def test_plans_of_several_levels_hold_their_superstages() -> None:
    """The topology stands in the system, each stage has its copies, and superstages are nested."""
    flat = chain_problem()
    problem = NestedProblem.build(
        flat.model, Machine.of_levels((Level(4, Link(10**11)), Level(2, Link(10**10))), 2**31), micro_batches=64
    )
    inside = [LayerStage([0, 1, 2], 2, 1, [0, 0, 0]), LayerStage([3, 4, 5], 1, 2, [0, 0, 0])]
    plan = NestedPlan(problem, "piper", [Superstage(2, inside)], TimeBound(Fraction(0), "given", "exact"), "finished")
    document = training_plan_document(plan, file={"sha256": ""}, knapsack="exact", heuristic_differs=[], elapsed_s=0)
    assert document["system"]["devices"] == 8
    assert document["system"]["topology"] == [
        {"devices": 4, "bandwidth_bytes_per_s": 10**11},
        {"devices": 2, "bandwidth_bytes_per_s": 10**10},
    ]
    assert [(stage["data_parallel"], stage["replicas"], stage["devices"]) for stage in document["stages"]] == [
        (2, 4, 4),
        (1, 2, 4),
    ]
    (superstage,) = document["superstages"]
    assert (superstage["level"], superstage["data_parallel"], superstage["stages"]) == (2, 2, [0, 1])
    assert superstage["time_ticks"] == [plan.superstages[0].time.numerator, plan.superstages[0].time.denominator]
    assert superstage["superstages"] == []
