"""Measured pipelines beside what was predicted of them, ``mtpp-run`` version 1, as JSON."""

from __future__ import annotations

from typing import Any

FORMAT = "mtpp-run"
VERSION = 1


def run_document(comparison: Any) -> dict[str, Any]:
    """Return a measured pipeline as JSON takes it; times are in seconds.

    Parameters
    ----------
    comparison
        A :class:`mtpp.runtime.pipeline.comparison.Comparison`.
    """
    measured = comparison.measured
    request, run, manifest = measured.request, measured.pipeline, measured.wiring.manifest
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": manifest.name, "sha256": manifest.sha256, "ops": manifest.ops},
        "k": manifest.k,
        "batches": run.batches,
        "warmup": measured.length.warmup,
        "queue_depth": request.queue_depth,
        "threads": request.threads,
        "optimise": request.optimise,
        "seed": request.seed,
        "cores": None if measured.cores is None else [list(own) for own in measured.cores],
        "available_cores": measured.available_cores,
        "stopped": str(run.stopped),
        "elapsed_s": _round(run.elapsed_s),
        "bottleneck": {
            "stage": comparison.slowest.index,
            "measured_s": _round(comparison.slowest.held_s),
            "predicted_stage": comparison.predicted_slowest.index,
            "predicted_s": _round(comparison.predicted_bottleneck_s),
            "ratio": _round(comparison.bottleneck_ratio),
        },
        "throughput_per_s": {
            "measured": _round(comparison.throughput),
            "predicted": _round(comparison.predicted_throughput),
        },
        "unsplit": {
            "of": "model" if measured.whole else "stages",
            "measured_s": _round(comparison.unsplit_s),
            "predicted_s": _round(comparison.predicted_unsplit_s),
            **({"device": manifest.one_device.device} if manifest.one_device else {}),
        },
        "speedup": {"measured": _round(comparison.speedup), "predicted": _round(comparison.predicted_speedup)},
        "period_s": _round(comparison.period_s),
        "pays": comparison.pays,
        "hand_overs": _hand_overs(comparison.hand_overs),
        "correlation": _round(comparison.correlation),
        "limits": comparison.limits(),
        "outputs": {
            "repeatable": measured.repeatable,
            "pipeline": _agreement(run.agreement),
            "unsplit": None if measured.whole is None else _agreement(measured.whole[1]),
        },
        "stages": stage_rows(comparison),
    }


def _hand_overs(found: Any) -> dict[str, Any]:
    """Return what stages hand to each other, and the line of its time; a bandwidth without limit is null."""
    line = found.line
    document = {"tensors": found.tensors, "messages": found.messages, "bytes": found.bytes, "line": None}
    if line is not None:
        bandwidth = line.bandwidth_bytes_per_s
        document["line"] = {
            "latency_s": _round(line.latency_s),
            "bandwidth_bytes_per_s": _round(bandwidth) if bandwidth < float("inf") else None,
            "residual": _round(line.residual),
            "messages": [
                {"bytes": one.bytes, "side": "sent" if one.sent else "received", "seconds": _round(one.seconds)}
                for one in line.messages
            ],
        }
    return document


def _agreement(agreement: Any) -> dict[str, Any]:
    largest = agreement.largest
    return {
        "compared": agreement.compared,
        "exact": agreement.exact,
        "near": agreement.near,
        "largest_difference": largest if largest < float("inf") else None,
    }


def stage_rows(comparison: Any) -> list[dict[str, Any]]:
    """Return what JSON and CSV say of stages."""
    figures = (
        *("predicted_s", "alone_s", "held_s", "ratio", "busy_s", "hand_over_s"),
        *("cpu_s", "wait_in_s", "wait_out_s", "share"),
    )
    return [
        {
            "stage": stage.index,
            "file": stage.file,
            "ops": stage.ops,
            **{name: _round(getattr(stage, name)) for name in figures},
        }
        for stage in comparison.stages
    ]


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
