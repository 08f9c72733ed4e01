"""Stages of a plan beside the times that a run of them took, ``mtpp-measured-stages`` version 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mtpp.document_shape import Path, array, nullable, number, record, refuse, text, whole
from mtpp.errors import InputError
from mtpp.formats.io.json_shape import attributed, check_header, shaped
from mtpp.formats.results.pipeline_run import FORMAT as RUN
from mtpp.formats.results.pipeline_run import VERSION as RUN_VERSION

FORMAT = "mtpp-measured-stages"
VERSION = 1


def _seconds(value: Any, path: Path) -> None:
    number(value, path)
    if not value > 0:
        refuse("must be above zero", path)


_RUN = record(
    {
        "model": record({"name": text, "sha256": text, "ops": whole()}, closed=False),
        "batches": whole(1),
        "unsplit": record({"measured_s": _seconds}, closed=False),
        "stages": array(
            record({"stage": whole(), "ops": whole(), "busy_s": _seconds}, {"held_s": _seconds}, closed=False)
        ),
    },
    {"period_s": nullable(_seconds)},
    closed=False,
)


@dataclass(frozen=True)
class MeasuredRun:
    """Times that a run of stages took.

    Attributes
    ----------
    name, sha256, model_ops
        Of the model that was split.
    ops, seconds
        Of each stage that ran an op, by its number; seconds with a batch in hand.
    unsplit_s
        Of a batch without a pipeline.
    period_s
        From one result to the next of a full pipeline; None where that is not known.
    """

    name: str
    sha256: str
    model_ops: int
    batches: int
    ops: Mapping[int, int]
    seconds: Mapping[int, float]
    unsplit_s: float
    period_s: float | None

    @classmethod
    def of(cls, document: Any, source: str) -> MeasuredRun:
        """Return what a parsed document of ``mtpp run`` says.

        Raises
        ------
        InputError
            If it is none, or not as such a document is.
        """
        with attributed(source):
            check_header(document, RUN, RUN_VERSION)
            shaped(_RUN, document)
            rows, model, period = document["stages"], document["model"], document.get("period_s")
            if not rows or len({row["stage"] for row in rows}) < len(rows):
                raise InputError("must list each stage once", where="/stages")
            return cls(
                **{"name": model["name"], "sha256": model["sha256"], "model_ops": model["ops"]},
                batches=document["batches"],
                ops={row["stage"]: row["ops"] for row in rows},
                seconds={row["stage"]: float(row.get("held_s", row["busy_s"])) for row in rows},
                unsplit_s=float(document["unsplit"]["measured_s"]),
                period_s=None if period is None else float(period),
            )


@dataclass(frozen=True)
class MeasuredStages:
    """A plan's costs of stages beside a run of the same stages.

    Attributes
    ----------
    predicted
        Seconds of each stage with ops, by its number.
    unsplit
        Seconds of the whole model in one stage; None where no device holds it, or none is known to.

    Raises
    ------
    InputError
        If the run has other stages.
    """

    run: MeasuredRun
    ops: Mapping[int, int]
    predicted: Mapping[int, Fraction]
    unsplit: Fraction | None

    def __post_init__(self) -> None:
        if self.ops != self.run.ops:
            stages = sorted(self.ops.keys() | self.run.ops.keys())
            stage = next(one for one in stages if self.ops.get(one) != self.run.ops.get(one))
            own, other = (f"{ops.get(stage, 0):,}" for ops in (self.ops, self.run.ops))
            raise InputError(
                f"stage {stage} has {other} ops in the run, and {own} here", remedy="give a run of these stages"
            )

    @property
    def slowest(self) -> tuple[int, int]:
        """The slowest stage as predicted and as measured."""
        return max(self.predicted, key=lambda i: self.predicted[i]), max(
            self.run.seconds, key=lambda i: self.run.seconds[i]
        )

    @property
    def bottleneck(self) -> tuple[float, float]:
        """Seconds of the slowest stage as predicted and as measured."""
        return float(max(self.predicted.values())), max(self.run.seconds.values())

    @property
    def bottleneck_ratio(self) -> float | None:
        """Measured over predicted bottleneck."""
        predicted, measured = self.bottleneck
        return measured / predicted if predicted else None

    @property
    def speedup(self) -> tuple[float | None, float | None]:
        """Unsplit model over a full pipeline, as predicted and as measured."""
        predicted, period = self.bottleneck[0], self.run.period_s
        known = self.unsplit is not None and predicted > 0
        return (
            float(self.unsplit) / predicted if known and self.unsplit is not None else None,
            None if period is None else self.run.unsplit_s / period,
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each stage that runs an op, times in seconds; the ratio is measured over predicted."""
        return [
            {
                "stage": stage,
                "ops": self.ops[stage],
                "predicted_s": _rounded(float(seconds)),
                "measured_s": _rounded(self.run.seconds[stage]),
                "ratio": _rounded(self.run.seconds[stage] / float(seconds) if seconds else None),
            }
            for stage, seconds in sorted(self.predicted.items())
        ]

    def to_document(self) -> dict[str, Any]:
        """Return it as JSON takes it; times are in seconds."""
        (expected, slowest), (predicted, measured), (due, speedup) = self.slowest, self.bottleneck, self.speedup
        return {
            "format": FORMAT,
            "version": VERSION,
            "model": {"name": self.run.name, "sha256": self.run.sha256, "ops": self.run.model_ops},
            "batches": self.run.batches,
            "bottleneck": {
                "predicted_stage": expected,
                "predicted_s": _rounded(predicted),
                "stage": slowest,
                "measured_s": _rounded(measured),
                "ratio": _rounded(self.bottleneck_ratio),
            },
            "unsplit": {
                "predicted_s": _rounded(None if self.unsplit is None else float(self.unsplit)),
                "measured_s": _rounded(self.run.unsplit_s),
            },
            "speedup": {"predicted": _rounded(due), "measured": _rounded(speedup)},
            "pays": {
                "predicted": None if due is None else due > 1,
                "measured": None if speedup is None else speedup > 1,
            },
            "stages": self.rows(),
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
