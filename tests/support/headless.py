"""Pages opened in a headless Chromium, with what they say on the console and ask for over the network."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

_READY_S = 30
_SEEN = "Network.requestWillBeSent"


class Browser:
    """A headless Chromium, driven by Selenium."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, *, dark: bool = False, width: int = 1280) -> None:
        """Open a page, and wait until its script has drawn it."""
        self.driver.execute_cdp_cmd("Network.enable", {})
        self._logs("performance")
        self._logs("browser")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(path.as_uri())
        self.wait("document.documentElement.dataset.ready === 'true'")

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: str) -> None:
        """Wait until an expression of the page is true."""
        end = time.monotonic() + _READY_S
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < end, f"{condition}: {self._logs('browser')}"
            time.sleep(0.05)

    def complaints(self) -> list[str]:
        """Return warnings and errors of the console since the page was opened."""
        return [entry["message"] for entry in self._logs("browser") if entry["level"] not in ("INFO", "DEBUG")]

    def hosts(self) -> list[str]:
        """Return addresses that were asked for since the page was opened, but for files and what is in the page."""
        messages = [json.loads(entry["message"])["message"] for entry in self._logs("performance")]
        urls = [one["params"]["request"]["url"] for one in messages if one["method"] == _SEEN]
        return [url for url in urls if not url.startswith(("file:", "data:", "blob:"))]

    def table(self, name: str) -> list[list[str]]:
        """Return the texts of the cells of a table's body, row by row."""
        script = (
            "return [...document.getElementById(arguments[0]).tBodies[0].rows]"
            ".map((row) => [...row.cells].map((cell) => cell.textContent.trim()))"
        )
        rows: list[list[str]] = self.run(script, name)
        return rows

    def columns(self, chart: str, part: str) -> dict[str, list[Any]]:
        """Return the data of a part of a chart, as BokehJS has it once it is drawn."""
        self.wait(f"Bokeh.documents.some((one) => one.roots()[0].name === {json.dumps(chart)})")
        script = (
            "const root = Bokeh.documents.map((one) => one.roots()[0]).find((one) => one.name === arguments[0]);"
            "const data = root.renderers.find((one) => one.name === arguments[1]).data_source.data;"
            "return Object.fromEntries(Object.entries(data instanceof Map ? Object.fromEntries(data) : data)"
            ".map(([key, column]) => [key, [...column].map((v) => ArrayBuffer.isView(v) ? [...v] : v)]));"
        )
        found: dict[str, list[Any]] = self.run(script, chart, part)
        return found

    def _logs(self, kind: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.driver.get_log(kind)
        return entries


def start() -> Browser:
    """Start a headless Chromium, or skip where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    options = Options()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return Browser(webdriver.Chrome(options=options, service=Service(driver)))
