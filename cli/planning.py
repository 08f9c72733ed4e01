"""Names that commands still take from here."""

from __future__ import annotations

from mtpp.cli.options.limits import writing_s
from mtpp.host.cores import available_cores

__all__ = ["available_cores", "writing_s"]
