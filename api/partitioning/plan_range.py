"""Ranges of plans: one for each of several numbers of stages, with throughput and gain of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mtpp.api.output import SavedResult, save_result
from mtpp.formats.results.plan_range import RangePoint, gains, knee, range_document
from mtpp.host.stop_reason import StopReason

if TYPE_CHECKING:
    from mtpp.api.partition_plan import PartitionPlan
    from mtpp.views.terminal import Medium


@dataclass(frozen=True)
class RangeRow:
    """Figures of the plan for one number of stages.

    Attributes
    ----------
    bottleneck, latency
        In ticks; *bottleneck_s* and *latency_s* in seconds, None where costs have no unit of time.
    throughput_per_s
        Inferences in a second of a full pipeline, or tokens of a language model; None without a unit of time.
    gain_per_device
        Throughput gained over the plan before, as a part of it for each further device; None for the first.
    ratio, optimal
        As those of the plan: proven where it was made here, else claimed.
    """

    k: int
    bottleneck: int
    latency: int
    bottleneck_s: float | None
    latency_s: float | None
    throughput_per_s: float | None
    gain_per_device: float | None
    ratio: float | None
    optimal: bool


class PlanRange(SavedResult):
    """Plans of a model in increasing number of stages; iterates over them.

    :func:`mtpp.partition` makes one where *k* is a range or a list, :func:`mtpp.load` reads one.

    Attributes
    ----------
    plans
        One at least.
    missing
        Reason why there is no plan, by number of stages.
    """

    def __init__(
        self,
        plans: Sequence[PartitionPlan],
        missing: Mapping[int, str] | None = None,
        *,
        document: Mapping[str, Any] | None = None,
    ) -> None:
        self.plans = tuple(plans)
        self.missing = MappingProxyType(dict(missing or {}))
        self._given = document

    def __len__(self) -> int:
        return len(self.plans)

    def __iter__(self) -> Iterator[PartitionPlan]:
        return iter(self.plans)

    def plan(self, k: int) -> PartitionPlan:
        """Return the plan for *k* stages.

        Raises
        ------
        InputError
            If there is none.
        """
        from mtpp.errors import InputError

        for plan in self.plans:
            if plan.k == k:
                return plan
        raise InputError(f"there is no plan for {k}: {self.missing.get(k, 'it was not asked for')}", parameter="k")

    @property
    def verified(self) -> bool:
        """Whether the figures were computed here; those of a document are claims until :func:`mtpp.verify` says so."""
        return all(plan.verified for plan in self.plans)

    @property
    def stopped(self) -> str:
        """``"interrupted"`` if Ctrl-C ended the search before the last number of stages, else ``"finished"``."""
        ended = any(plan.stopped == StopReason.INTERRUPTED for plan in self.plans)
        return StopReason.INTERRUPTED if ended or INTERRUPTED in self.missing.values() else StopReason.FINISHED

    @property
    def knee(self) -> int | None:
        """Number of stages after which no step of the range brings a tenth of throughput per further device."""
        return knee(self._points)

    @property
    def rows(self) -> list[RangeRow]:
        """Figures of each plan."""
        return [
            RangeRow(
                plan.k,
                plan.bottleneck,
                point.latency,
                plan.bottleneck_s,
                plan.latency_s,
                point.throughput_per_s,
                None if gain is None else float(gain),
                plan.ratio,
                plan.optimal,
            )
            for plan, point, gain in zip(self.plans, self._points, gains(self._points), strict=True)
        ]

    def document(self, *, embed: bool = False) -> dict[str, Any]:
        """Return the JSON document, ``mtpp-plan-range`` version 1, as a copy; *embed* as that of a plan."""
        if self._given is not None and not embed:
            return super().document()
        return range_document([plan.document(embed=embed) for plan in self.plans], self.missing)

    def json_text(self, file: str | os.PathLike[str] | None = None, *, embed: bool = False) -> str:
        """Return the text of the document; *file* is as :meth:`PartitionPlan.json_text` takes it."""
        from mtpp.formats.results.document_text import document_text

        return document_text(self.document(embed=True), file) if embed else self.to_json(file)

    def save(self, path: str | os.PathLike[str], *, embed: bool = False) -> None:
        """Write all plans as one JSON document, as :meth:`PartitionPlan.save` does."""
        from mtpp.api.inputs.model import refuse_own_file
        from mtpp.api.parameters import path_text

        target = path_text(path, "path")
        if self.plans[0].model is not None:
            refuse_own_file(target, self.plans[0].model)
        save_result(target, self.json_text(target, embed=embed))

    @cached_property
    def _points(self) -> list[RangePoint]:
        return [RangePoint.of(plan.stated) for plan in self.plans]

    def _said(self) -> Mapping[str, Any]:
        if self._given is not None:
            return self._given
        return range_document([plan.stated for plan in self.plans], self.missing)

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.plan_range import range_text

        stated, told = [plan.stated for plan in self.plans], [plan.assumptions for plan in self.plans]
        common = [text for text in told[0] if all(text in other for other in told)]
        if any(len(texts) > len(common) for texts in told):
            common.append("loads and devices depend on k")
        return range_text(self._said(), medium, common, claimed=not self.verified, plans=stated)


INTERRUPTED = "interrupted before its turn"
"""Reason why there is no plan for a number of stages."""
