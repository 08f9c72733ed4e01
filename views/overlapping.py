"""Table of a bound for overlapping ranges of layers: the classes of devices with their prices, and the rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from mtpp.units import format_picoseconds
from mtpp.views.renderer import view
from mtpp.views.table import Column, Table
from mtpp.views.terminal import Medium
from mtpp.wording import counted


@view
def overlapping_text(document: Mapping[str, Any], medium: Medium) -> Iterable[Table]:
    """Return a table of the classes of devices, under it the bound."""
    bound, devices = document["lower_bound"], document["machine"]["devices"]
    classes = list(priced_classes(document))
    layers = document["layers"]
    if medium.form == "csv":
        rate = document["millitokens_per_s"]
        keys = ("model", "layers", "ticks", "millitokens_per_s")
        row = [document["model"]["name"], layers, bound["value"], rate]
        return [Table(columns=list(map(Column, keys)), rows=[row])]
    columns = [Column("device", left=True), Column("count"), Column("layers at most"), Column("price")]
    layered = f"{counted(layers, 'layer')} in overlapping ranges"
    title = f"{document['model']['name']}: {layered}, {counted(len(devices), 'device')}"
    budget = sum((one.price or 0) * one.devices for one in classes)
    return [Table(title, columns, classes, _figures(document, budget), layout="plain")]


class PricedClass(NamedTuple):
    """Devices with equal times: name of the first, number, most layers of one, and its price, None if unknown."""

    name: str
    devices: int
    layers: int
    price: int | None


def priced_classes(document: Mapping[str, Any]) -> Iterator[PricedClass]:
    """Yield the classes of devices in the order in which they first stand."""
    prices = document["lower_bound"]["proof"]["prices"]
    rows = [(device["name"], tuple(device.get("stage_times_ps", ()))) for device in document["machine"]["devices"]]
    counts: dict[tuple[int, ...], int] = {}
    for _, times in rows:
        counts[times] = counts.get(times, 0) + 1
    for times, count in counts.items():
        name = next(name for name, own in rows if own == times)
        yield PricedClass(name, count, len(times), prices.get(name))


def rate_text(millis: int) -> str:
    """Write a rate in thousandths as a decimal."""
    return f"{millis // 1000:,}.{millis % 1000:03}"


def _figures(document: Mapping[str, Any], budget: int) -> list[tuple[str, str]]:
    bound, rate = document["lower_bound"], document["millitokens_per_s"]
    if rate is None:
        return [("throughput", "no limit proven")]
    needed = bound["proof"]["price_of_layer"] * document["layers"]
    return [
        ("throughput", f"at most {rate_text(rate)} inferences/s, proven ({rate} in thousandths)"),
        ("a request", f"no placement serves one every {format_picoseconds(bound['value'])} ({bound['value']} ticks)"),
        ("proof", f"the layers need devices of {needed:,}, all devices come to {budget:,}"),
    ]
