"""Origin of a page: when it was made, and by which command."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.views.report.page import Made

IN_PYTHON = "mtpp.report in Python"
"""What stands for a command where a script made the page."""

_EPOCH = "SOURCE_DATE_EPOCH"
"""Variable with the seconds since 1970 that are the time of all builds, so that they come out the same."""

_LONGEST = 500
"""Characters of a command, at most."""

_ROOTED = re.compile(r"(^|=)(?:/|~|[A-Za-z]:[\\/]).*[\\/](?=[^\\/])")


def made_by(command: str) -> Made:
    """Return the origin of a page that is made now, or at the time that ``SOURCE_DATE_EPOCH`` says."""
    from mtpp.views.report.page import Made

    stated = os.environ.get(_EPOCH, "")
    now = datetime.fromtimestamp(int(stated), UTC) if stated.isdecimal() else datetime.now(UTC)
    return Made(f"{now:%Y-%m-%d %H:%M} UTC", command if len(command) <= _LONGEST else f"{command[:_LONGEST]}…")


def command_text(arguments: Sequence[str]) -> str:
    """Write the command that a shell ran; of absolute paths the name alone, as pages are shown to others.

    Examples
    --------
    >>> command_text(["report", "/home/me/plan.json", "--model=/home/me/my net.onnx", "-o", "page.html"])
    "mtpp report plan.json '--model=my net.onnx' -o page.html"
    """
    return shlex.join(["mtpp", *(_ROOTED.sub(r"\1", one) for one in arguments)])
