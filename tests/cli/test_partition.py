"""``mtpp partition`` as a process: results, formats, limits, requirements, pipes, interruption."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from graph_strategies import random_graph
from processes import MTPP, ROOT, environment, interrupted, printed, refused, run, run_afresh

from mtpp.formats.graphs.native import write_native
from mtpp.inference.graph import CostGraph, Op, Tensor


def _plan(path: Path) -> dict[str, Any]:
    plan = json.loads(path.read_text())
    assert isinstance(plan, dict)
    return plan


def test_progress_tells_of_the_ticks_that_the_plan_has(tmp_path: Path) -> None:
    """How long a tick of an abstract graph is depends on k, which --max-bottleneck finds only on the way."""
    path = tmp_path / "abstract.json"
    ops = [{"name": f"op{i}", "work": work} for i, work in enumerate((1.5, 2.523, *[0.123] * 12))]
    path.write_text(
        json.dumps({"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "1", "ops": ops, "tensors": []})
    )
    done = run("partition", path, "--max-bottleneck", "2.6", "-v", "--format", "json")
    plan = json.loads(done.stdout)
    assert plan["ticks_per_unit"] > 1
    bound, best = plan["lower_bound"]["value"] / plan["ticks_per_unit"], plan["bottleneck"] / plan["ticks_per_unit"]
    assert f"lower bound: {bound:.6g}" in done.stderr.splitlines()
    assert f"best so far: {best:.6g}" in done.stderr.splitlines()


def test_table_says_what_an_engineer_asks(chain_file: Path) -> None:
    """The table holds the stages and, below, bottleneck, throughput, latency, ratio, tier and assumptions."""
    shown = printed("partition", chain_file, "-k", "2", stderr="")
    words = [line.split() for line in shown.splitlines()]
    assert shown.startswith("chain: 4 ops, 3 tensors, k = 2 (times in ms)\n")
    assert words[2][:10] == ["0", "3", "op0", "op2", "60.0", "0.0", "1.0", "–", "61.0", "100.0%"]
    assert words[3][:10] == ["1", "1", "op3", "op3", "40.0", "1.0", "0.0", "–", "41.0", "67.2%"]
    for text in (
        "bottleneck         61.00 ms (stage 0)",
        "throughput         16.4 inferences/s",
        "latency when full  122.0 ms (2 busy stages × bottleneck)",
        "ratio              1, optimal: lower bound 61.00 ms by downset, tier enumerated",
        "crossing tensors   1 of 3",
        "reference: link 25 GB/s, no fast-memory limit",
    ):
        assert text in shown


def test_json_is_the_plan_contract(chain_file: Path) -> None:
    """The plan has the documented keys, in order, and its figures are those of the cut by hand."""
    done = run("partition", chain_file, "-k", "2", "--format", "json")
    plan = json.loads(done.stdout)
    assert list(plan) == [
        "format", "version", "model", "system", "k", "algorithm", "found_by", "seed", "evaluations", "stopped",
        "ticks_per_unit", "time_unit", "together", "objective", "bottleneck", "latency", "throughput_per_s",
        "speed_up", "crossing", "lower_bound", "ratio",
        "optimal", "stages", "assignment", "elapsed_s",
    ]  # fmt: skip
    assert (plan["bottleneck"], plan["ratio"], plan["optimal"]) == (61 * 10**9, 1.0, True)
    proof = plan["lower_bound"].pop("proof")
    assert plan["lower_bound"] == {"value": 61 * 10**9, "method": "downset", "tier": "enumerated"}
    assert list(proof) == ["merges", "cutoff", "k", "rules", "downsets", "pairs", "digest"]
    assert (proof["cutoff"], proof["k"]) == (61 * 10**9, 2)
    assert plan["assignment"] == {"op0": 0, "op1": 0, "op2": 0, "op3": 1}
    assert [stage["cost"] for stage in plan["stages"]] == [61 * 10**9, 41 * 10**9]


def test_csv_and_markdown(chain_file: Path) -> None:
    """CSV has one row per stage in ticks; markdown has a pipe table."""
    rows = list(csv.DictReader(io.StringIO(run("partition", chain_file, "-k", "3", "--format", "csv").stdout)))
    assert [int(row["cost"]) for row in rows] == [31 * 10**9, 32 * 10**9, 41 * 10**9]
    markdown = run("partition", chain_file, "-k", "3", "--format", "markdown").stdout
    assert "| 2 | 1 | op3 | op3 | 40.0 | 1.0 | 0.0 | – | 41.0 | 100.0% |" in markdown


def test_same_seed_gives_the_same_bytes_for_any_jobs(random_file: Path, tmp_path: Path) -> None:
    """Apart from the time it took, the JSON does not depend on --jobs or the seed of hashes, but on --seed."""
    plans = []
    for jobs, seed in (("1", "3"), ("2", "3"), ("2", "4")):
        output = tmp_path / f"plan-{jobs}-{seed}.json"
        done = run_afresh("partition", random_file, "-k", "5", "--jobs", jobs, "--seed", seed, "-q", "-o", output)
        assert done.returncode == 0
        plans.append([line for line in output.read_text().splitlines() if "elapsed_s" not in line])
    assert plans[0] == plans[1]
    assert plans[0] != plans[2]


@pytest.mark.slow
def test_every_plan_verifies(random_file: Path, chain_file: Path, tmp_path: Path) -> None:
    """For each algorithm and k, with the model and with the embedded graph alone."""
    for name in ("auto", "slice", "random"):
        for model, k in ((random_file, "4"), (random_file, "70"), (chain_file, "1")):
            output = tmp_path / "plan.json"
            arguments = ("partition", model, "-k", k, "--algorithm", name, "--work-limit", "50", "--embed", "-q")
            assert run(*arguments, "-o", output).returncode == 0
            assert run("verify", output, "--model", model).returncode == 0
            assert run("verify", output).returncode == 0


def test_requirements_set_the_exit_code(chain_file: Path) -> None:
    """A ratio that is not proven exits 1 after printing the result; one that is exits 0."""
    sliced = ("partition", chain_file, "-k", "2", "--algorithm", "slice")
    unmet = run(*sliced, "--require-ratio", "1.2")
    assert unmet.returncode == 1
    assert unmet.stderr == "unmet: --require-ratio 1.2: the proven ratio is 1.22\n"
    assert "61.00 ms" in unmet.stdout
    assert run(*sliced, "--require-ratio", "1.22").returncode == 0
    assert run(*sliced, "--require-optimal").returncode == 1
    assert run("partition", chain_file, "-k", "2", "--require-optimal").returncode == 0


def test_together_keeps_ops_in_one_stage(chain_file: Path, tmp_path: Path) -> None:
    """The group and what lies between share a stage; so does every partition that the bound speaks of; it verifies."""
    output = tmp_path / "plan.json"
    arguments = ("partition", chain_file, "-k", "4", "--together", "op1,op3", "-q", "-o", output)
    assert run(*arguments).returncode == 0
    plan = _plan(output)
    assert plan["assignment"] == {"op0": 0, "op1": 1, "op2": 1, "op3": 1}
    assert plan["lower_bound"]["value"] == plan["bottleneck"] == 91 * 10**9
    assert plan["together"] == [["op1", "op3"]]
    assert run("verify", output, "--model", chain_file).returncode == 0


def test_max_bottleneck_finds_the_fewest_stages(chain_file: Path) -> None:
    """61 ms need two stages, 42 ms three, 41 ms three; 39 ms are proven impossible."""
    for limit, stages in (("61ms", 2), ("60.9ms", 3), ("41ms", 3)):
        plan = json.loads(run("partition", chain_file, "--max-bottleneck", limit, "--format", "json").stdout)
        assert plan["k"] == stages
    impossible = run("partition", chain_file, "--max-bottleneck", "39ms")
    assert impossible.returncode == 1
    assert impossible.stderr == (
        "error: --max-bottleneck: proven infeasible: op 'op3' alone takes 40.00 ms, more than the 39.00 ms allowed\n"
    )
    none_found = run("partition", chain_file, "--max-bottleneck", "40ms")
    assert none_found.returncode == 1
    assert "none found" in none_found.stderr


def test_fast_memory_costs_overflow(tmp_path: Path) -> None:
    """Parameters beyond the fast memory are streamed over the link, and the plan with them verifies."""
    model = tmp_path / "model.json"
    model.write_text(write_native(random_graph(5, 12, time_unit="us")))
    output = tmp_path / "plan.json"
    memory = ("--fast-memory", "40B", "--activation-reserve", "8B")
    assert run("partition", model, "-k", "3", *memory, "-q", "-o", output).returncode == 0
    plan = _plan(output)
    assert plan["system"]["fast_memory_bytes"] == 40
    for stage in plan["stages"]:
        excess = max(0, stage["param_bytes"] + stage["peak_bytes"] - 40) if stage["ops"] else 0
        assert stage["overflow"] == -(-excess * 10**12 // (25 * 10**9))
    assert run("verify", output, "--model", model).returncode == 0


@pytest.mark.parametrize("peak", ["reserve", "order"])
@pytest.mark.slow
def test_stage_memory_is_kept_to(tmp_path: Path, peak: str) -> None:
    """No stage exceeds the limit, groups included; the plan verifies; what cannot be met exits 1 and says why."""
    model = tmp_path / "model.json"
    model.write_text(write_native(random_graph(5, 12, time_unit="us", shuffled=False)))
    output = tmp_path / "plan.json"
    arguments = ("partition", model, "-k", "6", "--peak", peak, "--together", "op2,op3", "--fast-memory", "40B")
    shown = printed(*arguments, "--stage-memory", "330B", "-o", output, stderr="")
    plan = _plan(output)
    held = [stage["param_bytes"] + stage["peak_bytes"] for stage in plan["stages"]]
    assert max(held) <= 330
    assert plan["system"]["stage_memory_bytes"] == 330
    assert plan["assignment"]["op2"] == plan["assignment"]["op3"]
    assert f"memory             at most {max(held)} B per stage (stage {held.index(max(held))}), 330 B allowed" in shown
    assert "speed-up           none: one stage alone exceeds the stage memory" in shown
    assert run("verify", output, "--model", model).returncode == 0
    plan["system"]["stage_memory_bytes"] = max(held) - 1
    output.write_text(json.dumps(plan))
    assert run("verify", output, "--model", model).returncode == 1
    refused = run(*arguments, "--stage-memory", "1B")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: --stage-memory: proven infeasible: op")
    assert refused.stderr.count("\n") == 1


def test_more_stages_than_ops_is_a_warning(chain_file: Path) -> None:
    """Stages stay empty, which is said on standard error unless -q is given."""
    done = run("partition", chain_file, "-k", "6")
    assert done.returncode == 0
    assert done.stderr == "warning: k = 6 is more than the 4 ops: 3 of 6 stages stay empty: 3, 4, 5\n"
    assert run("partition", chain_file, "-k", "6", "-q").stderr == ""


def test_bandwidth_without_effect_is_a_warning(chain_file: Path) -> None:
    """On a graph whose tensors carry their transfer times, --bandwidth changes nothing and says so."""
    done = run("partition", chain_file, "-k", "2", "--bandwidth", "1GB/s")
    assert done.returncode == 0
    assert "warning: --bandwidth has no effect" in done.stderr


def test_pipes(random_file: Path) -> None:
    """A graph through standard input gives a plan that embeds it, which verifies from standard input."""
    converted = run("convert", random_file, "-")
    shown = printed("partition", "-", "-k", "4", "--format", "json", stdin=converted.stdout.encode())
    assert "valid" in printed("verify", "-", stdin=shown.encode(), stderr="")


def test_a_reader_that_leaves_early_is_no_error(random_file: Path) -> None:
    """``mtpp … | head -1`` ends without a word on standard error."""
    command = " ".join([*MTPP, "inspect", str(random_file), "--ops", "--format", "csv"])
    shell = f"({command}; echo $? >&2) | head -1"
    for _ in range(2):
        done = subprocess.run(["sh", "-c", shell], env=environment(), cwd=ROOT, capture_output=True, text=True)
        assert done.stdout == "op,kind,work,param_bytes,time_unit,ticks_per_unit\n"
        assert done.stderr in ("141\n", "0\n")


def test_output_on_standard_output_replaces_the_table(chain_file: Path) -> None:
    """``-o -`` prints the JSON and nothing else."""
    assert json.loads(run("partition", chain_file, "-k", "2", "-o", "-").stdout)["k"] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupted_search_still_gives_its_best(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM end the search with exit code 130; the plan is written, says so, and verifies."""
    model = tmp_path / "model.json"
    model.write_text(write_native(random_graph(11, 300)))
    output = tmp_path / "plan.json"
    command = ("partition", model, "-k", "8", "--time-limit", "120", "-o", output)
    code, stdout, _ = interrupted(*command, after="search: anneal", number=number)
    assert code == 130
    assert "bottleneck" in stdout
    assert _plan(output)["stopped"] == "interrupted"
    assert run("verify", output, "--model", model).returncode == 0


def test_an_interrupted_search_without_a_result(tmp_path: Path) -> None:
    """A search within a stage memory that has found nothing ends on Ctrl-C with exit code 130, and writes nothing."""
    model = tmp_path / "model.json"
    model.write_text(write_native(random_graph(3, 24, time_unit="us", shuffled=False)))
    output = tmp_path / "plan.json"
    memory = ("--peak", "order", "--stage-memory", "250B")
    command = ("partition", model, "-k", "5", *memory, "--time-limit", "120", "-o", output)
    assert interrupted(*command, after="search: first partition")[:2] == (130, "")
    assert not output.exists()


def test_the_time_limit_ends_the_search(tmp_path: Path) -> None:
    """A limit that has passed before the search began still gives the first partition."""
    model = tmp_path / "model.json"
    model.write_text(write_native(random_graph(11, 200)))
    plan = json.loads(run("partition", model, "-k", "4", "--time-limit", "0.01", "--format", "json").stdout)
    assert plan["stopped"] == "time-limit"
    assert plan["found_by"] in ("slice", "equal work")  # the latter where others compute on this machine


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_output_appears_whole_with_ordinary_permissions(chain_file: Path, tmp_path: Path) -> None:
    """The plan file follows the umask, and no temporary file stays behind."""
    folder = tmp_path / "out"
    folder.mkdir()
    previous = os.umask(0o022)
    try:
        assert run("partition", chain_file, "-k", "2", "-q", "-o", folder / "plan.json").returncode == 0
    finally:
        os.umask(previous)
    assert [path.name for path in folder.iterdir()] == ["plan.json"]
    assert (folder / "plan.json").stat().st_mode & 0o777 == 0o644


@pytest.mark.slow
def test_algorithms_with_a_number_of_evaluations(random_file: Path) -> None:
    """As tables of results name them: random-30 draws 30 orders, brkga-100 evolves 10 generations of 10."""

    def plan(*options: str) -> dict[str, Any]:
        document = json.loads(printed("partition", random_file, "-k", "5", "--format", "json", *options))
        document.pop("elapsed_s")
        assert isinstance(document, dict)
        return document

    named, spelt = plan("--algorithm", "random-30"), plan("--algorithm", "random", "--work-limit", "30")
    assert named == spelt
    assert named["evaluations"] == 30
    evolved = plan("--algorithm", "brkga-100")
    assert evolved == plan("--algorithm", "brkga", "--population", "10", "--generations", "10")
    assert evolved["evaluations"] < 100


def test_what_a_search_left_out_is_said(tmp_path: Path) -> None:
    """A core with too many downsets is cut in one order: the table says so, and the plan verifies."""
    wide = [[f"{side}{i}" for i in range(12)] for side in "uv"]
    ops = [Op(name, 1 + i % 3) for i, name in enumerate(wide[0] + wide[1])]
    tensors = [Tensor(f"t{u}", u, tuple(wide[1]), transfer=1) for u in wide[0]]
    graph = CostGraph.build(name="crossed", time_unit="1", ops=ops, tensors=tensors)
    model, output = tmp_path / "crossed.json", tmp_path / "plan.json"
    model.write_text(write_native(graph))
    done = run("partition", model, "-k", "5", "--algorithm", "series-parallel", "-o", output)
    assert "\nleft out           the core cut along the file's order only (24 ops)\n" in done.stdout
    assert run("verify", output, "--model", model).returncode == 0


def test_repeated_blocks_stay_whole(checkout: Path, tmp_path: Path) -> None:
    """Every op of a block of the shipped GPT-2 is in one stage, and the proof is about such partitions."""
    model, output = checkout / "datasets" / "samples" / "gpt2.onnx", tmp_path / "plan.json"
    sizes = ("--dim", "batch=1", "--dim", "sequence=128")
    assert run("partition", model, *sizes, "-k", "4", "--together-blocks", "-o", output).returncode == 0
    plan = json.loads(output.read_text())
    stages: dict[str, set[int]] = {}
    for op, stage in plan["assignment"].items():
        stages.setdefault(".".join(op.split(".")[:2]).partition("/")[0], set()).add(stage)
    blocks = [f"blocks.{number}" for number in range(12)]
    assert [len(stages[block]) for block in blocks] == [1] * 12
    assert len(plan["together"]) == 12
    assert run("verify", output, "--model", model).returncode == 0


def test_blocks_are_those_of_an_onnx_model(chain_file: Path, checkout: Path) -> None:
    """A graph with costs has none that are known; the ResNet-50 has four kinds of them, which are named."""
    said = refused("partition", chain_file, "-k", "2", "--together-blocks")
    assert "--together-blocks" in said
    assert "is no ONNX model" in said
    model = checkout / "datasets" / "samples" / "resnet50.onnx"
    said = run("partition", model, "-k", "2", "--together-blocks", "-q").stdout
    assert "blocks kept whole: 3 of layer1, 4 of layer2, 6 of layer3, 3 of layer4" in said


@pytest.mark.parametrize("count", ["2", "1-2"])
def test_an_embedded_graph_needs_json(count: str, chain_file: Path, tmp_path: Path) -> None:
    """However many plans there are: a table has no place for it."""
    done = run("partition", chain_file, "-k", count, "--embed")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: --embed goes into JSON: give -o FILE or --format json as well")
    for more in (("-o", tmp_path / "plan.json"), ("--format", "json")):
        assert run("partition", chain_file, "-k", count, "--embed", *more, "-q").returncode == 0
