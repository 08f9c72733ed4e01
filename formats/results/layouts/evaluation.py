"""Audits of layouts, ``mtpp-layout-evaluation`` version 1, as JSON."""

from __future__ import annotations

from typing import Any

FORMAT = "mtpp-layout-evaluation"
VERSION = 1


def stage_rows(audit: Any) -> list[dict[str, Any]]:
    """Return a JSON object for each stage, times in ticks and sizes in bytes; times that are not modelled are null.

    Parameters
    ----------
    audit
        A :class:`mtpp.language_models.layout_audit.LayoutAudit`.
    """
    return [_stage_row(number, stage, audit.placed.layers) for number, stage in enumerate(audit.stages)]


def _stage_row(number: int, stage: Any, layers: int) -> dict[str, Any]:
    holder, cost, timed = stage.holder, stage.cost, stage.timed
    held = [layer for layer in holder.layers if layer < layers]
    times = {part: getattr(cost, part) if timed else None for part in ("work", "input", "output", "overflow", "cost")}
    return {
        "index": number,
        "device": {"index": stage.device, "name": stage.device_name},
        "ranges": holder.runs_below(layers),
        "layers": len(held),
        "encoder_layers": len(holder.encoder),
        "mtp_layers": len(holder.layers) - len(held),
        "embedding": holder.embedding,
        "final_norm": holder.final_norm,
        "head": holder.head,
        "virtual_stages": list(holder.stages),
        **times,
        "weight_bytes": cost.param_bytes,
        "cache_bytes": cost.state_bytes,
        "activation_bytes": cost.peak_bytes,
        "memory_bytes": cost.held_bytes,
        "limit_bytes": stage.limit_bytes,
    }


def flat_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with one value a field, for CSV."""
    return [
        {
            **row,
            "device": row["device"]["name"],
            "ranges": ranges_text(row["ranges"]),
            "virtual_stages": " ".join(map(str, row["virtual_stages"])),
        }
        for row in rows
    ]


def ranges_text(ranges: list[list[int]]) -> str:
    """Write ranges of layers for people, their last layers included: ``0–8, 16–23``."""
    return ", ".join(f"{first}–{stop - 1}" if stop - first > 1 else str(first) for first, stop in ranges)
