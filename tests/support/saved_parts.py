"""Charts and tables as the buttons of a page save them."""

from __future__ import annotations

import base64
import io
from xml.etree import ElementTree

from headless import Browser

from mtpp.formats.io.csv_text import csv_rows

_SVG = "{http://www.w3.org/2000/svg}"

_CLICK = """
window.saved = null;
if (!window.kept) {
  window.kept = new Map();
  const before = URL.createObjectURL.bind(URL);
  URL.createObjectURL = (blob) => { const url = before(blob); window.kept.set(url, blob); return url; };
  HTMLAnchorElement.prototype.click = function () {
    window.kept.get(this.href).arrayBuffer().then((bytes) => {
      let text = "";
      for (const byte of new Uint8Array(bytes)) text += String.fromCharCode(byte);
      window.saved = [this.download, btoa(text)];
    });
  };
}
document.querySelectorAll(".save button")[arguments[0]].click();
"""
"""Click a button, and keep what it would save."""

_LEGEND = """
const figure = document.querySelectorAll(".save button")[arguments[0]].closest("figure, .graph");
return [...figure.querySelectorAll(".swatch:not(.piece)")].map((one) => getComputedStyle(one).backgroundColor);
"""

_SHOWN = """
const table = document.querySelectorAll(".save button")[arguments[0]].parentElement.previousElementSibling;
const rows = (table.matches("table") ? table : table.querySelector("table")).rows;
return [...rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
"""


def check_saving(browser: Browser) -> dict[str, int]:
    """Save each chart and table of the open page, and return how many files there are of each kind.

    A picture in vectors parses and has the colours of its legend, the one in pixels decodes to the same shape, and a
    table has the texts of the page.
    """
    from PIL import Image

    buttons = browser.run("return [...document.querySelectorAll('.save button')].map((one) => one.textContent)")
    charts = browser.run("return document.querySelectorAll('figure, .graph').length")
    tables = browser.run("return document.querySelectorAll('table').length")
    assert (buttons.count("SVG"), buttons.count("PNG"), buttons.count("CSV")) == (charts, charts, tables)
    size = (0, 0)
    for number, kind in enumerate(buttons):
        browser.run(_CLICK, number)
        browser.wait("window.saved")
        name, text = browser.run("return window.saved")
        saved = base64.b64decode(text)
        assert name.endswith(f".{kind.lower()}")
        if kind == "SVG":
            root = ElementTree.fromstring(saved)
            assert root.tag == f"{_SVG}svg"
            assert len(list(root.iter())) > 8, name
            fills = {one.get("fill") for one in root.iter()}
            assert fills >= {one for one in browser.run(_LEGEND, number) if not one.startswith("rgba")}, name
            size = (int(root.attrib["width"]), int(root.attrib["height"]))
            assert min(size) > 40, name
        elif kind == "PNG":
            image = Image.open(io.BytesIO(saved))
            image.load()
            assert image.size == (2 * size[0], 2 * size[1])
            colours = image.convert("RGB").getcolors(1 << 22)
            assert colours is not None
            assert len(colours) > 3, name
        else:
            assert list(csv_rows(saved.decode())) == browser.run(_SHOWN, number), name
    assert (browser.complaints(), browser.hosts()) == ([], [])
    return {kind: buttons.count(kind) for kind in ("SVG", "PNG", "CSV")}
