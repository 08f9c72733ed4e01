"""Report on a training plan: what is proven, its stages, its schedule over time, and the memory that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from mtpp.checker.report import BOUND_CHECK, Report
from mtpp.checker.training.plan_rows import LEAST_MEMORY
from mtpp.training.timeline import Timeline
from mtpp.units import format_bandwidth, format_bytes
from mtpp.views.report.claims import claims_of, facts_section, plan_verdict, with_verdict
from mtpp.views.report.headline import training_headline
from mtpp.views.report.page import Page, Prose, Section
from mtpp.views.report.stated import ratio_text
from mtpp.views.report.training.memory_peaks import each_limit
from mtpp.views.report.training.plan_stages import drawn_section
from mtpp.views.report.training.scales import rate_text
from mtpp.views.report.training.schedule import timeline_sections
from mtpp.views.report.training.stage_flows import StageFlow
from mtpp.views.report.training_stages import TrainingTimes, memory_section, stages_sections
from mtpp.wording import counted

_WORDS = {"ok": "proven", "unchecked": "claimed, not checked in full", "false": "claimed, not verified"}


def training_page(
    document: Mapping[str, Any],
    report: Report,
    timeline: Timeline | None,
    said: str,
    flows: Sequence[StageFlow] | None = None,
) -> Page:
    """Return the report on a well-formed training plan.

    Parameters
    ----------
    report
        What the verifier says of it.
    timeline
        Its simulated iteration; None where it cannot be simulated.
    said
        What the simulation rests on, or why there is none.
    flows
        Between stages; None where they are not known.
    """
    charts: dict[str, Any] = {}
    data: dict[str, Any] = {}
    sections: list[Section] = []
    times = TrainingTimes.of(document)
    if document["feasible"]:
        sections.append(drawn_section(document, flows))
    drawn: list[Section] = []
    if timeline is not None:
        drawn += timeline_sections(timeline, charts, data)
        if said:
            drawn[0] = Section(drawn[0].name, drawn[0].title, [Prose(said, quiet=True), *drawn[0].blocks])
        sections += drawn[:1]
    elif document["feasible"]:
        sections.append(Section("gantt-part", "Schedule over time", [Prose(f"Not drawn: {said}")]))
    if document["feasible"] and (memory := memory_section(document, timeline)) is not None:
        sections.append(memory)
    sections += drawn[1:]
    if document["feasible"]:
        sections += stages_sections(document, times, flows, charts)
    sections.append(_origin(document))
    model = document["model"]
    return Page(
        title=model["name"],
        kind=f"training plan of {document.get('planner', 'piper')}",
        verdict=plan_verdict(report, *training_headline(document)),
        figures=_figures(document, times, report),
        sections=sections,
        claims=claims_of(report.checks),
        charts=charts,
        data=data,
    )


def _figures(document: Mapping[str, Any], times: TrainingTimes, report: Report) -> list[tuple[str, str, str]]:
    if not document["feasible"]:
        return _wanted(document, report)
    word = _WORDS[str(report.verdict)]
    time = "iteration" if document.get("iteration_ticks") is not None else "time per sample"
    figures = [(times.noun, times.describe(times.upper), with_verdict(times.of_what, report, time))]
    bound = document["lower_bound"]
    scope = ", of this schedule" if bound.get("scope") == "schedule" else ""
    figures.append(
        (
            "Lower bound",
            times.describe(_ticks(bound["value"])),
            with_verdict(f"{bound['method']}, tier {bound['tier']}{scope}", report, BOUND_CHECK),
        )
    )
    figures.append(("Ratio", _ratio(document["ratio"]), word))
    if "family_bound" in document:
        method = document["family_bound"]["method"]
        given = document["rules"]["schedule"] is not None
        under = "the schedule asked for" if given else "looped schedules asked for, with whole backward passes"
        figures.append((f"Ratio under {under}", _ratio(document["family_ratio"]), f"{word}; {method}"))
    for key, name in (("throughput_per_s", "micro-batches"), ("samples_per_s", "samples")):
        if document.get(key) is not None:
            figures.append(("Throughput", f"{rate_text(document[key])}/s", name))
    stages = len(document["stages"])
    devices = document.get("devices_used", document["system"]["devices"])
    figures.append(("Stages", f"{stages:,}", f"on {counted(devices, 'device')}"))
    return figures


def _wanted(document: Mapping[str, Any], report: Report) -> list[tuple[str, str, str]]:
    """Return the devices that no plan was found for, and the memory with which there is one."""
    system = document["system"]
    figures = [("Devices", f"{system['devices']:,}", "at hand")]
    limits = [one for one in dict.fromkeys(each_limit(system["memory_bytes"], 1)) if one is not None]
    if limits:
        figures.append(("Memory", ", ".join(map(format_bytes, limits)), "of each device"))
    least = document.get("least_memory_bytes")
    if least is not None:
        detail = with_verdict("of each device would do", report, LEAST_MEMORY)
        figures.append(("Memory needed", format_bytes(least), detail))
    return figures


def _ratio(value: Any) -> str:
    return ratio_text(None if value is None else float(value))


def _ticks(value: Any) -> Fraction:
    return Fraction(*value) if isinstance(value, Sequence) else Fraction(value)


def _origin(document: Mapping[str, Any]) -> Section:
    model, system = document["model"], document["system"]
    facts = [("model", str(model["name"])), ("SHA-256 of its file", str(model["sha256"] or "none"))]
    times = TrainingTimes.of(document)
    facts += [_sized(name, value, times) for name, value in system.items() if value is not None]
    facts += [(name.replace("_", " "), _fact(value)) for name, value in document.get("rules", {}).items()]
    facts += [("note", str(note)) for note in document.get("notes", ())]
    facts.append(("ended by", str(document["stopped"])))
    return facts_section("origin", "Where it comes from", "What the file records of the model and of the search", facts)


def _sized(name: str, value: Any, times: TrainingTimes) -> tuple[str, str]:
    """Return an entry of the system, whose sizes and rates are written with their units."""
    if name.endswith("_ticks"):
        return name.removesuffix("_ticks").replace("_", " "), times.describe(value)
    for ending, form in (("_bytes_per_s", format_bandwidth), ("_bytes", format_bytes)):
        if name.endswith(ending):
            sizes = value if isinstance(value, list | tuple) else [value]
            texts = ["no limit" if size is None else form(int(size)) for size in sizes]
            return name.removesuffix(ending).replace("_", " "), ", ".join(texts)
    return name.replace("_", " "), _fact(value)


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return (
            ", ".join(map(_fact, value)) if not any(isinstance(one, dict) for one in value) else f"{len(value)} levels"
        )
    return "any" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
