"""Pages that commands make of their results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mtpp.api.options.kinds import Text
from mtpp.api.options.option import Options, option
from mtpp.api.options.path_kinds import OutputPath
from mtpp.api.options.verifying import Titled, Verifying
from mtpp.cli.options.shared import OPEN
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.options.reading import Formats
    from mtpp.cli.terminal.console import Console


class Paged(Options):
    """A page of the result."""

    report: str | None = option(
        None, OutputPath(),
        "Make a page to look at, as `mtpp report` does; with --time-limit, no search is run again for it.", "FILE",
    )  # fmt: skip
    title: str | None = option(None, Text(), "Title of the page of --report; by default the model's name.", "TEXT")
    open_page: bool = OPEN

    def __post_init__(self) -> None:
        if self.open_page and self.report is None:
            raise InputError("shows a page", parameter="open_page", remedy="give ‹report› FILE too")
        if self.title is not None and self.report is None:
            raise InputError("is that of a page", parameter="title", remedy="give ‹report› FILE too")

    def check(self) -> None:
        """Check that the page can be made and written, before the work.

        Raises
        ------
        InputError
            If it cannot.
        """
        from mtpp.api.reporting.report import check_report

        Titled(title=self.title)
        if self.report == "-":
            problem = "goes to a file: standard output has the plan"
            raise InputError(problem, parameter="report", remedy="name it report.html")
        if self.report is not None:
            check_report(self.report, "report")

    def deliver(
        self, result: object, model: object, console: Console, verifying: Verifying, read_as: Formats | None = None
    ) -> None:
        """Verify a result and write its page.

        Parameters
        ----------
        verifying
            As of :func:`mtpp.api.verify.request_of`, like *read_as*; shallow: exhaustive searches are left out.
        """
        from mtpp.api.reporting.browser import open_in_browser
        from mtpp.api.reporting.made import command_text
        from mtpp.api.reporting.report import result_page
        from mtpp.api.verify import request_of

        assert self.report is not None
        request = request_of(result, model, verifying, read_as=read_as)
        made = result_page(request, console, named=_named, title=self.title, command=command_text(sys.argv[1:]))
        made.save(self.report)
        console.say(f"{self.report}: {made.said}")
        if self.open_page:
            open_in_browser(self.report, console)


def _named(parameter: str) -> Any:
    """Name the option that left a search out, which nobody called shallow."""
    from mtpp.cli.flags import flag_of

    return "the time limit or Ctrl-C; `mtpp verify` runs it" if parameter == "shallow" else flag_of(parameter)
