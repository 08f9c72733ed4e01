"""Traps of each engine's text: read as the engine reads it, and said where it says nothing."""

from __future__ import annotations

from typing import Any

import pytest
from checkpoint_files import gguf_bytes
from refusals import refusal, refused_layout

import mtpp


@pytest.mark.parametrize(
    ("text", "ranges", "findings"),
    [
        ("-1,33", [[0, -1], [-1, 32]], ["stage 0 has -1 layers, a negative number"]),
        ("0,32", [[0, 0], [0, 32]], ["stage 0 holds no layer"]),
        (" 16 , 16", [[0, 16], [16, 32]], []),
        ("1_6,+16", [[0, 16], [16, 32]], ["'1_6' is read as 16", "'+16' is read as 16"]),
    ],
)
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_counts_are_read_as_python_reads_numbers(
    engine: str, text: str, ranges: list[list[int]], findings: list[str]
) -> None:
    """Negative ones too."""
    layout = mtpp.read_layout(engine, text, layers=32, stages=2)
    assert (layout.ranges, layout.findings) == (ranges, findings)


@pytest.mark.parametrize("text", ["16,16,", "", "16;16", "16.0,16", "a,b"])
def test_other_words_are_no_counts(text: str) -> None:
    """Python's ``int`` refuses them."""
    assert refused_layout("vllm", text, layers=32, stages=2).startswith(f"ValueError: Invalid partition string: {text}")


def test_a_tied_embedding_is_on_two_stages_of_vllm() -> None:
    """SGLang copies it into a head."""
    assert mtpp.read_layout("vllm", {}, layers=8, stages=4, tied=True).embedding_on == [0, 3]
    assert mtpp.read_layout("vllm", {}, layers=8, stages=1, tied=True).embedding_on == [0]
    assert mtpp.read_layout("sglang", {}, layers=8, stages=4, tied=True).embedding_on == [0]


def test_vllm_does_not_pipeline_all_models(tmp_path: Any) -> None:
    """The error is vLLM's."""
    (tmp_path / "config.json").write_text('{"model_type": "mamba2"}')
    assert refused_layout("vllm", {}, layers=8, stages=2, model=tmp_path).startswith("NotImplementedError")
    assert mtpp.read_layout("vllm", {}, layers=8, stages=1, model=tmp_path).layers == [8]


def test_gguf_files_have_no_modules(tmp_path: Any) -> None:
    """Their architecture is read; rules by names or bytes of modules are refused, as they are without config.json."""
    keys = {"general.architecture": "mamba2", "mamba2.block_count": 8}
    file = tmp_path / "a.gguf"
    file.write_bytes(gguf_bytes(keys, {"token_embd.weight": ("F32", (8, 10))}))
    for model in (file, tmp_path):
        assert refused_layout("vllm", {}, layers=8, stages=2, model=model).startswith("NotImplementedError")
        assert mtpp.read_layout("llama.cpp", "1,1", layers=8, model=model).findings == []
        error = refusal(mtpp.read_layout, "accelerate", {"mode": "auto"}, layers=8, model=model)
        assert "a GGUF file has no names and classes of modules" in str(error)
        assert "config.json" in (error.remedy or "")
    file.unlink()
    beside = tmp_path / "model.safetensors"
    beside.touch()
    for model in (tmp_path, beside):
        error = refusal(mtpp.read_layout, "accelerate", {"mode": "auto"}, layers=8, model=model)
        assert "has no config.json" in str(error)
    (tmp_path / "config.json").write_text('{"model_type": "mamba2"}')
    assert refused_layout("vllm", {}, layers=8, stages=2, model=beside).startswith("NotImplementedError")


@pytest.mark.parametrize(
    ("counts", "kind"), [([16, 15], "ValueError"), ([32], "ValueError"), ([-1, 33], "RuntimeError"), ([1.5], "Validat")]
)
def test_tensorrt_llm_refuses(counts: list[Any], kind: str) -> None:
    """Other numbers of stages and layers."""
    assert refused_layout("tensorrt-llm", {"pp_partition": counts}, layers=32, stages=2).startswith(kind)


LISTS = [["tok_embeddings", "layers.0"], ["layers.1", "norm", "lm_head"]]


@pytest.mark.parametrize(
    ("lists", "findings"),
    [
        (LISTS, []),
        ([["tok_embeddings"], ["layers.0", "layers.1", "norm", "output"]], []),
        ([LISTS[0], ["norm", "lm_head"]], ["layers.1 in no stage"]),
        ([LISTS[0], [*LISTS[1], "layers.0"]], ["layers.0 in stages 0 and 1"]),
        ([LISTS[0], [*LISTS[1], "layers.9"]], ["'layers.9' in stage 1 names no module and is ignored"]),
        (
            [LISTS[0], ["layers.1.attention", "norm", "lm_head"]],
            ["layers.1 in no stage", "'layers.1.attention' in stage 1 names no module and is ignored"],
        ),
        ([LISTS[0], ["layers.1", "norm"]], ["lm_head in no stage"]),
        ([["layers.0"], LISTS[1]], ["tok_embeddings in no stage"]),
        (
            [["tok_embeddings", "layers.1"], ["layers.0", "norm", "lm_head"]],
            ["stages are not in the order of their layers"],
        ),
        ([[*LISTS[0], "norm"], ["layers.1", "lm_head"]], ["norm in stage 0, not in the last one"]),
    ],
)
def test_lists_of_torchtitan_are_audited(lists: list[list[str]], findings: list[str]) -> None:
    """Nothing checks them there."""
    assert mtpp.read_layout("torchtitan", {"module_fqns_per_model_part": lists}, layers=2).findings == findings


@pytest.mark.parametrize(
    ("schedule", "ranks"),
    [("Interleaved1F1B", [[0, 2], [1, 3]]), ("ZBVZeroBubble", [[0, 3], [1, 2]]), ("dualpipev", [[0, 3], [1, 2]])],
)
def test_stages_of_ranks_of_torchtitan(schedule: str, ranks: list[list[int]]) -> None:
    """In a loop, or down and up again."""
    layout = mtpp.read_layout("torchtitan", {"pipeline_parallel_schedule": schedule}, layers=10, stages=2)
    assert layout.stages_of_ranks == ranks


@pytest.mark.parametrize(
    ("setting", "layers", "stages", "words"),
    [
        (
            {"pipeline_parallel_first_stage_less_layers": 4},
            5,
            3,
            "input_weight (4) exceeds minimum layers per stage (3)",
        ),
        (
            {"pipeline_parallel_last_stage_less_layers": 4},
            5,
            3,
            "output_weight (4) exceeds minimum layers per stage (3)",
        ),
        ({}, 2, 5, "Number of stages (5) cannot be greater than effective layers (4)"),
        ({"pipeline_parallel_layers_per_stage": 3}, 8, 3, "Number of virtual stages (4) must be divisible"),
        ({"pipeline_parallel_layers_per_stage": 2}, 6, 2, "Single stage schedule requires exactly 1 stage per rank"),
        ({"pipeline_parallel_schedule": "3F1B"}, 6, 2, "Unknown schedule name '3F1B'"),
        (
            {"pipeline_parallel_schedule": "LoopedBFS", "pipeline_parallel_layers_per_stage": 4},
            6,
            2,
            "Multi-stage schedule requires at least 2 stages per rank",
        ),
    ],
)
def test_torchtitan_refuses_numbers(setting: dict[str, Any], layers: int, stages: int, words: str) -> None:
    """In its own words."""
    assert words in refused_layout("torchtitan", setting, layers=layers, stages=stages)


def test_vision_towers_that_are_lost_are_said(tmp_path: Any) -> None:
    """Of a model that has one."""
    (tmp_path / "config.json").write_text('{"model_type": "x", "vision_config": {}}')
    layout = mtpp.read_layout("torchtitan", {"module_fqns_per_model_part": LISTS}, layers=2, model=tmp_path)
    assert layout.findings == ["vision_encoder in no stage"]


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("profile", "NotImplementedError: Partitioning method profile not implemented."),
        ("best", "NotImplementedError: Partitioning method best not implemented."),
        ("type:(?:a|b)", "re.error: unexpected end of pattern at position 2 in '(?'"),
        ("type:nothing", "RuntimeError: Partitioning 'nothing' found no valid layers to partition."),
    ],
)
def test_methods_that_deepspeed_refuses(method: str, kind: str) -> None:
    """With its classes."""
    classes = ["Embedding", "Block", "Block", "Norm", "Linear"]
    setting = {"partition_method": method, "class_names": classes}
    assert refused_layout("deepspeed", setting, layers=2, stages=2).startswith(kind)


def test_deepspeed_writes_methods_in_small_letters() -> None:
    r"""``\D`` becomes ``\d``; the case of classes does not matter."""
    classes = ["Embedding", "Block1", "Block1", "Norm", "Linear"]
    setting = {"class_names": classes, "partition_method": r"TYPE:Block\D"}
    assert mtpp.read_layout("deepspeed", setting, layers=2, stages=2).bounds == [0, 2, 5]


def test_uniform_stages_of_deepspeed_may_be_empty() -> None:
    """With more stages than items the last ones have none."""
    layout = mtpp.read_layout("deepspeed", {"partition_method": "uniform", "pipeline_layers": 2}, layers=2, stages=3)
    assert (layout.bounds, layout.findings) == ([0, 1, 2, 2], ["stage 2 holds no item"])


@pytest.mark.parametrize(
    ("split", "findings"),
    [
        ("3x,1", ["share '3x' is read as 3"]),
        ("1/1", []),
        ("1,1,7", ["3 shares for 2 devices: those beyond are ignored"]),
        ("1", ["GPU1 holds nothing"]),
        ("2,-1", ["share 1 is -1", "GPU1 holds nothing"]),
    ],
)
def test_shares_of_llama_cpp(split: str, findings: list[str]) -> None:
    """Taken in silence."""
    assert mtpp.read_layout("llama.cpp", split, layers=8, stages=2).findings == findings


@pytest.mark.parametrize("split", ["x", "", ",1", "1,,x", ",".join("1" * 16)])
def test_shares_that_llama_cpp_refuses(split: str) -> None:
    """No numbers, and sixteen of them."""
    assert refused_layout("llama.cpp", {"--tensor-split": split}, layers=8, stages=2).startswith(
        "std::invalid_argument"
    )


@pytest.mark.parametrize("split", ["-1,2", "-.5,1", "-1/2", "+1,1", "-0x1,2", " -1,2"])
def test_negative_shares_of_llama_cpp_are_no_options(split: str) -> None:
    """A text is read as its option's value is."""
    layout = mtpp.read_layout("llama.cpp", split, layers=8, stages=2)
    assert layout == mtpp.read_layout("llama.cpp", {"--tensor-split": split}, layers=8, stages=2)
    assert layout == mtpp.read_layout("llama.cpp", f"-ts {split}", layers=8, stages=2)
    if "-" in split:
        assert layout.devices_of_layers == [1] * 8
        assert layout.findings[0].startswith("share 0 is -")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--tensor", "invalid argument: --tensor"),
        ("-x 1,2", "invalid argument: -x"),
        ("--tensor-split=1,2", "invalid argument: --tensor-split=1,2"),
        ("-", "invalid argument: -"),
        ("-ngl 3 -ts", "expected value for argument: -ts"),
    ],
)
def test_texts_without_an_option_of_llama_cpp_arerefused_layout(text: str, words: str) -> None:
    """They are not taken for a layout without shares."""
    assert refused_layout("llama.cpp", text, layers=8, stages=2) == f"std::invalid_argument: error: {words}"


def test_flags_of_llama_cpp_take_no_value() -> None:
    """At the end of a line as well as before another option."""
    first, last = (
        mtpp.read_layout("llama.cpp", text, layers=8, stages=2) for text in ("-cmoe -ts 1,1", "-ts 1,1 -cmoe")
    )
    assert first == last
    assert last.overrides
    assert "key '-x' is not read" in mtpp.read_layout("llama.cpp", "-ts 1,1 -x 3", layers=8, stages=2).findings


def test_the_output_leaves_llama_cpp_last() -> None:
    """The token embedding is never on a GPU; MTP layers count."""
    layout = mtpp.read_layout("llama.cpp", "-ngl 2 -ts 1,1", layers=4, stages=2)
    assert layout.devices_of_layers == ["CPU", "CPU", "CPU", 0]
    assert (layout.output_on, layout.token_embedding_on) == ("GPU1", "CPU")
    assert len(mtpp.read_layout("llama.cpp", "1", layers=4, mtp=1).devices_of_layers or []) == 5


@pytest.mark.parametrize(
    ("override", "words"), [("exps", "invalid value"), ("exps=NPU", "unknown buffer"), ("a=CPU,b", "invalid value")]
)
def test_overrides_that_llama_cpp_refuses(override: str, words: str) -> None:
    """Without a buffer, or with one that there is not."""
    assert words in refused_layout("llama.cpp", {"--override-tensor": override}, layers=8, stages=1)


def test_overrides_are_listed() -> None:
    """In the order in which they are tried, short forms written out."""
    setting = {"-ot": r"blk\.1\..*=CPU", "--n-cpu-moe": 1}
    layout = mtpp.read_layout("llama.cpp", setting, layers=8, stages=1)
    assert layout.overrides == [[r"blk\.1\..*", "CPU"], [r"blk\.0\.ffn_(up|down|gate|gate_up)_(ch|)exps", "CPU"]]


@pytest.mark.parametrize(
    ("size", "nbytes"), [("10GB", 10**10), ("10GiB", 10 * 2**30), ("1.5MiB", 3 * 2**19), ("8Gb", 10**9), (5, 5)]
)
def test_sizes_of_accelerate(size: str | int, nbytes: int) -> None:
    """By powers of ten and of two; a small b means bits."""
    setting = {"max_memory": {0: size, "cpu": "100GB"}, "mode": "infer"}
    layout = mtpp.read_layout("accelerate", setting, layers=1, model=_one_layer())
    assert layout.max_memory == {"0": nbytes, "cpu": 10**11}


@pytest.mark.parametrize("size", ["1TB", "GB", "10", "-1GB", -5])
def test_sizes_that_accelerate_refuses(size: str | int) -> None:
    """Without a unit that it knows."""
    wrong = refused_layout("accelerate", {"max_memory": {0: size}}, layers=1, model=_one_layer())
    assert wrong.startswith(f"ValueError: `size` {size} is not in a valid format.")


def _one_layer() -> Any:
    from mtpp.formats.language_models.module_trees import llama_names

    return llama_names(1, False)


def test_the_longest_key_of_a_device_map_wins() -> None:
    """The empty key stands for all."""
    layout = mtpp.read_layout("accelerate", {"": "cpu", "model.layers.1": 0, "model.layers.1.mlp": 1}, layers=3)
    assert layout.devices_of_layers == ["cpu", "0+1", "cpu"]
    assert (layout.embedding_on, layout.head_on, layout.ranges) == ("cpu", "cpu", None)


def test_a_device_map_has_to_cover_all_stored_tensors() -> None:
    """Layers, and a tied head too."""
    placed = {"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": 1, "model.norm": 1}
    wrong = refused_layout("accelerate", placed, layers=2, tied=True)
    assert wrong.endswith("does not give any device for the following parameters: lm_head.weight")
    layout = mtpp.read_layout("accelerate", {**placed, "lm_head": 1}, layers=2, tied=True)
    assert layout.findings[0].startswith("Tied parameters are on different devices")
    assert layout.ranges == [[0, 1], [1, 2]]


def test_a_name_can_stand_for_a_whole_map() -> None:
    """A device, but no other word."""
    assert mtpp.read_layout("transformers", "cuda:1", layers=2).devices_of_layers == ["1", "1"]
    assert refused_layout("transformers", "best", layers=2).startswith(
        "ValueError: When passing device_map as a string"
    )


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"num_blocks": 2, "--block_indices": "0:2"}, "Please specify num_blocks or block_indices, not both"),
        ("0-18", "Failed to parse `--block_indices 0-18`, must be start:end (e.g. 0:18)"),
    ],
)
def test_petals_refuses(setting: Any, words: str) -> None:
    """In its own words."""
    assert words in refused_layout("petals", setting, layers=8)


def test_petals_counts_blocks_by_memory() -> None:
    """Without two gibibytes for each device and 14336 hidden elements."""
    setting = {
        "memory_bytes": 24 * 2**30,
        "hidden_size": 14336,
        "block_bytes": 2**32,
        "cache_bytes_per_block": 2**30,
        "throughputs": [1.0, 1, 1, 0, 0, 0, 0, 2],
    }
    layout = mtpp.read_layout("petals", setting, layers=8)
    assert (layout.start, layout.end) == (3, 7)


def test_exo_checks_that_the_weights_fit() -> None:
    """The share of each node."""
    setting = {"ram_available_gb": [64, 8], "storage_gb": 100}
    wrong = refused_layout("exo", setting, layers=30)
    assert wrong.startswith("ValueError: Node 0 has insufficient memory: requires 90.00 GB for 27 layers")


def test_keys_that_nobody_knows_are_said() -> None:
    """A typo is not a default."""
    assert mtpp.read_layout("vllm", {"VLLM_PP_LAYERS": "1,1"}, layers=2, stages=2).findings == [
        "key 'VLLM_PP_LAYERS' is not read"
    ]
