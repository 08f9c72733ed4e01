"""Table of a bound for overlapping ranges of layers: the classes of devices with their prices, and the rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mtpp.units import format_picoseconds
from mtpp.views.renderer import view
from mtpp.views.table import Column, Table
from mtpp.views.terminal import Medium
from mtpp.wording import counted


@view
def overlapping_text(document: Mapping[str, Any], medium: Medium) -> Iterable[Table]:
    """Return a table of the classes of devices, under it the bound."""
    bound, devices = document["lower_bound"], document["machine"]["devices"]
    first = {device["name"]: device for device in reversed(devices)}
    prices = bound["proof"]["prices"]
    rows = []
    for name, price in prices.items():
        times = first[name]["stage_times_ps"]
        count = sum(device["stage_times_ps"] == times for device in devices)
        rows.append([name, count, len(times), price])
    layers = document["layers"]
    if medium.form == "csv":
        rate = document["millitokens_per_s"]
        keys = ("model", "layers", "ticks", "millitokens_per_s")
        row = [document["model"]["name"], layers, bound["value"], rate]
        return [Table(columns=list(map(Column, keys)), rows=[row])]
    columns = [Column("device", left=True), Column("count"), Column("layers at most"), Column("price")]
    layered = f"{counted(layers, 'layer')} in overlapping ranges"
    title = f"{document['model']['name']}: {layered}, {counted(len(devices), 'device')}"
    return [
        Table(
            title,
            columns,
            rows,
            _figures(document, sum(price * row[1] for price, row in zip(prices.values(), rows, strict=True))),
            layout="plain",
        )
    ]


def _figures(document: Mapping[str, Any], budget: int) -> list[tuple[str, str]]:
    bound, rate = document["lower_bound"], document["millitokens_per_s"]
    if rate is None:
        return [("throughput", "no limit proven")]
    needed = bound["proof"]["price_of_layer"] * document["layers"]
    return [
        ("throughput", f"at most {rate // 1000:,}.{rate % 1000:03} inferences/s, proven ({rate} in thousandths)"),
        ("a request", f"no placement serves one every {format_picoseconds(bound['value'])} ({bound['value']} ticks)"),
        ("proof", f"the layers need devices of {needed:,}, all devices come to {budget:,}"),
    ]
