"""Language models inspected: the document that commands print, and options that mean something to them alone."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from checkpoint_files import write_model
from language_models import LAYER_PARAMETERS, LLAMA, T5, llama_tensors
from processes import refused, run
from refusals import refusal

import mtpp
from mtpp.datasets import sample_path

FIELDS = ("name", "part", "kind", "parameters", "bytes", "cache_bytes_per_token", "window", "state_bytes_per_sequence")


MACHINE = """
[[device]]
name = "big"
system = {peak_flops = "1000FLOP/s", memory_bandwidth = "10B/s", bandwidth = "1B/s"}
memory = "1000B"

[[device]]
name = "small"
count = 2
system = {peak_flops = "1FLOP/s", memory_bandwidth = "1000B/s", bandwidth = "1B/s"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a small model, which ends after its header."""
    return write_model(tmp_path, LLAMA, llama_tensors())


def test_the_document_has_layers_and_parts(folder: Path) -> None:
    """One entry a layer in order; parameters and bytes of embedding, head and the rest."""
    document = mtpp.inspect(folder).document()
    assert [tuple(layer) for layer in document["layers"]] == [FIELDS] * 2
    assert document["layers"][1] == {
        "name": "model.layers.1", "part": "decoder", "kind": "full", "parameters": LAYER_PARAMETERS,
        "bytes": 2 * LAYER_PARAMETERS, "cache_bytes_per_token": 16, "window": None, "state_bytes_per_sequence": 0,
    }  # fmt: skip
    assert document["embedding"] == document["head"] == {"parameters": 80, "bytes": 160}
    assert document["other"] == {"parameters": 8, "bytes": 16}
    assert (document["tied"], document["mtp"], document["notes"]) == (False, [], [])
    assert document["tensor_parallel"] == [1, 2, 4]  # heads
    assert "degrees  1, 2, 4 GPUs a stage (tensor parallelism)" in mtpp.inspect(folder).text().splitlines()
    assert (document["parameters"], document["bytes"]) == (2 * LAYER_PARAMETERS + 168, 4 * LAYER_PARAMETERS + 336)


def test_caches_follow_type_context_and_sequences(folder: Path) -> None:
    """By default 2 bytes an element, 4,096 tokens, one sequence."""
    found = mtpp.inspect(folder)
    assert (found.cache_bytes_per_token, found.document()["cache_bytes"]) == (32, 32 * 4096)
    other = mtpp.inspect(folder, kv_dtype="fp8", context="1k", sequences=3).document()
    assert (other["cache_bytes_per_token"], other["cache_bytes"]) == (16, 16 * 1024 * 3)
    assert other["layers"][0]["cache_bytes_per_token"] == 8


@pytest.mark.parametrize("name", ["", "config.json", "model.safetensors"])
def test_the_command_prints_what_the_function_returns(folder: Path, name: str) -> None:
    """Of the folder, its configuration and its weights; as table, JSON and CSV."""
    path = folder / name
    found = mtpp.inspect(path, kv_dtype="q8_0", context="2k", sequences=2)
    options = ("--kv-dtype", "q8_0", "--context", "2k", "--sequences", "2")
    assert json.loads(run("inspect", path, *options, "--format", "json").stdout) == found.document()
    assert repr(found) + "\n" == run("inspect", path, *options).stdout
    assert "| decoder | 2: 0–1 | full |" in run("inspect", path, "--format", "markdown").stdout
    assert run("inspect", path, "--format", "csv").stdout.splitlines()[0] == ",".join(FIELDS)


def test_steps_have_flops_and_bytes(folder: Path) -> None:
    """Of layers, embedding, head and the whole; of as many sequences as are held by default."""
    found = mtpp.inspect(folder, phase="both", context=10, sequences=3).document()
    projections, attention = 2 * (8 * 8 + 2 * 4 * 8 + 8 * 8 + 3 * 8 * 16), 4 * 8
    decode = {
        "flops": 3 * (projections + 10 * attention), "weight_bytes": 2 * LAYER_PARAMETERS,
        "cache_bytes_read": 3 * 10 * 16, "cache_bytes_written": 3 * 16,
    }  # fmt: skip
    prefill = {
        "flops": 3 * (10 * projections + 55 * attention), "weight_bytes": 2 * LAYER_PARAMETERS,
        "cache_bytes_read": 0, "cache_bytes_written": 3 * 10 * 16,
    }  # fmt: skip
    assert [layer["steps"] for layer in found["layers"]] == [{"decode": decode, "prefill": prefill}] * 2
    assert found["head"]["steps"]["prefill"]["flops"] == 3 * 2 * 80
    assert found["embedding"]["steps"]["prefill"]["weight_bytes"] == 3 * 10 * 16
    assert found["steps"]["decode"]["flops"] == 2 * decode["flops"] + 3 * 2 * 80
    assert found["steps"]["decode"]["weight_bytes"] == 4 * LAYER_PARAMETERS + 3 * 16 + 160
    options = ("--phase", "decode", "--batch", "2", "--context", "10")
    shown = json.loads(run("inspect", folder, *options, "--format", "json").stdout)
    assert list(shown["steps"]) == ["decode"]
    assert shown["layers"][0]["steps"]["decode"]["cache_bytes_written"] == 2 * 16
    assert "decode FLOPs" in run("inspect", folder, *options).stdout
    assert refusal(mtpp.inspect, folder, batch=2).parameter == "batch"


def test_caches_of_the_source_are_held(tmp_path: Path) -> None:
    """Cross attention keeps keys and values of a source as long as the context, which its decode step reads."""
    (tmp_path / "config.json").write_text(json.dumps(T5))
    found = mtpp.inspect(tmp_path, context=10, sequences=2, phase="decode").document()
    of_token = 3 * 2 * 8 * 2  # decoder layers, keys and values, width, bytes
    assert found["cache_bytes_per_token"] == found["cache_bytes_per_source_token"] == of_token
    assert found["cache_bytes_per_sequence"] == 10 * 2 * of_token
    assert found["cache_bytes"] == found["steps"]["decode"]["cache_bytes_read"] == 2 * 10 * 2 * of_token
    shown = run("inspect", tmp_path, "--context", "10").stdout
    assert "96 B a token, 96 B a token of the source" in shown
    assert "for 1 sequence of 10 tokens and a source as long" in shown


def test_a_step_is_summed_in_a_line(folder: Path) -> None:
    """Phase, sequences and context are said, with the FLOPs and bytes of all parts."""
    options = ("--phase", "both", "--batch", "2", "--sequences", "3", "--context", "10")
    lines = run("inspect", folder, *options).stdout.splitlines()
    steps = mtpp.inspect(folder, phase="both", batch=2, sequences=3, context=10).document()["steps"]
    moved = {phase: sum(step.values()) - step["flops"] for phase, step in steps.items()}
    decode, prefill = (f"{step['flops'] / 1000:.4g} kFLOP, {moved[phase] / 1024:.4g} KiB"
                       for phase, step in steps.items())  # fmt: skip
    assert f"decode   token 10 of 2 sequences: {decode}" in lines
    assert f"prefill  2 sequences of 10 tokens: {prefill}" in lines
    assert "for 3 sequences of 10 tokens" in run("inspect", folder, *options).stdout


def test_csv_has_all_parts_and_steps(folder: Path) -> None:
    """A row for each part, which sum to the whole."""
    found = mtpp.inspect(folder, phase="both", batch=2, context=10)
    rows = list(csv.DictReader(run("inspect", folder, "--phase", "both", "--batch", "2", "--context", "10",
                                   "--format", "csv").stdout.splitlines()))  # fmt: skip
    assert [row["part"] for row in rows] == ["embedding", "decoder", "decoder", "head", "other"]
    assert sum(int(row["bytes"]) for row in rows) == found.bytes
    for phase, step in found.document()["steps"].items():
        assert {key: sum(int(row[f"{phase}_{key}"] or 0) for row in rows) for key in step} == step


def test_a_batch_is_of_sequences_held(folder: Path) -> None:
    """More are refused; alone it holds as many."""
    line = refused("inspect", folder, "--phase", "decode", "--batch", "4", "--sequences", "3")
    assert "--batch: 4 are more than the 3 sequences held; raise --sequences" in line
    assert refusal(mtpp.inspect, folder, phase="decode", batch=2, sequences=1).parameter == "batch"
    alone = mtpp.inspect(folder, phase="decode", batch=4, context=10).document()
    assert (alone["sequences"], alone["batch"], alone["cache_bytes"]) == (4, 4, 4 * 10 * 32)


def test_caches_that_are_not_known_are_not_nothing(folder: Path) -> None:
    """Names of weights do not tell them: null in JSON, a dash in the table."""
    (folder / "config.json").unlink()
    found = mtpp.inspect(folder)
    assert found.cache_bytes_per_token is None
    document = found.document()
    assert document["cache_bytes"] is document["layers"][0]["cache_bytes_per_token"] is None
    assert [tuple(layer) for layer in document["layers"]] == [FIELDS] * 2
    lines = run("inspect", folder, "--phase", "decode").stdout.splitlines()
    assert "cache    –" in lines
    assert "held     – for 1 sequence of 4,096 tokens" in lines
    assert "decode   token 4,096 of 1 sequence: not known" in lines


def test_layers_for_further_tokens_count_in_bytes_alone(tmp_path: Path) -> None:
    """A line says so."""
    more = {"mtp.layers.0.mlp.up_proj.weight": ("BF16", (16, 8)), "mtp.layers.1.eh_proj.weight": ("BF16", (8, 16))}
    found = mtpp.inspect(write_model(tmp_path, LLAMA, llama_tensors() | more))
    assert (found.parameters, found.bytes) == (2 * LAYER_PARAMETERS + 168, 4 * LAYER_PARAMETERS + 336 + 512)
    assert "2 MTP layers in weights (512 B), but not in parameters (256), caches and steps" in found.notes


def test_notes_stand_in_the_table(folder: Path) -> None:
    """Disagreements between file and configuration are seen by everybody."""
    (folder / "config.json").write_text(json.dumps({**LLAMA, "vocab_size": 12}))
    assert "the embedding: 80 parameters in the files, 96 by the configuration" in run("inspect", folder).stdout
    assert "no_such" not in mtpp.inspect(folder).notes


def test_options_without_effect_are_refused(folder: Path) -> None:
    """Of graphs for a language model, of language models for a graph."""
    for option in (("--ops",), ("--modules", "2"), ("--dim", "n=1"), ("--backward",), ("--system", "reference")):
        assert f"{option[0]}: has no effect on a language model's files" in refused("inspect", folder, *option)
    assert refusal(mtpp.inspect, folder, ops=True).parameter == "ops"
    graph = sample_path("resnet50")
    assert "--context: is of language models" in refused("inspect", graph, "--context", "4k")
    for name, value in (("kv_dtype", "fp8"), ("context", 9), ("sequences", 2)):
        assert refusal(mtpp.inspect, graph, **{name: value}).parameter == name


@pytest.mark.parametrize("context", ["", "0", "k", "-1k", "1.5k", "9" * 30, "4g", "4 k"])
def test_contexts_are_whole_numbers_of_tokens(folder: Path, context: str) -> None:
    """With k and m for 1,024 and its square, or none."""
    assert refusal(mtpp.inspect, folder, context=context).parameter == "context"
    assert mtpp.inspect(folder, context="1m").document()["context"] == 2**20


def test_broken_models_end_in_one_line(folder: Path) -> None:
    """With exit code 2, and the file at fault."""
    (folder / "model.safetensors").write_bytes(b"12345678")
    assert "model.safetensors: a header of" in refused("inspect", folder)
    (folder / "model.safetensors").unlink()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    assert "config.json: num_hidden_layers: is absent; it gives the number of layers" in refused("inspect", folder)
    (folder / "config.json").write_text('{"model_type": "nobody_knows"}')
    assert "mtpp[hf]" in refused("inspect", folder)


def test_stages_share_the_sequences_out(folder: Path) -> None:
    """As in plans, where no batch is given; they mean nothing without a step, nor to graphs."""
    found = mtpp.inspect(folder, phase="decode", sequences=10, k=4).document()
    assert (found["batch"], found["sequences"]) == (3, 10)
    assert mtpp.inspect(folder, phase="decode", sequences=10, k=4, batch=2).document()["batch"] == 2
    shown = run("inspect", folder, "--phase", "decode", "--sequences", "10", "-k", "4", "--format", "json").stdout
    assert json.loads(shown) == found
    assert refusal(mtpp.inspect, folder, k=4).parameter == "k"
    assert refusal(mtpp.inspect, sample_path("resnet50"), k=4).parameter == "k"
    (folder / "machine.toml").write_text(MACHINE)
    assert "is of language models" in refused("inspect", sample_path("resnet50"), "--machine", folder / "machine.toml")


def test_layers_have_times_on_the_devices_of_a_machine(folder: Path) -> None:
    """The longer of FLOPs and bytes, as in plans; three devices share five sequences out."""
    machine = folder / "machine.toml"
    machine.write_text(MACHINE)
    found = mtpp.inspect(folder, machine=machine, sequences=5, context=10, phase="both").document()
    assert found["batch"] == 2
    assert found["devices"] == [
        {"name": "big", "count": 1, "memory_bytes": 1000}, {"name": "small", "count": 2, "memory_bytes": None},
    ]  # fmt: skip
    for phase in ("decode", "prefill"):
        for layer in [*found["layers"], found["head"]]:
            step = layer["steps"][phase]
            moved = step["weight_bytes"] + step["cache_bytes_read"] + step["cache_bytes_written"]
            moved += 16 if layer is found["head"] else 0  # the final norm
            slow = max(step["flops"] * 10**12, moved * 10**9)
            assert step["time_ps"] == [max(step["flops"] * 10**9, moved * 10**11), slow]
    options = ("--machine", machine, "--sequences", "5", "--context", "10")
    lines = run("inspect", folder, *options).stdout.splitlines()
    assert "device   1 × big: at most 1000 B per stage; times are of one GPU" in lines
    assert any("decode on big" in line and "decode on small" in line for line in lines)
    rows = list(csv.DictReader(run("inspect", folder, *options, "--format", "csv").stdout.splitlines()))
    assert int(rows[1]["decode_ps_on_small"]) == found["layers"][0]["steps"]["decode"]["time_ps"][1]


def test_layers_for_further_tokens_are_as_many_as_asked_for(folder: Path) -> None:
    """More than the model has are like its last layer."""
    found = mtpp.inspect(folder, mtp=2).document()
    assert [layer["name"] for layer in found["mtp"]] == ["mtp.0", "mtp.1"]
    assert (
        found["bytes"] == mtpp.inspect(folder).bytes + 2 * 2 * LAYER_PARAMETERS == sum(found["bytes_by_type"].values())
    )
