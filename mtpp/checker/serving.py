"""The load of a language model that a plan states: it has to be that of the sizes which its model was read for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.checker.report import Check, fact
from mtpp.document_shape import Rule, choice, record, text, whole

SERVING: Rule = record(
    {
        "phase": choice("decode", "prefill"),
        "context": whole(1),
        "sequences": whole(1),
        "batch": whole(1),
        "kv_dtype": text,
        "tokens": whole(1),
    },
    {"model_type": text},
)
"""Shape of it in documents: *tokens* of a step are those of the batch, at prefill all of their prompts."""

_BLOCK_BYTES = {"fp32": 128, "fp16": 64, "bf16": 64, "fp8": 32, "int8": 32, "int4": 16, "q8_0": 34, "q4_0": 18}
"""Bytes of 32 elements of a cache."""


def serving_rows(plan: Mapping[str, Any]) -> list[Check]:
    """Return the row on a plan's load, if it states one."""
    stated, dims = plan["model"].get("serving"), plan["model"]["dims"]
    if stated is None:
        return []
    name, prefill = "load", stated["phase"] == "prefill"
    each = stated["context"] if prefill else 1
    due = {
        "prompt" if prefill else "context": stated["context"],
        "batch": stated["batch"],
        "cache_block_bytes": _BLOCK_BYTES.get(stated["kv_dtype"]),
    }
    for key, value in due.items():
        own = dims.get(key, 64 if key == "cache_block_bytes" else None)
        if own != value:
            return [Check(name, False, f"the load has {key} = {value}, the model was read for {own}")]
    if ("context" if prefill else "prompt") in dims:
        return [Check(name, False, f"the load is of {stated['phase']}, the model was read for the other phase")]
    held = plan["system"].get("sequences", 1)
    for key, value in (("tokens", stated["batch"] * each), ("sequences", held)):
        if stated[key] != value:
            return [Check(name, False, f"the load says {stated[key]} {key}, it has to be {value}")]
    step = f"{stated['batch']} of {stated['sequences']} sequences a step"
    return [fact(name, f"{stated['phase']}, {step}, {stated['context']} tokens each, cache in {stated['kv_dtype']}")]
