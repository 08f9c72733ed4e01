"""Training runs beside what was planned, ``mtpp-training-run`` version 1, as JSON."""

from __future__ import annotations

import math
from typing import Any

FORMAT = "mtpp-training-run"
VERSION = 1


def trained_document(trained: Any) -> dict[str, Any]:
    """Return a training run as JSON takes it; times are in seconds.

    ``agrees``, ``losses``, ``gradients``, ``buffers`` and ``unsplit_s`` are null where nothing was ``compared``.

    Parameters
    ----------
    trained
        A :class:`mtpp.runtime.training.training_run.Trained`.
    """
    run, folder = trained.run, trained.folder
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": folder.model_name, "sha256": folder.model_sha256},
        "engine": "torch",
        "devices": folder.devices,
        "micro_batches": folder.micro_batches,
        "steps": run.terms.steps,
        "threads": run.terms.threads,
        "cores": trained.cores,
        "compared": run.compared is not None,
        "agrees": run.agrees,
        "losses": _compared(run.compared and run.compared.losses),
        "gradients": _compared(run.compared and run.compared.gradients),
        "buffers": _compared(run.compared and run.compared.buffers),
        "last_losses": [one if math.isfinite(one) else None for one in run.last_losses],
        "step_s": trained.step_s,
        "steps_s": list(run.step_s),
        "predicted_s": trained.predicted_s,
        "planned_s": trained.planned_s,
        "unsplit_s": trained.unsplit_s,
        "stages": stage_rows(trained),
    }


def _compared(one: Any) -> dict[str, Any] | None:
    if one is None:
        return None
    difference = one.largest if one.largest < float("inf") else None
    return {"count": one.count, "exact": one.exact, "agrees": one.holds, "difference": difference, "worst": one.worst}


def stage_rows(trained: Any) -> list[dict[str, Any]]:
    """Return what JSON and CSV say of stages."""
    run, timed, tick = trained.run, trained.folder.timed, trained.tick_s
    planned = {one.source: one.ticks for one in timed.handovers}

    def measured(stage: int, *kinds: str) -> float:
        return float(sum(run.pass_s.get((stage, kind), 0.0) for kind in kinds))

    def seconds(ticks: int | None) -> float | None:
        return None if tick is None or ticks is None else ticks * tick

    last = len(trained.folder.stages) - 1
    return [
        {
            "index": s,
            "device": s % trained.folder.devices,
            "ops": len(ops),
            "forward_s": measured(s, "F"),
            "planned_forward_s": seconds(timed.forward_ticks[s]),
            "backward_s": measured(s, "B", "I", "W"),
            "planned_backward_s": seconds(timed.backward_ticks[s]),
            "handover_s": None if s == last else run.handover_s[s],
            "planned_handover_s": None if s == last else seconds(planned.get(s)),
        }
        for s, ops in enumerate(trained.folder.stages)
    ]
