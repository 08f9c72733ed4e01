"""``megatron-flags``: an even split by Megatron-Core, with fewer layers on the first and last stage by flags.

``get_num_layers_to_build`` in ``core/transformer/transformer_block.py``, ``get_transformer_layer_offset`` in
``transformer_layer.py``, and the checks of ``transformer_config.py`` and ``training/arguments.py``.
"""

from __future__ import annotations

from mtpp.formats.layouts.counts import faults_of_counts
from mtpp.formats.layouts.request import LayoutRequest, Setting, check_keys, integer, named, natural, refusal
from mtpp.language_models.layout import Layout

FIRST = (
    "--decoder-first-pipeline-num-layers",
    "num_layers_in_first_pipeline_stage",
)
LAST = (
    "--decoder-last-pipeline-num-layers",
    "num_layers_in_last_pipeline_stage",
)
EMBEDDING = ("--account-for-embedding-in-pipeline-split", "account_for_embedding_in_pipeline_split")
LOSS = ("--account-for-loss-in-pipeline-split", "account_for_loss_in_pipeline_split")
CHUNKS = ("--num-virtual-stages-per-pipeline-rank", "virtual_pipeline_model_parallel_size")
PER_CHUNK = ("--num-layers-per-virtual-pipeline-stage",)
_OTHER = ("--pipeline-model-parallel-size", "--mtp-num-layers", "--num-layers")
KEYS = (*FIRST, *LAST, *EMBEDDING, *LOSS, *CHUNKS, *PER_CHUNK, *_OTHER)


def read(setting: Setting | str, request: LayoutRequest) -> Layout:
    """Layout that Megatron-Core makes of its flags."""
    setting = _flags(setting) if isinstance(setting, str) else setting
    findings = check_keys(setting, KEYS)
    ranks = natural(request.stage_count(), "the number of stages", 1)
    first, last = integer(named(setting, *FIRST), FIRST[0]), integer(named(setting, *LAST), LAST[0])
    slots = (bool(named(setting, *EMBEDDING)), bool(named(setting, *LOSS)))
    chunks = _chunks(setting, request.layers + sum(slots), ranks)
    natural(chunks * ranks, "the number of virtual stages", 1)
    if first is None and last is None:
        per_rank = _even(request.layers, ranks, slots, chunks)
    else:
        if any(slots):
            raise refusal(
                "ValueError",
                "num_layers_in_first_pipeline_stage and num_layers_in_last_pipeline_stage cannot be set at the same "
                "time with account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split",
            )
        per_rank = _uneven(request.layers, ranks, first, last, chunks)
    return _layout(per_rank, chunks, slots, request, findings)


def _flags(text: str) -> Setting:
    """Read flags and their numbers in a command line."""
    words = text.replace("=", " ").split()
    flags: dict[str, int | bool] = {}
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word.startswith("--"):
            flags[word] = int(after) if after.isdigit() else True
    return flags


def _chunks(setting: Setting, slots: int, ranks: int) -> int:
    """Count the virtual stages of a rank."""
    number, size = named(setting, *CHUNKS), named(setting, *PER_CHUNK)
    if number is not None and size is not None:
        both = f"{CHUNKS[0]} and {PER_CHUNK[0]} cannot be set at the same time"
        raise refusal("AssertionError", both)
    if number is not None:
        return natural(number, CHUNKS[0], 1)
    if size is None:
        return 1
    size = natural(size, PER_CHUNK[0], 1)
    if named(setting, *FIRST) is not None or named(setting, *LAST) is not None:
        why = "to specify virtual pipeline parallel degree when enable uneven pipeline parallelism"
        raise refusal("AssertionError", f"please use {CHUNKS[0]} {why}")
    if slots % ranks:
        raise refusal("AssertionError", "number of layers of the model must be divisible pipeline model parallel size")
    if slots // ranks % size:
        even = "number of layers per pipeline stage must be divisible number of layers per virtual pipeline stage"
        raise refusal("AssertionError", even)
    return slots // ranks // size


def _even(layers: int, ranks: int, slots: tuple[bool, bool], chunks: int) -> list[int]:
    """Slots of each rank, the embedding and the loss counted where flags say so."""
    total = layers + sum(slots)
    if total % ranks:
        text = f"num_layers={total} should be divisible by config.pipeline_model_parallel_size={ranks}"
        if not any(slots):
            raise refusal("AssertionError", text)
        after = " after enableaccount_for_embedding_in_pipeline_split or account_for_loss_in_pipeline_split must be "
        checked = (
            f"number of middle layers: {total} must be divisible by middle pipeline_model_parallel_size {ranks}"
            if chunks == 1
            else f"num_layers: {total}{after}divisibleby pipeline_model_parallel_size {ranks}"
        )
        raise refusal("ValueError", f"{checked} (AssertionError: {text})")
    each = total // ranks
    if ranks > 1 and each % chunks:
        text = f"num_layers_per_pipeline_rank {each} should be divisible by vp_size {chunks}"
        if not any(slots):
            raise refusal("AssertionError", text)
        checked = f"number of layers on each pipeline rank: {each} must be divisible by {chunks} virtual stages"
        raise refusal("ValueError", f"{checked} (AssertionError: {text})")
    return [each] * ranks


def _uneven(layers: int, ranks: int, first: int | None, last: int | None, chunks: int) -> list[int]:
    """Layers of each rank, with numbers of the first and the last one said."""
    left, middle = layers, ranks
    for given, which in ((first, "first"), (last, "last")):
        if given is None:
            continue
        if given <= 0:
            raise refusal("ValueError", f"num_layers_in_{which}_pipeline_stage must be larger than 0")
        if chunks > 1 and given % chunks:
            where = f"number of layers at {which} stage: {given}must be divisible by virtual pipelineparallel degree"
            raise refusal("ValueError", f"{where} {chunks}")
        left, middle = left - given, middle - 1
    if bool(left) != bool(middle):
        raise refusal(
            "ValueError", f"Mismatch: {left} middle layers remaining but {middle} middle PP stages available."
        )
    if middle and left % middle:
        raise refusal(
            "ValueError",
            f"number of layers at middle stage: {left} must be divisible bythe middle pipeline model parallel size "
            f"{middle} (AssertionError: With uneven pipelineing the left over layers must be divisible by left over "
            "stages)",
        )
    if middle and chunks > 1 and left // middle % chunks:
        each = f"number of layers on each middle pipeline rank:{left // middle} must be divisible by virtual"
        raise refusal("ValueError", f"{each}pipeline parallel degree {chunks}")
    if not middle and chunks > 1:
        raise refusal("ZeroDivisionError", "integer division or modulo by zero (no middle stages with virtual stages)")
    if middle < 0:
        return [last or 0]
    between = [left // middle] * middle if middle else []
    return [*([] if first is None else [first]), *between, *([] if last is None else [last])]


def _lost(counts: list[int], layers: int) -> list[str]:
    return [] if sum(counts) == layers else [f"the stages have {sum(counts)} layers, the model {layers}"]


def _layout(
    per_rank: list[int], chunks: int, slots: tuple[bool, bool], request: LayoutRequest, findings: list[str]
) -> Layout:
    chunks = chunks if len(per_rank) > 1 else 1
    counts = [each // chunks for _ in range(chunks) for each in per_rank]
    counts[0] -= slots[0]
    counts[-1] -= slots[1]
    for place, which, slot in ((0, "first", slots[0]), (-1, "last", slots[1])):
        if slot and counts[place] < 0:
            raise refusal("AssertionError", f"Not enough layers in the {which} virtual pipeline stage")
    last = len(counts) - 1
    ranks = len(per_rank)
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    return Layout(
        engine="megatron-flags",
        vpp=chunks,
        ranges=[[end - count, end] if count else [] for end, count in zip(ends, counts, strict=True)],
        layers=counts,
        embedding_on=[0],
        final_norm_on=[last],
        head_on=[last],
        mtp_on=[last] if request.mtp else [],
        embedding_copy_on=[last] if request.mtp and last else [],
        layers_per_rank=[sum(counts[rank::ranks]) for rank in range(ranks)],
        stages_of_ranks=[list(range(rank, len(counts), ranks)) for rank in range(ranks)],
        stage_order="chunk-major",
        findings=[*findings, *faults_of_counts(counts), *_lost(counts, request.layers)],
    )
