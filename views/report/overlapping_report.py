"""Report on a bound for overlapping ranges of layers: the rate, the prices that prove it, and what was checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.checker.report import Report
from mtpp.machine.machine import Machine
from mtpp.units import format_picoseconds
from mtpp.views.overlapping import priced_classes, rate_text
from mtpp.views.report.claims import HELD, WITHIN, claims_of, facts_section, plan_verdict, with_verdict
from mtpp.views.report.page import Page, Prose, Section, TableBlock
from mtpp.views.table import Column, Table
from mtpp.wording import counted

_HOW = (
    "The price of a layer is no more than what any devices cost that serve it at a higher rate, each paying its price "
    "over its number of layers. Where the prices of all devices come to less than those of all layers, no placement "
    "is faster, whatever ranges overlap and whichever way requests take."
)


def overlapping_page(document: Mapping[str, Any], report: Report) -> Page:
    """Return the report on a well-formed bound for overlapping ranges.

    Parameters
    ----------
    report
        Verdicts of the verifier on it.
    """
    bound, machine = document["lower_bound"], document["machine"]
    layers, devices = counted(document["layers"], "layer"), counted(len(machine["devices"]), "device")
    rate, ticks = document["millitokens_per_s"], bound["value"]
    limit = "no limit" if rate is None else f"at most {rate_text(rate)} inferences/s"
    proven = "No limit on the throughput is proven" if rate is None else f"Proven: {limit}, however ranges overlap"
    figures = [
        ("Throughput", limit, with_verdict("", report, "rate")),
        ("Time of a request", format_picoseconds(ticks), with_verdict("never reached", report, "lower bound")),
        ("Layers", f"{document['layers']:,}", with_verdict("", report, "layers")),
        ("Devices", f"{len(machine['devices']):,}", with_verdict("", report, "machine")),
    ]
    return Page(
        title=document["model"]["name"],
        kind=f"bound for {layers} in overlapping ranges on {devices}",
        verdict=plan_verdict(report, proven, HELD if rate is None else WITHIN),
        figures=figures,
        sections=[_prices(document), _origin(document)],
        claims=claims_of(report.checks),
    )


def _prices(document: Mapping[str, Any]) -> Section:
    proof, rows = document["lower_bound"]["proof"], []
    total = 0
    for one in priced_classes(document):
        together = None if one.price is None else one.price * one.devices
        rows.append([one.name, one.devices, one.layers, one.price, together])
        total += together or 0
    columns = [
        Column("device", left=True),
        *(Column(name, "{:,}".format) for name in ("count", "layers at most", "price", "price of all")),
    ]
    needed = proof["price_of_layer"] * document["layers"]
    said = (
        f"A layer costs {proof['price_of_layer']:,}, all {document['layers']:,} cost {needed:,}; "
        f"all devices come to {total:,}."
    )
    table = TableBlock("prices", Table("Classes of devices and the price of each device", columns, rows), sortable=True)
    return Section("prices-part", "Prices of devices", [Prose(said), table, Prose(_HOW, quiet=True)])


def _origin(document: Mapping[str, Any]) -> Section:
    model = document["model"]
    facts = [
        ("model", f"{model['name']}: {model['ops']:,} ops"),
        ("SHA-256 of its file", model["sha256"] or "none: the model came from no file"),
        ("machine", Machine.from_document(document["machine"]).describe()),
    ]
    return facts_section("origin", "Where it comes from", "What the file records of the model and the machine", facts)
