"""Models that a table of certificates may be about, found by SHA-256 or where its rows say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.verification.plan_document import Graph
    from mtpp.api.verification.request import VerifyRequest
    from mtpp.api.verification.supplied_model import SuppliedModel
    from mtpp.formats.measured.measured_costs import MeasuredCosts


class TableModels:
    """Models given, those in folders given, and those that the rows of a table name.

    Parameters
    ----------
    table
        Path of the table; None for a table that is in no file.
    costs
        Measured costs that were given along, if any.
    """

    def __init__(self, request: VerifyRequest, table: Path | None, costs: MeasuredCosts | None) -> None:
        self._request = request
        self._costs = costs
        self._unseen = self._files([model for model in request.models if isinstance(model, str)])
        self._by_digest: dict[str, str | SuppliedModel] = {
            model.sha256: model for model in request.models if not isinstance(model, str) and model.sha256 is not None
        }
        self._digests: dict[str, str | None] = {}
        self._folders = [Path()] if table is None else [table.parent, Path()]
        self._read: tuple[tuple[str | SuppliedModel, Any, Any], Graph] | None = None

    def find(self, row: dict[str, Any]) -> str | SuppliedModel | None:
        """Return the model with a row's SHA-256, or any file that is where the row says, or None."""
        wanted = row["sha256"]
        while wanted not in self._by_digest and (path := next(self._unseen, None)) is not None:
            from mtpp.formats.io.source import file_sha256

            self._by_digest.setdefault(file_sha256(path), path)
        if wanted in self._by_digest:
            return self._by_digest[wanted]
        named = [str(folder / row["path"]) for folder in self._folders]
        there = [path for path in named if self._digest(path) is not None]
        return next((path for path in there if self._digest(path) == wanted), there[0] if there else None)

    def read(self, model: str | SuppliedModel, row: dict[str, Any]) -> Graph:
        """Return a model as a graph document with its digests; the one read last is kept for the next row."""
        from mtpp.api.verification.plan_document import graph_of

        key = (model, row["dims"], row["system"])
        if self._read is None or self._read[0] != key:
            # Dimensions that a file has not are passed over only where other options say how to read it.
            spare_dims = any(self._request.read_as.values().values())
            graph = graph_of(model, row, row["system"], self._request, self._costs, spare_dims=spare_dims)
            self._read = (key, graph)
        return self._read[1]

    def _digest(self, path: str) -> str | None:
        """Return the SHA-256 of a file, None if there is no such file."""
        if path not in self._digests:
            from mtpp.formats.io.source import file_sha256

            self._digests[path] = None
            with suppress(InputError, OSError, ValueError):
                file = Path(path)  # named by the table: a device or a pipe may never come to an end
                if file.is_file() and file.stat().st_size <= self._request.max_model_bytes:
                    self._digests[path] = file_sha256(path)
        return self._digests[path]

    @staticmethod
    def _files(given: list[str]) -> Iterator[str]:
        from mtpp.formats.io.folder import files_of, may_be_graph

        for path in given:
            if Path(path).is_dir():
                yield from (str(file) for file in files_of(Path(path)) if may_be_graph(file))
            else:
                yield path
